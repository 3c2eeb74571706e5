// Scales for numbers, as in the still pictures: cividis for layers, viridis for slopes, magma for densities.

const SCALES = {
  cividis: ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"],
  viridis: ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"],
  magma: ["#fcfdbf", "#fec488", "#fb8861", "#e75263", "#b63679", "#812581", "#4f127b", "#1c1044", "#000004"],
};

/** The red, green and blue (0 to 255) of "#rrggbb". */
export function rgb(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

export function cssColour([r, g, b]) {
  return `rgb(${Math.round(r)} ${Math.round(g)} ${Math.round(b)})`;
}

/** The colour at t (0 to 1) of a scale. */
export function scaleColour(name, t) {
  const stops = SCALES[name];
  const place = Math.min(Math.max(t, 0), 1) * (stops.length - 1);
  const i = Math.min(Math.floor(place), stops.length - 2);
  const [a, b] = [rgb(stops[i]), rgb(stops[i + 1])];
  return a.map((v, k) => v + (place - i) * (b[k] - v));
}

/** A CSS gradient of a scale, for its legend. */
export function scaleSteps(name) {
  return SCALES[name];
}

/** Colours of layers first to last, lightened as in the still pictures. */
export function layerColour(layer, n) {
  const t = n > 1 ? 0.1 + (0.8 * layer) / (n - 1) : 0.5;
  return scaleColour("cividis", t).map((v) => 0.35 * 255 + 0.65 * v);
}

/** The least and greatest of numbers, leaving half a per cent out at both ends. */
export function spread(values) {
  const sorted = Float64Array.from(values).filter(Number.isFinite).sort();
  if (!sorted.length) return [0, 1];
  const at = (q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
  return [at(0.005), at(0.995)];
}
