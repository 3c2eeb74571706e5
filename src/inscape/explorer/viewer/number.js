// The number: R_1 of each model with its interval, as segments come in, and what it means in words.

import { counted, figure, grouped, h } from "./elements.js";

export class NumberPanel {
  constructor(about, ask) {
    this.about = about;
    this.ask = ask;
    this.isRunning = false;
    this.button = h("button", { onclick: () => this.toggle() }, "count");
    this.body = h("div", { class: "body" });
    this.words = h("p", { class: "note" });
    const means =
      "How many decision regions the straight segment between two random data points crosses, on average (R₁). " +
      "Over many trained models, fewer regions went with a smaller gap between training and test accuracy. " +
      "It does not say that this model generalises: the count of one model alone says little, and models far from fitting their data can have few regions.";
    this.element = h(
      "section",
      { class: "number-panel", "aria-label": "region count" },
      h("header", {}, h("h2", {}, "Region count R₁"), this.button),
      this.body,
      this.words,
      h("details", {}, h("summary", {}, "what it means, and what it does not"), h("p", { class: "note" }, means)),
    );
  }

  toggle() {
    this.isRunning = !this.isRunning;
    this.button.textContent = this.isRunning ? "stop" : "go on";
    if (this.isRunning) this.ask();
  }

  start() {
    if (!this.isRunning) this.toggle();
  }

  take({ header }) {
    const highest = Math.max(...header.rows.map((row) => row.interval[1] ?? row.mean));
    this.body.replaceChildren(...header.rows.map((row) => this.row(row, highest)));
    const how = header.rows.every((row) => row.is_exact) ? "counted exactly on each" : "counted adaptively: the interval holds what may be missed";
    this.words.textContent = `${grouped(header.n)} of ${counted(header.of, "segment")}, ${how}`;
    if (header.is_done) {
      this.isRunning = false;
      this.button.hidden = true;
    } else if (this.isRunning) {
      this.ask();
    }
  }

  fail(message) {
    this.isRunning = false;
    this.button.textContent = "try again";
    this.words.textContent = message;
  }

  row(row, highest) {
    const known = row.interval.every((v) => v !== null);
    const track = h("i", { class: "interval" });
    const range = h("i", { class: "range" });
    const dot = h("i", { class: "dot" });
    const part = (v) => `${(100 * (v - 1)) / Math.max(highest - 1, 1e-9)}%`;
    if (known) {
      range.style.left = part(row.interval[0]);
      range.style.right = `calc(100% - ${part(row.interval[1])})`;
    }
    dot.style.left = part(row.mean);
    track.append(range, dot);
    const interval = known ? `${figure(row.interval[0])} to ${figure(row.interval[1])}` : "";
    const name = this.about.models.length > 1 ? h("span", { class: "name" }, this.about.models[row.model].name) : null;
    return h("div", { class: "count" }, h("p", {}, name, h("b", {}, figure(row.mean, 4)), h("span", { class: "quiet" }, interval)), track);
  }
}
