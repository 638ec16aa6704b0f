// What a row is, beside the pointer.

import { h, niceNumber, short } from "./dom.js";
import { fillCard, placeCard } from "./hover.js";
import { typed } from "./link.js";

export function tooltip(app) {
  const el = h("div", { class: "tip", hidden: true });
  let wanted = -1;
  return {
    el,
    hide() {
      wanted = -1;
      el.hidden = true;
    },
    async show(point, x, y) {
      wanted = point;
      const columns = app.hovered ?? (app.data?.columns ?? []).slice(0, 4);
      const [told, buffers] = await app.link.ask("hover", { point, columns }).catch(() => [null, []]);
      if (!told || wanted !== point) return;
      const text = (value) => (typeof value === "string" ? short(value, 26) : niceNumber(value));
      fillCard(el, `Row ${told.row}`, Object.entries(told.values).map(([name, value]) => [short(name, 22), text(value)]));
      if (told.taken) el.firstChild.append(h("em", null, told.taken));
      if (told.picture) el.prepend(picture(typed(Uint8Array, buffers[0]), ...told.picture));
      el.hidden = false;
      placeCard(el, x, y, app.plot.el.clientWidth, app.plot.el.clientHeight);
    },
  };
}

function picture(grey, height, width) {
  const canvas = h("canvas", { width, height, class: "picture" });
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(width, height);
  grey.forEach((value, i) => image.data.set([value, value, value, 255], 4 * i));
  pen.putImageData(image, 0, 0);
  return canvas;
}
