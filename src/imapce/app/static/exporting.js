// What can be carried away.

import { h } from "./dom.js";
import { button } from "./icons.js";

const KINDS = [
  ["csv", "Clusters and coordinates (CSV)"],
  ["parquet", "Clusters and coordinates (Parquet)"],
  ["png", "Picture (PNG)"],
  ["svg", "Picture (SVG)"],
  ["report", "Report page (HTML)"],
  ["session", "Session file"],
  ["python", "Copy as Python"],
];

export function exportMenu(app) {
  const list = h("div", { class: "menu", role: "menu", hidden: true });
  const open = button("Export", { "aria-haspopup": "menu", "aria-expanded": "false", onclick: () => toggle(list.hidden) }, "out");
  const toggle = (show) => {
    list.hidden = !show;
    open.setAttribute("aria-expanded", String(show));
    if (show) list.firstChild.focus();
  };
  const hand = async (kind) => {
    toggle(false);
    open.focus();
    const [told, [data]] = await app.ask("export", { kind });
    if (!told) return;
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    if (kind === "python") {
      const text = new TextDecoder().decode(bytes);
      const done = await navigator.clipboard?.writeText(text).then(() => true, () => false);
      if (done) return app.notice("The Python that leads here is on the clipboard.");
    }
    const address = URL.createObjectURL(new Blob([bytes], { type: told.media }));
    const anchor = h("a", { href: address, download: told.name });
    app.root.append(anchor);
    anchor.click();
    anchor.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    app.say(`${told.name} was handed out`);
  };
  list.append(...KINDS.map(([kind, words]) => h("button", { type: "button", role: "menuitem", "data-kind": kind, onclick: () => app.link.during(hand(kind)) }, words)));
  list.addEventListener("keydown", (event) => {
    const items = [...list.children];
    const at = items.indexOf(event.target);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (event.key === "Escape") {
      toggle(false);
      open.focus();
    } else if (to === undefined) return;
    else items[(to + items.length) % items.length].focus();
    event.preventDefault();
    event.stopPropagation();
  });
  const box = h("div", { class: "export" }, open, list);
  box.addEventListener("focusout", (event) => !box.contains(event.relatedTarget) && toggle(false));
  return box;
}
