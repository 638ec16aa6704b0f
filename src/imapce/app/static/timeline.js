// What was taken so far, step by step, and the other views of this one.

import { count, empty, h, renew, rowsOf, short } from "./dom.js";
import { typed } from "./link.js";

export function timelinePanel(app) {
  const steps = h("ol", { class: "steps" });
  const views = h("div", { class: "views" });
  const el = h("section", { class: "timeline", "aria-label": "Steps and other views" },
    h("div", { class: "past" }, h("h3", null, "Steps"), steps), h("div", { class: "others" }, h("h3", null, "Other views of this step"), views));
  let asked = 0;
  let drawn = 0;

  const panel = {
    el,
    refresh(state) {
      if (!state) return;
      const looking = state.looking;
      const items = state.steps.map((step, number) => {
        const size = step.clusters.reduce((sum, one) => sum + one.size, 0);
        const why = step.clusters[0].words;
        const names = step.clusters.map((one) => one.name).join(", ");
        return h("li", null, h("button", { type: "button", class: "step", "data-step": number, title: hint(step) || null, onclick: () => app.ask("look_back", { step: number }) },
          h("span", { class: "dots" }, step.clusters.map((one) => h("i", { style: { background: app.palette?.[one.code] } }))),
          h("b", null, `${number + 1}`), h("span", { class: "what" }, short(names, 22)),
          h("small", null, rowsOf(size), why ? ` · ${short(why, 24)}` : "")));
      });
      const now = state.stop
        ? h("li", { class: "end" }, h("span", null, "The end"))
        : h("li", null, h("button", { type: "button", class: "step now", onclick: () => (app.state.proposed ? app.ask("view", { number: 0 }) : app.ask("next")) }, h("b", null, "Now"), h("small", null, `${count(state.left)} left`)));
      const all = state.clusters ? [h("li", null, h("button", { type: "button", class: "step all", title: "Every cluster taken so far in one view", onclick: () => app.ask("overview") }, h("b", null, "All together"), h("small", null, `${count(state.clusters)} ${state.clusters === 1 ? "cluster" : "clusters"}`)))] : [];
      const regrouped = state.moves.filter((one) => one.kind !== "step").map((one) => h("li", { class: "regrouped", title: one.words }, h("span", null, { split: "Split", merge: "Merged", consolidate: "Consolidated" }[one.kind])));
      const before = steps.children.length;
      renew(steps, [...items, ...regrouped, ...all, now]);
      if (steps.children.length !== before) steps.scrollLeft = steps.scrollWidth;
      for (const one of steps.querySelectorAll("button")) {
        const here = looking.kind === "step" ? one.dataset.step === String(looking.number) : one.classList.contains(looking.kind === "overview" ? "all" : "now");
        if (here) one.setAttribute("aria-current", "step");
        else one.removeAttribute("aria-current");
      }
      if (!state.proposed) renew(views, [empty(state.stop ? "None: the exploration is over." : "They appear with the next view.")]);
      for (const one of views.querySelectorAll("button")) one.setAttribute("aria-pressed", String(looking.kind === "proposal" && Number(one.dataset.number) === looking.number));
    },
    async refreshThumbnails() {
      const mine = ++asked;
      if (app.scene?.kind !== "proposal") return;
      const held = views.querySelector("button") !== null;
      const [told, buffers] = await app.link.ask("thumbnails", { held }).catch(() => [null, []]);
      if (!told || mine !== asked) return;
      if (told.same) return panel.recolour();
      renew(views, told.views.map((one, i) => {
        const canvas = h("canvas", { width: 96, height: 66, "data-points": ++drawn });
        const at = placed(typed(Float32Array, buffers[i]));
        canvas.draw = () => thumbnail(canvas, at, app);
        canvas.draw();
        return h("button", { type: "button", "data-number": one.number, title: `View ${one.number + 1}: ${one.starts} of the searches ended here`, onclick: () => app.ask("view", { number: one.number }) }, canvas, h("small", null, one.number === 0 ? "best view" : `view ${one.number + 1}`));
      }));
      panel.refresh(app.state);
    },
    recolour() {
      for (const one of views.querySelectorAll("canvas")) one.draw();
    },
    turn(by) {
      const { state } = app;
      if (!state?.proposed || state.views < 2) return;
      const at = state.looking.kind === "proposal" ? state.looking.number : 0;
      app.ask("view", { number: (at + by + state.views) % state.views });
    },
  };
  return panel;
}

// What a step has to say beside its names: what its first cluster is given the known, and how stable its clusters are.
function hint(step) {
  const why = step.clusters[0].words;
  const told = why ? [step.given ? `${why}, ${step.given}` : why] : [];
  return [...told, ...step.clusters.filter((one) => one.overlap).map((one) => `${one.name} is ${one.overlap}`), ...step.clusters.filter((one) => one.stability).map((one) => `${one.name} reappears in ${one.stability}`)].join("; ");
}

// Where the points of a thumbnail fall, as pixels; a few far ones stay out.
function placed(points) {
  const n = points.length / 2;
  const [xs, ys] = [points.subarray(0, n), points.subarray(n)];
  const ends = (values) => {
    const sorted = Float32Array.from(values).sort();
    const [low, high] = [sorted[Math.floor(0.005 * n)], sorted[Math.ceil(0.995 * n) - 1]];
    return [low, high - low || 1];
  };
  const [[x0, w], [y0, t]] = [ends(xs), ends(ys)];
  return Int16Array.from(xs, (x, i) => {
    const [px, py] = [Math.round(5 + (84 * (x - x0)) / w), Math.round(59 - (54 * (ys[i] - y0)) / t)];
    return px >= 0 && px < 95 && py >= 0 && py < 65 ? 96 * py + px : -1;
  });
}

// Pixels by hand: as rectangles of the canvas seven thumbnails took 50 ms, in the middle of a turn.
function thumbnail(canvas, at, app) {
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(96, 66);
  const pixels = new Uint32Array(image.data.buffer);
  const [ground, soft, ...colours] = [app.look.ground, app.look.soft, ...app.palette].map((hex) => {
    const [r, g, b] = [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16));
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  });
  pixels.fill(ground);
  const { codes } = app.plot.raster;
  at.forEach((p, i) => {
    if (p >= 0) pixels[p] = pixels[p + 1] = pixels[p + 96] = pixels[p + 97] = colours[codes[i]] ?? soft;
  });
  pen.putImageData(image, 0, 0);
}
