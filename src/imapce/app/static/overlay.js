// What lies over the points: scale, names of the axes, outlines of clusters, arrows of features, the lasso.

import { ticks } from "./camera.js";
import { niceNumber, short } from "./dom.js";

export function drawOverlay(canvas, plot) {
  const { camera, scene, look } = plot;
  if (!plot.ratio) return;
  const { ratio } = plot;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, camera.width, camera.height);
  pen.font = `12px ${look.font}`;
  if (!scene) return;
  if (camera.dims === 2) axes(pen, camera, scene, look);
  else compass(pen, camera, scene, look);
  if (!plot.turning) {
    if (plot.showOutlines) {
      pen.save();
      if (camera.dims === 2) {
        const { left, right, top, bottom } = camera.margin;
        pen.beginPath();
        pen.rect(left, top - 10, camera.width - left, camera.height - top - bottom + 10);
        pen.clip();
      }
      outlines(pen, camera, scene, look);
      pen.restore();
    }
    if (plot.showArrows) arrows(pen, camera, scene, look);
  }
  lasso(pen, plot, look);
}

export function axisWords(axis, longest = 24) {
  const parts = axis.features.map((one) => `${one.weight < 0 ? "−" : "+"} ${short(one.name, longest)}`);
  return parts.join("   ") + (axis.given ? `,   ${axis.given}` : "");
}

function axes(pen, camera, scene, look) {
  const { left, right, top, bottom } = camera.margin;
  const [x0, x1, y0, y1] = [left, camera.width - right, top, camera.height - bottom];
  // Rows beyond the axes would lie below their words.
  pen.fillStyle = look.ground;
  pen.fillRect(0, y1, camera.width, bottom);
  pen.fillRect(0, 0, x0, camera.height);
  pen.strokeStyle = look.hairline;
  pen.fillStyle = look.soft;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(x0 + 0.5, y0);
  pen.lineTo(x0 + 0.5, y1 + 0.5);
  pen.lineTo(x1, y1 + 0.5);
  pen.stroke();
  pen.textAlign = "center";
  pen.textBaseline = "top";
  for (const value of ticks(camera.low[0], camera.high[0], Math.max(3, (x1 - x0) / 130))) {
    const [x] = camera.toScreen([value, 0]);
    pen.fillRect(Math.round(x), y1, 1, 4);
    pen.fillText(niceNumber(value), x, y1 + 7);
  }
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const value of ticks(camera.low[1], camera.high[1], Math.max(3, (y1 - y0) / 110))) {
    const [, y] = camera.toScreen([0, value]);
    pen.fillRect(x0 - 4, Math.round(y), 4, 1);
    pen.fillText(niceNumber(value), x0 - 7, y);
  }
  pen.fillStyle = look.ink;
  pen.font = `500 12px ${look.font}`;
  pen.textAlign = "right";
  pen.textBaseline = "alphabetic";
  pen.fillText(fit(pen, `imapce0 →   ${axisWords(scene.axes[0])}`, x1 - x0 - 10), x1, camera.height - 8);
  pen.save();
  pen.translate(14, y0);
  pen.rotate(-Math.PI / 2);
  pen.fillText(fit(pen, `imapce1 →   ${axisWords(scene.axes[1])}`, y1 - y0 - 10), 0, 0);
  pen.restore();
}

function fit(pen, text, room) {
  let shown = text;
  while (shown.length > 8 && pen.measureText(shown).width > room) shown = shown.slice(0, -2).trimEnd() + "…";
  return shown;
}

// Three axes: their directions in a corner.
function compass(pen, camera, scene, look) {
  const [x, y] = [64, camera.height - 64];
  pen.lineWidth = 1.5;
  pen.font = `500 12px ${look.font}`;
  pen.textBaseline = "middle";
  for (let j = 0; j < 3; j++) {
    const [dx, dy] = [camera.spin[0][j] * 40, -camera.spin[1][j] * 40];
    pen.strokeStyle = pen.fillStyle = look.soft;
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x + dx, y + dy);
    pen.stroke();
    pen.textAlign = dx < -4 ? "right" : dx > 4 ? "left" : "center";
    pen.fillText(String(j), x + dx * 1.22, y + dy * 1.22);
  }
  pen.fillStyle = look.ink;
  pen.textAlign = "right";
  scene.axes.forEach((axis, j) => pen.fillText(fit(pen, `imapce${j}   ${axisWords(axis)}`, camera.width - 220), camera.width - 16, camera.height - 56 + 19 * j));
}

// The ellipse of two standard deviations of a cluster, as it is seen.
function ellipse(camera, one) {
  const { mx, my } = camera.matrix();
  const S = one.covariance;
  const through = (u, v) => u.reduce((sum, a, i) => sum + a * v.reduce((inner, b, j) => inner + S[i][j] * b, 0), 0);
  const [a, b, d] = [through(mx, mx), through(mx, my), through(my, my)];
  const half = Math.sqrt(((a - d) / 2) ** 2 + b * b);
  const mean = (a + d) / 2;
  const angle = 0.5 * Math.atan2(2 * b, a - d);
  const [x, y] = camera.toScreen(one.mean);
  return { x, y, long: Math.max(9, 2 * Math.sqrt(Math.max(0, mean + half))), wide: Math.max(9, 2 * Math.sqrt(Math.max(0, mean - half))), angle };
}

function outlines(pen, camera, scene, look) {
  pen.font = `600 12px ${look.font}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  const taken = [];
  // Outlines first, so that none runs through a name.
  const found = (scene.outlines ?? []).map((one) => [one, ellipse(camera, one)]);
  for (const [one, { x, y, long, wide, angle }] of found) {
    if (one.most) {
      for (const [colour, width] of [[look.ground, 4.5], [look.ink, 1.6]]) {
        pen.strokeStyle = colour;
        pen.lineWidth = width;
        pen.beginPath();
        pen.ellipse(x, y, long, wide, angle, 0, 2 * Math.PI);
        pen.stroke();
      }
    }
  }
  for (const [one, { x, y, long, wide, angle }] of found) {
    // Above the highest place of an outline, which lies to a side where it is tilted.
    const high = Math.hypot(long * Math.sin(angle), wide * Math.cos(angle));
    const above = one.most || long < 16;
    const across = above ? x - ((long ** 2 - wide ** 2) * Math.sin(angle) * Math.cos(angle)) / high : x;
    pen.strokeStyle = look.ground;
    pen.lineWidth = 4;
    const name = short(one.name, 18);
    const half = pen.measureText(name).width / 2;
    let height = Math.max(camera.margin.top, above ? y - high - 11 : y);
    // A name that would lie on another goes below it.
    for (let on; (on = taken.find((other) => Math.abs(other.across - across) < other.half + half + 3 && Math.abs(other.height - height) < 13)); ) height = on.height + 13.5;
    taken.push({ across, height, half });
    pen.strokeText(name, across, height);
    pen.fillStyle = look.ink;
    pen.fillText(name, across, height);
  }
}

function arrows(pen, camera, scene, look) {
  const { left, right, top, bottom } = camera.margin;
  const [x, y] = [(left + camera.width - right) / 2, (top + camera.height - bottom) / 2];
  const room = 0.4 * Math.min(camera.width - left - right, camera.height - top - bottom);
  const flat = scene.arrows.map((one) => (camera.dims === 2 ? [one.to[0], -one.to[1]] : [0, 1].map((i) => (i ? -1 : 1) * camera.spin[i].reduce((s, v, j) => s + v * one.to[j], 0))));
  const longest = Math.max(1e-9, ...flat.map(([dx, dy]) => Math.hypot(dx, dy)));
  pen.font = `500 12px ${look.font}`;
  pen.textBaseline = "middle";
  const taken = [];
  scene.arrows.forEach((one, i) => {
    const [dx, dy] = flat[i].map((v) => (v / longest) * room);
    pen.strokeStyle = pen.fillStyle = look.accent;
    pen.lineWidth = 1.6;
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x + dx, y + dy);
    pen.stroke();
    const angle = Math.atan2(dy, dx);
    pen.beginPath();
    pen.moveTo(x + dx, y + dy);
    for (const turn of [2.7, -2.7]) pen.lineTo(x + dx + 9 * Math.cos(angle + turn), y + dy + 9 * Math.sin(angle + turn));
    pen.fill();
    const [tx, ty] = [x + dx + 10 * Math.cos(angle), y + dy + 10 * Math.sin(angle)];
    if (taken.some(([a, b]) => Math.abs(a - tx) < 90 && Math.abs(b - ty) < 15)) return;
    taken.push([tx, ty]);
    pen.textAlign = dx < 0 ? "right" : "left";
    pen.strokeStyle = look.ground;
    pen.lineWidth = 4;
    pen.strokeText(short(one.name, 22), tx, ty);
    pen.fillText(short(one.name, 22), tx, ty);
  });
}

function lasso(pen, plot, look) {
  const path = plot.stroke;
  if (!path || path.length < 2) return;
  pen.beginPath();
  pen.moveTo(...path[0]);
  for (const point of path.slice(1)) pen.lineTo(...point);
  pen.closePath();
  pen.fillStyle = look.accentSoft;
  pen.fill();
  pen.strokeStyle = look.accent;
  pen.lineWidth = 1.5;
  pen.setLineDash([5, 4]);
  pen.stroke();
  pen.setLineDash([]);
}
