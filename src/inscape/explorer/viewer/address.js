// The whole state of a page as the part of its address behind #, and back.

/** A point as text: 12, or 0.5*12+0.5*40. */
function pointText(point) {
  if (point.length === 1 && point[0][1] === 1) return String(point[0][0]);
  return point.map(([row, weight]) => `${Number(weight.toPrecision(6))}*${row}`).join("+");
}

function readPoint(text) {
  const terms = text.split("+").map((term) => {
    const parts = term.split("*").map(Number);
    return parts.length === 2 ? [parts[1], parts[0]] : [parts[0], 1];
  });
  if (terms.some(([row, weight]) => !Number.isInteger(row) || row < 0 || !Number.isFinite(weight))) throw new Error("no point");
  const sum = terms.reduce((a, [, weight]) => a + weight, 0);
  return terms.map(([row, weight]) => [row, weight / sum]);
}

const pointsText = (points) => points.map(pointText).join(",");

/** The state as text. */
export function writeAddress(state) {
  const parts = new URLSearchParams();
  if (state.plane.frame.length) {
    parts.set("plane", pointsText(state.plane.frame));
    if (pointsText(state.plane.frame) !== pointsText(state.plane.corners)) parts.set("corners", pointsText(state.plane.corners));
  }
  if (state.camera) parts.set("view", state.camera.map((v) => Number(v.toPrecision(8))).join(","));
  parts.set("fill", state.fill);
  parts.set("show", state.show.join("."));
  if (state.model) parts.set("model", String(state.model));
  if (state.mode !== "one") parts.set("compare", `${state.mode}.${state.other}`);
  if (state.pins.length) parts.set("pins", state.pins.map((p) => p.map((v) => Number(v.toPrecision(8))).join(",")).join(";"));
  return parts.toString().replaceAll("%2C", ",").replaceAll("%2B", "+").replaceAll("%3B", ";");
}

/** What the address says, as far as it makes sense: parts of a state. */
export function readAddress(text, about) {
  const state = {};
  const parts = new URLSearchParams(text.replaceAll("+", "%2B"));
  const attempt = (name, read) => {
    try {
      if (parts.get(name) !== null) read(parts.get(name));
    } catch {
      // what cannot be read is left as it is by default
    }
  };
  const three = (value) => {
    const points = value.split(",").map(readPoint);
    if (points.length !== 3 || points.flat().some(([row]) => row >= about.data.n)) throw new Error("no plane");
    return points;
  };
  attempt("plane", (v) => (state.plane = { frame: three(v), corners: three(v) }));
  attempt("corners", (v) => state.plane && (state.plane.corners = three(v)));
  const numbers = (value) => {
    const list = value.split(",").map(Number);
    if (!list.every(Number.isFinite)) throw new Error("no numbers");
    return list;
  };
  attempt("view", (v) => {
    const list = numbers(v);
    if (list.length === 4 && list[2] > 0 && list[3] > 0) state.camera = list;
  });
  attempt("fill", (v) => ["decision", "pattern", "layer", "slope", "density"].includes(v) && (state.fill = v));
  attempt("show", (v) => (state.show = v.split(".").filter((name) => ["edges", "margin", "points", "names"].includes(name))));
  const model = (v) => {
    const k = Number(v);
    if (!Number.isInteger(k) || k < 0 || k >= about.models.length) throw new Error("no model");
    return k;
  };
  attempt("model", (v) => (state.model = model(v)));
  attempt("compare", (v) => {
    const [mode, other] = v.split(".");
    if (["side", "difference"].includes(mode)) [state.other, state.mode] = [model(other), mode];
  });
  attempt("pins", (v) => (state.pins = v.split(";").map(numbers).filter((p) => p.length === 2).slice(0, 2)));
  return state;
}
