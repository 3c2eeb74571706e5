// What is under the cursor, and under each pin: the input drawn, scores, region, boundary, kink, gradient.

import { counted, figure, h } from "./elements.js";
import { pointImage, signedImage } from "./thumbnails.js";

const MOST_BARS = 10;
const MOST_FEATURES = 14;

export class Readout {
  constructor(about, title, words = "Point at the picture: what lies there is shown here.") {
    this.about = about;
    this.body = h("div", { class: "body" }, h("p", { class: "note" }, words));
    this.name = h("h3", {}, title);
    this.element = h("article", { class: "readout" }, this.name, this.body);
  }

  className(label) {
    return this.about.classes.find((c) => c.label === label)?.name ?? String(label);
  }

  colour(label) {
    return this.about.classes.find((c) => c.label === label)?.colour ?? "#888";
  }

  /** Show a reply; the gradient of an earlier one stays until the next comes. */
  take({ header, arrays }, dark) {
    const { data } = this.about;
    const pictures = h("div", { class: "pictures" });
    if (data.kind === "image") {
      pictures.append(this.captioned(pointImage(arrays.input, data.shape, data.picture, data.limits), "the input"));
      if (arrays.gradient) {
        const by = header.gradient_by === "exact" ? "gradient of the winning score" : "gradient, by differences";
        pictures.append(this.captioned(signedImage(arrays.gradient, data.shape, data.picture, dark), by));
      }
    }
    const parts = [this.verdict(header), pictures.childElementCount ? pictures : null, this.scores(header), this.facts(header)];
    if (data.kind !== "image") parts.push(this.features(arrays));
    if (header.gradient_note) parts.push(h("p", { class: "note" }, header.gradient_note + "."));
    this.body.replaceChildren(...parts.filter(Boolean));
  }

  fail(message) {
    this.body.replaceChildren(h("p", { class: "note error" }, message));
  }

  captioned(canvas, text) {
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", text);
    return h("figure", {}, canvas, h("figcaption", {}, text));
  }

  verdict(header) {
    const swatch = h("i", { class: "swatch" });
    swatch.style.background = this.colour(header.label);
    const margin = header.margin === undefined ? "" : ` · margin ${figure(header.margin)}`;
    return h("p", { class: "verdict", "data-label": String(header.label) }, swatch, h("b", {}, this.className(header.label)), h("span", { class: "quiet" }, margin));
  }

  scores(header) {
    if (!header.scores) return h("p", { class: "note" }, "This model gives labels, no scores.");
    const scores = header.scores.map((score, label) => ({ score, label }));
    if (scores.length === 1) return h("p", { class: "note" }, `score ${figure(scores[0].score, 4)}; above 0 is ${this.className(1)}`);
    const shown = scores.sort((a, b) => b.score - a.score).slice(0, MOST_BARS);
    const all = header.scores.filter(Number.isFinite);
    const [low, high] = [Math.min(0, ...all), Math.max(...all)];
    const rows = shown.map(({ score, label }) => {
      const bar = h("i", { class: "bar" });
      bar.style.width = `${(100 * (score - low)) / (high - low || 1)}%`;
      bar.style.background = this.colour(label);
      return h("tr", { "data-label": String(label) }, h("th", { scope: "row" }, this.className(label)), h("td", { class: "track" }, bar), h("td", { class: "number", "data-score": String(score) }, figure(score, 4)));
    });
    const rest = scores.length - shown.length;
    return h("table", { class: "scores" }, h("caption", { class: "hidden" }, "scores"), h("tbody", {}, ...rows, rest > 0 ? h("tr", {}, h("td", { colSpan: 3, class: "quiet" }, `and ${rest} lower`)) : null));
  }

  /** A length with its unit: the features of a table are measured in their standard deviations. */
  distance(value) {
    return `${figure(value)}${this.about.data.is_scaled ? " sd" : ""}`;
  }

  facts(header) {
    const list = h("dl", { class: "facts" });
    const add = (term, text) => list.append(h("dt", {}, term), h("dd", {}, text));
    const about = header.is_exact === false ? "≈ " : "";
    if (header.area !== undefined) add("region", `${about}area ${figure(header.area)}${this.about.data.is_scaled ? " sd²" : ""}${header.is_cut ? ", cut off by the picture's edge" : ""}`);
    if (header.boundary) add("boundary", `${about}${this.distance(header.boundary.distance)} away on this plane`);
    const { edge } = header;
    if (edge?.kind === "units") {
      const units = edge.units.map((u) => String(u + 1)).join(", ") + (edge.n_units > edge.units.length ? ", …" : "");
      const where = edge.path ? ` (${edge.path})` : "";
      const state = edge.units.length === 1 ? (edge.states[0] ? ", on here" : ", off here") : "";
      add("nearest kink", `${edge.n_units === 1 ? "unit" : counted(edge.n_units, "unit")} ${units} of layer ${edge.layer}${where}${state}; ${this.distance(edge.distance)} away`);
    } else if (edge?.kind === "scores") {
      add("nearest edge", `two scores tie, no unit changes; ${this.distance(edge.distance)} away`);
    }
    return list.childElementCount ? list : null;
  }

  features(arrays) {
    const { features, units } = this.about.data;
    const rows = [...arrays.input].slice(0, MOST_FEATURES).map((value, k) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, features[k] ?? `x${k}`),
        h("td", { class: "number" }, figure(value, 4), units[k] ? h("span", { class: "quiet" }, ` ${units[k]}`) : null),
        arrays.gradient ? h("td", { class: "number quiet" }, figure(arrays.gradient[k], 2)) : null,
      ),
    );
    const rest = arrays.input.length - rows.length;
    const head = h("tr", {}, h("th", {}, ""), h("th", { scope: "col" }, "value"), arrays.gradient ? h("th", { scope: "col" }, "gradient") : null);
    return h("table", { class: "features" }, h("thead", {}, head), h("tbody", {}, ...rows, rest > 0 ? h("tr", {}, h("td", { colSpan: 3, class: "quiet" }, `and ${counted(rest, "more feature")}`)) : null));
  }
}
