// Icons, and buttons that have one.

import { h } from "./dom.js";

const ICONS = {
  lasso: "M12 4c5 0 8 2.6 8 6s-3.4 6-8 6-8-2.6-8-6 3-6 8-6zM7.2 15.2c-1.6.8-1.8 2.6-.4 3.4 1.3.7 1.6 1.3 1 2.4",
  box: "M5 5h14v14H5z",
  pan: "M12 3v18M3 12h18M12 3l-2.5 2.5M12 3l2.5 2.5M12 21l-2.5-2.5M12 21l2.5-2.5M3 12l2.5-2.5M3 12l2.5 2.5M21 12l-2.5-2.5M21 12l-2.5 2.5",
  reset: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  invert: "M12 4a8 8 0 0 0 0 16zM12 4a8 8 0 0 1 0 16",
  clear: "M6 6l12 12M18 6L6 18",
  arrows: "M5 19L18 6M18 6h-5M18 6v5M5 19l9-1",
  cube: "M12 3l8 4.5v9L12 21l-8-4.5v-9zM12 12l8-4.5M12 12v9M12 12L4 7.5",
  undo: "M9 14L4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3",
  redo: "M15 14l5-5-5-5M20 9H10a6 6 0 0 0 0 12h3",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v3M12 19v3M2 12h3M19 12h3M4.9 4.9l2.1 2.1M17 17l2.1 2.1M4.9 19.1L7 17M17 7l2.1-2.1",
  out: "M12 4v11M12 15l-4-4M12 15l4-4M4 19h16",
  help: "M9 9a3 3 0 1 1 4 2.8c-.7.3-1 .8-1 1.7M12 17.2v.2",
  home: "M4 11l8-7 8 7M6 10v9h12v-9",
};

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

export function button(label, props, iconName) {
  const only = iconName && props?.iconOnly;
  const { iconOnly, ...rest } = props ?? {};
  const el = h("button", { type: "button", title: only ? label : undefined, ...rest }, iconName ? icon(iconName) : null, only ? null : h("span", null, label));
  if (only) el.setAttribute("aria-label", label);
  return el;
}
