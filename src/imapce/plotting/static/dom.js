// Elements and words: the few helpers that the page and the reports use.

export function h(tag, props, ...children) {
  const el = document.createElement(tag);
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) el.addEventListener(key.slice(2), value);
    else if (key === "class") el.className = value;
    else if (key === "style") Object.assign(el.style, value);
    else if (key in el && !key.startsWith("aria") && key !== "list" && key !== "form") el[key] = value;
    else el.setAttribute(key, value === true ? "" : value);
  }
  el.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return el;
}

// New children for an element. Those that look as one before them leave it in its place, with its focus and whatever
// pointer is on it; where the focused one is gone, the one that stands there now has the focus.
export function renew(parent, children) {
  const before = [...parent.children];
  const focused = parent.getRootNode().activeElement;
  const place = before.findIndex((one) => one.contains(focused));
  const kept = new Map(before.map((one) => [one.shows, one]));
  const fresh = children.map((one) => {
    const shows = one.outerHTML;
    const same = kept.get(shows);
    kept.delete(shows);
    one.shows = shows;
    return same ?? one;
  });
  for (const one of before) if (!fresh.includes(one)) one.remove();
  fresh.forEach((one, i) => parent.children[i] !== one && parent.insertBefore(one, parent.children[i] ?? null));
  if (place < 0 || fresh.includes(before[place])) return;
  const there = fresh[Math.min(place, fresh.length - 1)];
  (there?.matches("button") ? there : there?.querySelector("button"))?.focus();
}

export function count(number) {
  return Number(number).toLocaleString("en-US");
}

export function rowsOf(number) {
  return `${count(number)} ${number === 1 ? "row" : "rows"}`;
}

export function percent(share) {
  const p = 100 * share;
  if (p > 0 && p < 1) return "under 1\u00a0%";
  if (p > 99 && p < 100) return "over 99\u00a0%";
  return `${Math.round(p)}\u00a0%`;
}

export function short(text, longest = 26) {
  const one = String(text);
  if (one.length <= longest) return one;
  const tail = Math.floor((longest - 1) / 3);
  return one.slice(0, longest - 1 - tail) + "…" + one.slice(one.length - tail);
}

export function niceNumber(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(1).replace("-", "−");
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  return String(Number(value.toFixed(digits))).replace("-", "−");
}

export function empty(words) {
  return h("p", { class: "empty" }, words);
}
