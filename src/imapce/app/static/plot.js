// The picture: points, what lies over them, and the hand that moves, circles and points at them.

import { Camera } from "./camera.js";
import { h } from "./dom.js";
import { drawOverlay } from "./overlay.js";
import { Raster } from "./raster.js";
import { turnAt } from "./turn.js";

const TURN_SECONDS = 1.1;
const SAMPLE = 250000;

export class Plot {
  // events: onLasso(polygon, mode, looking), onHover(point, x, y), onLeave(), onClick(place, mode)
  constructor(events) {
    this.events = events;
    this.camera = new Camera();
    this.points = h("canvas", { class: "points", "aria-hidden": "true" });
    this.over = h("canvas", { class: "over" });
    this.over.tabIndex = 0;
    this.over.setAttribute("role", "application");
    this.over.setAttribute("aria-roledescription", "scatter plot");
    this.over.setAttribute("aria-label", "View of the rows");
    this.el = h("div", { class: "plot" }, this.points, this.over);
    this.raster = new Raster(this.points);
    this.tool = "lasso";
    this.showOutlines = true;
    this.showArrows = false;
    this.look = {};
    new ResizeObserver(() => this.resize()).observe(this.el);
    this.listen();
  }
  resize() {
    const { clientWidth: width, clientHeight: height } = this.el;
    if (!width || !height) return;
    // On very wide screens the page is enlarged as a whole, and pixels of the page are not those of the screen.
    this.enlarged = this.el.getBoundingClientRect().width / width || 1;
    const ratio = (window.devicePixelRatio || 1) * this.enlarged;
    this.camera.resize(width, height);
    this.raster.resize(width, height, ratio);
    this.over.width = Math.round(width * ratio);
    this.over.height = Math.round(height * ratio);
    this.ratio = ratio;
    if (this.scene && this.camera.dims === 3) this.camera.frame(3, this.scene.low, this.scene.high);
    this.draw();
  }
  setLook(look, colours) {
    this.look = look;
    this.raster.setPalette(colours, look.ground);
    this.draw();
  }
  // Show a view: at once, or along the turn from the one before.
  show(scene, columns, codes) {
    const before = this.columns;
    this.raster.setRows(columns[0].length);
    this.raster.setCodes(codes);
    cancelAnimationFrame(this.animation);
    this.turning = null;
    const from = { low: this.camera.low.slice(), high: this.camera.high.slice() };
    const spin = this.camera.spin;
    this.scene = scene;
    this.columns = columns;
    this.camera.frame(scene.dims, scene.low, scene.high);
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!scene.turn || !before || before.length !== columns.length || still) {
      if (scene.dims === 3) this.camera.spin = spin;
      this.draw();
      return;
    }
    const to = { low: this.camera.low.slice(), high: this.camera.high.slice() };
    let start = null;
    const step = (now) => {
      start ??= now;
      const linear = Math.min(1, (now - start) / (1000 * TURN_SECONDS));
      const t = linear < 0.5 ? 4 * linear ** 3 : 1 - (-2 * linear + 2) ** 3 / 2;
      const between = (a, b) => a.map((value, j) => value + t * (b[j] - value));
      this.camera.low = between(from.low, to.low);
      this.camera.high = between(from.high, to.high);
      this.turning = linear < 1 ? { before, parts: turnAt(scene.turn, t) } : null;
      this.draw();
      if (linear < 1) this.animation = requestAnimationFrame(step);
    };
    this.animation = requestAnimationFrame(step);
  }
  setOutlines(outlines) {
    if (this.scene) this.scene.outlines = outlines;
  }
  draw(most) {
    if (!this.columns || !this.raster.colours || !this.raster.W) return;
    const { mx, my, ox, oy } = this.camera.matrix();
    if (!this.turning) this.raster.draw(this.columns, mx, my, ox, oy, most);
    else {
      // Row vectors: p(t) = old M1 + new M2, then the camera.
      const [M1, M2] = this.turning.parts;
      const through = (m) => [M1, M2].flatMap((M) => M.map((row) => row.reduce((s, value, j) => s + value * m[j], 0)));
      this.raster.draw([...this.turning.before, ...this.columns], through(mx), through(my), ox, oy);
    }
    drawOverlay(this.over, this);
  }
  redrawOver() {
    drawOverlay(this.over, this);
  }
  // While something moves, a sample of very many rows; all of them when it rests.
  moved() {
    const big = this.raster.n > 2 * SAMPLE;
    cancelAnimationFrame(this.pending);
    this.pending = requestAnimationFrame(() => this.draw(big ? SAMPLE : undefined));
    clearTimeout(this.rest);
    if (big) this.rest = setTimeout(() => this.draw(), 90);
  }
  resetView() {
    this.camera.frame(this.scene.dims, this.scene.low, this.scene.high);
    this.camera.reset();
    this.moved();
  }
  zoom(factor, x, y) {
    this.camera.zoom(factor, x, y);
    this.moved();
  }
  listen() {
    const at = (event) => {
      const box = this.over.getBoundingClientRect();
      return [(event.clientX - box.left) / this.enlarged, (event.clientY - box.top) / this.enlarged];
    };
    let held = null;
    this.over.addEventListener("pointerdown", (event) => {
      if (event.button > 1 || !this.scene) return;
      this.over.setPointerCapture(event.pointerId);
      this.events.onLeave?.();
      const moving = this.tool === "pan" || event.button === 1 || this.spaceHeld;
      const mode = event.shiftKey ? "add" : event.altKey ? "subtract" : this.mode ?? "replace";
      held = { moving, at: at(event), orbit: moving && this.camera.dims === 3 && !event.shiftKey, mode };
      if (!moving) this.stroke = [held.at];
    });
    this.over.addEventListener("pointermove", (event) => {
      if (!held) {
        this.hover(...at(event));
        return;
      }
      const now = at(event);
      if (held.moving) {
        const [dx, dy] = [now[0] - held.at[0], now[1] - held.at[1]];
        if (held.orbit) this.camera.orbit(dx, dy);
        else this.camera.pan(dx, dy);
        held.at = now;
        this.moved();
      } else if (this.tool === "box") {
        const [a, b] = held.at;
        this.stroke = [[a, b], [now[0], b], now, [a, now[1]]];
        this.redrawOver();
      } else {
        const events = event.getCoalescedEvents?.() ?? [];
        for (const one of events.length ? events : [event]) this.stroke.push(at(one));
        this.redrawOver();
      }
    });
    const release = () => {
      if (!held) return;
      const { moving, mode } = held;
      const path = this.stroke ?? [];
      held = null;
      this.stroke = null;
      this.redrawOver();
      if (moving) return;
      const [xs, ys] = [path.map((p) => p[0]), path.map((p) => p[1])];
      const far = Math.max(...xs) - Math.min(...xs) > 3 || Math.max(...ys) - Math.min(...ys) > 3;
      if (path.length >= 3 && far) this.lassoed(path, mode);
      else this.events.onClick?.(path[0], mode);
    };
    this.over.addEventListener("pointerup", release);
    this.over.addEventListener("pointercancel", () => {
      held = null;
      this.stroke = null;
      this.redrawOver();
    });
    this.over.addEventListener("pointerleave", () => this.events.onLeave?.());
    this.over.addEventListener("wheel", (event) => {
      if (!this.scene) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.04 : 0.0016)), ...at(event));
    }, { passive: false });
    this.over.addEventListener("dblclick", () => this.scene && this.resetView());
  }
  lassoed(path, mode) {
    const looking = this.camera.looking();
    const corners = new Float64Array(2 * path.length);
    path.forEach(([x, y], i) => {
      const [px, py] = this.camera.toPlane(x, y);
      corners[2 * i] = px + (looking ? looking.shift[0] : 0);
      corners[2 * i + 1] = py + (looking ? looking.shift[1] : 0);
    });
    this.events.onLasso(corners, mode, looking?.plane ?? null);
  }
  hover(x, y) {
    if (!this.scene || this.turning) return;
    const point = this.raster.nearest(x, y);
    if (point === this.hovered) return;
    this.hovered = point;
    if (point < 0) this.events.onLeave?.();
    else this.events.onHover?.(point, x, y);
  }
}
