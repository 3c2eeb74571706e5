"use strict";
// Charts as SVG: points or lines by group, intervals, linear, logarithmic and named axes, what a point is, zoom.
const drawChart = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const DASHES = ["", "8 4", "2 4", "8 4 2 4", "14 4"];
  const SCALE = ["#00224e", "#35456c", "#666970", "#948e77", "#c8b866", "#fee838"]; // cividis
  const FEW = 10; // groups that are told apart; more numbers are a scale
  const REACH = 28; // pixels from the pointer at which a point is still meant
  const PAD = 0.04;
  const polygon = (n, r, turn = 0) => "M" + [...Array(n).keys()].map((i) => {
    const a = 2 * Math.PI * (i / n + turn) - Math.PI / 2;
    return `${(r * Math.cos(a)).toFixed(2)},${(r * Math.sin(a)).toFixed(2)}`;
  }).join("L") + "Z";
  const SYMBOLS = [
    "M-4.5,0a4.5,4.5 0 1,0 9,0a4.5,4.5 0 1,0 -9,0Z", "M-4,-4H4V4H-4Z", "M0,-5.8L5.8,0L0,5.8L-5.8,0Z", polygon(3, 5.6),
    "M-1.7,-5H1.7V-1.7H5V1.7H1.7V5H-1.7V1.7H-5V-1.7H-1.7Z", polygon(3, 5.6, 0.5), polygon(6, 5.2), polygon(5, 5.3),
  ];

  const distinct = (values) => [...new Set(values)].filter((v) => v !== null);
  const isNumeric = (values) => distinct(values).every((v) => typeof v === "number");
  const isScale = (values) => distinct(values).length > FEW && isNumeric(values);
  const shown = (value) => {
    if (value === null || value === undefined) return "–";
    if (typeof value === "boolean") return value ? "yes" : "no";
    return String(typeof value === "number" ? Number(value.toPrecision(4)) : value);
  };
  const make = (parent, name, attributes = {}, text = null) => {
    const element = parent.namespaceURI === SVG || name === "svg"
      ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== null) element.textContent = text; // never as markup
    parent.append(element);
    return element;
  };

  // ---- rows by the value of the colour column
  const groupsOf = (spec) => {
    const values = spec.colour ? spec.columns[spec.colour] : null;
    const all = spec.columns[spec.x].map((_, i) => i);
    if (!values || isScale(values)) return [[null, all]];
    const groups = new Map();
    for (const i of all) {
      if (!groups.has(values[i])) groups.set(values[i], []);
      groups.get(values[i]).push(i);
    }
    const names = [...groups.keys()];
    if (names.every((n) => n === null || typeof n === "number")) names.sort((a, b) => a - b);
    return names.map((name) => [name, groups.get(name)]);
  };

  // ---- axes: from values to 0..1, with marks
  const niceStep = (span, n) => {
    const raw = span / n, power = 10 ** Math.floor(Math.log10(raw));
    return power * [1, 2, 2.5, 5, 10].find((m) => m * power >= raw * 0.999);
  };
  const linearTicks = ([low, high], n) => {
    const step = niceStep(high - low, n), ticks = [];
    for (let k = Math.ceil(low / step); k * step <= high + 1e-9 * step; k += 1) {
      ticks.push([k * step, shown(Number((k * step).toPrecision(12)))]);
    }
    return ticks;
  };
  const logTicks = ([low, high], values) => { // low and high are logarithms
    const own = distinct(values).filter((v) => v > 0);
    if (own.length <= 8) return own.map((v) => [Math.log10(v), shown(v)]);
    const ticks = [];
    for (let k = Math.ceil(low); k <= high; k += 1) ticks.push([k, shown(Number(`1e${k}`))]);
    return ticks.length > 1 ? ticks : linearTicks([low, high], 4).map(([t]) => [t, shown(10 ** t)]);
  };
  const axisOf = (values, isLog, range, nTicks) => {
    if (!isNumeric(values)) {
      const names = distinct(values);
      const place = new Map(names.map((name, i) => [name, i]));
      const ends = range ?? [-0.5, names.length - 0.5];
      return { ends, at: (v) => place.get(v), ticks: names.map((name, i) => [i, shown(name)]) };
    }
    const at = isLog ? (v) => (v > 0 ? Math.log10(v) : undefined) : (v) => v ?? undefined;
    const places = values.map(at).filter((v) => v !== undefined && Number.isFinite(v));
    let low = Math.min(...places), high = Math.max(...places);
    if (!places.length) [low, high] = [0, 1];
    if (low === high) [low, high] = [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
    const pad = PAD * (high - low);
    const ends = range ?? [low - pad, high + pad];
    return { ends, at, ticks: isLog ? logTicks(ends, values) : linearTicks(ends, nTicks) };
  };
  const axes = (spec, view, box) => {
    const { columns: c } = spec;
    const ys = [spec.y, spec.low, spec.high].filter(Boolean).flatMap((name) => c[name]);
    const side = (name, values, n, length, turned) => {
      const axis = axisOf(values, Boolean(spec[`log_${name}`]), view[name], n);
      const [low, high] = axis.ends;
      const to = (v) => {
        const place = axis.at(v);
        return place === undefined ? NaN : length * (turned ? (high - place) : (place - low)) / (high - low);
      };
      const ticks = axis.ticks.map(([t, text]) => [length * (turned ? high - t : t - low) / (high - low), text]);
      const inside = ticks.filter(([place]) => place >= -0.5 && place <= length + 0.5);
      return { ...axis, to, ticks: inside, from: (p) => (turned ? high - p * (high - low) / length : low + p * (high - low) / length) };
    };
    return { x: side("x", c[spec.x], Math.max(2, box.width / 90), box.width, false), y: side("y", ys, Math.max(2, box.height / 55), box.height, true) };
  };

  // ---- the parts of a chart
  const legend = (element, spec, names, colours, hidden, again) => {
    if (names.length < 2) return;
    const list = make(element, "div", { class: "legend" });
    make(list, "span", { class: "of" }, spec.labels[spec.colour]);
    names.forEach((name, g) => {
      const entry = make(list, "button", { type: "button", "aria-pressed": String(!hidden.has(g)) });
      const mark = make(make(entry, "svg", { viewBox: "-8 -8 16 16", "aria-hidden": "true" }), "path", { d: SYMBOLS[g % SYMBOLS.length] });
      mark.setAttribute("fill", colours[g % colours.length]);
      make(entry, "span", {}, shown(name));
      entry.addEventListener("click", () => { hidden.has(g) ? hidden.delete(g) : hidden.add(g); again(); });
    });
  };
  const frame = (svg, spec, axis, box) => {
    const back = make(svg, "g", { class: "grid" });
    for (const [x, text] of axis.x.ticks) {
      make(back, "line", { x1: x, x2: x, y1: 0, y2: box.height });
      make(svg, "text", { class: "tick", x, y: box.height + 18, "text-anchor": "middle" }, text);
    }
    for (const [y, text] of axis.y.ticks) {
      make(back, "line", { x1: 0, x2: box.width, y1: y, y2: y });
      make(svg, "text", { class: "tick", x: -8, y: y + 4, "text-anchor": "end" }, text);
    }
    make(svg, "path", { class: "axis", d: `M0,0V${box.height}H${box.width}` });
    const title = (name) => spec[`${name}label`] ?? spec.labels[spec[name]];
    make(svg, "text", { class: "xtitle", x: box.width / 2, y: box.height + 38, "text-anchor": "middle" }, title("x"));
    const up = { class: "ytitle", transform: `translate(${12 - box.left},${box.height / 2}) rotate(-90)`, "text-anchor": "middle" };
    make(svg, "text", up, title("y"));
  };
  const mixed = (share) => {
    const place = Math.max(0, Math.min(1, share)) * (SCALE.length - 1), i = Math.min(Math.floor(place), SCALE.length - 2);
    const part = (hex, k) => parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16);
    const blend = [0, 1, 2].map((k) => Math.round(part(SCALE[i], k) + (place - i) * (part(SCALE[i + 1], k) - part(SCALE[i], k))));
    return `rgb(${blend.join(",")})`;
  };
  const colorbar = (svg, spec, box, [low, high]) => {
    const bar = make(svg, "g", { class: "colorbar", transform: `translate(${box.width + 14},0)` });
    const n = 40;
    for (let i = 0; i < n; i += 1) {
      make(bar, "rect", { x: 0, width: 10, y: box.height * (1 - (i + 1) / n), height: box.height / n + 0.6, fill: mixed((i + 0.5) / n) });
    }
    make(bar, "text", { class: "tick", x: 14, y: 10 }, shown(high));
    make(bar, "text", { class: "tick", x: 14, y: box.height }, shown(low));
    make(bar, "text", { class: "tick", transform: `translate(24,${box.height / 2}) rotate(-90)`, "text-anchor": "middle" }, spec.labels[spec.colour]);
  };
  const series = (plot, spec, axis, rows, g, tint, places, fill) => {
    const c = spec.columns, isLine = spec.kind === "lines";
    const at = (i, column = spec.y) => [axis.x.to(c[spec.x][i]), axis.y.to(c[column][i])];
    const isThere = ([x, y]) => Number.isFinite(x) && Number.isFinite(y);
    const ordered = isLine ? [...rows].sort((a, b) => at(a)[0] - at(b)[0]) : rows;
    const path = (points) => points.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("");
    if (spec.low && spec.high) {
      const whole = ordered.filter((i) => isThere(at(i, spec.low)) && isThere(at(i, spec.high)));
      if (isLine && whole.length) {
        const ring = [...whole.map((i) => at(i, spec.high)), ...[...whole].reverse().map((i) => at(i, spec.low))];
        make(plot, "path", { class: "band", d: `${path(ring)}Z`, fill: tint });
      } else {
        for (const i of whole) make(plot, "path", { class: "error", d: path([at(i, spec.low), at(i, spec.high)]), stroke: tint });
      }
    }
    const there = ordered.filter((i) => isThere(at(i)));
    if (isLine) make(plot, "path", { class: "line", d: path(there.map((i) => at(i))), stroke: tint, "stroke-dasharray": DASHES[g % DASHES.length] });
    const faint = rows.length > 400 ? 0.6 : 0.9;
    for (const i of there) {
      const [x, y] = at(i);
      const d = SYMBOLS[g % SYMBOLS.length];
      make(plot, "path", { class: "point", d, transform: `translate(${x.toFixed(1)},${y.toFixed(1)})${isLine ? " scale(.75)" : ""}`, fill: fill(i), "fill-opacity": faint });
      places.push([x, y, i]);
    }
  };
  const facts = (spec, i) => {
    const names = [...new Set([...spec.hover, ...(spec.colour ? [spec.colour] : []), spec.x, spec.y])];
    const lines = names.filter((name) => spec.columns[name][i] !== null).map((name) => [spec.labels[name], shown(spec.columns[name][i])]);
    if (spec.low && spec.high) lines.push(["interval", `${shown(spec.columns[spec.low][i])} to ${shown(spec.columns[spec.high][i])}`]);
    return lines;
  };
  const hovering = (element, holder, spec, box, places) => {
    const card = make(holder, "div", { class: "hovertext", hidden: "" });
    const ring = make(element.querySelector(".over"), "circle", { class: "ring", r: 8, visibility: "hidden" });
    const hide = () => { card.hidden = true; ring.setAttribute("visibility", "hidden"); };
    const show = (event) => {
      const frame = element.getBoundingClientRect();
      const x = event.clientX - frame.left - box.left, y = event.clientY - frame.top - box.top;
      let best = null, nearest = REACH ** 2;
      for (const place of places) {
        const far = (place[0] - x) ** 2 + (place[1] - y) ** 2;
        if (far < nearest) [best, nearest] = [place, far];
      }
      if (!best) { hide(); return; }
      card.replaceChildren();
      for (const [name, value] of facts(spec, best[2])) {
        const line = make(card, "div", {}, `${name}: `);
        make(line, "b", {}, value);
      }
      card.hidden = false;
      ring.setAttribute("cx", best[0]);
      ring.setAttribute("cy", best[1]);
      ring.setAttribute("visibility", "visible");
      const isRight = best[0] > box.width / 2;
      card.style.left = isRight ? "auto" : `${box.left + best[0] + 14}px`;
      card.style.right = isRight ? `${box.right + box.width - best[0] + 14}px` : "auto";
      card.style.top = `${Math.max(0, Math.min(best[1] + box.top - 20, element.clientHeight - card.offsetHeight))}px`;
    };
    element.addEventListener("pointermove", show);
    element.addEventListener("pointerdown", show);
    element.addEventListener("pointerleave", hide);
  };
  const zooming = (svg, axis, box, view, again) => {
    let start = null;
    const over = svg.querySelector(".over");
    const area = make(over, "rect", { class: "zoom", visibility: "hidden" });
    const place = (event) => {
      const frame = svg.getBoundingClientRect();
      const inside = (v, most) => Math.max(0, Math.min(most, v));
      return [inside(event.clientX - frame.left - box.left, box.width), inside(event.clientY - frame.top - box.top, box.height)];
    };
    svg.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse") start = place(event); }); // a finger scrolls
    svg.addEventListener("pointermove", (event) => {
      if (!start) return;
      const [x, y] = place(event);
      const sides = { x: Math.min(x, start[0]), y: Math.min(y, start[1]), width: Math.abs(x - start[0]), height: Math.abs(y - start[1]), visibility: "visible" };
      for (const [key, value] of Object.entries(sides)) area.setAttribute(key, value);
    });
    svg.addEventListener("pointerup", (event) => {
      if (!start) return;
      const [x, y] = place(event), [u, v] = start;
      start = null;
      area.setAttribute("visibility", "hidden");
      if (Math.abs(x - u) < 8 || Math.abs(y - v) < 8) return;
      view.x = [axis.x.from(Math.min(x, u)), axis.x.from(Math.max(x, u))];
      view.y = [axis.y.from(Math.max(y, v)), axis.y.from(Math.min(y, v))];
      again();
    });
    svg.addEventListener("dblclick", () => { view.x = view.y = null; again(); });
  };

  return (element, spec, colours, state) => {
    const again = () => drawChart(element, spec, colours, state);
    element.replaceChildren();
    const groups = groupsOf(spec);
    legend(element, spec, groups.map(([name]) => name), colours, state.hidden, again);
    const holder = make(element, "div", { class: "canvas" });
    const width = holder.clientWidth, height = holder.clientHeight;
    const hue = spec.colour && isScale(spec.columns[spec.colour]) ? spec.columns[spec.colour] : null;
    const ys = [spec.y, spec.low, spec.high].filter(Boolean).flatMap((name) => spec.columns[name]);
    const guess = axisOf(ys, Boolean(spec.log_y), state.view.y, height / 55).ticks.map(([, text]) => text.length);
    const box = { left: Math.min(width / 3, 38 + 6.6 * Math.max(1, ...guess)), top: 10, right: hue ? 70 : 14 };
    box.width = Math.max(40, width - box.left - box.right);
    box.height = Math.max(40, height - box.top - 48);
    const svg = make(holder, "svg", { width, height, "aria-hidden": "true" });
    const body = make(svg, "g", { transform: `translate(${box.left},${box.top})` });
    const axis = axes(spec, state.view, box);
    frame(body, spec, axis, box);
    const clip = `clip-${element.id}`;
    make(make(make(svg, "defs"), "clipPath", { id: clip }), "rect", { x: -6, y: -6, width: box.width + 12, height: box.height + 12 });
    const plot = make(body, "g", { "clip-path": `url(#${clip})` });
    make(body, "g", { class: "over" });
    const known = hue ? hue.filter((v) => v !== null) : [];
    const ends = [Math.min(...known), Math.max(...known)];
    const places = [];
    groups.forEach(([, rows], g) => {
      const tint = colours[g % colours.length];
      const fill = hue ? (i) => (hue[i] === null ? "none" : mixed((hue[i] - ends[0]) / (ends[1] - ends[0]))) : () => tint;
      if (!state.hidden.has(g)) series(plot, spec, axis, rows, g, tint, places, fill);
    });
    if (hue) colorbar(body, spec, box, ends);
    const isInside = ([x, y]) => x >= -6 && y >= -6 && x <= box.width + 6 && y <= box.height + 6;
    hovering(svg, holder, spec, box, places.filter(isInside));
    zooming(svg, axis, box, state.view, again);
  };
})();
