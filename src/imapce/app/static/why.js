// Why rows stand apart: what they are against all others, and the rows themselves.

import { count, empty, h, niceNumber, percent, rowsOf, short } from "./dom.js";
import { button } from "./icons.js";

const NOTHING = "Select rows, or click a cluster, to see what sets them apart.";

export function whyPanel(app) {
  const body = h("div", { class: "why" }, empty(NOTHING));
  const el = h("section", { class: "card", "aria-label": "What sets them apart" }, h("div", { class: "head" }, h("h3", null, "What sets them apart")), body);
  const rows = rowsDialog();
  let asked = 0;
  app.onSelection.push(async (told) => {
    const mine = ++asked;
    if (!told.count) return body.replaceChildren(empty(NOTHING));
    body.classList.add("waiting");
    const [answer] = await app.link.ask("describe").catch((problem) => [{ error: problem.message }]);
    if (mine !== asked) return;
    body.classList.remove("waiting");
    if (answer.error) return body.replaceChildren(h("p", { class: "empty", role: "alert" }, answer.error));
    const labels = answer.labels.map((one) => h("div", { class: "labels" }, h("h4", null, `Label: ${short(one.column, 30)}`), one.kind === "levels" ? levels(one) : number(one)));
    body.replaceChildren(
      h("p", { class: "size" }, `${rowsOf(answer.count)}, ${percent(answer.share)} of all`),
      h("p", { class: "words" }, answer.words),
      answer.overlap ? h("p", { class: "known", title: "How much of it the nearest cluster shares in the view it was taken in" }, `It was taken as ${answer.overlap}.`) : "",
      answer.stability ? h("p", { class: "known stability", title: "A resample has 80 % of the rows; a cluster that reappears does not depend on a few of them" }, `It reappears in ${answer.stability}.`) : "",
      ...answer.known.map((one) => h("p", { class: "known" }, `${one[0].toUpperCase()}${one.slice(1)}.`)),
      answer.traits.length ? h("p", { class: "key" }, h("i", { class: "in" }), "these rows ", h("i", { class: "out" }), "all others", answer.choice ? h("span", null, ` · ${answer.choice}`) : "") : empty("No column differs."),
      ...answer.traits.map((one) => (one.kind === "number" ? number(one) : category(one))),
      ...labels,
      button(`Show the ${answer.count === 1 ? "row" : "rows"}`, { onclick: () => rows.open(app) }));
  });
  el.append(rows.el);
  return { el };
}

function strength(one) {
  return h("span", { class: "strength", role: "img", "aria-label": `sets ${percent(one.strength)} of the rows apart` }, h("i", { style: { width: `${100 * one.strength}%` } }));
}

function number(one) {
  return h("div", { class: "trait" },
    h("div", { class: "line" }, h("b", { title: one.column }, short(one.column, 26)), h("span", null, one.told.join(" against ")), strength(one)),
    histogram(one.histogram, `${one.column}: mean ${one.told[0]} in these rows, ${one.told[1]} in all others`),
    h("div", { class: "ends" }, h("span", null, one.histogram.low), h("span", null, one.histogram.high)),
    one.missing.length ? levels({ levels: one.missing }) : "");
}

// As in the reports: Python makes both paths.
function histogram({ box, bars, line }, words) {
  const make = (tag, attributes, ...children) => {
    const el = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) el.setAttribute(key, value);
    el.append(...children);
    return el;
  };
  const paths = [make("path", { class: "in", d: bars }), make("path", { class: "rest", d: line })];
  return make("svg", { viewBox: box, preserveAspectRatio: "none", class: "histogram", role: "img", "aria-label": words }, ...paths);
}

function category(one) {
  return h("div", { class: "trait" }, h("div", { class: "line" }, h("b", { title: one.column }, short(one.column, 26)), strength(one)), levels(one));
}

function levels(one) {
  return h("div", { class: "levels" }, one.levels.map((level) => h("div", { class: "level" },
    h("span", { class: "label", title: level.name }, short(level.name || "(empty)", 22)),
    h("span", { class: "pair" }, h("i", { class: "in", style: { width: `${100 * level.inside}%` } }), h("i", { class: "out", style: { width: `${100 * level.outside}%` } })),
    h("span", { class: "number" }, percent(level.inside)))));
}

// The rows in a table, a page at a time.
function rowsDialog() {
  const head = h("thead");
  const body = h("tbody");
  const where = h("p");
  const before = button("Earlier", { onclick: () => turn(-1) });
  const after = button("Later", { onclick: () => turn(1) });
  const el = h("dialog", { class: "rows", "aria-label": "The selected rows" },
    h("div", { class: "head" }, h("h2", null, "The selected rows"), button("Close", { onclick: () => el.close() })),
    h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Table of rows" }, h("table", null, head, body)), h("div", { class: "row foot" }, before, where, after));
  let app = null;
  let start = 0;
  const show = async () => {
    const [told] = await app.ask("table", { start });
    if (!told) return;
    head.replaceChildren(h("tr", null, told.head.map((name) => h("th", { scope: "col" }, short(name, 22)))));
    body.replaceChildren(...told.body.map((row) => h("tr", null, row.map((value) => h("td", { class: typeof value === "number" ? "number" : "" }, value === null ? "–" : typeof value === "number" ? niceNumber(value) : short(value, 40))))));
    where.textContent = told.total ? `${count(start + 1)} to ${count(start + told.body.length)} of ${count(told.total)}` : "No rows are selected.";
    before.disabled = start === 0;
    after.disabled = start + told.body.length >= told.total;
  };
  const turn = (by) => {
    start = Math.max(0, start + by * 200);
    show();
  };
  return {
    el,
    open(given) {
      app = given;
      start = 0;
      show();
      el.showModal();
    },
  };
}
