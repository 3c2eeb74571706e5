// The strip of the data: rows to span a plane with, filtered and sorted by the server.

import { figure, grouped, h } from "./elements.js";
import { byteImage } from "./thumbnails.js";

const ORDERS = [
  ["index", "in order"],
  ["wrong", "misclassified"],
  ["margin", "lowest margin"],
  ["plane", "nearest to the plane"],
  ["random", "shuffled"],
];

export class Strip {
  /** `host` has ask(request), pick(row), drop(row, corner), preview(row). */
  constructor(about, host) {
    this.about = about;
    this.host = host;
    this.by = "index";
    this.class = null;
    this.seed = 1;
    this.shown = 0;
    const { data } = about;
    const orders = ORDERS.filter(([by]) => (by !== "wrong" || data.has_classes) && (by !== "plane" || data.kind !== "plane"));
    this.order = h("select", { "aria-label": "which rows", onchange: () => this.choose() }, ...orders.map(([by, text]) => h("option", { value: by }, text)));
    this.classes = h(
      "select",
      { "aria-label": "class", onchange: () => this.choose() },
      h("option", { value: "" }, "all classes"),
      ...about.classes.map((c) => h("option", { value: String(c.label) }, c.name)),
    );
    this.note = h("p", { class: "note" });
    this.list = h("ul", { class: `rows ${data.kind}`, "aria-label": "data points" });
    this.more = h("button", { class: "more", onclick: () => this.ask(this.shown) }, "more");
    this.random = h("button", { onclick: () => host.random(), title: "a plane through three random points (r)" }, "random three");
    this.element = h(
      "section",
      { class: "strip", "aria-label": "data" },
      h("header", {}, h("h2", {}, "Data"), h("span", { class: "quiet" }, `${grouped(data.n)}${data.n_given > data.n ? ` of ${grouped(data.n_given)}` : ""} points`)),
      host.isStored ? null : h("div", { class: "choices" }, this.order, data.has_classes ? this.classes : null, data.kind === "plane" ? null : this.random),
      this.note,
      this.list,
      this.more,
    );
  }

  choose() {
    this.by = this.order.value;
    this.class = this.classes.value === "" ? null : Number(this.classes.value);
    if (this.by === "random") this.seed += 1;
    this.ask(0);
  }

  ask(first) {
    this.list.setAttribute("aria-busy", "true");
    this.host.ask({ ask: "rows", by: this.by, class: this.class, first, seed: this.seed });
  }

  /** Show the rows of a reply. */
  take({ header, arrays }) {
    this.list.removeAttribute("aria-busy");
    if (header.first === 0) this.list.replaceChildren();
    this.shown = header.first + arrays.rows.length;
    this.more.hidden = this.shown >= header.total || this.host.isStored;
    const hint = this.host.isStored ? "The points nearest to this plane, with their distance." : this.about.data.kind === "plane" ? "" : "Click three to span a plane; drag one onto a corner, or press 1, 2 or 3 on it.";
    this.note.textContent =
      header.note || (header.total === 0 ? (header.by === "wrong" ? "No point of these is misclassified." : "No point has this class.") : hint);
    arrays.rows.forEach((row, k) => this.list.append(this.item(row, k, arrays)));
    this.mark(this.marked ?? []);
  }

  item(row, k, arrays) {
    const label = arrays.labels?.[k];
    const known = this.about.classes.find((c) => c.label === label);
    const parts = [known ? known.name : `row ${row}`];
    if (arrays.predicted && arrays.predicted[k] !== label) {
      parts.push(`→ ${this.about.classes.find((c) => c.label === arrays.predicted[k])?.name ?? arrays.predicted[k]}`);
    }
    const small = arrays.margins ? `margin ${figure(arrays.margins[k], 2)}` : arrays.distances ? this.distance(arrays.distances[k]) : "";
    const button = h(
      "button",
      {
        class: "point",
        draggable: true,
        "data-row": String(row),
        "aria-label": `point ${row}, ${parts.join(" ")} ${small}`,
        title: `row ${row}: ${parts.join(" ")} ${small}`,
        onclick: () => this.host.pick(row),
        onkeydown: (event) => {
          if ("123".includes(event.key)) this.host.drop(row, Number(event.key) - 1);
        },
        ondragstart: (event) => {
          event.dataTransfer.setData("text/x-inscape-row", String(row));
          event.dataTransfer.effectAllowed = "copy";
        },
      },
      this.face(k, arrays),
      h("span", { class: "chip" }, this.swatch(known), h("span", {}, parts.join(" "))),
      small ? h("span", { class: "quiet" }, this.short(k, arrays) ?? small) : null,
      h("span", { class: "order" }),
    );
    return h("li", {}, button);
  }

  /** Below a small picture there is space for the number alone. */
  short(k, { thumbnails, margins, distances }) {
    if (!thumbnails) return null;
    return margins ? figure(margins[k], 2) : this.distance(distances[k]).replace(" away", "").replace("on the plane", "0");
  }

  distance(value) {
    const { limits, is_scaled } = this.about.data;
    return value < 1e-5 * (is_scaled ? 1 : limits[1] - limits[0]) ? "on the plane" : `${figure(value, 2)}${this.about.data.is_scaled ? " sd" : ""} away`;
  }

  swatch(known) {
    const square = h("i", { class: "swatch" });
    if (known) square.style.background = known.colour;
    return square;
  }

  face(k, arrays) {
    if (arrays.thumbnails) {
      const [, ...shape] = arrays.thumbnails.shape;
      const size = shape.reduce((a, b) => a * b, 1);
      return byteImage(arrays.thumbnails.subarray(k * size, (k + 1) * size), shape);
    }
    const width = arrays.values.shape[1];
    const values = [...arrays.values.subarray(k * width, (k + 1) * width)].slice(0, 4);
    return h("span", { class: "numbers" }, values.map((v) => figure(v, 3)).join("  ") + (width > 4 ? " …" : ""));
  }

  /** Show which rows are chosen, in order. */
  mark(rows) {
    this.marked = rows;
    for (const button of this.list.querySelectorAll("button.point")) {
      const place = rows.indexOf(Number(button.dataset.row));
      button.classList.toggle("chosen", place >= 0);
      button.querySelector(".order").textContent = place >= 0 ? String(place + 1) : "";
    }
  }
}
