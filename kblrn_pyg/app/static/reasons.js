// Why an answer scores as it does.

import { count, el, percent, rank, signed } from "./dom.js";
import { drawHistogram } from "./histogram.js";
import { drawPaths } from "./paths.js";
import { toEntity } from "./state.js";

const MOST_SHOWN = 5;

export function showReasons(found, width) {
  const largest = Math.max(0.001, ...found.experts.map((expert) => Math.abs(expert.score)));
  const drawn = drawPaths(found, Math.min(width, 860));
  const order = found.experts.map((expert, place) => ({ ...expert, place })).sort((a, b) => b.asked - a.asked || Math.abs(b.score) - Math.abs(a.score));
  const silent = order.filter((expert) => Math.abs(expert.score) < 0.0005 && !expert.histograms.length);
  return el("div", { class: "reasons" },
    el("p", { class: "summary" }, `Rank ${rank(found.rank)} of ${count(found.num_candidates)} candidates, ${percent(found.calibrated ?? found.probability)}, score ${signed(found.score)}. `,
      found.known ? el("span", { class: "chip" }, "a known fact") : "Not a known fact.",
      el("small", null, " Ranks leave other known answers out.")),
    summary(order, largest),
    el("p", { class: "soft" }, "In the reasons below, ", el("b", null, "h"), ` is ${found.head.name} and `, el("b", null, "t"), ` is ${found.tail.name}.`),
    drawn ? el("section", null, el("h4", null, "Paths"), el("div", { class: "picture" }, drawn.picture),
      drawn.left ? el("p", { class: "soft" }, `and ${count(drawn.left)} weaker kinds of paths`) : null) : null,
    order.filter((expert) => !silent.includes(expert)).map((expert) => block(expert, largest, Math.min(width, 460))),
    silent.length ? el("p", { class: "soft" }, `Nothing to say here: ${silent.map((expert) => expert.name).join(", ")}.`) : null);
}

function summary(order, largest) {
  const row = (expert) => el("tr", { class: expert.asked ? null : "off" },
    el("th", { scope: "row" }, el("span", { class: `dot e${expert.place % 8}` }), expert.name, expert.asked ? "" : " (off)"),
    el("td", { class: "wide" }, diverging(expert.score, largest, `e${expert.place % 8}`)),
    el("td", { class: "number" }, signed(expert.score)),
    el("td", { class: "number" }, rank(expert.rank_alone)),
    el("td", { class: "number" }, expert.rank_without === null ? "–" : rank(expert.rank_without)));
  return el("table", null,
    el("caption", { class: "unseen" }, "What each expert adds"),
    el("thead", null, el("tr", null, ["expert", "", "adds", "rank alone", "rank without"].map((title, i) =>
      el("th", { scope: "col", class: i > 1 ? "number" : i === 1 ? "wide" : null }, title || el("span", { class: "unseen" }, "bar"))))),
    el("tbody", null, order.map(row)));
}

// A bar to the right of the middle, or to the left if it is negative.
function diverging(value, largest, colour) {
  const size = `${(50 * Math.min(Math.abs(value) / largest, 1)).toFixed(2)}%`;
  const bar = el("span", { class: `fill ${colour}`, style: { width: size, [value < 0 ? "right" : "left"]: "50%" } });
  return el("span", { class: "diverging", "aria-hidden": "true" }, bar);
}

function block(expert, largest, width) {
  const shown = expert.reasons.filter((reason) => reason.words.length);
  const first = shown.slice(0, MOST_SHOWN);
  const others = shown.slice(MOST_SHOWN);
  const rest = expert.num_reasons - expert.reasons.length;
  const colour = `e${expert.place % 8}`;
  const row = (reason) => reasonRow(reason, largest, colour);
  return el("section", { class: expert.asked ? null : "off" },
    el("h4", null, el("span", { class: `dot ${colour}` }), `${expert.name}${expert.asked ? "" : " (off)"} `, el("span", { class: "amount" }, signed(expert.score))),
    expert.histograms.length
      ? el("div", { class: `figures ${colour}` }, expert.histograms.map((one) => drawHistogram(one, width)))
      : el("ul", { class: "parts" }, first.map(row)),
    expert.histograms.length ? el("ul", { class: "parts" }, first.map(row)) : null,
    others.length ? el("details", null, el("summary", null, `${count(others.length + rest)} more`), el("ul", { class: "parts" }, others.map(row),
      rest > 0 ? el("li", null, el("span", { class: "soft" }, `${count(rest)} others, together ${signed(expert.rest)}`)) : null)) : null);
}

function reasonRow(reason, largest, colour) {
  const { support, body } = reason.details;
  const hasCounts = Number.isFinite(support) && Number.isFinite(body) && body > 0;
  const middles = namesOf(reason);
  return el("li", { class: reason.contribution < 0 ? "minus" : null },
    el("span", { class: "amount" }, signed(reason.contribution)),
    diverging(reason.contribution, largest, colour),
    el("div", { class: "why" },
      el("span", { class: "body" }, words(reason.words)),
      hasCounts ? el("span", { class: "counts" },
        el("span", { class: "meter", "aria-hidden": "true" }, el("span", { style: { width: `${(100 * support) / body}%` } })),
        `holds for ${count(support)} of ${count(body)}`) : reason.note.length ? el("span", { class: "counts" }, words(reason.note)) : null,
      middles, reason.own ? el("span", { class: "chip" }, "by this fact itself") : null));
}

// What stands for x in a body.
function namesOf(reason) {
  const named = new Set(reason.words.map((word) => word.key));
  const things = new Map();
  for (const path of reason.paths) {
    if (path.length < 2) continue;
    const seen = path.flatMap((fact) => [fact.head, fact.tail]);
    for (const thing of seen) if (seen.filter((one) => one.id === thing.id).length > 1 && !named.has(thing.key)) things.set(thing.id, thing);
  }
  if (!things.size) return null;
  const links = [...things.values()].slice(0, 3).map((thing, i) => [i ? ", " : "", link(thing.key, thing.name)]);
  const more = reason.num_paths - Math.min(things.size, 3);
  return el("span", { class: "counts" }, "x = ", links, more > 0 ? ` and ${count(more)} more` : "");
}

function words(list) {
  return list.map((word) => (word.kind === "entity" ? link(word.key, word.text) : word.kind === "relation" ? el("b", null, word.text) : word.text));
}

const link = (key, name) => el("a", { href: toEntity(key), "data-walk": true }, name);
