// Elements from a few words, and numbers as people read them. Texts are set as text, never as markup.

export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && name !== "list") element[name] = value;
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A number with the digits that matter. */
export function figure(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e5 || size < 1e-3 ? value.toExponential(digits - 1).replace("e+", "e") : Number(value.toPrecision(digits)).toString();
  return text.replaceAll("-", "−");
}

export function grouped(n) {
  return Math.round(n).toLocaleString("en");
}

export function counted(n, one, many = `${one}s`) {
  return `${grouped(n)} ${n === 1 ? one : many}`;
}

/** A text that is no wider than `most`: where it is too long the middle is left out, since names often differ at their ends. */
export function shortened(text, most, widthOf) {
  let kept = text.length;
  const cut = () => (kept === text.length ? text : `${text.slice(0, Math.ceil(kept / 2))}\u2026${text.slice(text.length - Math.floor(kept / 2))}`);
  while (kept > 2 && widthOf(cut()) > most) kept--;
  return cut();
}

export function percent(part) {
  if (part > 0 && part < 0.001) return "< 0.1 %";
  return `${(100 * part).toFixed(part < 0.1 ? 1 : 0)} %`;
}
