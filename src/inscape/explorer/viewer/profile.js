// The segment between two pins: every score along it, exactly, and the regions that it crosses.

import { counted, figure, h } from "./elements.js";

const HEIGHT = 150;
const MOST_CURVES = 6;

export class Profile {
  constructor(about, close) {
    this.about = about;
    this.canvas = h("canvas", { role: "img" });
    this.words = h("p", { class: "note" });
    this.element = h("section", { class: "profile", hidden: true, "aria-label": "profile between two pins" }, h("header", {}, h("h2", {}, "From pin A to pin B"), this.words, h("button", { onclick: close, "aria-label": "remove the pins" }, "×")), this.canvas);
  }

  take(message, dark) {
    this.message = message;
    this.element.hidden = false;
    const { header } = message;
    const pieces = header.n_pieces ? `, ${counted(header.n_pieces, "linear piece")}` : "";
    const how = header.is_exact ? "exact" : `${header.method}: ${header.status}`;
    this.words.textContent = `${counted(header.n_regions, "decision region")}${pieces} over a length of ${figure(header.length)}${this.about.data.is_scaled ? " sd" : ""} · ${how}`;
    this.canvas.setAttribute("aria-label", this.words.textContent);
    this.draw(dark);
  }

  fail(message) {
    this.element.hidden = false;
    this.message = null;
    this.words.textContent = message;
  }

  hide() {
    this.element.hidden = true;
    this.message = null;
  }

  draw(dark) {
    if (!this.message) return;
    const { header, arrays } = this.message;
    const width = this.element.clientWidth - 24;
    const ratio = window.devicePixelRatio || 1;
    [this.canvas.width, this.canvas.height] = [width * ratio, HEIGHT * ratio];
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${HEIGHT}px`;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    const known = new Map(this.about.classes.map((c) => [c.label, c]));
    const edges = [0, ...header.boundaries, 1];
    header.labels.forEach((label, k) => {
      context.fillStyle = known.get(label)?.colour ?? "#888";
      context.fillRect(width * edges[k], HEIGHT - 12, width * (edges[k + 1] - edges[k]), 12);
    });
    if (!arrays.scores) return;
    const ink = dark ? "#e9e8e5" : "#1c1d1f";
    const [n, c] = arrays.scores.shape;
    const column = (k) => Array.from({ length: n }, (_, i) => arrays.scores[i * c + k]);
    const top = [...Array(c).keys()].map((k) => [Math.max(...column(k)), k]).sort((a, b) => b[0] - a[0]).slice(0, MOST_CURVES).map(([, k]) => k);
    const all = top.flatMap(column);
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const y = (v) => 8 + (HEIGHT - 28) * (1 - (v - low) / (high - low || 1));
    context.fillStyle = dark ? "rgb(255 255 255 / 0.35)" : "rgb(0 0 0 / 0.3)";
    for (const t of arrays.knots) context.fillRect(width * t, HEIGHT - 18, 0.7, 5);
    context.strokeStyle = dark ? "rgb(255 255 255 / 0.25)" : "rgb(0 0 0 / 0.2)";
    for (const t of header.boundaries) line(context, [[width * t, 4], [width * t, HEIGHT - 12]]);
    for (const k of top.reverse()) {
      context.strokeStyle = c === 1 ? ink : known.get(k)?.colour ?? "#888";
      context.lineWidth = 1.8;
      line(context, column(k).map((v, i) => [width * arrays.t[i], y(v)]));
    }
    context.fillStyle = ink;
    context.font = "11px system-ui, sans-serif";
    context.fillText(figure(high), 3, 16);
    context.fillText(figure(low), 3, HEIGHT - 22);
  }
}

function line(context, points) {
  context.beginPath();
  points.forEach(([x, y], k) => (k ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.stroke();
}
