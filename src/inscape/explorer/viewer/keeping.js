// What a page gives away: the picture as PNG or SVG, its polygons as JSON, and the lines of Python for it.

export function download(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

const escapeText = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** The layers of a stage as one PNG. */
export function pngOf(canvases, background) {
  const [first] = canvases;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [first.width, first.height];
  const context = canvas.getContext("2d");
  context.fillStyle = background;
  context.fillRect(0, 0, canvas.width, canvas.height);
  for (const layer of canvases) if (layer.width && layer.height) context.drawImage(layer, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** The polygon of a face in coordinates of the plane. */
function polygonOf({ header, arrays }, f) {
  const [s0, s1, t0, t1] = header.window;
  const { vertices, corners, start } = arrays;
  return Array.from({ length: start[f + 1] - start[f] }, (_, i) => {
    const v = 2 * corners[start[f] + i];
    return [(s0 + s1 + vertices[v] * (s1 - s0)) / 2, (t0 + t1 + vertices[v + 1] * (t1 - t0)) / 2];
  });
}

/** The picture as SVG: faces in the colours of their classes, edges, boundaries, names. */
export function svgOf(message, painter, camera, show, names) {
  const [w, h] = camera.size;
  const parts = [`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${w} ${h}" width="${w}" height="${h}" font-family="sans-serif" font-size="13">`];
  const pixels = (p) => camera.toPixels(p).map((v) => Number(v.toFixed(2)));
  if (message.header.shape === "faces") {
    const { arrays, header } = message;
    const colour = painter.faceColours(arrays);
    const groups = new Map();
    for (let f = 0; f + 1 < arrays.start.length; f++) {
      const key = colour(f).map(Math.round).join(",");
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(`M${polygonOf(message, f).map((p) => pixels(p).join(" ")).join("L")}Z`);
    }
    for (const [key, paths] of groups) parts.push(`<path fill="rgb(${key})" stroke="rgb(${key})" stroke-width="0.4" d="${paths.join("")}"/>`);
    const [s0, s1, t0, t1] = header.window;
    const place = (v) => pixels([(s0 + s1 + arrays.vertices[2 * v] * (s1 - s0)) / 2, (t0 + t1 + arrays.vertices[2 * v + 1] * (t1 - t0)) / 2]);
    const lines = (wanted) => {
      const strokes = [];
      arrays.edge_kinds.forEach((kind, e) => wanted(kind) && strokes.push(`M${place(arrays.edges[2 * e]).join(" ")}L${place(arrays.edges[2 * e + 1]).join(" ")}`));
      return strokes.join("");
    };
    if (show.includes("edges")) parts.push(`<path fill="none" stroke="black" stroke-opacity="0.4" stroke-width="0.6" d="${lines((kind) => kind < 128 && kind > 0)}"/>`);
    parts.push(`<path fill="none" stroke="black" stroke-width="1.6" d="${lines((kind) => kind >= 128)}"/>`);
  } else {
    const [s0, s1, t0, t1] = message.header.window;
    const [x0, y0] = pixels([s0, t1]);
    const [x1, y1] = pixels([s1, t0]);
    parts.push(`<image x="${x0}" y="${y0}" width="${x1 - x0}" height="${y1 - y0}" preserveAspectRatio="none" href="${painter.image.toDataURL()}"/>`);
  }
  for (const { text, ink, at } of names) {
    const [x, y] = pixels(at);
    parts.push(`<text x="${x}" y="${y}" text-anchor="middle" dominant-baseline="central" fill="${ink}">${escapeText(text)}</text>`);
  }
  return `${parts.join("\n")}\n</svg>\n`;
}

/** Polygons, labels and points as JSON. */
export function jsonOf(message, points, state, about) {
  const { header, arrays } = message;
  const known = (label) => about.classes.find((c) => c.label === label)?.name ?? String(label);
  const record = {
    made_by: `inscape ${about.version}`,
    model: about.models[state.model].name,
    plane: state.plane,
    window: header.window,
    method: header.method,
    is_exact: header.is_exact,
    status: header.status,
    n_regions: header.n_regions,
    regions: [...arrays.region_labels].map((label, k) => ({ label, class_name: known(label), area: arrays.region_areas?.[k] })),
  };
  if (header.shape === "faces") {
    record.faces = Array.from({ length: arrays.start.length - 1 }, (_, f) => ({ region: arrays.face_regions[f], polygon: polygonOf(message, f) }));
  } else {
    record.image = { shape: arrays.image.shape, regions: [...arrays.image] };
  }
  if (points) {
    record.points = [...points.arrays.rows].map((row, k) => ({
      row,
      at: [points.arrays.places[2 * k], points.arrays.places[2 * k + 1]],
      distance: points.arrays.distances[k],
      label: points.arrays.labels?.[k],
    }));
  }
  return JSON.stringify(record);
}

/** Lines of Python that make the same picture. */
export function pythonOf(state, window, about) {
  const model = about.models.length > 1 ? `models[${JSON.stringify(about.models[state.model].name)}]` : "model";
  const numbers = window.map((v) => Number(v.toPrecision(10)));
  const bounds = `((${numbers[0]}, ${numbers[1]}), (${numbers[2]}, ${numbers[3]}))`;
  const point = (terms) => terms.map(([row, weight]) => (weight === 1 ? `x[${row}]` : `${weight} * x[${row}]`)).join(" + ");
  const lines = ["import numpy as np", "", "import inscape", "", about.source.trim()];
  if (state.plane.frame.length) {
    lines.push(`points = np.stack([${state.plane.frame.map(point).join(", ")}])`);
    lines.push(`plane = inscape.Patch.through(points${about.data.is_scaled ? `, scale=${about.unit_source}` : ""})`);
    lines.push(`patch = inscape.Patch(plane.origin, plane.axes, ${bounds}, marks=plane.marks, unit=plane.unit)`);
  } else {
    lines.push(`patch = inscape.Patch([0.0, 0.0], np.eye(2), ${bounds})`);
  }
  const points = state.show.includes("points") ? `points=${about.data.has_classes ? "(x, y)" : "x"}` : "";
  if (["pattern", "layer", "slope"].includes(state.fill)) {
    lines.push(`regions = inscape.linear_regions(${model}, patch)`);
    lines.push(`ax = regions.plot(colour="${state.fill}"${points ? `, ${points}` : ""})`);
  } else {
    lines.push(`regions = inscape.decision_regions(${model}, patch)`);
    lines.push(`ax = regions.plot(${points})`);
  }
  lines.push('ax.figure.savefig("plane.png", dpi=150)');
  return `${lines.join("\n")}\n`;
}
