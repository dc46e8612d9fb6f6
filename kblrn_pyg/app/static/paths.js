// The paths between head and tail as a picture: a lane for each reason.

import { cut, signed, svg, wrap } from "./dom.js";
import { toEntity } from "./state.js";

const SIZE = 12;
const LINE = 15;
const TOP = 26;
const MOST_LANES = 6;
const MOST_NAMES = 3;

// Orders the facts of a path from the head to the tail, or returns null if it does not connect them.
export function chainOf(path, head, tail) {
  const nodes = [head];
  const steps = [];
  for (const fact of path) {
    const last = nodes[nodes.length - 1].id;
    if (fact.head.id === last) { nodes.push(fact.tail); steps.push({ relation: fact.relation, toRight: true }); }
    else if (fact.tail.id === last) { nodes.push(fact.head); steps.push({ relation: fact.relation, toRight: false }); }
    else return null;
  }
  return nodes.length > 1 && nodes[nodes.length - 1].id === tail.id ? { nodes, steps } : null;
}

// The reasons that rest on paths from head to tail, the strongest first.
export function lanesOf(found) {
  const lanes = [];
  found.experts.forEach((expert, place) => {
    for (const reason of expert.reasons) {
      const chains = reason.paths.map((path) => chainOf(path, found.head, found.tail)).filter(Boolean);
      if (chains.length) lanes.push({ place, expert, reason, chains });
    }
  });
  return lanes.sort((a, b) => Math.abs(b.reason.contribution) - Math.abs(a.reason.contribution));
}

export function drawPaths(found, width) {
  const all = lanesOf(found);
  if (!all.length) return null;
  const lanes = all.slice(0, MOST_LANES).map((lane) => layOut(lane, width));
  const height = TOP + lanes.reduce((sum, lane) => sum + lane.height, 0) + 6;
  const strongest = Math.max(...lanes.map((lane) => Math.abs(lane.reason.contribution))) || 1;
  const label = `${lanes.length === 1 ? "One path" : `${lanes.length} kinds of paths`} from ${found.head.name} to ${found.tail.name}`;
  const picture = svg("svg", { class: "paths", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label });
  const half = width / 2 - 12;
  picture.append(end(found.head, 4, 0, height, half, "start"), end(found.tail, width - 4, width - 8, height, half, "end"));
  let y = TOP;
  for (const lane of lanes) {
    picture.append(drawLane(lane, y, width, strongest));
    y += lane.height;
  }
  return { picture, left: all.length - lanes.length };
}

function end(thing, x, bar, height, room, anchor) {
  return svg("g", { class: "end" },
    svg("rect", { x: bar, y: 20, width: 8, height: height - 22, rx: 3 }),
    svg("text", { x: anchor === "start" ? 0 : x + 4, y: 13, "text-anchor": anchor, "font-size": 13 }, cut(thing.name, 13.5, room), svg("title", null, thing.name)));
}

function layOut(lane, width) {
  const chain = lane.chains.reduce((a, b) => (b.nodes.length > a.nodes.length ? b : a));
  const boxes = chain.nodes.length - 2;
  const inner = width - 28;
  const box = boxes ? Math.min(inner / (2 * boxes + 0.6), 230) : 0;
  const gap = (inner - boxes * box) / (boxes + 1);
  const names = [];
  for (let i = 1; i <= boxes; i += 1) {
    const things = boxes === 1 ? alike(lane.chains, chain) : [chain.nodes[i]];
    const lines = things.slice(0, MOST_NAMES).map((thing) => ({ thing, text: cut(thing.name, SIZE, box - 14) }));
    const more = boxes === 1 ? lane.reason.num_paths - lines.length : 0;
    if (more > 0) lines.push({ thing: null, text: `and ${more.toLocaleString("en")} more` });
    names.push(lines);
  }
  const labels = chain.steps.map((step) => wrap(step.relation.name, SIZE, gap - 12, 3));
  const above = Math.max(...labels.map((lines) => lines.length)) * LINE + 6;
  const tall = Math.max(0, ...names.map((lines) => lines.length)) * LINE + 10;
  const up = Math.max(above, tall / 2);
  return { ...lane, chain, box, gap, names, labels, up, height: up + Math.max(tall / 2, 16) + 12 };
}

function alike(chains, chain) {
  const things = new Map();
  for (const one of chains) if (one.nodes.length === chain.nodes.length) things.set(one.nodes[1].id, one.nodes[1]);
  return [...things.values()];
}

function drawLane(lane, top, width, strongest) {
  const y = top + lane.up + 4;
  const { contribution } = lane.reason;
  const group = svg("g", { class: `lane e${lane.place % 8}${contribution < 0 ? " minus" : ""}${lane.expert.asked ? "" : " off"}` },
    svg("title", null, `${lane.expert.name}: ${signed(contribution)}`));
  const thick = 1.4 + (2.2 * Math.abs(contribution)) / strongest;
  lane.chain.steps.forEach((step, i) => {
    const left = 14 + i * (lane.box + lane.gap);
    const right = left + lane.gap;
    group.append(arrow(left, right, y, step.toRight, thick));
    lane.labels[i].forEach((line, j) => {
      group.append(svg("text", { x: (left + right) / 2, y: y - 6 - (lane.labels[i].length - 1 - j) * LINE, "text-anchor": "middle", "font-size": SIZE, class: "relation" },
        line, svg("title", null, step.relation.identifier)));
    });
    if (i === 0) group.append(svg("text", { x: (left + right) / 2, y: y + 15, "text-anchor": "middle", "font-size": 11, class: "amount" }, signed(contribution)));
    if (i < lane.names.length) group.append(box(lane.names[i], right, y, lane.box));
  });
  return group;
}

function arrow(left, right, y, toRight, thick) {
  const [tip, back] = toRight ? [right - 2, right - 10] : [left + 2, left + 10];
  return svg("g", { class: "arrow" },
    svg("line", { x1: toRight ? left + 1 : back, x2: toRight ? back : right - 1, y1: y, y2: y, "stroke-width": thick }),
    svg("path", { d: `M${tip} ${y}L${back} ${y - 5}L${back} ${y + 5}Z` }));
}

function box(lines, x, y, width) {
  const tall = lines.length * LINE + 8;
  const group = svg("g", { class: "middle" }, svg("rect", { x, y: y - tall / 2, width, height: tall, rx: 6 }));
  lines.forEach(({ thing, text }, i) => {
    const words = svg("text", { x: x + width / 2, y: y - tall / 2 + 15 + i * LINE, "text-anchor": "middle", "font-size": SIZE }, text);
    if (!thing) { group.append(words); return; }
    words.append(svg("title", null, thing.name));
    group.append(svg("a", { href: toEntity(thing.key), "data-walk": true, "aria-label": `Ask about ${thing.name}` }, words));
  });
  return group;
}
