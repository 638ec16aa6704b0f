// The instrument: plot, loop, colours, why, timeline. It draws, asks and shows; Python decides.

import { actionsPanel } from "./actions.js";
import { count, h, rowsOf } from "./dom.js";
import { button } from "./icons.js";
import { exportMenu } from "./exporting.js";
import { keyboard, keysDialog } from "./keys.js";
import { knownPanel } from "./known.js";
import { legendPanel } from "./legend.js";
import { Link, typed } from "./link.js";
import { Plot } from "./plot.js";
import { settingsPanel } from "./settings.js";
import { timelinePanel } from "./timeline.js";
import { toolbar } from "./tools.js";
import { tooltip } from "./tooltip.js";
import { whyPanel } from "./why.js";

const GROUND = { light: "#FFFFFF", dark: "#12171D" };

export function render({ model, el, link = new Link(model), onHome = null }) {
  const app = { link, el, state: null, data: null, theme: null };
  const root = h("div", { class: "imapce" });
  el.append(root);
  link.showOn(root);
  app.root = root;

  // --- asking, and saying what went wrong -------------------------------------------------------------------------
  app.say = (words) => {
    app.live.textContent = "";
    requestAnimationFrame(() => (app.live.textContent = words));
  };
  app.notice = (sentence, kind = "status", act = null) => {
    const note = h("div", { class: `toast ${kind}`, role: kind }, h("span", null, sentence), act, button("Dismiss", { class: "quiet", iconOnly: true, onclick: () => note.remove() }, "clear"));
    app.toasts.replaceChildren(note);
    // What asks something waits for an answer.
    if (act) act.addEventListener("click", () => note.remove());
    else setTimeout(() => note.remove(), 12000);
  };
  app.fail = (problem) => app.notice(problem.message ?? String(problem), "alert");
  app.ask = (type, fields, buffers) =>
    link.ask(type, fields, buffers).catch((problem) => {
      app.fail(problem);
      return [null, []];
    });

  // --- selecting ----------------------------------------------------------------------------------------------------
  const mark = ([told, [bits]]) => {
    if (!told) return;
    app.selected = told;
    app.plot.raster.setMarked(typed(Uint8Array, bits), told.count > 0);
    app.plot.draw();
    for (const f of app.onSelection) f(told);
    app.say(told.count ? `${rowsOf(told.count)} selected` : "nothing selected");
  };
  app.onSelection = [];
  app.select = async (fields, buffers) => mark(await app.ask("select", fields, buffers));

  app.plot = new Plot({
    onLasso: (corners, mode, looking) => app.select({ how: "lasso", mode, looking }, [corners]),
    onHover: (point, x, y) => app.tip.show(point, x, y),
    onLeave: () => app.tip.hide(),
    onClick: (_, mode) => mode === "replace" && app.selected?.count && app.select({ how: "clear" }),
  });
  app.tip = tooltip(app);

  // --- light and dark -----------------------------------------------------------------------------------------------
  const prefers = window.matchMedia("(prefers-color-scheme: dark)");
  const setTheme = () => {
    const chosen = app.theme ?? (prefers.matches ? "dark" : "light");
    root.dataset.theme = chosen;
    const style = getComputedStyle(root);
    const read = (name) => style.getPropertyValue(name).trim();
    const look = { ground: GROUND[chosen], ink: read("--ink"), soft: read("--soft"), hairline: read("--line"), accent: read("--accent"), accentSoft: read("--accent-soft"), font: "system-ui, -apple-system, 'Segoe UI', sans-serif" };
    if (app.data) app.plot.setLook(look, app.data.palettes[chosen]);
    app.palette = app.data?.palettes[chosen] ?? [];
    app.look = look;
  };
  app.switchTheme = () => {
    app.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("imapce-theme", app.theme);
    } catch {
      // A notebook may keep no storage; the switch then holds until it is reloaded.
    }
    repaint();
  };
  const repaint = () => {
    setTheme();
    app.legend.refresh();
    app.timeline.refresh(app.state);
    app.timeline.recolour();
  };
  try {
    app.theme = localStorage.getItem("imapce-theme");
  } catch {
    app.theme = null;
  }
  prefers.addEventListener("change", repaint);

  // --- the layout ---------------------------------------------------------------------------------------------------
  app.live = h("div", { class: "unseen", role: "status", "aria-live": "polite" });
  app.toasts = h("div", { class: "toasts" });
  app.legend = legendPanel(app);
  app.actions = actionsPanel(app);
  app.known = knownPanel(app);
  app.why = whyPanel(app);
  app.settings = settingsPanel(app);
  app.timeline = timelinePanel(app);
  app.tools = toolbar(app);
  const name = h("h1", null, "…");
  const facts = h("p", { class: "facts" });
  const busy = h("div", { class: "busy", hidden: true }, h("span", { class: "spinner" }), h("span", { class: "words" }));
  const undo = button("Undo (U)", { iconOnly: true, onclick: () => app.ask("undo") }, "undo");
  const redo = button("Redo (R)", { iconOnly: true, onclick: () => app.ask("redo") }, "redo");
  const lost = h("div", { class: "lost", role: "alert", hidden: true }, "The connection is lost. Your work is kept; trying again…");
  const title = h("div", { class: "title" }, h("h2", null, ""));
  const notes = h("section", { class: "card notes", "aria-label": "How the table was read", hidden: true });
  root.append(
    h("header", null,
      onHome ? button("Back to the start", { iconOnly: true, class: "quiet", onclick: onHome }, "home") : null,
      h("div", { class: "name" }, name, facts),
      busy,
      h("div", { class: "group" }, undo, redo),
      exportMenu(app),
      button("Light or dark", { iconOnly: true, class: "quiet", onclick: app.switchTheme }, "sun"),
      button("Keys (?)", { iconOnly: true, class: "quiet", onclick: () => app.keys.showModal() }, "help")),
    lost,
    h("main", null,
      h("section", { class: "stage", "aria-label": "View" }, title, app.plot.el, app.tools.el, app.tip.el, app.toasts),
      h("aside", { "aria-label": "Exploration" }, app.actions.el, app.known.el, app.legend.el, app.why.el, notes, app.settings.el),
      app.timeline.el),
    app.live);
  app.keys = keysDialog();
  root.append(app.keys);
  keyboard(app);

  // --- news from Python ---------------------------------------------------------------------------------------------
  link.on("view", (told, [points, codes]) => {
    const all = typed(Float32Array, points);
    const n = all.length / told.dims;
    const columns = Array.from({ length: told.dims }, (_, j) => all.subarray(j * n, (j + 1) * n));
    app.scene = told;
    app.plot.show(told, columns, typed(Uint8Array, codes));
    app.legend.show(told.colours);
    app.timeline.refreshThumbnails();
    title.firstChild.textContent = told.title;
    root.dataset.drawn = String(Number(root.dataset.drawn ?? 0) + 1);
    app.plot.over.setAttribute("aria-label", `${told.title}: ${rowsOf(n)}`);
    app.tools.refresh(told);
    app.settings.refresh(told);
  });
  link.on("colours", (told, [codes]) => {
    app.plot.setOutlines(told.outlines);
    app.plot.raster.setCodes(typed(Uint8Array, codes));
    app.plot.draw();
    app.legend.show(told);
    app.timeline.recolour();
  });
  link.on("selection", (told, buffers) => mark([told, buffers]));
  link.on("state", (state) => {
    const before = app.state;
    app.state = state;
    const held = Boolean(state.busy && !state.busy.gives_way);
    undo.disabled = !state.undoable || held;
    redo.disabled = !state.redoable || held;
    busy.hidden = !state.busy;
    if (state.busy && before?.busy?.words !== state.busy.words) busy.lastChild.textContent = `${state.busy.words}…`;
    facts.textContent = `${rowsOf(state.rows)} × ${count(state.features)} features${state.file ? ` · saved in ${state.file}` : ""}`;
    app.actions.refresh(state);
    app.timeline.refresh(state);
    app.known.state(state);
    app.settings.state(state);
    root.dataset.busy = state.busy ? "yes" : "no";
    if (before && before.steps.length !== state.steps.length) app.say(`${count(state.steps.length)} steps, ${rowsOf(state.left)} left to explore`);
  });
  link.on("progress", (told) => {
    busy.hidden = false;
    busy.lastChild.textContent = `${told.words}…`;
    app.actions.progress(told);
  });
  link.on("cancelled", (told) => app.say(`cancelled: ${told.words}`));
  link.on("failed", (told) => {
    if (told.anyway) app.notice(told.sentence, "alert", button("Split anyway", { onclick: () => app.ask("split", told.anyway) }));
    else app.fail(new Error(told.sentence));
  });

  const hello = async () => {
    const [told] = await app.ask("hello");
    if (!told) return;
    app.data = told;
    name.textContent = told.name;
    document.title = `${told.name} – imapce`;
    setTheme();
    app.legend.columns(told.columns);
    app.legend.refresh();
    if (app.state) app.timeline.refresh(app.state);
    app.hovered = told.hovered;
    app.known.columns(told);
    app.settings.columns(told);
    notes.hidden = !told.notes.length;
    notes.replaceChildren(h("h3", null, "How the table was read"), ...told.notes.map((one) => h("p", null, one[0].toUpperCase() + one.slice(1))));
  };
  hello();
  return {
    again: () => {
      lost.hidden = true;
      return hello();
    },
    lost: () => (lost.hidden = false),
    gone: () => app.stopListening?.(),
  };
}

export default { render };
