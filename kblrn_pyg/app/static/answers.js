// The question, the experts to ask, and the list of answers.

import { count, el, percent, signed } from "./dom.js";
import { address, toEntity } from "./state.js";

// That the triple is true, if the model is calibrated, or else the share of the softmax.
export const probabilityOf = (row) => row.calibrated ?? row.probability;

export function sentence(question) {
  const given = el("a", { href: toEntity(question.entity.key), "data-walk": true, class: "given" }, question.entity.name);
  const asked = el("span", { class: "asked" }, "?");
  const relation = el("span", { class: "relation", title: question.relation.identifier }, question.relation.name);
  return question.side === "head" ? [asked, relation, given] : [given, relation, asked];
}

export function expertChips(info, state, change) {
  const on = (name) => !state.experts || state.experts.includes(name);
  return el("div", { class: "chips", role: "group", "aria-label": "Experts that are asked" }, info.experts.map((expert, place) =>
    el("button", { type: "button", class: `expert e${place % 8}`, "aria-pressed": String(on(expert.name)), "data-expert": expert.name, title: `${expert.name}: ${expert.description}`, onclick: () => change(expert.name) },
      el("span", { class: `dot e${place % 8}` }), expert.name)));
}

export function answerRow(row, context) {
  const { state } = context;
  const isOpen = state.open === row.entity.key;
  const moved = row.rank_of_all - row.rank;
  return el("li", { "data-key": row.entity.key, class: isOpen ? "open" : null },
    el("div", { class: "row" },
      el("span", { class: "rank" }, count(row.rank), state.experts && moved ? el("small", { class: moved > 0 ? "up" : "down", title: `with all experts, rank ${count(row.rank_of_all)}` }, `${moved > 0 ? "▲" : "▼"}${count(Math.abs(moved))}`) : null),
      el("div", { class: "name" },
        el("a", { class: "opener", href: address({ ...state, open: isOpen ? null : row.entity.key }), "data-walk": true, role: "button", "aria-expanded": String(isOpen) }, row.entity.name),
        row.known ? el("span", { class: "chip known" }, "known") : null),
      el("a", { class: "walk", href: toEntity(row.entity.key), "data-walk": true, "aria-label": `Ask about ${row.entity.name}`, title: "Ask about it" }, "→"),
      el("div", { class: "probability" }, bar(row, context), el("span", { class: "number" }, percent(probabilityOf(row))))));
}

// The probability of a full bar: the next round number above the highest one.
export function fullBar(rows) {
  const most = Math.max(...rows.map(probabilityOf), 1e-6);
  return [1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5].find((one) => one >= most) || 1;
}

// As long as the answer is probable, in the colours of the experts that lift it.
function bar(row, { info, total, full }) {
  const lifts = info.experts.map((expert, place) => ({ name: expert.name, place, lift: total.includes(expert.name) ? row.lifts[expert.name] : 0 }));
  const sum = lifts.reduce((all, one) => all + Math.max(one.lift, 0), 0);
  const told = lifts.filter((one) => total.includes(one.name)).map((one) => `${one.name} ${signed(one.lift)}`).join(", ");
  return el("span", { class: "track", role: "img", "aria-label": `${percent(probabilityOf(row))}: ${told}`, title: `above the average entity: ${told}` },
    el("span", { class: "filled", style: { width: `${Math.max((100 * probabilityOf(row)) / full, 0.4)}%` } },
      lifts.filter((one) => one.lift > 0).map((one) => el("span", { class: `e${one.place % 8}`, style: { width: `${(100 * one.lift) / sum}%` } }))));
}

export function aloneCards(found, info, state) {
  const cards = found.map((one, place) => el("div", { class: "card" },
    el("h4", null, el("span", { class: `dot e${place % 8}` }), one.expert),
    one.speaks ? el("ol", null, one.answers.map((row) => el("li", null,
      el("a", { href: address({ ...state, open: row.entity.key }), "data-walk": true }, row.entity.name), " ", el("span", { class: "soft" }, percent(probabilityOf(row))))))
      : el("p", { class: "soft" }, "knows nothing about this relation")));
  return el("section", { class: "alone", "aria-labelledby": "alone" }, el("h3", { id: "alone" }, "What each expert alone would answer"), el("div", { class: "cards" }, cards));
}

// Lets rows glide from where they were before to where they are now.
export function glide(list, before) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const item of list.children) {
    const from = before.get(item.dataset.key);
    const shift = from === undefined ? 0 : from - item.offsetTop;
    if (from === undefined) item.animate([{ opacity: 0 }, { opacity: 1 }], { duration: 250 });
    else if (shift) item.animate([{ transform: `translateY(${shift}px)` }, { transform: "none" }], { duration: 300, easing: "ease-out" });
  }
}

export const placesOf = (list) => new Map([...(list?.children || [])].map((item) => [item.dataset.key, item.offsetTop]));
