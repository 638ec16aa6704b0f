// Points on a 2-D canvas, drawn by the CPU: pixels with counts for many rows, smooth discs for few.
// A pixel is 16 bits: count << 7 | dimmed << 6 | colour; a table of 65,536 entries turns it into what is seen.

import { nearestPoint } from "./hover.js";

const DISCS_BELOW = 10000;
const DIMMED = 64;

function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

export class Raster {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.n = 0;
    this.marked = null;
    this.looks = new Uint8Array(0);
    this.table = new Uint32Array(65536);
    this.index = null;
  }
  resize(width, height, ratio) {
    this.ratio = ratio;
    this.W = this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.H = this.canvas.height = Math.max(1, Math.round(height * ratio));
    this.image = this.context.createImageData(this.W, this.H);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.counts = new Uint16Array(this.W * this.H);
    this.index = null;
  }
  setRows(n) {
    if (n === this.n) return;
    this.n = n;
    this.at = new Int32Array(n);
    this.sx = n < DISCS_BELOW ? new Float32Array(n) : null;
    this.sy = n < DISCS_BELOW ? new Float32Array(n) : null;
    this.marked = null;
    if (this.colours) this.rebuild();
  }
  setPalette(colours, ground) {
    this.colours = colours.map(rgb);
    this.ground = rgb(ground);
    this.rebuild();
  }
  setCodes(codes) {
    this.codes = codes;
    this.relook();
  }
  setMarked(bits, any) {
    this.marked = any ? bits : null;
    this.relook();
  }
  relook() {
    const { codes, marked, n } = this;
    if (!codes || codes.length !== n) return;
    if (!marked) this.looks = codes;
    else {
      const looks = new Uint8Array(n);
      for (let i = 0; i < n; i++) looks[i] = codes[i] | ((marked[i >> 3] >> (i & 7)) & 1 ? 0 : DIMMED);
      this.looks = looks;
    }
  }
  rebuild() {
    const full = Math.log(Math.max(4, this.n / 40000));
    const { table, colours, ground } = this;
    for (let v = 0; v < 65536; v++) {
      const number = v >> 7;
      const colour = colours[v & 63] ?? ground;
      let alpha = number === 0 ? 0 : Math.min(1, 0.45 + (0.55 * Math.log(number)) / full);
      if (v & DIMMED) alpha *= 0.22;
      let pixel = 255 << 24;
      for (let part = 0; part < 3; part++)
        pixel |= Math.round(ground[part] + alpha * (colour[part] - ground[part])) << (8 * part);
      table[v] = pixel >>> 0;
    }
  }
  // columns: arrays of n numbers; m: rows x and y of the matrix that takes them to pixels, then the offsets.
  draw(columns, mx, my, ox, oy, most = this.n) {
    this.index = null;
    const n = Math.min(most, this.n);
    if (n < DISCS_BELOW && this.sx) this.discs(columns, mx, my, ox, oy, n);
    else this.dots(columns, mx, my, ox, oy, n);
    this.context.putImageData(this.image, 0, 0);
    this.drawn = n;
  }
  dots(columns, mx, my, ox, oy, n) {
    const { at, W, H, counts: B, looks: L, pixels, table } = this;
    const r = this.ratio;
    const size = (this.n <= 40000 ? 3 : this.n <= 200000 ? 2 : 1) * (r >= 1.75 ? 2 : 1);
    const left = -0.5 * (size - 1) + 0.5;
    place(columns, n, at, mx.map((v) => v * r), my.map((v) => v * r), ox * r + left, oy * r + left, W - size, H - size, W);
    B.fill(0);
    if (size === 1) {
      for (let i = 0; i < n; i++) {
        const p = at[i];
        if (p < 0) continue;
        const v = B[p];
        const look = L[i];
        B[p] = v === 0 ? 128 | look : (v < 0xff80 ? v + 128 : v) & (look & 63 ? 0xff80 : 0xffff) | (look & 63 ? look : 0);
      }
    } else {
      for (let i = 0; i < n; i++) {
        const p = at[i];
        if (p < 0) continue;
        const look = L[i];
        const keep = look & 63 ? 0xff80 : 0xffff;
        const give = look & 63 ? look : 0;
        for (let dy = 0, q = p; dy < size; dy++, q += W)
          for (let dx = 0; dx < size; dx++) {
            const v = B[q + dx];
            B[q + dx] = v === 0 ? 128 | look : ((v < 0xff80 ? v + 128 : v) & keep) | give;
          }
      }
    }
    for (let p = 0, all = W * H; p < all; p++) pixels[p] = table[B[p]];
  }
  discs(columns, mx, my, ox, oy, n) {
    const { sx, sy, looks, ratio } = this;
    const k = columns.length;
    for (let i = 0; i < n; i++) {
      let x = ox;
      let y = oy;
      for (let j = 0; j < k; j++) {
        x += mx[j] * columns[j][i];
        y += my[j] * columns[j][i];
      }
      sx[i] = x * ratio;
      sy[i] = y * ratio;
    }
    const [a, b, c] = this.ground;
    this.pixels.fill((255 << 24 | c << 16 | b << 8 | a) >>> 0);
    const radius = (n < 400 ? 4.6 : n < 3000 ? 3.6 : 2.7) * ratio;
    // Known rows below, dimmed ones above them, the others on top.
    for (let layer = 0; layer < 3; layer++)
      for (let i = 0; i < n; i++) {
        const look = looks[i];
        const mine = (look & 63) === 0 ? 0 : look & DIMMED ? 1 : 2;
        if (mine === layer) this.disc(sx[i], sy[i], radius, this.colours[look & 63], look & DIMMED ? 0.2 : layer ? 0.88 : 0.7);
      }
  }
  disc(x, y, radius, colour, alpha) {
    const { W, H, pixels, ground } = this;
    const x0 = Math.max(0, Math.ceil(x - radius - 0.5));
    const x1 = Math.min(W - 1, Math.floor(x + radius + 0.5));
    const y0 = Math.max(0, Math.ceil(y - radius - 0.5));
    const y1 = Math.min(H - 1, Math.floor(y + radius + 0.5));
    const rim = radius - 0.9;
    for (let py = y0; py <= y1; py++)
      for (let px = x0; px <= x1; px++) {
        const d = Math.sqrt((px - x) * (px - x) + (py - y) * (py - y));
        const cover = Math.min(1, radius + 0.5 - d) * alpha;
        if (cover <= 0) continue;
        // A rim in the colour of the ground keeps neighbours of one colour apart.
        const edge = d > rim ? Math.min(0.55, (d - rim) * 0.55) : 0;
        const under = pixels[py * W + px];
        let out = 255 << 24;
        for (let part = 0; part < 3; part++) {
          const below = (under >> (8 * part)) & 255;
          const ink = colour[part] + edge * (ground[part] - colour[part]);
          out |= Math.round(below + cover * (ink - below)) << (8 * part);
        }
        pixels[py * W + px] = out >>> 0;
      }
  }
  // The point nearest to a place, within a few pixels; -1 where there is none.
  nearest(x, y, within = 7) {
    const r = this.ratio;
    if (this.sx) return nearestPoint(this.drawn, within * r, (i) => (this.sx[i] - x * r) ** 2 + (this.sy[i] - y * r) ** 2);
    const { W, H } = this;
    if (!this.index) {
      this.index = new Int32Array(W * H);
      for (let i = 0; i < this.drawn; i++) if (this.at[i] >= 0) this.index[this.at[i]] = i + 1;
    }
    const [cx, cy] = [Math.round(x * r), Math.round(y * r)];
    let best = Infinity;
    let found = -1;
    const reach = Math.round(4 * r);
    for (let py = Math.max(0, cy - reach); py <= Math.min(H - 1, cy + reach); py++)
      for (let px = Math.max(0, cx - reach); px <= Math.min(W - 1, cx + reach); px++) {
        const i = this.index[py * W + px];
        const d = (px - cx) ** 2 + (py - cy) ** 2;
        if (i && d < best) [best, found] = [d, i - 1];
      }
    return found;
  }
}

// Where every row falls, as a pixel, -1 outside. Compared before truncation: -0.9 | 0 is 0.
function place(columns, n, at, mx, my, ox, oy, right, bottom, W) {
  const [a, b, c, d] = columns;
  if (columns.length === 2) {
    const [u, v, w, z] = [mx[0], mx[1], my[0], my[1]];
    for (let i = 0; i < n; i++) {
      const x = u * a[i] + v * b[i] + ox;
      const y = w * a[i] + z * b[i] + oy;
      at[i] = x >= 0 && y >= 0 && x < right && y < bottom ? (y | 0) * W + (x | 0) : -1;
    }
  } else if (columns.length === 4) {
    const [u0, u1, u2, u3] = mx;
    const [w0, w1, w2, w3] = my;
    for (let i = 0; i < n; i++) {
      const x = u0 * a[i] + u1 * b[i] + u2 * c[i] + u3 * d[i] + ox;
      const y = w0 * a[i] + w1 * b[i] + w2 * c[i] + w3 * d[i] + oy;
      at[i] = x >= 0 && y >= 0 && x < right && y < bottom ? (y | 0) * W + (x | 0) : -1;
    }
  } else {
    const k = columns.length;
    for (let i = 0; i < n; i++) {
      let x = ox;
      let y = oy;
      for (let j = 0; j < k; j++) {
        x += mx[j] * columns[j][i];
        y += my[j] * columns[j][i];
      }
      at[i] = x >= 0 && y >= 0 && x < right && y < bottom ? (y | 0) * W + (x | 0) : -1;
    }
  }
}
