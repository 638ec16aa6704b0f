// What a row is, beside the pointer.

import { h, niceNumber, short } from "./dom.js";
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
      const lines = Object.entries(told.values).map(([name, value]) => h("div", null, h("span", null, short(name, 22)), h("b", null, value === null ? "–" : typeof value === "number" ? niceNumber(value) : short(value, 26))));
      el.replaceChildren(h("p", null, `Row ${told.row}`, told.taken ? h("em", null, told.taken) : null), ...lines);
      if (told.picture) el.prepend(picture(typed(Uint8Array, buffers[0]), ...told.picture));
      el.hidden = false;
      const { clientWidth: width, clientHeight: height } = app.plot.el;
      el.style.left = `${Math.min(x + 16, width - el.offsetWidth - 8)}px`;
      el.style.top = `${Math.max(8, Math.min(y + 16, height - el.offsetHeight - 8))}px`;
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
