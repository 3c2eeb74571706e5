// The explorer itself: state, camera and channel, and the parts of the page that they move.

import { Camera } from "./camera.js";
import { SocketChannel, StoredChannel, WidgetChannel } from "./channel.js";
import { readAddress, writeAddress } from "./address.js";
import { h } from "./elements.js";
import { download, jsonOf, pngOf, pythonOf, svgOf } from "./keeping.js";
import { NumberPanel } from "./number.js";
import { Profile } from "./profile.js";
import { Readout } from "./readout.js";
import { Stage } from "./stage.js";
import { Strip } from "./strip.js";

const FILLS = [
  ["decision", "Decisions", "decision regions in the colours of their classes"],
  ["pattern", "Patterns", "linear regions, by activation pattern"],
  ["layer", "Layers", "linear regions, by the last layer that cuts them out"],
  ["slope", "Slopes", "linear regions, by the norm of the slope"],
  ["density", "Kinks", "how dense kinks are: length per area"],
];
const SHOWN = [
  ["edges", "edges", "edges of linear regions, or where trees split"],
  ["margin", "margin", "pale where the margin is small"],
  ["points", "points", "data points, where they are nearest to the plane"],
  ["names", "names", "names of the classes in their regions"],
];
const AROUND = 0.1;
const KEPT = 60;
const PLAY = 700;
const SETTLED = 160;
const RESTING = 140;

class Viewer {
  constructor(root, channel, isPage) {
    this.root = root;
    this.channel = channel;
    this.isPage = isPage;
    this.isStored = Boolean(channel.isStored);
    this.camera = new Camera();
    this.state = { plane: null, fill: "decision", show: ["edges", "points", "names"], model: 0, other: 1, mode: "one", pins: [] };
    this.corners = [];
    this.waiting = new Map();
    this.dirty = new Set();
    this.kept = new Map();
    this.id = 0;
    root.classList.add("inscape-explorer");
    root.replaceChildren(h("p", { class: "loading", role: "status" }, "Reading the model and the first plane …"));
    channel.open(
      (message) => this.reply(message),
      (state) => this.connection(state),
    );
    this.ask({ ask: "hello" });
  }

  // talking

  ask(request) {
    this.id += 1;
    this.channel.send({ id: this.id, ...request });
    return this.id;
  }

  connection(state) {
    this.root.dataset.connection = state;
    if (!this.notice) return;
    this.notice.hidden = state === "open";
    this.notice.textContent =
      state === "full" ? "Too many pages of this explorer are open: close one." : "The explorer has stopped, or this page lost it. What is drawn stays; nothing new can be computed.";
    if (state === "open" && this.about && !this.isStored) {
      this.waiting.clear();
      this.look();
    }
  }

  reply(message) {
    const { header } = message;
    if (header.reply === "hello") this.hello(header);
    else if (!this.about) return;
    else if (header.reply === "plane" || header.reply === "difference") this.takePlane(message);
    else if (header.reply === "points") this.takePoints(message);
    else if (header.reply === "rows") this.strip.take(message);
    else if (header.reply === "readout") this.takeReadout(message);
    else if (header.reply === "largest") this.takeLargest(header);
    else if (header.reply === "profile") this.profile.take(message, this.isDark());
    else if (header.reply === "count") this.number.take(message);
    else if (header.reply === "progress") this.takeProgress(header);
    else if (header.reply === "error") this.takeError(header);
  }

  takeError(header) {
    if (header.to === "hello" || !this.about) {
      this.root.replaceChildren(h("p", { class: "loading error", role: "alert" }, `The explorer cannot start: ${header.message}`));
    } else if (header.to === "plane" || header.to === "difference") {
      const slot = header.to === "plane" ? header.model : "difference";
      if (!this.answered(slot, header)) return;
      this.stageOf(slot)?.fail(header.message, () => this.look());
    } else if (header.to === "readout") {
      this.probing = null;
      this.readout.fail(header.message);
      this.pointAgain();
    } else if (header.to === "largest") this.takeLargest(header);
    else if (header.to === "profile") this.profile.fail(header.message);
    else if (header.to === "count") this.number.fail(header.message);
    else this.strip.note.textContent = header.message;
  }

  hello(about) {
    if (this.about) return; // the socket was opened again
    this.about = about;
    this.state.plane = about.plane;
    if (about.is_sequence) this.state.model = about.models.length - 1;
    if (this.isPage) Object.assign(this.state, readAddress(location.hash.slice(1), about));
    this.build();
    this.start();
  }

  start() {
    this.resize();
    if (this.state.camera) {
      [this.camera.centre, this.camera.unit] = [this.state.camera.slice(0, 2), this.state.camera.slice(2)];
      this.isFitted = true;
    }
    this.ask({ ask: "points", plane: this.state.plane });
    this.strip.ask(0);
    this.arrange();
    this.look();
    this.pinned();
  }

  // the page

  build() {
    const { about } = this;
    const isAffine = about.models.some((m) => m.structure === "piecewise-affine");
    const hasEdges = about.models.some((m) => m.structure !== "black-box");
    this.stages = [new Stage(this), new Stage(this)];
    this.strip = new Strip(about, {
      ask: (request) => this.ask({ ...request, model: this.state.model, plane: this.state.plane }),
      pick: (row) => this.pick(row),
      drop: (row, corner) => this.drop(row, corner),
      random: () => this.random(),
      isStored: this.isStored,
    });
    this.readout = new Readout(about, "Under the cursor");
    this.pinReadouts = ["A", "B"].map((name) => new Readout(about, `Pin ${name}`, "The model is asked …"));
    this.profile = new Profile(about, () => this.unpin());
    this.number = new NumberPanel(about, () => this.ask({ ask: "count" }));
    this.notice = h("p", { class: "notice", role: "status", hidden: true });
    const radio = ([value, text, title]) => {
      const input = h("input", { type: "radio", name: `fill-${(this.uid ??= Math.random().toString(36).slice(2))}`, value, checked: this.state.fill === value, disabled: value !== "decision" && !isAffine, onchange: () => this.setFill(value) });
      return h("label", { title: isAffine || value === "decision" ? title : "this model has no linear regions" }, input, h("span", {}, text));
    };
    this.fills = h("fieldset", { class: "fills" }, h("legend", { class: "hidden" }, "filled by"), ...FILLS.map(radio));
    const toggle = ([name, text, title]) => {
      const off = (name === "edges" && !hasEdges) || (name === "margin" && !about.models.some((m) => m.has_scores));
      const input = h("input", { type: "checkbox", checked: this.state.show.includes(name), disabled: off, onchange: () => this.toggle(name, input.checked) });
      return h("label", { title }, input, h("span", {}, text));
    };
    this.shows = h("fieldset", { class: "shows" }, h("legend", { class: "hidden" }, "shown"), ...SHOWN.map(toggle));
    const choose = (action) => {
      this.keep.open = false;
      action();
    };
    const keep = (text, action) => h("button", { role: "menuitem", onclick: () => choose(action) }, text);
    this.keep = h(
      "details",
      { class: "keep" },
      h("summary", {}, "keep"),
      h(
        "div",
        { role: "menu" },
        keep("picture (PNG)", () => this.keepPng()),
        keep("drawing (SVG)", () => this.keepSvg()),
        keep("polygons (JSON)", () => this.keepJson()),
        keep("copy as Python", () => this.copyPython()),
      ),
    );
    this.theme = h("button", { class: "theme", onclick: () => this.setTheme(), "aria-label": "dark or light" }, "◐");
    this.stageRow = h("div", { class: "stages" }, ...this.stages.map((s) => s.element));
    this.zooms = h(
      "div",
      { class: "zooms" },
      h("button", { onclick: () => this.zoom(1.6, this.middle()), "aria-label": "nearer" }, "+"),
      h("button", { onclick: () => this.zoom(1 / 1.6, this.middle()), "aria-label": "further away" }, "−"),
      h("button", { onclick: () => this.home(), "aria-label": "show the whole plane" }, "⌂"),
    );
    this.root.replaceChildren(
      h("header", { class: "top" }, h("h1", {}, "inscape", h("span", { class: "quiet" }, ` ${about.title}`)), this.modelChoice(), this.fills, this.shows, this.keep, this.theme),
      this.notice,
      h(
        "div",
        { class: "columns" },
        this.strip.element,
        h("main", {}, h("div", { class: "viewport" }, this.stageRow, this.zooms), this.timeline(), this.profile.element),
        h("aside", {}, this.sweepPanel(), h("section", { class: "readouts", "aria-label": "readout" }, this.readout.element, ...this.pinReadouts.map((r) => r.element)), this.number.element, this.isStored ? this.storedNote() : null),
      ),
    );
    for (const readout of this.pinReadouts) readout.element.hidden = true;
    const observer = new ResizeObserver(() => this.resize());
    for (const stage of this.stages) observer.observe(stage.surface);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
    this.root.addEventListener("click", (event) => {
      if (!this.keep.contains(event.target)) this.keep.open = false;
    });
    if (this.isPage) {
      document.title = `${about.title} · inscape`;
      window.addEventListener("hashchange", () => location.hash.slice(1) !== this.address && location.reload());
    }
    this.connection(this.root.dataset.connection ?? "open");
  }

  storedNote() {
    const text =
      "This page was saved into a file. Pictures, layers, models, scores and inputs under the cursor are all here; choosing other points, " +
      "finer pictures when zooming in, and profiles between pins need the explorer itself: inscape.explore(...).";
    return h("section", { class: "stored" }, h("h2", {}, "A saved page"), h("p", { class: "note" }, text));
  }

  modelChoice() {
    const { models } = this.about;
    if (models.length < 2) return null;
    const options = () => models.map((m, k) => h("option", { value: String(k) }, m.name));
    this.modelSelect = h("select", { "aria-label": "model", onchange: () => this.setModel(Number(this.modelSelect.value)) }, ...options());
    this.modeSelect = h(
      "select",
      { "aria-label": "compare", onchange: () => this.setMode(this.modeSelect.value) },
      ...[["one", "alone"], ["side", "beside"], ["difference", "against"]].map(([value, text]) => h("option", { value }, text)),
    );
    this.otherSelect = h("select", { "aria-label": "other model", onchange: () => this.setOther(Number(this.otherSelect.value)) }, ...options());
    return h("div", { class: "models" }, this.modelSelect, this.modeSelect, this.otherSelect);
  }

  timeline() {
    if (!this.about.is_sequence) return h("div", { hidden: true });
    this.slider = h("input", { type: "range", min: 0, max: this.about.models.length - 1, step: 1, value: this.state.model, "aria-label": "checkpoint", oninput: () => this.setModel(Number(this.slider.value)) });
    this.play = h("button", { onclick: () => this.togglePlay(), "aria-label": "play" }, "▶");
    this.stepName = h("output", {});
    return h("div", { class: "timeline" }, this.play, this.slider, this.stepName);
  }

  /** Moving one corner towards another data point sweeps the plane through the input space. */
  sweepPanel() {
    if (this.about.data.kind === "plane" || this.isStored) return null;
    this.sweep = { corner: 2, row: null, from: null };
    const corner = h("select", { "aria-label": "corner to move", onchange: () => this.setSweep({ corner: Number(corner.value) }) }, ...[0, 1, 2].map((k) => h("option", { value: String(k), selected: k === 2 }, `corner ${k + 1}`)));
    const row = h("input", { type: "number", min: 0, max: this.about.data.n - 1, step: 1, placeholder: "row", "aria-label": "row to move towards", onchange: () => this.setSweep({ row: row.value === "" ? null : Number(row.value) }) });
    this.sweepRange = h("input", { type: "range", min: 0, max: 1, step: 0.01, value: 0, "aria-label": "how far", disabled: true, oninput: () => this.sweepTo(Number(this.sweepRange.value)) });
    return h("section", { class: "sweep", "aria-label": "sweep" }, h("header", {}, h("h2", {}, "Sweep the plane")), h("div", { class: "choices" }, corner, h("span", { class: "quiet" }, "towards row"), row), this.sweepRange);
  }

  isDark() {
    const own = this.root.dataset.theme;
    return own ? own === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  setTheme() {
    this.root.dataset.theme = this.isDark() ? "light" : "dark";
    this.repaint();
  }

  repaint() {
    for (const stage of this.stages) stage.retake();
    this.profile.draw(this.isDark());
  }

  resize() {
    if (!this.about) return;
    for (const stage of this.stages) if (!stage.element.hidden) stage.resize();
    if (!this.isFitted && this.homeWindow) this.fit(this.homeWindow);
    this.redraw();
    if (this.state.plane && this.isFitted) this.later();
    this.profile.draw(this.isDark());
  }

  /** Whether the camera moved a moment ago; if so, the picture is drawn anew once it rests. */
  isMoving() {
    return performance.now() - (this.movedAt ?? -Infinity) < RESTING;
  }

  moved() {
    this.movedAt = performance.now();
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.redraw(), RESTING + 10);
    this.redraw();
    this.later();
  }

  redraw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      for (const stage of this.stages) if (!stage.element.hidden) stage.draw();
    });
  }

  // what is looked at

  slots() {
    const { mode, model, other } = this.state;
    return mode === "side" ? [model, other] : mode === "difference" ? ["difference"] : [model];
  }

  stageOf(slot) {
    return this.stages[this.slots().indexOf(slot)];
  }

  /** Show the stages that the mode needs, and their names. */
  arrange() {
    const slots = this.slots();
    const { models } = this.about;
    this.stages.forEach((stage, k) => {
      stage.element.hidden = k >= slots.length;
      stage.heading.hidden = slots.length < 2;
      stage.heading.textContent = slots.length > 1 ? models[slots[k]].name : "";
    });
    this.stageRow.classList.toggle("two", slots.length > 1);
    this.fills.disabled = this.state.mode === "difference"; // a comparison is of decisions
    if (this.modelSelect) {
      this.modelSelect.value = String(this.state.model);
      this.otherSelect.value = String(this.state.other);
      this.modeSelect.value = this.state.mode;
      this.otherSelect.hidden = this.state.mode === "one";
    }
    if (this.slider) {
      this.slider.value = String(this.state.model);
      this.stepName.textContent = models[this.state.model].name;
    }
    this.resize();
  }

  wanted() {
    const { fill, show } = this.state;
    return [...(["pattern", "layer", "slope"].includes(fill) ? [fill] : []), ...(show.includes("margin") ? ["margin"] : [])];
  }

  request(slot) {
    const where = { plane: this.state.plane, window: this.isFitted ? this.camera.window(AROUND) : null, size: this.camera.size };
    if (slot === "difference") return { ask: "difference", models: [this.state.model, this.state.other], ...where };
    return { ask: "plane", model: slot, wanted: this.wanted(), ...where };
  }

  /** Ask for what is visible and not known yet; one question for each slot at a time. */
  look() {
    clearTimeout(this.timer);
    for (const slot of this.slots()) {
      const request = this.request(slot);
      const key = JSON.stringify([slot, request.models, request.plane.frame]);
      const known = this.known(key, request.wanted ?? []);
      if (known) {
        this.stageOf(slot).trouble.hidden = true;
        if (this.stageOf(slot).message !== known) this.show(slot, known);
        continue;
      }
      if (this.waiting.has(slot)) {
        const { key: old } = this.waiting.get(slot);
        this.dirty.add(slot);
        if (old === key) continue; // an answer to an earlier view of this plane is on its way
      }
      const id = this.ask(request);
      this.waiting.set(slot, { id, key, since: performance.now() });
      this.dirty.delete(slot);
      setTimeout(() => this.tellProgress(slot, id), 1000);
    }
    this.remember();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), 16);
  }

  /** A kept message that covers what is visible. */
  known(key, wanted) {
    const has = { pattern: "face_patterns", layer: "face_layers", slope: "face_slopes", margin: "margins" };
    return (this.kept.get(key) ?? []).find(({ header, arrays }) => {
      const isWhole = header.shape !== "faces" || wanted.every((name) => arrays[has[name]] || (name === "margin" && !this.about.models[header.model ?? 0].has_scores));
      const margins = !wanted.includes("margin") || arrays.margins || !this.about.models[header.model ?? 0]?.has_scores;
      return isWhole && margins && (this.isStored || (this.isFitted && this.camera.isCovered(header.window)));
    });
  }

  keepMessage(key, message) {
    const list = [message, ...(this.kept.get(key) ?? [])].slice(0, 4);
    this.kept.delete(key);
    this.kept.set(key, list);
    while (this.kept.size > KEPT) this.kept.delete(this.kept.keys().next().value);
  }

  answered(slot, header) {
    const known = this.waiting.get(slot);
    if (!known || header.id !== known.id) return null;
    this.waiting.delete(slot);
    const stage = this.stageOf(slot);
    if (stage) stage.progress.hidden = true;
    return known;
  }

  takePlane(message) {
    const { header } = message;
    const slot = header.reply === "difference" ? "difference" : header.model;
    const known = this.waiting.get(slot);
    if (!known || header.id !== known.id) return; // superseded
    this.place(header);
    if (header.is_last !== false) {
      this.answered(slot, header);
      this.keepMessage(known.key, message);
    }
    if (this.stageOf(slot)) this.show(slot, message);
    if (this.dirty.delete(slot)) this.look();
    if (slot === "difference" && !this.waiting.has(slot)) this.askLargest();
    if (header.is_last !== false) this.settleDown();
  }

  /** The largest difference of scores takes longer than where labels differ: it is asked for afterwards. */
  askLargest() {
    const { header } = this.stages[0].message;
    this.largestId = this.ask({ ask: "largest", models: header.models, plane: this.state.plane, window: header.window });
  }

  takeLargest(header) {
    if (header.id !== this.largestId || this.state.mode !== "difference") return;
    this.stages[0].largest = header;
    this.stages[0].describe();
    this.redraw();
  }

  /** After the first picture: what can wait. */
  settleDown() {
    if (this.state.pins.length && !this.hasAskedPins) this.pinned();
    if (!this.isCounting) this.number.start();
    this.isCounting = true;
  }

  show(slot, message) {
    this.stageOf(slot).take(message);
    this.root.dataset.shown = String(Number(this.root.dataset.shown ?? 0) + 1);
  }

  fit(window_) {
    const [s0, s1, t0, t1] = window_;
    const ratio = (s1 - s0) / (t1 - t0);
    this.camera.fit(window_, this.about.data.kind === "plane" && (ratio > 4 || ratio < 0.25));
    this.isFitted = true;
  }

  takePoints(message) {
    this.points = message;
    if (JSON.stringify(message.header.plane.frame) === JSON.stringify(this.state.plane.frame)) this.place(message.header);
    this.redraw();
  }

  /** Where a plane lies: corners, and what the first look shows. */
  place({ corners, frame, home }) {
    [this.corners, this.frameCorners, this.homeWindow] = [corners, frame, home];
    if (!this.isFitted) this.fit(home);
  }

  takeProgress(header) {
    const slot = header.to === "plane" ? header.model : header.to;
    const stage = this.stageOf(slot);
    if (!stage || this.waiting.get(slot)?.id !== header.id) return;
    if (header.total) stage.bar.value = header.done / header.total;
    this.tellProgress(slot, header.id);
  }

  /** After a second of waiting, say so, and offer to stop. */
  tellProgress(slot, id) {
    const known = this.waiting.get(slot);
    const stage = this.stageOf(slot);
    const waited = performance.now() - (known?.since ?? 0);
    if (!stage || known?.id !== id || waited < 900) return;
    stage.progress.hidden = false;
    stage.waiting.textContent = !stage.message && waited > 3000 ? "The first picture on a machine is compiled, once: up to a minute." : "";
    if (!stage.message) setTimeout(() => this.tellProgress(slot, id), 1000);
  }

  cancel(stage) {
    const slot = this.slots()[this.stages.indexOf(stage)];
    this.channel.send({ ask: "cancel", slot: slot === "difference" ? slot : `plane ${slot}` });
    this.waiting.delete(slot);
    this.dirty.delete(slot);
    stage.progress.hidden = true;
    stage.setBadge("coarse", "cancelled", "move the picture to start again");
    stage.surface.focus({ focusVisible: false }); // the button that had it is gone
  }

  /** The input at a place of the plane, from its origin and axes. */
  inputAt([s, t]) {
    if (!this.points) return null;
    const { origin, axes } = this.points.arrays;
    const n = origin.length;
    return Float32Array.from(origin, (v, k) => v + s * axes[k] + t * axes[n + k]);
  }

  // choosing the plane

  setPlane(plane) {
    this.state.plane = plane;
    this.isFitted = false;
    this.state.pins = [];
    this.profile.hide();
    this.hover = null;
    this.pinned();
    this.ask({ ask: "points", plane });
    if (this.strip.by === "plane") this.strip.ask(0);
    for (const slot of this.slots()) this.waiting.delete(slot);
    this.look();
  }

  pick(row) {
    if (this.isStored) return;
    if (this.about.data.kind === "plane") {
      const k = [...this.points.arrays.rows].indexOf(row);
      if (k >= 0) this.pin([this.points.arrays.places[2 * k], this.points.arrays.places[2 * k + 1]]);
      return;
    }
    this.picked ??= [];
    this.picked = this.picked.includes(row) ? this.picked.filter((r) => r !== row) : [...this.picked, row];
    this.strip.mark(this.picked);
    if (this.picked.length < 3) return;
    const points = this.picked.map((r) => [[r, 1]]);
    this.picked = [];
    this.setPlane({ frame: points, corners: points });
  }

  random() {
    const rows = new Set();
    while (rows.size < 3) rows.add(Math.floor(Math.random() * this.about.data.n));
    this.strip.mark([...rows]);
    const points = [...rows].map((r) => [[r, 1]]);
    this.setPlane({ frame: points, corners: points });
  }

  drop(row, corner) {
    if (this.isStored || this.about.data.kind === "plane") return;
    const corners = this.state.plane.corners.map((c, k) => (k === corner ? [[row, 1]] : c));
    this.setPlane({ frame: corners, corners });
  }

  /** A corner dragged along the plane: the same plane, another triangle. */
  moveCorner(k, at) {
    const [a, b, c] = this.frameCorners;
    const det = (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1]);
    const wb = ((at[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (at[1] - a[1])) / det;
    const wc = ((b[0] - a[0]) * (at[1] - a[1]) - (at[0] - a[0]) * (b[1] - a[1])) / det;
    const corner = blend(this.state.plane.frame, [1 - wb - wc, wb, wc]);
    this.state.plane = { ...this.state.plane, corners: this.state.plane.corners.map((old, i) => (i === k ? corner : old)) };
    this.corners = this.corners.map((old, i) => (i === k ? at : old));
    this.redraw();
    this.remember();
  }

  setSweep(change) {
    Object.assign(this.sweep, change);
    this.sweep.from = this.state.plane.corners;
    this.sweepRange.value = "0";
    const { row } = this.sweep;
    this.sweepRange.disabled = !Number.isInteger(row) || row < 0 || row >= this.about.data.n;
  }

  sweepTo(part) {
    const { corner, row, from } = this.sweep;
    const moved = blend([from[corner], [[row, 1]]], [1 - part, part]);
    const corners = from.map((c, k) => (k === corner ? moved : c));
    this.setPlane({ frame: corners, corners });
  }

  // choosing the view

  setFill(fill) {
    this.state.fill = fill;
    for (const stage of this.stages) stage.retake();
    this.look();
  }

  toggle(name, isOn) {
    this.state.show = SHOWN.map(([n]) => n).filter((n) => (n === name ? isOn : this.state.show.includes(n)));
    this.redraw();
    this.look();
  }

  setModel(model) {
    this.state.model = model;
    this.arrange();
    this.look();
    this.pinned();
  }

  setOther(other) {
    this.state.other = other;
    this.arrange();
    this.look();
  }

  setMode(mode) {
    this.state.mode = mode;
    if (mode !== "one" && this.state.other === this.state.model) this.state.other = (this.state.model + 1) % this.about.models.length;
    this.arrange();
    this.look();
  }

  togglePlay() {
    this.playing = !this.playing;
    this.play.textContent = this.playing ? "❚❚" : "▶";
    this.play.setAttribute("aria-label", this.playing ? "pause" : "play");
    const step = () => {
      if (!this.playing) return;
      if (!this.waiting.size) this.setModel((this.state.model + 1) % this.about.models.length);
      setTimeout(step, PLAY);
    };
    if (this.playing) step();
  }

  middle() {
    return this.camera.size.map((n) => n / 2);
  }

  pan(dx, dy) {
    this.camera.pan(dx, dy);
    this.moved();
  }

  zoom(factor, at) {
    this.camera.zoom(factor, at);
    this.moved();
  }

  home() {
    if (this.homeWindow) this.fit(this.homeWindow);
    this.redraw();
    this.look();
  }

  settle() {
    this.look();
  }

  key(event, stage) {
    const step = 48;
    const arrows = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const way = arrows[event.key];
    if (way && event.shiftKey) {
      const [x, y] = this.cursor ? this.camera.toPixels(this.cursor) : this.middle();
      this.cursor = this.camera.toPlane([x - 10 * way[0], y - 10 * way[1]]);
      this.point(this.cursor, stage);
      this.redraw();
    } else if (way) this.pan(step * way[0], step * way[1]);
    else if (event.key === "+" || event.key === "=") this.zoom(1.3, this.cursor ? this.camera.toPixels(this.cursor) : this.middle());
    else if (event.key === "-") this.zoom(1 / 1.3, this.middle());
    else if (event.key === "0") this.home();
    else if (event.key === "Enter") this.pin(this.cursor ?? this.camera.centre, stage);
    else if (event.key === "Escape") {
      this.cursor = null;
      this.unpin();
    } else if (event.key === "r" && this.about.data.kind !== "plane" && !this.isStored) this.random();
    else return;
    event.preventDefault();
  }

  // asking by pointing

  slotOf(stage) {
    const slot = this.slots()[Math.max(0, this.stages.indexOf(stage))];
    return slot === "difference" ? this.state.model : slot;
  }

  point(at, stage) {
    this.pointed = { at, model: this.slotOf(stage) };
    if (!this.probing) this.pointAgain();
    clearTimeout(this.settled);
    this.settled = setTimeout(() => this.pointAgain(true), SETTLED);
  }

  /** Ask for the place under the cursor; with its gradient once the cursor rests. */
  pointAgain(isResting = false) {
    if (!this.pointed || this.probing) {
      this.isResting = isResting;
      return;
    }
    const id = this.ask({ ask: "readout", ...this.pointed, plane: this.state.plane, gradient: isResting });
    this.probing = { id, ...this.pointed, isResting };
  }

  leave() {
    this.pointed = null;
    clearTimeout(this.settled);
    this.hover = null;
    this.redraw();
  }

  takeReadout(message) {
    const { header } = message;
    const pin = (this.pinIds ?? []).indexOf(header.id);
    if (pin >= 0) {
      this.pinReadouts[pin].take(message, this.isDark());
      return;
    }
    if (header.id !== this.probing?.id) return;
    const asked = this.probing;
    this.probing = null;
    this.hover = this.pointed ? message : null;
    this.readout.take(message, this.isDark());
    this.readout.name.textContent = this.state.mode === "one" ? "Under the cursor" : `Under the cursor: ${this.about.models[asked.model].name}`;
    this.redraw();
    const hasMoved = this.pointed && (this.pointed.at !== asked.at || this.pointed.model !== asked.model);
    if (hasMoved) this.pointAgain();
    else if (this.isResting && !asked.isResting) this.pointAgain(true);
    this.isResting = false;
  }

  pin(at) {
    this.state.pins = this.state.pins.length >= 2 ? [at] : [...this.state.pins, at];
    this.pinned();
    this.redraw();
    this.remember();
  }

  unpin() {
    this.state.pins = [];
    this.pinned();
    this.redraw();
    this.remember();
  }

  /** Ask for what pins show. */
  pinned() {
    const { pins } = this.state;
    this.pinIds = [];
    this.hasAskedPins = this.waiting.size === 0;
    this.pinReadouts.forEach((readout, k) => (readout.element.hidden = k >= pins.length));
    if (!this.isFitted) return;
    this.pinIds = pins.map((at, pin) => this.ask({ ask: "readout", pin, at, plane: this.state.plane, model: this.state.model, gradient: true }));
    if (pins.length === 2 && !this.isStored) this.ask({ ask: "profile", from: pins[0], to: pins[1], plane: this.state.plane, model: this.state.model });
    else this.profile.hide();
  }

  // keeping

  remember() {
    if (!this.isPage) return;
    const camera = this.isFitted ? [...this.camera.centre, ...this.camera.unit] : null;
    this.address = writeAddress({ ...this.state, camera });
    history.replaceState(null, "", `#${this.address}`);
  }

  fileName(ending) {
    return `${this.about.models[this.state.model].name.replace(/[^\w.-]+/g, "-")}-plane.${ending}`;
  }

  async keepPng() {
    const [stage] = this.stages;
    stage.draw();
    download(this.fileName("png"), await pngOf([stage.base, stage.overlay], getComputedStyle(this.root).backgroundColor));
  }

  keepSvg() {
    const [stage] = this.stages;
    if (stage.message) download(this.fileName("svg"), svgOf(stage.message, stage.painter, this.camera, this.state.show, stage.names()), "image/svg+xml");
  }

  keepJson() {
    const [stage] = this.stages;
    if (stage.message) download(this.fileName("json"), jsonOf(stage.message, this.points, this.state, this.about), "application/json");
  }

  async copyPython() {
    const text = pythonOf(this.state, this.camera.window(), this.about);
    this.copied = text;
    try {
      await navigator.clipboard.writeText(text);
      this.say("Copied: lines of Python that make this picture.");
    } catch {
      download(this.fileName("py"), text, "text/x-python");
    }
  }

  say(text) {
    this.notice.hidden = false;
    this.notice.textContent = text;
    setTimeout(() => this.connection(this.root.dataset.connection), 4000);
  }
}

/** The combination of points, each a list of [row, weight], with given weights. */
function blend(points, weights) {
  const sums = new Map();
  points.forEach((point, k) => point.forEach(([row, weight]) => sums.set(row, (sums.get(row) ?? 0) + weights[k] * weight)));
  const terms = [...sums].filter(([, weight]) => Math.abs(weight) > 1e-9);
  const total = terms.reduce((a, [, weight]) => a + weight, 0);
  return terms.map(([row, weight]) => [row, weight / total]);
}

/** The explorer below a cell of a notebook. */
function render({ model, el }) {
  const root = document.createElement("div");
  root.classList.add("in-notebook");
  el.append(root);
  const viewer = new Viewer(root, new WidgetChannel(model), false);
  root.viewer = viewer;
}

const root = document.querySelector("[data-inscape-host]");
if (root) {
  const isServed = root.dataset.inscapeHost === "server";
  const socket = () => new SocketChannel(`ws://${location.host}${location.pathname}socket`);
  const stored = () => new StoredChannel(document.querySelector("[data-inscape-messages]").textContent.trim().split("\n"));
  root.viewer = new Viewer(root, isServed ? socket() : stored(), true);
}

export default { render };
