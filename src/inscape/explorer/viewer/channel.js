// How a page talks to Python: over a socket, through a notebook's kernel, or, saved in a file, with itself.

import { unpack } from "./messages.js";

/** A socket to the local server, which is opened again if it closes. */
export class SocketChannel {
  constructor(url) {
    this.url = url;
    this.queue = [];
    this.wait = 500;
  }

  open(onreply, onstate) {
    this.socket = new WebSocket(this.url);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => {
      this.wait = 500;
      onstate("open");
      for (const text of this.queue.splice(0)) this.socket.send(text);
    };
    this.socket.onmessage = (event) => onreply(unpack(event.data));
    this.socket.onclose = (event) => {
      onstate(event.code === 4429 ? "full" : "closed");
      setTimeout(() => this.open(onreply, onstate), this.wait);
      this.wait = Math.min(2 * this.wait, 8000);
    };
  }

  send(request) {
    const text = JSON.stringify(request);
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(text);
    else if (this.queue.length < 20) this.queue.push(text);
  }
}

/** The kernel of a notebook, through anywidget. */
export class WidgetChannel {
  constructor(model) {
    this.model = model;
  }

  open(onreply, onstate) {
    this.model.on("msg:custom", (_, buffers) => {
      for (const buffer of buffers ?? []) onreply(unpack(buffer));
    });
    onstate("open");
  }

  send(request) {
    this.model.send(request);
  }
}

/** The messages that a file carries, and what can be computed from them. */
export class StoredChannel {
  constructor(texts) {
    this.isStored = true;
    this.messages = texts.map((text) => unpack(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer));
  }

  open(onreply, onstate) {
    this.onreply = onreply;
    onstate("open");
  }

  find(reply, matches = () => true) {
    return this.messages.find(({ header }) => header.reply === reply && matches(header));
  }

  send(request) {
    const answer = this.answer(request);
    if (answer) queueMicrotask(() => this.onreply({ header: { ...answer.header, id: request.id, model: request.model ?? answer.header.model }, arrays: answer.arrays }));
  }

  answer(request) {
    const ofModel = (header) => (header.model ?? 0) === (request.model ?? 0);
    if (request.ask === "plane") return this.find("plane", ofModel);
    if (request.ask === "difference") return this.find("difference", (header) => header.models.join() === request.models.join());
    if (request.ask === "readout") return this.readout(request, this.find("plane", ofModel));
    return this.find(request.ask);
  }

  /** Input, scores and region at a place, from the affine map on its face. */
  readout({ at }, plane) {
    const points = this.find("points").arrays;
    const size = points.origin.length;
    const input = Float32Array.from(points.origin, (v, k) => v + at[0] * points.axes[k] + at[1] * points.axes[size + k]);
    const known = plane.header.shape === "faces" ? onFace(plane, at) : inImage(plane, at);
    if (!known) return { header: { reply: "error", to: "readout", message: "This place is outside of what the file holds." }, arrays: {} };
    return { header: { reply: "readout", at, ...known }, arrays: { input } };
  }
}

function unit([s0, s1, t0, t1], [s, t]) {
  return [(2 * s - s0 - s1) / (s1 - s0), (2 * t - t0 - t1) / (t1 - t0)];
}

/** Label, scores, margin and area at a place of a plane of faces. */
function onFace({ header, arrays }, at) {
  const [x, y] = unit(header.window, at);
  const { vertices: v, corners, start, face_regions: regions, region_labels: labels, region_areas: areas } = arrays;
  for (let f = 0; f + 1 < start.length; f++) {
    let inside = true;
    for (let i = start[f]; i < start[f + 1] && inside; i++) {
      const [a, b] = [2 * corners[i], 2 * corners[i + 1 < start[f + 1] ? i + 1 : start[f]]];
      inside = (v[b] - v[a]) * (y - v[a + 1]) - (v[b + 1] - v[a + 1]) * (x - v[a]) >= -1e-9;
    }
    if (!inside) continue;
    const about = { label: labels[regions[f]], area: areas[regions[f]], is_exact: true };
    if (!arrays.vertex_scores) return about;
    const scores = behindHead(scoresOn(arrays, f, x, y), header.head);
    const sorted = [...scores].sort((p, q) => q - p);
    return { ...about, scores, margin: scores.length === 1 ? Math.abs(scores[0]) : sorted[0] - sorted[1] };
  }
  return null;
}

/** The scores at a place of a face, by the triangle of its corners that holds it. */
function scoresOn({ vertices: v, corners, start, vertex_scores: scores }, f, x, y) {
  const c = scores.shape[1];
  let best = null;
  for (let i = start[f] + 2; i < start[f + 1]; i++) {
    const [p, q, r] = [corners[start[f]], corners[i - 1], corners[i]];
    const area = (v[2 * q] - v[2 * p]) * (v[2 * r + 1] - v[2 * p + 1]) - (v[2 * r] - v[2 * p]) * (v[2 * q + 1] - v[2 * p + 1]);
    if (!best || area > best.area) best = { area, p, q, r };
  }
  const { area, p, q, r } = best;
  const wq = ((x - v[2 * p]) * (v[2 * r + 1] - v[2 * p + 1]) - (v[2 * r] - v[2 * p]) * (y - v[2 * p + 1])) / area;
  const wr = ((v[2 * q] - v[2 * p]) * (y - v[2 * p + 1]) - (x - v[2 * p]) * (v[2 * q + 1] - v[2 * p + 1])) / area;
  return Array.from({ length: c }, (_, k) => (1 - wq - wr) * scores[p * c + k] + wq * scores[q * c + k] + wr * scores[r * c + k]);
}

/** What a model that ends in a softmax or a sigmoid returns for the scores before it. */
function behindHead(scores, head) {
  if (head === "sigmoid") return scores.map((v) => 1 / (1 + Math.exp(-v)));
  if (head !== "softmax" && head !== "log_softmax") return scores;
  const most = Math.max(...scores);
  const logs = Math.log(scores.reduce((a, v) => a + Math.exp(v - most), 0)) + most;
  return scores.map((v) => (head === "softmax" ? Math.exp(v - logs) : v - logs));
}

function inImage({ header, arrays }, at) {
  const [x, y] = unit(header.window, at);
  const [rows, columns] = arrays.image.shape;
  if (Math.abs(x) > 1 || Math.abs(y) > 1) return null;
  const column = Math.min(columns - 1, Math.floor(((x + 1) / 2) * columns));
  const row = Math.min(rows - 1, Math.floor(((y + 1) / 2) * rows));
  const region = arrays.image[row * columns + column];
  return region < 0 ? null : { label: arrays.region_labels[region], is_exact: false };
}
