// One picture with what lies over it, and the hands on it: mouse, touch and keys.

import { counted, figure, grouped, h, percent, shortened } from "./elements.js";
import { scaleSteps } from "./colours.js";
import { Painter } from "./painter.js";
import { pointImage } from "./thumbnails.js";

const HANDLE = 11;
const CLICK = 5;
const NEAR_POINTS = 250;
const SQUARE = 6;

export class Stage {
  /** `viewer` has camera, state, about and the answers to what hands do. */
  constructor(viewer) {
    this.viewer = viewer;
    this.base = h("canvas", { class: "layer" });
    this.overlay = h("canvas", { class: "layer" });
    this.painter = new Painter(this.base);
    this.badge = h("p", { class: "badge", role: "status", "aria-live": "polite" });
    this.heading = h("p", { class: "heading" });
    this.legend = h("div", { class: "legend" });
    this.bar = h("progress", { max: 1, "aria-label": "how far" });
    this.cancel = h("button", { onclick: () => viewer.cancel(this) }, "cancel");
    this.waiting = h("span", { class: "note" });
    this.progress = h("div", { class: "progress", role: "status", hidden: true }, this.bar, this.waiting, this.cancel);
    this.trouble = h("div", { class: "trouble", role: "alert", hidden: true });
    this.surface = h(
      "div",
      {
        class: "surface",
        tabIndex: 0,
        role: "application",
        "aria-label": "the plane: arrows move, plus and minus zoom, 0 shows all, shift and arrows point, Enter pins",
      },
      this.base,
      this.overlay,
    );
    this.element = h("div", { class: "stage" }, this.surface, this.heading, this.progress, this.trouble, h("footer", {}, this.badge, this.legend));
    this.fingers = new Map();
    this.size = 1;
    this.listen();
  }

  // what it shows

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: w, clientHeight: t } = this.surface;
    if (!w || !t) return;
    this.viewer.camera.size = [w, t];
    this.size = parseFloat(getComputedStyle(this.surface).fontSize) / 13; // marks grow with the text
    for (const canvas of [this.base, this.overlay]) {
      [canvas.width, canvas.height] = [Math.round(w * ratio), Math.round(t * ratio)];
    }
  }

  take(message) {
    const { viewer } = this;
    if (message !== this.message) this.largest = null;
    this.message = message;
    this.trouble.hidden = true;
    const { camera, state, about } = viewer;
    const [s0, s1, t0, t1] = message.header.window;
    const pixels = [(s1 - s0) / camera.unit[0], (t1 - t0) / camera.unit[1]];
    this.painter.take(message, { fill: state.fill, about, dark: viewer.isDark(), corners: viewer.corners }, pixels);
    this.describe();
    this.draw();
  }

  /** Fill the same message in another way. */
  retake() {
    if (this.message) this.take(this.message);
  }

  fail(text, again) {
    this.trouble.hidden = false;
    this.trouble.replaceChildren(h("h3", {}, "There is no picture of this plane."), h("p", {}, text), h("button", { onclick: again }, "try again"));
    this.progress.hidden = true;
  }

  describe() {
    const { header } = this.message;
    const { about } = this.viewer;
    if (header.method === "coarse") {
      this.setBadge("coarse", "coarse", `${grouped(header.n_evaluations)} samples, the real picture is on its way`);
    } else if (header.reply === "difference") {
      const part = header.disagreement ? `they differ on ${percent(header.disagreement)} of the area` : "they agree everywhere here";
      this.setBadge(header.is_exact ? "exact" : "adaptive", header.is_exact ? "exact" : header.method, `${part} · ${counted(header.n_regions, "region")} of the pair${this.largestText()}`);
    } else {
      const linear = header.n_faces ? ` · ${counted(header.n_faces, "linear region")}` : "";
      const time = header.seconds >= 0.0005 ? ` · ${header.seconds < 1 ? `${Math.round(1000 * header.seconds)}\u00a0ms` : `${figure(header.seconds, 2)}\u00a0s`}` : "";
      const missed = header.missed > 0 ? `, about ${figure(header.missed, 2)} may be missed` : header.is_exact ? "" : ", smaller ones may be missed";
      this.setBadge(header.is_exact ? "exact" : "adaptive", header.is_exact ? "exact" : header.method, `${counted(header.n_regions, "decision region")}${missed}${linear}${time}`);
    }
    this.badge.title = [header.note, header.status, header.reason].filter(Boolean).join(" · ");
    const { legend } = this.painter;
    if (legend?.kind === "scale") {
      const ramp = h("i", { class: "ramp" });
      ramp.style.background = `linear-gradient(90deg, ${scaleSteps(legend.scale).join(",")})`;
      this.legend.replaceChildren(h("span", { class: "quiet" }, legend.title), h("span", {}, figure(legend.low, 2)), ramp, h("span", {}, figure(legend.high, 2)));
    } else if (legend?.kind === "steps") {
      this.legend.replaceChildren(h("span", { class: "quiet" }, legend.title), ...legend.steps.map(([name, colour]) => this.chip(name, colour)));
    } else if (header.reply === "difference") {
      this.legend.replaceChildren(...this.pairChips(header));
    } else {
      const shares = Object.entries(header.label_areas ?? {}).sort((a, b) => b[1] - a[1]);
      const labels = shares.length ? shares : [...new Set(this.message.arrays.region_labels)].map((label) => [label, null]);
      this.legend.replaceChildren(
        ...labels.slice(0, 12).map(([label, share]) => {
          const known = about.classes.find((c) => c.label === Number(label));
          return this.chip(known?.name ?? String(label), known?.colour ?? "#888", share === null ? "" : percent(share));
        }),
      );
    }
  }

  /** What both models say where they differ, the largest parts first. */
  pairChips({ pairs, label_areas: areas, models }) {
    const { about } = this.viewer;
    const known = (label) => about.classes.find((c) => c.label === label);
    const differing = Object.entries(areas).filter(([k]) => pairs[k][0] !== pairs[k][1]).sort((a, b) => b[1] - a[1]);
    if (!differing.length) return [];
    const chips = differing.slice(0, 6).map(([k, share]) => {
      const [a, b] = pairs[k].map((label) => [known(label)?.name ?? String(label), known(label)?.colour ?? "#888"]);
      return this.chip(`${a[0]} | ${b[0]}`, `repeating-linear-gradient(135deg, ${a[1]} 0 3px, ${b[1]} 3px 6px)`, percent(share));
    });
    return [h("span", { class: "quiet" }, `${about.models[models[0]].name} | ${about.models[models[1]].name}`), ...chips];
  }

  /** The largest difference of scores, once it is known. */
  largestText() {
    const { largest } = this;
    if (!largest) return "";
    if (largest.value === undefined) return " · scores cannot be compared";
    return ` · largest difference of ${largest.of} ${largest.is_exact ? "" : "at least "}${figure(largest.value)}, of ${largest.class_name}`;
  }

  setBadge(kind, word, text) {
    this.badge.dataset.kind = kind;
    this.badge.replaceChildren(h("b", {}, word), ` ${text}`);
  }

  chip(name, colour, more = "") {
    const swatch = h("i", { class: "swatch" });
    swatch.style.background = colour;
    return h("span", { class: "chip" }, swatch, h("span", {}, name), more ? h("span", { class: "quiet" }, more) : null);
  }

  draw() {
    const { camera, state } = this.viewer;
    this.painter.draw(camera, { edges: state.show.includes("edges"), margin: state.show.includes("margin"), isMoving: this.viewer.isMoving() });
    this.drawOverlay();
  }

  drawOverlay() {
    const { viewer } = this;
    const { camera, state, about } = viewer;
    const context = this.overlay.getContext("2d");
    const ratio = this.overlay.width / camera.size[0];
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, ...camera.size);
    context.lineJoin = "round";
    this.drawNames(context);
    this.drawPoints(context);
    this.drawCorners(context);
    if (viewer.hover) this.drawHover(context, viewer.hover);
    this.drawPins(context);
    if (this.largest?.at) this.drawCursor(context, camera.toPixels(this.largest.at));
    if (viewer.cursor) this.drawCursor(context, camera.toPixels(viewer.cursor));
  }

  drawNames(context) {
    const { camera } = this.viewer;
    for (const { text, ink, at } of this.names(context)) {
      const [x, y] = camera.toPixels(at);
      context.lineWidth = 3;
      context.strokeStyle = ink === "white" ? "rgb(0 0 0 / 0.35)" : "rgb(255 255 255 / 0.45)";
      context.strokeText(text, x, y);
      context.fillStyle = ink;
      context.fillText(text, x, y);
    }
  }

  /** The names that are written over the picture, in the font that is then set. */
  names(context = this.overlay.getContext("2d")) {
    const { camera, state } = this.viewer;
    if (!state.show.includes("names") || state.fill !== "decision") return [];
    context.textAlign = "center";
    context.textBaseline = "middle";
    const size = Math.max(13, Math.min(22 * this.size, camera.size[0] / 50));
    context.font = `600 ${size}px system-ui, sans-serif`;
    return this.painter.names(camera, () => this.roomForNames(context, size), this.shownPoints(), this.viewer.isMoving());
  }

  /** What names stand clear of, by middle and half the sides, and the name of a region of so many pixels, if it has one. */
  roomForNames(context, size) {
    const { camera, about, zooms } = this.viewer;
    const { pairs } = this.message.header;
    const own = this.surface.getBoundingClientRect();
    const over = [zooms, this.heading].map((element) => element.getBoundingClientRect()).filter((box) => box.width);
    const boxes = over.map((box) => ({ x: box.x + box.width / 2 - own.x, y: box.y + box.height / 2 - own.y, half: [box.width / 2, box.height / 2] }));
    const reach = (HANDLE + 2) * this.size;
    const handles = this.viewer.corners.map((c) => camera.toPixels(c)).map(([x, y]) => ({ x, y, half: [reach, reach] }));
    const taken = [...boxes, ...handles, ...this.thumbnailBoxes()];
    const nameOf = (label, area) => {
      const [first, second] = pairs?.[label] ?? [label, label];
      if (first !== second || area < 40 * size * 2) return null;
      const known = about.classes.find((c) => c.label === first);
      const text = shortened(known?.name ?? String(first), 0.8 * camera.size[0], (t) => context.measureText(t).width);
      return { text, ink: pairs ? "black" : (known?.ink ?? "black"), half: [context.measureText(text).width / 2, 0.6 * size] };
    };
    return { taken, isDotted: squaresOf(this.dots()), nameOf };
  }

  shownPoints() {
    return this.viewer.state.show.includes("points") ? this.viewer.points : null;
  }

  /** The data points in the picture, those that are drawn last at the end: which they are, where, how large and how near. */
  dots() {
    const { camera, about } = this.viewer;
    const points = this.shownPoints();
    if (!points) return [];
    const { places, distances, rows } = points.arrays;
    const isPlane = about.data.kind === "plane";
    const n = isPlane ? rows.length : Math.min(rows.length, NEAR_POINTS);
    const far = distances[n - 1] || 1;
    const dots = [];
    for (let k = n - 1; k >= 0; k--) {
      const [x, y] = camera.toPixels([places[2 * k], places[2 * k + 1]]);
      if (x < -9 || y < -9 || x > camera.size[0] + 9 || y > camera.size[1] + 9) continue;
      const near = isPlane ? 1 : 1 - distances[k] / (far * 1.05);
      dots.push({ k, x, y, near, radius: this.size * (isPlane ? (n > 800 ? 2.6 : 3.8) : 2.2 + 3 * near) });
    }
    return dots;
  }

  drawPoints(context) {
    const { about } = this.viewer;
    const isPlane = about.data.kind === "plane";
    const labels = this.shownPoints()?.arrays.labels;
    for (const { k, x, y, near, radius } of this.dots()) {
      context.globalAlpha = isPlane ? 0.95 : 0.35 + 0.6 * near;
      context.beginPath();
      context.arc(x, y, radius, 0, 2 * Math.PI);
      context.fillStyle = labels ? deeperColour(about.classes.find((c) => c.label === labels[k])?.colour ?? "#888888") : "#ffffff";
      context.fill();
      context.lineWidth = 1;
      context.strokeStyle = labels ? "white" : "black";
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  drawCorners(context) {
    const { camera, corners, about } = this.viewer;
    if (!corners.length) return;
    const places = corners.map((c) => camera.toPixels(c));
    context.beginPath();
    places.forEach(([x, y], k) => (k ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.closePath();
    context.lineWidth = 3;
    context.strokeStyle = "rgb(255 255 255 / 0.75)";
    context.stroke();
    context.lineWidth = 1.2;
    context.strokeStyle = "#111";
    context.stroke();
    const middle = middleOf(places);
    places.forEach(([x, y], k) => {
      if (about.data.kind === "image") this.drawThumbnail(context, k, [x, y], middle);
      context.beginPath();
      context.arc(x, y, HANDLE * this.size, 0, 2 * Math.PI);
      context.fillStyle = "white";
      context.fill();
      context.lineWidth = 1.6;
      context.strokeStyle = "#111";
      context.stroke();
      context.fillStyle = "#111";
      context.font = `600 ${12 * this.size}px system-ui, sans-serif`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(String(k + 1), x, y + 0.5);
    });
  }

  /** The corner as an image, beside its handle, away from the others. */
  drawThumbnail(context, k, [x, y], middle) {
    const input = this.viewer.inputAt(this.viewer.corners[k]);
    if (!input) return;
    const { data } = this.viewer.about;
    this.corner ??= [];
    this.corner[k] = pointImage(input, data.shape, data.picture, data.limits, this.corner[k]);
    const { x: cx, y: cy, side } = this.thumbnailBox([x, y], middle);
    context.imageSmoothingEnabled = false;
    context.fillStyle = "white";
    context.fillRect(cx - side / 2 - 2, cy - side / 2 - 2, side + 4, side + 4);
    context.strokeStyle = "#111";
    context.lineWidth = 1;
    context.strokeRect(cx - side / 2 - 2, cy - side / 2 - 2, side + 4, side + 4);
    context.drawImage(this.corner[k], cx - side / 2, cy - side / 2, side, side);
  }

  /** Where the image beside a corner is: away from the middle of the corners. */
  thumbnailBox([x, y], middle) {
    const side = Math.max(34, Math.min(64 * this.size, this.viewer.camera.size[0] / 12));
    const way = [x - middle[0], y - middle[1]];
    const length = Math.hypot(...way) || 1;
    return { x: x + (way[0] / length) * side * 0.95, y: y + (way[1] / length) * side * 0.95, side, half: [side / 2 + 2, side / 2 + 2] };
  }

  thumbnailBoxes() {
    const { camera, corners, about } = this.viewer;
    if (about.data.kind !== "image") return [];
    const places = corners.map((c) => camera.toPixels(c));
    return places.map((place) => this.thumbnailBox(place, middleOf(places)));
  }

  drawHover(context, { header }) {
    const { camera } = this.viewer;
    const from = camera.toPixels(header.at);
    const line = (points, width, colour) => {
      context.beginPath();
      points.forEach(([x, y], k) => (k ? context.lineTo(x, y) : context.moveTo(x, y)));
      context.lineWidth = width;
      context.strokeStyle = colour;
      context.stroke();
    };
    if (header.edge?.ends) {
      const ends = header.edge.ends.map((p) => camera.toPixels(p));
      line(ends, 5, "rgb(255 255 255 / 0.8)");
      line(ends, 2.4, "#111");
    }
    if (header.boundary) {
      const to = camera.toPixels(header.boundary.at);
      context.setLineDash([4, 3]);
      line([from, to], 3, "rgb(255 255 255 / 0.7)");
      line([from, to], 1.2, "#111");
      context.setLineDash([]);
      context.beginPath();
      context.arc(...to, 3.5, 0, 2 * Math.PI);
      context.fillStyle = "#111";
      context.fill();
    }
  }

  drawPins(context) {
    const { camera, state } = this.viewer;
    const places = state.pins.map((p) => camera.toPixels(p));
    if (places.length === 2) {
      for (const [width, colour] of [[5, "rgb(255 255 255 / 0.85)"], [2, "#111"]]) {
        context.beginPath();
        context.moveTo(...places[0]);
        context.lineTo(...places[1]);
        context.lineWidth = width;
        context.strokeStyle = colour;
        context.stroke();
      }
    }
    places.forEach(([x, y], k) => {
      context.beginPath();
      context.moveTo(x, y);
      context.arc(x, y - 16 * this.size, 9 * this.size, Math.PI * 0.8, Math.PI * 0.2);
      context.closePath();
      context.fillStyle = "#111";
      context.fill();
      context.lineWidth = 1.5;
      context.strokeStyle = "white";
      context.stroke();
      context.fillStyle = "white";
      context.font = `600 ${11 * this.size}px system-ui, sans-serif`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText("AB"[k], x, y - 16 * this.size);
    });
  }

  drawCursor(context, [x, y]) {
    for (const [width, colour] of [[4, "rgb(255 255 255 / 0.85)"], [1.5, "#111"]]) {
      context.lineWidth = width;
      context.strokeStyle = colour;
      context.beginPath();
      context.moveTo(x - 12, y);
      context.lineTo(x + 12, y);
      context.moveTo(x, y - 12);
      context.lineTo(x, y + 12);
      context.stroke();
    }
  }

  // hands

  listen() {
    const { surface, viewer } = this;
    surface.addEventListener("pointerdown", (event) => this.down(event));
    surface.addEventListener("pointermove", (event) => this.move(event));
    for (const kind of ["pointerup", "pointercancel"]) surface.addEventListener(kind, (event) => this.up(event));
    surface.addEventListener("pointerleave", () => viewer.leave());
    surface.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        viewer.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), this.at(event));
      },
      { passive: false },
    );
    surface.addEventListener("dblclick", (event) => viewer.zoom(2, this.at(event)));
    surface.addEventListener("keydown", (event) => viewer.key(event, this));
    surface.addEventListener("dragover", (event) => {
      if (event.dataTransfer.types.includes("text/x-inscape-row")) event.preventDefault();
    });
    surface.addEventListener("drop", (event) => {
      event.preventDefault();
      const row = Number(event.dataTransfer.getData("text/x-inscape-row"));
      const corner = this.cornerAt(this.at(event), 60 * this.size);
      if (corner >= 0) viewer.drop(row, corner);
    });
  }

  at(event) {
    const box = this.surface.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  cornerAt([x, y], within = (HANDLE + 4) * this.size) {
    const { camera, corners } = this.viewer;
    const distances = corners.map((c) => {
      const [cx, cy] = camera.toPixels(c);
      return Math.hypot(cx - x, cy - y);
    });
    const best = distances.indexOf(Math.min(...distances));
    return distances[best] <= within ? best : -1;
  }

  down(event) {
    this.surface.setPointerCapture(event.pointerId);
    const at = this.at(event);
    this.fingers.set(event.pointerId, at);
    this.start = at;
    this.held = this.fingers.size === 1 && !this.viewer.isStored ? this.cornerAt(at) : -1;
    this.moved = this.fingers.size > 1;
  }

  move(event) {
    const at = this.at(event);
    const { viewer } = this;
    if (!this.fingers.has(event.pointerId)) {
      this.surface.style.cursor = !viewer.isStored && this.cornerAt(at) >= 0 ? "grab" : "crosshair";
      viewer.point(viewer.camera.toPlane(at), this);
      return;
    }
    let before = this.fingers.get(event.pointerId);
    const other = [...this.fingers].find(([id]) => id !== event.pointerId)?.[1];
    this.fingers.set(event.pointerId, at);
    if (!this.moved && Math.hypot(at[0] - this.start[0], at[1] - this.start[1]) > CLICK) {
      this.moved = true;
      before = this.start; // the way so far could have been that of a click
    }
    if (other) {
      const [was, is] = [before, at].map((p) => Math.hypot(p[0] - other[0], p[1] - other[1]));
      viewer.camera.pan((at[0] - before[0]) / 2, (at[1] - before[1]) / 2);
      viewer.zoom(is / (was || 1), [(at[0] + other[0]) / 2, (at[1] + other[1]) / 2]);
    } else if (this.held >= 0) {
      if (this.moved) viewer.moveCorner(this.held, viewer.camera.toPlane(at));
    } else if (this.moved) {
      this.surface.style.cursor = "grabbing";
      viewer.pan(at[0] - before[0], at[1] - before[1]);
    }
  }

  up(event) {
    this.fingers.delete(event.pointerId);
    this.surface.style.cursor = "crosshair";
    if (this.moved || event.type === "pointercancel") this.viewer.settle();
    else if (this.held < 0) this.viewer.pin(this.viewer.camera.toPlane(this.at(event)), this);
  }
}

function middleOf(places) {
  return [0, 1].map((k) => places.reduce((sum, p) => sum + p[k], 0) / places.length);
}

function deeperColour(hex) {
  return `rgb(${[1, 3, 5].map((i) => Math.round(0.75 * parseInt(hex.slice(i, i + 2), 16))).join(" ")})`;
}

/** Whether there is a dot within half the sides of a middle, up to the size of a square: as fast for many dots as for few. */
function squaresOf(dots) {
  const square = (v) => Math.floor(v / SQUARE);
  const dotted = new Set(dots.map(({ x, y }) => `${square(x)},${square(y)}`));
  const reach = dots.reduce((most, { radius }) => Math.max(most, radius), 0);
  return (x, y, [w, t]) => {
    for (let j = square(y - t - reach); j <= square(y + t + reach); j++) {
      for (let i = square(x - w - reach); i <= square(x + w + reach); i++) if (dotted.has(`${i},${j}`)) return true;
    }
    return false;
  };
}
