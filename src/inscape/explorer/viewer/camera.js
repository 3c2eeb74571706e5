// Which part of the plane a canvas shows: its centre, and how many units of the plane a pixel is.

export class Camera {
  constructor() {
    this.centre = [0, 0];
    this.unit = [1, 1];
    this.size = [1, 1];
  }

  /** Show a window [s0, s1, t0, t1] whole; true to scale unless its sides differ more than four times. */
  fit([s0, s1, t0, t1], isStretched) {
    const [w, h] = this.size;
    this.centre = [(s0 + s1) / 2, (t0 + t1) / 2];
    const units = [(s1 - s0) / w, (t1 - t0) / h];
    this.unit = isStretched ? units : [Math.max(...units), Math.max(...units)];
  }

  toPixels([s, t]) {
    return [
      this.size[0] / 2 + (s - this.centre[0]) / this.unit[0],
      this.size[1] / 2 - (t - this.centre[1]) / this.unit[1],
    ];
  }

  toPlane([x, y]) {
    return [
      this.centre[0] + (x - this.size[0] / 2) * this.unit[0],
      this.centre[1] - (y - this.size[1] / 2) * this.unit[1],
    ];
  }

  pan(dx, dy) {
    this.centre = [this.centre[0] - dx * this.unit[0], this.centre[1] + dy * this.unit[1]];
  }

  /** Zoom by a factor (above 1 is nearer) around a pixel. */
  zoom(factor, [x, y]) {
    const [s, t] = this.toPlane([x, y]);
    this.unit = this.unit.map((u) => u / factor);
    const [s1, t1] = this.toPlane([x, y]);
    this.centre = [this.centre[0] + s - s1, this.centre[1] + t - t1];
  }

  /** What is visible and `more` of its size on each side, as [s0, s1, t0, t1]. */
  window(more = 0) {
    const reach = this.size.map((n, k) => (n / 2) * this.unit[k] * (1 + 2 * more));
    const [s, t] = this.centre;
    return [s - reach[0], s + reach[0], t - reach[1], t + reach[1]];
  }

  /** Whether a window covers all that is visible, in about as much detail as there is. */
  isCovered([s0, s1, t0, t1]) {
    const [v0, v1, w0, w1] = this.window();
    const inside = s0 <= v0 && v1 <= s1 && t0 <= w0 && w1 <= t1;
    return inside && (s1 - s0) / (v1 - v0) < 1.7;
  }
}
