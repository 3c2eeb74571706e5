// One picture of a plane: what a message holds, filled as the page wants it, on a canvas.

import { Camera } from "./camera.js";
import { cssColour, layerColour, rgb, scaleColour, spread } from "./colours.js";
import { Triangles } from "./triangles.js";

export const TRIANGLES_FROM = 20000;
const BOUNDARY = 128;
const NO_LAYER = 127;
const DENSITY_CELLS = 72;
const RASTER = 96;
const STRIPE = 5;
const QUIET = 0.35;
const SHEET_AROUND = 0.1;
const HEAVY_FROM = 1500;
const MOST_PLACES = 500; // of a region that are tried for its name
const NAMES_FROM_EDGE = 0.02;
const NAMES_FROM_CORNERS = 0.11;

/** Keeps what can be drawn of one message, and draws it wherever the camera is.
 *
 * It is drawn on a sheet somewhat larger than the canvas, and the sheet is moved with the camera: a heavy picture is
 * not drawn again before the camera rests, so that it moves smoothly however many faces it has.
 */
export class Painter {
  constructor(canvas) {
    this.canvas = canvas;
    this.glCanvas = document.createElement("canvas");
    this.sheet = document.createElement("canvas");
    this.triangles = undefined;
  }

  /** Take a message; `look` says how it is filled: fill, about, dark. */
  take(message, look, pixels) {
    this.message = message;
    this.look = look;
    this.legend = null;
    const { header } = message;
    this.window = header.window;
    this.base = pixels; // window coordinates are kept in pixels of this size, so that lines stay even
    this.labelColours = new Map(look.about.classes.map((c) => [c.label, rgb(c.colour)]));
    this.pairs = header.pairs ?? null; // of a comparison, labels are numbers of pairs
    this.isMany = header.shape === "faces" && !this.pairs && message.arrays.start.length - 1 > TRIANGLES_FROM;
    this.groups = null;
    this.image = null;
    this.density = null;
    this.margin = null;
    this.isHeavy = header.shape === "faces" && message.arrays.start.length > HEAVY_FROM;
    this.drawn = null; // the sheet is of an earlier message
    if (header.shape === "image") this.image = this.imageOf(message.arrays);
    else this.prepareFaces(message.arrays);
    if (message.arrays.margins) this.margin = this.marginOf(message.arrays.margins, look.dark);
  }

  colourOfLabel(label) {
    return this.labelColours.get(label) ?? [136, 136, 136];
  }

  /** What two models say, in both colours; where they agree, mixed with white as in the still pictures. */
  coloursOfPair(k) {
    const [a, b] = this.pairs[k].map((label) => this.colourOfLabel(label));
    return this.pairs[k][0] === this.pairs[k][1] ? [a, a].map((c) => c.map((v) => 255 - QUIET * (255 - v))) : [a, b];
  }

  /** Stripes in two colours. */
  stripes([a, b]) {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 2 * STRIPE;
    const context = canvas.getContext("2d");
    const data = context.createImageData(2 * STRIPE, 2 * STRIPE);
    for (let i = 0; i < 4 * STRIPE * STRIPE; i++) {
      const isFirst = ((i % (2 * STRIPE)) + Math.floor(i / (2 * STRIPE))) % (2 * STRIPE) < STRIPE;
      data.data.set([...(isFirst ? a : b), 255], 4 * i);
    }
    context.putImageData(data, 0, 0);
    return this.sheet.getContext("2d").createPattern(canvas, "repeat");
  }

  /** A colour for each face, three numbers each, and the legend of the scale. */
  faceColours(arrays) {
    const { about } = this.look;
    const fill = this.pairs ? "decision" : this.look.fill;
    if (fill === "pattern" && arrays.face_patterns) {
      const known = about.patterns.map(rgb);
      return (f) => known[arrays.face_patterns[f]];
    }
    if (fill === "layer" && arrays.face_layers) {
      const most = arrays.face_layers.reduce((a, b) => Math.max(a, b), 0);
      const least = arrays.face_layers.reduce((a, b) => Math.min(a, b), 255);
      const known = Array.from({ length: most - least + 1 }, (_, k) => layerColour(k, most - least + 1));
      this.legend = { kind: "steps", title: "last layer that cuts", steps: known.map((c, k) => [String(least + k), cssColour(c)]) };
      return (f) => known[arrays.face_layers[f] - least];
    }
    if (fill === "slope" && arrays.face_slopes) {
      const [low, high] = spread(arrays.face_slopes);
      this.legend = { kind: "scale", title: "norm of the slope", scale: "viridis", low, high };
      const known = Array.from({ length: 65 }, (_, k) => scaleColour("viridis", k / 64));
      return (f) => {
        const t = (arrays.face_slopes[f] - low) / (high - low || 1);
        return known[Math.round(64 * Math.min(Math.max(Number.isFinite(t) ? t : 0, 0), 1))];
      };
    }
    if (fill === "density") {
      const paper = this.look.dark ? [28, 30, 33] : [250, 249, 246];
      return () => paper;
    }
    if (this.pairs) return (f) => this.coloursOfPair(arrays.region_labels[arrays.face_regions[f]])[0];
    return (f) => this.colourOfLabel(arrays.region_labels[arrays.face_regions[f]]);
  }

  prepareFaces(arrays) {
    const { vertices, corners, start, edges, edge_kinds: kinds } = arrays;
    const [w, h] = this.base;
    const x = (v) => (vertices[2 * v] * w) / 2;
    const y = (v) => (-vertices[2 * v + 1] * h) / 2;
    const colour = this.faceColours(arrays);
    if (this.look.fill === "density" && !this.pairs) this.density = this.densityOf(arrays);
    const inner = [];
    const boundary = [];
    for (let e = 0; e < kinds.length; e++) {
      if (kinds[e] & BOUNDARY) boundary.push(e);
      else if ((kinds[e] & 127) > 0 && !this.pairs) inner.push(e); // those of a comparison mean nothing
    }
    const linesOf = (some) => {
      const path = new Path2D();
      for (const e of some) {
        path.moveTo(x(edges[2 * e]), y(edges[2 * e]));
        path.lineTo(x(edges[2 * e + 1]), y(edges[2 * e + 1]));
      }
      return path;
    };
    this.nInner = inner.length;
    this.boundary = linesOf(boundary);
    if (this.isMany && this.useTriangles()) {
      const bytes = new Uint8Array(4 * (start.length - 1));
      for (let f = 0; f + 1 < start.length; f++) {
        const own = colour(f);
        for (let k = 0; k < 3; k++) bytes[4 * f + k] = Math.round(own[k]);
        bytes[4 * f + 3] = 255;
      }
      this.triangles.setFaces(arrays, bytes);
      const index = new Uint32Array(2 * inner.length);
      for (let k = 0; k < inner.length; k++) {
        index[2 * k] = edges[2 * inner[k]];
        index[2 * k + 1] = edges[2 * inner[k] + 1];
      }
      this.triangles.setEdges(arrays, index, [0, 0, 0, 70]);
      return;
    }
    this.isMany = false;
    this.groups = new Map();
    const ofPair = (k) => (this.pairs[k][0] === this.pairs[k][1] ? cssColour(this.coloursOfPair(k)[0]) : this.stripes(this.coloursOfPair(k)));
    const styles = this.pairs?.map((_, k) => ofPair(k));
    for (let f = 0; f + 1 < start.length; f++) {
      const key = styles ? styles[arrays.region_labels[arrays.face_regions[f]]] : cssColour(colour(f));
      if (!this.groups.has(key)) this.groups.set(key, new Path2D());
      const path = this.groups.get(key);
      path.moveTo(x(corners[start[f]]), y(corners[start[f]]));
      for (let i = start[f] + 1; i < start[f + 1]; i++) path.lineTo(x(corners[i]), y(corners[i]));
      path.closePath();
    }
    this.inner = linesOf(inner);
  }

  useTriangles() {
    if (this.triangles === undefined) this.triangles = Triangles.on(this.glCanvas);
    return this.triangles !== null;
  }

  imageOf({ image, region_labels: labels }) {
    const [rows, columns] = image.shape;
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [columns, rows];
    const context = canvas.getContext("2d");
    const data = context.createImageData(columns, rows);
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < columns; c++) {
        const region = image[r * columns + c];
        const colours = region < 0 ? [] : this.pairs ? this.coloursOfPair(labels[region]) : [this.colourOfLabel(labels[region])];
        const colour = colours[(r + c) % (2 * STRIPE) < STRIPE ? 0 : colours.length - 1] ?? [136, 136, 136];
        data.data.set([...colour, 255], 4 * ((rows - 1 - r) * columns + c));
      }
    }
    context.putImageData(data, 0, 0);
    return canvas;
  }

  /** Paper over the places where the margin is small. */
  marginOf(margins, dark) {
    const [rows, columns] = margins.shape;
    const high = spread(margins)[1] || 1;
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [columns, rows];
    const context = canvas.getContext("2d");
    const data = context.createImageData(columns, rows);
    const paper = dark ? [19, 20, 22] : [255, 255, 255];
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < columns; c++) {
        const part = Math.min(margins[r * columns + c] / high, 1);
        data.data.set([...paper, 215 * (1 - Math.sqrt(part))], 4 * ((rows - 1 - r) * columns + c));
      }
    }
    context.putImageData(data, 0, 0);
    return canvas;
  }

  /** The length of kinks in each cell of a grid over the area of the cell, as an image. */
  densityOf({ vertices, edges, edge_kinds: kinds }) {
    const n = DENSITY_CELLS;
    const sums = new Float64Array(n * n);
    const [s0, s1, t0, t1] = this.window;
    const half = [(s1 - s0) / 2, (t1 - t0) / 2];
    for (let e = 0; e < kinds.length; e++) {
      const layer = kinds[e] & 127;
      if (layer === 0 || layer === NO_LAYER) continue;
      const [a, b] = [2 * edges[2 * e], 2 * edges[2 * e + 1]];
      const [ax, ay, bx, by] = [vertices[a], vertices[a + 1], vertices[b], vertices[b + 1]];
      const length = Math.hypot((bx - ax) * half[0], (by - ay) * half[1]);
      const steps = Math.max(1, Math.ceil(Math.hypot(bx - ax, by - ay) * n));
      for (let k = 0; k < steps; k++) {
        const t = (k + 0.5) / steps;
        const column = Math.min(n - 1, Math.max(0, Math.floor(((ax + t * (bx - ax) + 1) / 2) * n)));
        const row = Math.min(n - 1, Math.max(0, Math.floor(((ay + t * (by - ay) + 1) / 2) * n)));
        sums[row * n + column] += length / steps;
      }
    }
    const cell = (4 * half[0] * half[1]) / (n * n);
    const values = sums.map((v) => v / cell);
    const high = spread(values)[1] || 1;
    this.legend = { kind: "scale", title: "kinks: length per area", scale: "magma", low: 0, high };
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [n, n];
    const context = canvas.getContext("2d");
    const data = context.createImageData(n, n);
    for (let r = 0; r < n; r++) {
      for (let c = 0; c < n; c++) {
        data.data.set([...scaleColour("magma", values[r * n + c] / high), 255], 4 * ((n - 1 - r) * n + c));
      }
    }
    context.putImageData(data, 0, 0);
    return canvas;
  }

  /** Draw with a camera: fills, edges as wanted, boundaries; as it is while a heavy picture moves. */
  draw(camera, { edges, margin, isMoving }) {
    const context = this.canvas.getContext("2d");
    const ratio = this.canvas.width / camera.size[0];
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    if (!this.message) return;
    const look = JSON.stringify([edges, margin, ratio, camera.size]);
    const isSharp = this.drawn?.look === look && isSameScale(this.drawn.camera, camera) && covers(this.drawn.camera, camera);
    const mayWait = isMoving && this.isHeavy && this.drawn?.look === look;
    if (!isSharp && !mayWait) this.drawSheet(camera, ratio, { edges, margin }, look);
    const own = this.drawn.camera;
    const [s0, s1, t0, t1] = own.window();
    const [x0, y0] = camera.toPixels([s0, t1]).map((v) => v * ratio);
    const [x1, y1] = camera.toPixels([s1, t0]).map((v) => v * ratio);
    if (isSameScale(own, camera)) context.drawImage(this.sheet, Math.round(x0), Math.round(y0));
    else context.drawImage(this.sheet, x0, y0, x1 - x0, y1 - y0);
  }

  /** Draw what the camera sees and a little around it on the sheet. */
  drawSheet(view, ratio, { edges, margin }, look) {
    const camera = new Camera();
    [camera.centre, camera.unit] = [[...view.centre], [...view.unit]];
    const around = view.size.map((n) => Math.round(n * SHEET_AROUND));
    camera.size = view.size.map((n, k) => n + 2 * around[k]);
    for (const canvas of [this.sheet, ...(this.isMany ? [this.glCanvas] : [])]) {
      [canvas.width, canvas.height] = camera.size.map((n) => Math.round(n * ratio));
    }
    this.drawn = { camera, look };
    const context = this.sheet.getContext("2d");
    const [s0, s1, t0, t1] = this.window;
    const [x0, y0] = camera.toPixels([s0, t1]);
    const [x1, y1] = camera.toPixels([s1, t0]);
    const box = [x0, y0, x1 - x0, y1 - y0];
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (this.image) {
      context.imageSmoothingEnabled = false;
      context.drawImage(this.image, ...box);
    } else {
      if (this.isMany) {
        this.drawTriangles(camera, edges);
        context.drawImage(this.glCanvas, 0, 0, ...camera.size);
      } else this.drawGroups(context, ratio, box);
      if (this.density) {
        context.imageSmoothingEnabled = true;
        context.drawImage(this.density, ...box);
      }
    }
    if (margin && this.margin) {
      context.imageSmoothingEnabled = true;
      context.drawImage(this.margin, ...box);
    }
    if (!this.image) this.drawLines(context, ratio, box, edges);
  }

  drawTriangles(camera, edges) {
    const [s0, s1, t0, t1] = this.window;
    const [v0, v1, w0, w1] = camera.window();
    const scale = [(s1 - s0) / (v1 - v0), (t1 - t0) / (w1 - w0)];
    const shift = [(s0 + s1 - v0 - v1) / (v1 - v0), (t0 + t1 - w0 - w1) / (w1 - w0)];
    this.triangles.draw(scale, shift, edges);
  }

  place(context, ratio, [x, y, width, height]) {
    const zoom = width / this.base[0];
    context.setTransform(ratio * zoom, 0, 0, ratio * zoom, ratio * (x + width / 2), ratio * (y + height / 2));
    return zoom;
  }

  drawGroups(context, ratio, box) {
    const zoom = this.place(context, ratio, box);
    for (const [colour, path] of this.groups) {
      context.fillStyle = colour;
      context.fill(path);
      context.strokeStyle = colour; // closes the hairlines between neighbours
      context.lineWidth = 0.6 / zoom;
      context.stroke(path);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  drawLines(context, ratio, box, edges) {
    const zoom = this.place(context, ratio, box);
    if (edges && !this.isMany) {
      context.strokeStyle = "rgb(0 0 0 / 0.42)";
      context.lineWidth = Math.min(0.9, 30 / Math.sqrt(this.nInner + 1)) / zoom;
      context.stroke(this.inner);
    }
    context.strokeStyle = this.look.fill === "density" ? "#3f90da" : "black";
    context.lineWidth = 1.6 / zoom;
    context.lineJoin = "round";
    context.stroke(this.boundary);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  /** The names of large regions and where they are written: text, ink, share of the window, place.
   *
   * Each stands whole at the innermost visible place of its region that is free: off the edges of the picture, its
   * corners, what `room` says is taken, data points among it, and the names of larger regions. One for which there is
   * no place is left out: the legend has it.
   */
  names(camera, room, points, isMoving = false) {
    if (!this.message || this.message.header.method === "coarse") return [];
    const view = camera.window().join();
    const isKept = this.kept?.message === this.message;
    if (isKept && (isMoving || (this.kept.view === view && this.kept.points === points))) return this.kept.names;
    const { image, region_labels: labels } = this.message.arrays;
    const raster = isKept ? this.kept.raster : image ? { regions: image, size: image.shape } : this.rasterOf(this.message.arrays);
    const [s0, s1, t0, t1] = this.window;
    const [width, height] = camera.size;
    const corners = this.look.corners.map((c) => camera.toPixels(c));
    const { taken, isDotted, nameOf } = room();
    const isFree = (x, y, [w, t]) =>
      Math.min(x, width - x) > w + NAMES_FROM_EDGE * width &&
      Math.min(y, height - y) > t + NAMES_FROM_EDGE * height &&
      corners.every(([a, b]) => Math.hypot((x - a) / width, (y - b) / height) > NAMES_FROM_CORNERS) &&
      taken.every((other) => Math.abs(x - other.x) > w + other.half[0] || Math.abs(y - other.y) > t + other.half[1]) &&
      !isDotted(x, y, [w, t]);
    const names = [];
    for (const { region, share, places } of innermost(raster)) {
      const name = nameOf(labels[region], (share * (s1 - s0) * (t1 - t0)) / (camera.unit[0] * camera.unit[1]));
      const at = name && places.map((p) => this.fromWindow(p)).find((p) => isFree(...camera.toPixels(p), name.half));
      if (!at) continue;
      const [x, y] = camera.toPixels(at);
      taken.push({ x, y, half: name.half });
      names.push({ ...name, share, at });
    }
    this.kept = { message: this.message, raster, view, points, names };
    return names;
  }

  fromWindow([x, y]) {
    const [s0, s1, t0, t1] = this.window;
    return [(s0 + s1 + x * (s1 - s0)) / 2, (t0 + t1 + y * (t1 - t0)) / 2];
  }

  /** The region of each pixel of a small image by its middle, from low t to high; -1 for none. */
  rasterOf({ vertices, corners, start, face_regions: regions }) {
    const n = RASTER;
    const ofPixels = new Int32Array(n * n).fill(-1);
    const place = (v) => ((v + 1) / 2) * n - 0.5; // the middle of pixel k is k
    for (let f = 0; f + 1 < start.length; f++) {
      const [first, last] = [start[f], start[f + 1]];
      let [low, high] = [Infinity, -Infinity];
      for (let i = first; i < last; i++) {
        const y = place(vertices[2 * corners[i] + 1]);
        low = Math.min(low, y);
        high = Math.max(high, y);
      }
      for (let row = Math.max(0, Math.ceil(low)); row <= Math.min(n - 1, high); row++) {
        let [left, right] = [Infinity, -Infinity]; // where the row's middle enters and leaves the face
        for (let i = first; i < last; i++) {
          const [a, b] = [2 * corners[i], 2 * corners[i + 1 < last ? i + 1 : first]];
          const [ya, yb] = [place(vertices[a + 1]), place(vertices[b + 1])];
          if (ya === yb || row < Math.min(ya, yb) || row > Math.max(ya, yb)) continue;
          const x = place(vertices[a] + ((row - ya) / (yb - ya)) * (vertices[b] - vertices[a]));
          left = Math.min(left, x);
          right = Math.max(right, x);
        }
        for (let column = Math.max(0, Math.ceil(left)); column <= Math.min(n - 1, right); column++) ofPixels[row * n + column] = regions[f];
      }
    }
    return { regions: ofPixels, size: [n, n] };
  }
}

function isSameScale(a, b) {
  return a.unit.every((u, k) => Math.abs(u / b.unit[k] - 1) < 1e-9);
}

/** Whether one camera sees all that another does. */
function covers(a, b) {
  const [s0, s1, t0, t1] = a.window();
  const [v0, v1, w0, w1] = b.window();
  return s0 <= v0 && v1 <= s1 && t0 <= w0 && w1 <= t1;
}

/** The large regions of a raster, the largest first; of each its pixels, the furthest from all others first, in window coordinates. */
function innermost({ regions, size: [rows, columns] }) {
  const place = (i) => [(2 * ((i % columns) + 0.5)) / columns - 1, (2 * (Math.floor(i / columns) + 0.5)) / rows - 1];
  const depth = new Float32Array(regions.length);
  const at = (r, c) => (r < 0 || c < 0 || r >= rows || c >= columns ? 0 : depth[r * columns + c]);
  const pass = (r, c, steps) => {
    const i = r * columns + c;
    let least = depth[i] || Infinity;
    for (const [dr, dc, cost] of steps) {
      const [q, p] = [r + dr, c + dc];
      const isSame = q >= 0 && p >= 0 && q < rows && p < columns && regions[q * columns + p] === regions[i];
      least = Math.min(least, isSame ? at(q, p) + cost : 1);
    }
    depth[i] = least;
  };
  const before = [[-1, 0, 1], [0, -1, 1], [-1, -1, 1.4], [-1, 1, 1.4]];
  const after = before.map(([r, c, cost]) => [-r, -c, cost]);
  for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) pass(r, c, before);
  for (let r = rows - 1; r >= 0; r--) for (let c = columns - 1; c >= 0; c--) pass(r, c, after);
  const pixels = new Map();
  regions.forEach((region, i) => {
    if (region < 0) return;
    if (!pixels.has(region)) pixels.set(region, []);
    pixels.get(region).push(i);
  });
  return [...pixels]
    .filter(([, own]) => own.length > 0.003 * regions.length)
    .sort(([, a], [, b]) => b.length - a.length)
    .map(([region, own]) => ({
      region,
      share: own.length / regions.length,
      places: some(own.filter((i) => depth[i] > 2).sort((i, j) => depth[j] - depth[i])).map(place),
    }));
}

/** So many of a list that all of them can be tried, from its first on. */
function some(list) {
  const step = Math.ceil(list.length / MOST_PLACES);
  return list.filter((_, k) => k % step === 0);
}
