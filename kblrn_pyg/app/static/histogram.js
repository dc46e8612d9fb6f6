// A number of the asked pair against those of all training triples of the relation.

import { count, el, short, signed, svg } from "./dom.js";

const HIGH = 130;
const BELOW = 18;
const ABOVE = 18;

export function drawHistogram(one, width) {
  const inner = width - 12;
  const [low, high] = [one.edges[0], one.edges[one.edges.length - 1]].map((x) => place(x, one.is_log));
  const x = (value) => 6 + (inner * (place(value, one.is_log) - low)) / (high - low || 1);
  const most = Math.max(1, ...one.counts);
  const bars = one.counts.map((number, i) => svg("rect", {
    class: "column", x: x(one.edges[i]), width: Math.max(x(one.edges[i + 1]) - x(one.edges[i]) - 0.7, 0.5),
    y: ABOVE + HIGH * (1 - number / most), height: (HIGH * number) / most,
  }, svg("title", null, `${short(one.edges[i])} to ${short(one.edges[i + 1])}: ${count(number)} triples`)));
  const bottom = Math.min(0, ...one.curve_y);
  const top = Math.max(0, ...one.curve_y);
  const y = (value) => ABOVE + HIGH * (1 - (value - bottom) / (top - bottom || 1));
  const points = one.curve_x.map((value, i) => `${x(value).toFixed(1)},${y(one.curve_y[i]).toFixed(1)}`).join(" ");
  const words = describe(one);
  const picture = svg("svg", { class: "histogram", viewBox: `0 0 ${width} ${HIGH + ABOVE + BELOW}`, width, height: HIGH + ABOVE + BELOW, role: "img", "aria-label": words },
    bars, bottom < 0 ? svg("line", { class: "zero", x1: 6, x2: width - 6, y1: y(0), y2: y(0) }) : null, svg("polyline", { class: "curve", points }),
    svg("line", { class: "axis", x1: 6, x2: width - 6, y1: ABOVE + HIGH, y2: ABOVE + HIGH }),
    ticks(one, low, high).map((tick, i, all) => svg("text", { x: x(tick), y: HIGH + ABOVE + 14, "font-size": 11, "text-anchor": i === 0 ? "start" : i === all.length - 1 ? "end" : "middle" }, short(tick))),
    marker(one, x, width));
  return el("figure", null,
    el("figcaption", null, el("b", null, one.attribute.replaceAll("_", " ")), `, ${one.compared} `, el("span", { class: "amount" }, signed(one.contribution))),
    picture,
    el("p", { class: "legend" }, el("span", { class: "key column" }), `${count(one.num_triples)} training triples`, el("span", { class: "key curve" }), "what the expert adds",
      one.num_outside ? ` · ${count(one.num_outside)} outside the picture` : ""));
}

const place = (value, isLog) => (isLog ? Math.log(Math.max(value, 1e-300)) : value);

function ticks(one, low, high) {
  const at = [0, 0.25, 0.5, 0.75, 1].map((part) => low + part * (high - low));
  return one.is_log ? at.map(Math.exp) : at;
}

function marker(one, x, width) {
  if (one.value === null) return null;
  const at = Math.min(Math.max(x(one.value), 6), width - 6);
  const outside = Math.abs(at - x(one.value)) > 0.5;
  const anchor = at < width * 0.25 ? "start" : at > width * 0.75 ? "end" : "middle";
  return svg("g", { class: "marker" },
    svg("line", { x1: at, x2: at, y1: ABOVE, y2: ABOVE + HIGH }),
    svg("text", { x: at, y: 12, "font-size": 12, "text-anchor": anchor }, `this pair: ${short(one.value)}${outside ? (one.value > one.edges[0] ? " →" : " ←") : ""}`));
}

function describe(one) {
  const value = one.value === null ? "of this pair, a number is unknown" : `this pair has ${short(one.value)}`;
  return `Histogram of ${one.attribute}, ${one.compared}, for ${count(one.num_triples)} triples; ${value}`;
}
