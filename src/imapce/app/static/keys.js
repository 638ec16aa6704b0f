// Everything by keyboard.

import { h } from "./dom.js";
import { button } from "./icons.js";

const KEYS = [
  ["N", "Next view"],
  ["T", "Take the most distinct cluster"],
  ["← →", "Walk through the clusters"],
  ["Enter", "Take the rows that are selected"],
  ["U", "Undo"],
  ["R", "Redo"],
  ["[ ]", "The view before, the next view of this step"],
  ["L  B  P", "Lasso, box, move"],
  ["Shift, Alt", "While drawing: add, subtract"],
  ["I", "Select all other unexplored rows"],
  ["Esc", "Clear the selection, or cancel work"],
  ["+  −  0", "Closer, farther, whole view"],
  ["F", "Features as arrows"],
  ["A", "All clusters together"],
  ["3", "Three axes, and back to two"],
  ["D", "Light or dark"],
  ["?", "These keys"],
];

export function keysDialog() {
  const dialog = h("dialog", { class: "keys", "aria-label": "Keys" },
    h("h2", null, "Keys"),
    h("dl", null, KEYS.map(([key, words]) => h("div", null, h("dt", null, key), h("dd", null, words)))),
    button("Close", { onclick: () => dialog.close() }));
  return dialog;
}

export function keyboard(app) {
  const acts = {
    n: () => app.actions.next(),
    t: () => app.actions.takeMost(),
    u: () => app.state?.undoable && app.ask("undo"),
    r: () => app.state?.redoable && app.ask("redo"),
    l: () => app.tools.pick("lasso"),
    b: () => app.tools.pick("box"),
    p: () => app.tools.pick("pan"),
    i: () => app.select({ how: "invert" }),
    a: () => app.state?.clusters && app.ask("overview"),
    f: () => app.tools.toggleArrows(),
    d: () => app.switchTheme(),
    3: () => app.tools.toggleThree(),
    0: () => app.plot.resetView(),
    "+": () => app.plot.zoom(1.3),
    "=": () => app.plot.zoom(1.3),
    "-": () => app.plot.zoom(1 / 1.3),
    "?": () => app.keys.showModal(),
    "[": () => app.timeline.turn(-1),
    "]": () => app.timeline.turn(1),
    ArrowRight: () => app.legend.walk(1),
    ArrowDown: () => app.legend.walk(1),
    ArrowLeft: () => app.legend.walk(-1),
    ArrowUp: () => app.legend.walk(-1),
    Enter: () => app.selected?.count && app.ask("take", { what: "selection" }),
    Escape: () => (app.selected?.count ? app.select({ how: "clear" }) : app.state?.busy && app.ask("cancel")),
  };
  const listen = (event) => {
    if (event.ctrlKey || event.metaKey || app.keys.open || !app.state) return;
    const inside = event.target;
    if (inside instanceof HTMLElement && inside.closest("input, select, textarea, [contenteditable]")) return;
    if (event.key === "Enter" && inside instanceof HTMLElement && inside.closest("button, a, summary")) return;
    if (inside instanceof HTMLElement && inside.closest("dialog")) return;
    // Arrows scroll what is longer than its place, and walk everywhere else.
    const scrolls = { ArrowUp: "aside", ArrowDown: "aside", ArrowLeft: ".timeline", ArrowRight: ".timeline" }[event.key];
    if (scrolls && inside instanceof HTMLElement && inside.closest(scrolls) && !inside.closest(".legend")) return;
    const act = acts[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  };
  // In a notebook other cells have keys of their own: only those pressed inside count.
  const target = app.el.id === "imapce" ? document : app.root;
  target.addEventListener("keydown", listen);
  app.stopListening = () => target.removeEventListener("keydown", listen);
}
