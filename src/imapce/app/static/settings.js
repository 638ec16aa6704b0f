// How views are found: the weights, how many clusters, and how much of the known is left in sight.

import { empty, h, niceNumber, short } from "./dom.js";
import { button } from "./icons.js";

export function settingsPanel(app) {
  const weights = { alpha: weight("α", "How strongly what is known is given up"), mu: weight("μ", "How strongly clusters are pulled apart") };
  const granularity = h("select", { "aria-label": "Fewer or more clusters" }, [["coarser", "fewer"], ["auto", "as found"], ["finer", "more"]].map(([value, words]) => h("option", { value }, words)));
  const clusters = h("input", { type: "number", min: 2, step: 1, placeholder: "automatic", "aria-label": "Number of clusters" });
  granularity.addEventListener("change", () => app.ask("settings", { granularity: granularity.value }));
  clusters.addEventListener("change", () => app.ask("settings", { n_clusters: clusters.value === "" ? "auto" : Number(clusters.value) }));
  const finding = h("div", { class: "finding" }, h("h4", null, "Clusters"),
    h("div", { class: "row" }, h("label", null, h("span", null, "How many"), granularity), h("label", { title: "So many clusters are shown whether or not they are more than chance" }, h("span", null, "Or this number"), clusters)));
  const read = h("div", { class: "read" });
  const measure = button("What is left of the known?", { onclick: () => readBack() });
  const hover = h("details", null, h("summary", null, "Columns beside the pointer"), h("div", { class: "checks" }));
  let settled = "";
  const el = h("section", { class: "card settings", "aria-label": "Settings" },
    h("details", null, h("summary", null, h("h3", null, "How views are found")),
      h("div", { class: "inner" }, weights.alpha.el, weights.mu.el, finding,
        h("div", null, measure, read), hover)));

  function weight(sign, words) {
    const input = h("input", { type: "number", step: "any", min: 0, "aria-label": `${sign}: ${words}` });
    const automatic = h("input", { type: "checkbox", checked: true });
    const found = h("small");
    const key = sign === "α" ? "alpha" : "mu";
    automatic.addEventListener("change", () => {
      input.disabled = automatic.checked;
      if (automatic.checked) app.ask("settings", { [key]: "auto" });
      else input.focus();
    });
    input.disabled = true;
    input.addEventListener("change", () => input.value !== "" && app.ask("settings", { [key]: Number(input.value) }));
    return {
      el: h("div", { class: "weight" }, h("label", null, h("b", null, sign), h("span", null, words)), h("div", { class: "row" }, input, h("label", { class: "auto" }, automatic, "automatic"), found)),
      set(value) {
        automatic.checked = value === "auto";
        input.disabled = automatic.checked;
        if (!automatic.checked && document.activeElement !== input) input.value = String(value);
      },
      show(value) {
        if (value === undefined) return;
        if (value === null) {
          found.textContent = "no part in this view";
          if (automatic.checked) input.value = "";
          return;
        }
        found.textContent = `now ${niceNumber(value)}`;
        if (automatic.checked) input.value = String(Number(value.toPrecision(4)));
      },
    };
  }

  async function readBack() {
    measure.disabled = true;
    read.replaceChildren(empty("Reading the known back from the view…"));
    const [told] = await app.ask("left");
    measure.disabled = false;
    if (!told) return read.replaceChildren();
    if (!told.known.length) return read.replaceChildren(empty("No column is known, so nothing can be read back."));
    read.replaceChildren(...told.known.map((one) => {
      if (one.words) return h("p", { class: "empty" }, `${one.name}: ${one.words}`);
      const share = (value) => `${100 * Math.min(1, Math.max(0, value))}%`;
      const gone = one.score - one.chance < 0.1;
      return h("div", { class: "leak" }, h("span", null, short(one.name, 24)), h("span", { class: "track" }, h("i", { class: gone ? "good" : "warn", style: { width: share(one.score) } }), h("u", { style: { left: share(one.chance) } })),
        h("small", null, `${gone ? "gone" : "still there"}: read ${niceNumber(one.score)}, chance ${niceNumber(one.chance)}`));
    }));
  }

  return {
    el,
    columns(told) {
      hover.lastChild.replaceChildren(...told.columns.slice(0, 40).map((name) => {
        const box = h("input", { type: "checkbox", checked: app.hovered.includes(name) });
        box.addEventListener("change", () => (app.hovered = box.checked ? [...app.hovered, name].slice(-12) : app.hovered.filter((one) => one !== name)));
        return h("label", null, box, short(name, 30));
      }));
    },
    state(state) {
      if (JSON.stringify(state.weights) !== settled) {
        settled = JSON.stringify(state.weights);
        for (const [key, value] of Object.entries(state.weights)) weights[key].set(value);
      }
      finding.hidden = !state.joint;
      granularity.value = state.granularity;
      if (document.activeElement !== clusters) clusters.value = state.n_clusters ?? "";
      const held = Boolean(state.busy && !state.busy.gives_way);
      for (const one of [...el.querySelectorAll("select, button"), clusters]) if (one !== measure) one.disabled = held;
    },
    refresh(scene) {
      weights.alpha.show(scene.alpha);
      weights.mu.show(scene.mu);
      read.replaceChildren();
    },
  };
}
