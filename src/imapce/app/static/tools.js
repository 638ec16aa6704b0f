// The strip over the plot: how the hand draws, and what is drawn over the points.

import { h } from "./dom.js";
import { button } from "./icons.js";

export function toolbar(app) {
  const { plot } = app;
  let flatTool = null;
  const tools = {
    lasso: button("Lasso (L)", { iconOnly: true, onclick: () => pick("lasso") }, "lasso"),
    box: button("Box (B)", { iconOnly: true, onclick: () => pick("box") }, "box"),
    pan: button("Move (P)", { iconOnly: true, onclick: () => pick("pan") }, "pan"),
  };
  const modes = h("div", { class: "group", role: "group", "aria-label": "A new selection" },
    ...[["replace", "New"], ["add", "Add"], ["subtract", "Subtract"]].map(([mode, words]) => h("button", { type: "button", class: "mode", "data-mode": mode, onclick: () => setMode(mode) }, words)));
  const arrows = button("Features as arrows (F)", { iconOnly: true, onclick: () => toggleArrows() }, "arrows");
  const three = h("button", { type: "button", class: "mode", title: "Look for a view of three axes; drag with Move to turn it (3)", onclick: () => toggleThree() }, "3-D");
  const el = h("div", { class: "tools", role: "toolbar", "aria-label": "Tools" },
    h("div", { class: "group" }, tools.lasso, tools.box, tools.pan), modes,
    h("div", { class: "group" },
      button("Invert the selection (I)", { iconOnly: true, onclick: () => app.select({ how: "invert" }) }, "invert"),
      button("Clear the selection (Esc)", { iconOnly: true, onclick: () => app.select({ how: "clear" }) }, "clear")),
    h("div", { class: "group" }, arrows, three, button("Whole view (0)", { iconOnly: true, onclick: () => plot.resetView() }, "reset")));

  function pick(name) {
    plot.tool = name;
    for (const [key, one] of Object.entries(tools)) one.setAttribute("aria-pressed", String(key === name));
    plot.over.dataset.tool = name;
  }
  function setMode(mode) {
    plot.mode = mode;
    for (const one of modes.children) one.setAttribute("aria-pressed", String(one.dataset.mode === mode));
  }
  function toggleArrows() {
    plot.showArrows = !plot.showArrows;
    arrows.setAttribute("aria-pressed", String(plot.showArrows));
    plot.redrawOver();
  }
  function toggleThree() {
    if (app.scene?.dims !== 3) app.ask("three");
    else if (app.state.proposed) app.ask("view", { number: 0 });
    else app.ask("next");
  }
  pick("lasso");
  setMode("replace");
  return {
    el, pick, toggleArrows, toggleThree,
    refresh(scene) {
      const flat = scene.dims !== 3;
      three.setAttribute("aria-pressed", String(!flat));
      // Three axes are turned by hand; back in two, the hand has what it had before.
      if (!flat && flatTool === null) {
        flatTool = plot.tool;
        pick("pan");
      } else if (flat && flatTool !== null) {
        if (plot.tool === "pan") pick(flatTool);
        flatTool = null;
      }
    },
  };
}
