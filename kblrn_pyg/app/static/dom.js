// Elements made of text only: whatever a name contains, it stays a name.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(3)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

export const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
export const svg = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

const ruler = document.createElement("canvas").getContext("2d");

export function widthOf(text, size) {
  ruler.font = `${size}px system-ui, sans-serif`;
  return ruler.measureText(text).width;
}

// Breaks a text into at most a number of lines; what is too long ends in dots.
export function wrap(text, size, width, most) {
  const words = text.split(/(?<=[\s/…_.-])/u);
  const lines = [""];
  while (words.length) {
    const word = words.shift();
    const longer = lines[lines.length - 1] + word;
    if (widthOf(longer.trim(), size) <= width || lines[lines.length - 1] === "") lines[lines.length - 1] = longer;
    else if (lines.length < most) lines.push(word);
    else { lines[lines.length - 1] = longer + words.join(""); break; }
  }
  return lines.map((line) => cut(line.trim(), size, width));
}

export function cut(text, size, width) {
  if (widthOf(text, size) <= width) return text;
  let letters = [...text].slice(0, 300);
  while (letters.length > 1 && widthOf(`${letters.join("")}…`, size) > width) letters.pop();
  return `${letters.join("").trim()}…`;
}

// Numbers as people read them.
export function percent(value) {
  if (value >= 0.0995) return `${(100 * value).toFixed(0)}\u00a0%`;
  if (value >= 0.001) return `${(100 * value).toFixed(1)}\u00a0%`;
  return "<\u00a00.1\u00a0%";
}

export const signed = (value) => `${value < -0.0005 ? "−" : "+"}${Math.abs(value).toFixed(Math.abs(value) < 0.0995 ? 3 : 2)}`;
export const count = (value) => value.toLocaleString("en");
export const rank = (value) => (Number.isInteger(value) ? count(value) : value.toLocaleString("en", { minimumFractionDigits: 1 }));

export function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(1).replace("-", "−").replace("+", "");
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return String(Number(value.toFixed(digits)).toLocaleString("en", { useGrouping: size >= 1e4 })).replace("-", "−");
}
