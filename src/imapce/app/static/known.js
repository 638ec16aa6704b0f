// What is known, always in sight: a card for every column, to be forgotten, explained away or erased.

import { h, renew, short } from "./dom.js";
import { button } from "./icons.js";

const WAYS = [["explain", "explained away"], ["erase", "erased"]];
const MEANING = { explain: "Its effect on the other columns is taken from the rows, given the clusters", erase: "Nothing linear of it can be read from a view" };

export function knownPanel(app) {
  const list = h("ul", { class: "known" });
  const add = h("select", { "aria-label": "A column to add to the known" });
  const rows = button("Selected rows are known", { hidden: true, onclick: () => app.ask("settings", { rows: "selection" }) });
  const forget = button("Forget known rows", { hidden: true, onclick: () => app.ask("settings", { rows: "none" }) });
  const el = h("section", { class: "card", "aria-label": "What is known" }, h("div", { class: "head" }, h("h3", null, "What is known"), add), list, h("div", { class: "row" }, rows, forget));
  let known = [];

  // Each column by its name, and whether it is erased.
  const tell = (columns) => app.ask("settings", { columns: Object.fromEntries(columns.map((one) => [one.name, one.came === "erased"])) }).then(settle);
  // A choice that was refused shows what is.
  const settle = () => {
    for (const one of list.querySelectorAll("[data-came]")) one.querySelector("select").value = one.dataset.came === "erased" ? "erase" : "explain";
  };
  add.addEventListener("change", () => {
    if (add.value) tell([...known, { name: add.value, came: "explained away" }]);
    add.value = "";
  });
  app.onSelection.push((told) => (rows.hidden = !told.count || told.known > 0));

  const card = (one) => {
    const chosen = one.came === "erased" ? "erase" : "explain";
    const way = h("select", { "aria-label": `What becomes of ${one.name}`, title: MEANING[chosen] },
      WAYS.map(([value, words]) => h("option", { value, selected: value === chosen }, value === "explain" && one.came === "weighed" ? one.came : words)));
    way.addEventListener("change", () => tell(known.map((other) => (other.name === one.name ? { name: one.name, came: way.value === "erase" ? "erased" : "explained away" } : other))));
    return h("li", { "data-came": one.came }, h("b", { title: one.name }, short(one.name, 24)), way, button(`Forget ${one.name}`, { iconOnly: true, class: "quiet", onclick: () => tell(known.filter((other) => other.name !== one.name)) }, "clear"));
  };

  return {
    el,
    columns(told) {
      add.replaceChildren(h("option", { value: "" }, "Add a column…"), ...[...new Set([...told.labels, ...told.features])].map((name) => h("option", { value: name }, short(name, 40))));
    },
    state(state) {
      known = state.known;
      const words = known.length + state.known_beside.length ? state.known_beside : ["Nothing but what you take. Add a column, and views see past it."];
      renew(list, [...known.map(card), ...words.map((one) => h("li", { class: "words" }, one))]);
      settle();
      for (const option of add.options) option.hidden = known.some((one) => one.name === option.value);
      forget.hidden = !state.known_at_start;
      const held = Boolean(state.busy && !state.busy.gives_way);
      for (const one of el.querySelectorAll("select, button")) one.disabled = held;
    },
  };
}
