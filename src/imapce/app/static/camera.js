// Where rows of a view fall on the screen: a window onto two axes, or onto three that are turned by hand.

export class Camera {
  constructor() {
    this.width = this.height = 100;
    this.dims = 2;
    this.low = [0, 0];
    this.high = [1, 1];
    this.spin = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
    // Room for the names of the axes.
    this.margin = { left: 58, right: 16, top: 82, bottom: 44 };
  }
  resize(width, height) {
    this.width = width;
    this.height = height;
  }
  frame(dims, low, high) {
    this.dims = dims;
    if (dims === 3) {
      this.centre = low.map((value, j) => (value + high[j]) / 2);
      const reach = Math.max(...low.map((value, j) => (high[j] - value) / 2)) * 1.02;
      const { left, right, top, bottom } = this.margin;
      const side = Math.min(this.width - left - right, this.height - top - bottom);
      const [x, y] = [(reach * (this.width - left - right)) / side, (reach * (this.height - top - bottom)) / side];
      this.low = [-x, -y];
      this.high = [x, y];
    } else {
      this.low = low.slice(0, 2);
      this.high = high.slice(0, 2);
    }
    this.home = { low: this.low.slice(), high: this.high.slice() };
  }
  reset() {
    this.low = this.home.low.slice();
    this.high = this.home.high.slice();
    this.spin = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
  }
  get scale() {
    const { left, right, top, bottom } = this.margin;
    return [(this.width - left - right) / (this.high[0] - this.low[0]), (this.height - top - bottom) / (this.high[1] - this.low[1])];
  }
  // Screen = [mx; my] p + [ox, oy].
  matrix() {
    const [sx, sy] = this.scale;
    const ox = this.margin.left - this.low[0] * sx;
    const oy = this.height - this.margin.bottom + this.low[1] * sy;
    if (this.dims === 2) return { mx: [sx, 0], my: [0, -sy], ox, oy };
    const [a, b] = this.spin;
    const inner = (row) => row.reduce((sum, value, j) => sum + value * this.centre[j], 0);
    return { mx: a.map((v) => v * sx), my: b.map((v) => -v * sy), ox: ox - sx * inner(a), oy: oy + sy * inner(b) };
  }
  toScreen(point) {
    const { mx, my, ox, oy } = this.matrix();
    return [mx.reduce((s, v, j) => s + v * point[j], ox), my.reduce((s, v, j) => s + v * point[j], oy)];
  }
  // A place on the screen in the units of the plane that is looked at.
  toPlane(x, y) {
    const [sx, sy] = this.scale;
    return [this.low[0] + (x - this.margin.left) / sx, this.low[1] + (this.height - this.margin.bottom - y) / sy];
  }
  // The plane (k, 2) of a three-axis view; what is added to its places because it turns about the centre.
  looking() {
    if (this.dims === 2) return null;
    return { plane: this.spin[0].map((_, j) => [this.spin[0][j], this.spin[1][j]]), shift: [0, 1].map((i) => this.spin[i].reduce((s, v, j) => s + v * this.centre[j], 0)) };
  }
  pan(dx, dy) {
    const [sx, sy] = this.scale;
    for (const end of [this.low, this.high]) {
      end[0] -= dx / sx;
      end[1] += dy / sy;
    }
  }
  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const [px, py] = this.toPlane(x, y);
    for (const end of [this.low, this.high]) {
      end[0] = px + (end[0] - px) / factor;
      end[1] = py + (end[1] - py) / factor;
    }
  }
  orbit(dx, dy) {
    const [a, b] = [dx * 0.008, dy * 0.008];
    const about = (i, j, angle) => {
      const [c, s] = [Math.cos(angle), Math.sin(angle)];
      const [p, q] = [this.spin[i], this.spin[j]];
      this.spin[i] = p.map((v, k) => c * v + s * q[k]);
      this.spin[j] = p.map((v, k) => -s * v + c * q[k]);
    };
    about(0, 2, -a);
    about(1, 2, b);
  }
}

export function ticks(low, high, about) {
  const rough = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * power).find((one) => one >= rough);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) found.push(Math.abs(value) < step / 1e6 ? 0 : value);
  return found;
}
