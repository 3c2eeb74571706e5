"use strict";
(() => {
  const root = document.documentElement;
  const read = (element) => JSON.parse(element.textContent);

  // ---- light and dark: as the system has it, until the reader chooses
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const remembered = (value) => {
    try { // a file may have no memory
      if (value) localStorage.setItem("inscape-theme", value);
      return localStorage.getItem("inscape-theme");
    } catch { return null; }
  };
  const themeChanged = () => {
    button.lastElementChild.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
    drawAll();
  };
  if (["light", "dark"].includes(remembered())) root.dataset.theme = remembered();
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remembered(root.dataset.theme);
    themeChanged();
  });
  system.addEventListener("change", themeChanged);

  // ---- tables: a click on a head sorts, another turns the order; what is missing stays last
  const collator = new Intl.Collator("en", { numeric: true });
  const key = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
    const text = cell.textContent.trim();
    return text !== "" && !Number.isNaN(Number(text)) ? Number(text) : text;
  };
  const compare = (a, b) => {
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return typeof a === "number" ? a - b : collator.compare(a, b);
  };
  const sort = (table, head) => {
    const descending = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentElement.cells) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [key(row, head.cellIndex), row]);
    rows.sort(([a], [b]) => {
      if (a === "" || b === "") return (a === "") - (b === "");
      return descending ? compare(b, a) : compare(a, b);
    });
    body.append(...rows.map(([, row]) => row));
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const head of table.tHead.querySelectorAll("th")) {
      head.querySelector("button").addEventListener("click", () => sort(table, head));
    }
  }

  // ---- charts
  const PALETTE = read(document.getElementById("palette"));
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "star", "x", "triangle-down", "hexagon", "pentagon", "bowtie"];
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];
  const FEW = 10;
  const byFinger = matchMedia("(pointer: coarse)").matches;
  const specs = new Map();
  for (const element of document.querySelectorAll("script[data-chart]")) {
    specs.set(element.dataset.chart, read(element));
  }

  const escaped = (value) => String(value).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const shown = (value) => {
    if (value === null) return "–";
    if (typeof value === "boolean") return value ? "yes" : "no";
    return escaped(typeof value === "number" ? Number(value.toPrecision(4)) : value);
  };
  const colour = (name) => { // a custom property as the browser resolves it
    const probe = document.createElement("span");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const faded = (hex) => `${hex}33`;

  const distinct = (values) => [...new Set(values)].filter((v) => v !== null);
  const isScale = (values) => distinct(values).length > FEW && distinct(values).every((v) => typeof v === "number");
  const groups = (spec) => {
    const values = spec.colour ? spec.columns[spec.colour] : null;
    const all = spec.columns[spec.x].map((_, i) => i);
    if (!values || isScale(values)) return [["", all]];
    const found = new Map();
    for (const i of all) {
      if (!found.has(values[i])) found.set(values[i], []);
      found.get(values[i]).push(i);
    }
    const names = [...found.keys()];
    if (names.every((n) => n === null || typeof n === "number")) names.sort((a, b) => a - b);
    return names.map((name) => [name, found.get(name)]);
  };
  const label = (spec, i) => {
    const names = [...new Set([...spec.hover, ...(spec.colour ? [spec.colour] : []), spec.x, spec.y])];
    const lines = names
      .filter((name) => spec.columns[name][i] !== null)
      .map((name) => `${escaped(spec.labels[name])}: <b>${shown(spec.columns[name][i])}</b>`);
    if (spec.low && spec.high) {
      lines.push(`interval: <b>${shown(spec.columns[spec.low][i])} to ${shown(spec.columns[spec.high][i])}</b>`);
    }
    return lines.join("<br>");
  };

  const traces = (spec, ink) => groups(spec).flatMap(([name, rows], g) => {
    const c = spec.columns;
    const tint = PALETTE[g % PALETTE.length];
    const isLine = spec.kind === "lines";
    if (isLine) rows = [...rows].sort((a, b) => compare(c[spec.x][a] ?? "", c[spec.x][b] ?? ""));
    const of = (column) => rows.map((i) => c[column][i]);
    const scale = spec.colour && isScale(c[spec.colour]);
    const trace = {
      type: "scatter",
      mode: isLine ? "lines+markers" : "markers",
      x: of(spec.x),
      y: of(spec.y),
      name: shown(name),
      legendgroup: String(g),
      hoverinfo: "text",
      hovertext: rows.map((i) => label(spec, i)),
      line: { color: tint, width: 2, dash: DASHES[g % DASHES.length] },
      marker: {
        color: scale ? of(spec.colour) : tint,
        symbol: SYMBOLS[g % SYMBOLS.length],
        size: isLine ? 7 : 9,
        opacity: rows.length > 400 ? 0.6 : 0.9,
        line: { color: ink, width: 0.6 },
      },
    };
    if (scale) {
      Object.assign(trace.marker, {
        colorscale: "Cividis", showscale: true,
        colorbar: { thickness: 10, outlinewidth: 0, title: { text: escaped(spec.labels[spec.colour]), side: "right" } },
      });
    }
    if (!spec.low || !spec.high) return [trace];
    if (!isLine) {
      const difference = (high, low) => rows.map((i) => (c[high][i] === null || c[low][i] === null ? 0 : c[high][i] - c[low][i]));
      trace.error_y = {
        type: "data", symmetric: false, thickness: 1.2, width: 3, color: tint,
        array: difference(spec.high, spec.y), arrayminus: difference(spec.y, spec.low),
      };
      return [trace];
    }
    const whole = rows.filter((i) => c[spec.low][i] !== null && c[spec.high][i] !== null);
    const band = {
      type: "scatter", mode: "lines", line: { width: 0 }, fill: "toself", fillcolor: faded(tint),
      x: [...whole, ...[...whole].reverse()].map((i) => c[spec.x][i]),
      y: [...whole.map((i) => c[spec.high][i]), ...[...whole].reverse().map((i) => c[spec.low][i])],
      hoverinfo: "skip", showlegend: false, legendgroup: String(g),
    };
    return [band, trace];
  });

  const axis = (spec, name, colours) => {
    const values = distinct(spec.columns[spec[name]]);
    const isLog = Boolean(spec[`log_${name}`]);
    return {
      title: { text: escaped(spec[`${name}label`] ?? spec.labels[spec[name]]), standoff: 10 },
      type: isLog ? "log" : undefined,
      tickvals: isLog && values.length <= 8 ? values : undefined,
      automargin: true, zeroline: false, showline: true,
      gridcolor: colours.grid, linecolor: colours.line, tickcolor: colours.line,
    };
  };
  const makeRoom = (element, names) => { // for the lines of the legend
    const width = 48 + 7 * Math.max(...names.map((name) => name.length));
    const inLine = Math.max(1, Math.floor((element.clientWidth - 150) / width));
    element.style.setProperty("--legend", `${20 * (Math.ceil(names.length / inLine) - 1)}px`);
  };
  const draw = (id) => {
    const spec = specs.get(id);
    const colours = { grid: colour("grid"), line: colour("line"), card: colour("card"), soft: colour("soft"), ink: colour("ink") };
    const names = groups(spec).map(([name]) => shown(name));
    const many = names.length > 1;
    makeRoom(document.getElementById(id), names);
    const layout = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colours.ink },
      margin: { l: 50, r: 12, t: many ? 34 : 12, b: 44 },
      xaxis: axis(spec, "x", colours),
      yaxis: axis(spec, "y", colours),
      hovermode: "closest",
      hoverlabel: { bgcolor: colours.card, bordercolor: colours.ink, align: "left", font: { color: colours.ink, size: 12.5 } },
      showlegend: many,
      legend: {
        orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 12 },
        title: { text: many ? escaped(spec.labels[spec.colour]) : "", font: { size: 12 } },
      },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colours.soft, activecolor: colours.ink },
      dragmode: byFinger ? false : "zoom", // a finger scrolls the page
    };
    const options = {
      responsive: true, displaylogo: false, displayModeBar: byFinger ? false : "hover",
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]], // none that sends data away
      toImageButtonOptions: { filename: id, scale: 2 },
    };
    return Plotly.react(id, traces(spec, colours.soft), layout, options);
  };
  function drawAll() {
    for (const id of specs.keys()) draw(id);
  }

  const axes = document.getElementById("axes");
  if (axes) {
    axes.addEventListener("change", () => {
      const spec = specs.get("explorer");
      for (const name of ["x", "y", "colour"]) spec[name] = axes.elements[name].value || null;
      draw("explorer");
    });
  }

  // ---- paper is white, whatever the screen is
  let screen = null;
  addEventListener("beforeprint", () => {
    screen = root.dataset.theme ?? "";
    root.dataset.theme = "light";
    drawAll();
  });
  addEventListener("afterprint", () => {
    if (screen) root.dataset.theme = screen;
    else delete root.dataset.theme;
    drawAll();
  });

  const copy = document.getElementById("copy");
  if (navigator.clipboard) {
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(document.getElementById("command").textContent);
        copy.textContent = "Copied";
      } catch { copy.textContent = "Not allowed"; }
      setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    });
  }

  themeChanged();
})();
