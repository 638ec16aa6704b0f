// The points of the pictures of a report answer to the pointer. Without script the report is whole, and silent.

import { h } from "./dom.js";
import { fillCard, nearestPoint, placeCard } from "./hover.js";

const page = JSON.parse(document.getElementById("rows").textContent);
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
const numbers = (text, wide) => (wide ? new Uint16Array(bytes(text)) : new Uint8Array(bytes(text)));
const ids = typeof page.ids === "string" ? new Int32Array(bytes(page.ids)) : page.ids;
const columns = page.columns.map(({ name, values, codes, levels, wide }) => {
  const held = values === undefined ? numbers(codes, wide) : new Float32Array(bytes(values));
  const level = (row) => (held[row] ? levels[held[row] - 1] : "");
  const number = (row) => (isNaN(held[row]) ? "" : Number(held[row].toPrecision(6)).toLocaleString("en"));
  return { name, text: values === undefined ? level : number };
});
// A coordinate is a fraction of its panel from 1 to `top`; 0 lies outside.
const top = page.fine ? 65535 : 255;
const fraction = (code) => (code - 1) / (top - 1);
const REACH = 14;
const card = h("div", { class: "card", role: "status", hidden: true });
document.body.append(card);

for (const plot of document.querySelectorAll("[data-picture]")) {
  const { boxes, ...packed } = page.pictures[Number(plot.dataset.picture)];
  const [x, y] = [numbers(packed.x, page.fine), numbers(packed.y, page.fine)];
  const image = plot.querySelector("img");
  const rings = boxes.map(() => h("i", { class: "ring", hidden: true }));
  plot.append(...rings);
  const show = (shown) => {
    for (const one of [card, ...rings]) one.hidden = !shown;
  };
  const look = (event) => {
    const frame = image.getBoundingClientRect();
    const [across, down] = [(event.clientX - frame.left) / frame.width, (event.clientY - frame.top) / frame.height];
    const box = boxes.find(([left, above, wide, tall]) => across >= left && across <= left + wide && down >= above && down <= above + tall);
    if (!box) return show(false);
    const [left, above, wide, tall] = box;
    const [atX, atY] = [(across - left) / wide, 1 - (down - above) / tall];
    const distance = (row) => (x[row] ? ((fraction(x[row]) - atX) * wide * frame.width) ** 2 + ((fraction(y[row]) - atY) * tall * frame.height) ** 2 : Infinity);
    const row = nearestPoint(x.length, REACH, distance);
    if (row < 0) return show(false);
    show(true);
    boxes.forEach(([panelLeft, panelAbove, panelWide, panelTall], panel) => {
      rings[panel].style.left = `${image.offsetLeft + (panelLeft + fraction(x[row]) * panelWide) * image.clientWidth}px`;
      rings[panel].style.top = `${image.offsetTop + (panelAbove + (1 - fraction(y[row])) * panelTall) * image.clientHeight}px`;
    });
    fillCard(card, `row ${ids[row]}`, columns.map((one) => [one.name, one.text(row)]).filter(([, text]) => text !== ""));
    placeCard(card, event.clientX, event.clientY, window.innerWidth, window.innerHeight);
  };
  plot.addEventListener("pointermove", look);
  plot.addEventListener("pointerdown", look);
  plot.addEventListener("pointerleave", () => show(false));
}
window.addEventListener("scroll", () => (card.hidden = true), { passive: true });
