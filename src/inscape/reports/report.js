"use strict";
// What a reader may do on the page of a report: choose light or dark, sort tables, choose the axes of charts.
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
  const specs = new Map();
  const states = new Map(); // what the reader has zoomed into and hidden
  const fresh = () => ({ view: { x: null, y: null }, hidden: new Set() });
  for (const element of document.querySelectorAll("script[data-chart]")) {
    specs.set(element.dataset.chart, read(element));
    states.set(element.dataset.chart, fresh());
  }
  const draw = (id) => drawChart(document.getElementById(id), specs.get(id), PALETTE, states.get(id));
  function drawAll() {
    for (const id of specs.keys()) draw(id);
  }
  let width = innerWidth;
  addEventListener("resize", () => { // not where the bar of a phone's browser comes and goes
    if (innerWidth !== width) drawAll();
    width = innerWidth;
  });

  const axes = document.getElementById("axes");
  if (axes) {
    axes.addEventListener("change", () => {
      const spec = specs.get("explorer");
      for (const name of ["x", "y", "colour"]) spec[name] = axes.elements[name].value || null;
      states.set("explorer", fresh());
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
