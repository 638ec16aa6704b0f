// The row below the pointer: which point it is, and the card that tells of it. The page and the reports use both.

import { h } from "./dom.js";

// The point nearest to the pointer, of those drawn over each other the last; -1 where none is near enough.
export function nearestPoint(n, within, squaredDistance) {
  let best = within * within;
  let found = -1;
  for (let i = 0; i < n; i++) {
    const d = squaredDistance(i);
    if (d <= best) [best, found] = [d, i];
  }
  return found;
}

// lines: pairs of a name and a text.
export function fillCard(card, title, lines) {
  card.replaceChildren(h("p", null, title), ...lines.map(([name, text]) => h("div", null, h("span", null, name), " ", h("b", null, text))));
}

// Beside a place in a box of this width and height, and inside of it.
export function placeCard(card, x, y, width, height) {
  const right = x + 16 + card.offsetWidth > width - 8;
  card.style.left = `${Math.max(8, right ? x - 16 - card.offsetWidth : x + 16)}px`;
  card.style.top = `${Math.max(8, Math.min(y + 16, height - card.offsetHeight - 8))}px`;
}
