// What is known of an entity, and what can be asked about it.

import { count, el, percent } from "./dom.js";
import { toEntity, toQuestion } from "./state.js";

const MOST_LIKELY = 12;

export function aboutEntity(page, state) {
  const known = page.relations.filter((one) => one.num_known);
  const likely = page.relations.filter((one) => !one.num_known);
  return [
    el("h2", null, page.entity.name),
    el("p", { class: "soft identifier" }, page.entity.identifier === page.entity.name ? "" : `${page.entity.identifier} · `, `${count(page.entity.num_facts)} known facts`),
    page.numbers.length ? el("dl", { class: "numbers" }, page.numbers.map((one) => el("div", null, el("dt", null, one.attribute), el("dd", null, one.text)))) : null,
    el("p", { class: "soft hint" }, "“relation ?” asks what it points to, “? relation” what points to it."),
    group("Known of it", known, page, state),
    group("Others like it have", likely.slice(0, MOST_LIKELY), page, state),
  ].filter(Boolean);
}

function group(title, relations, page, state) {
  if (!relations.length) return null;
  return el("section", null, el("h3", null, title), el("ul", { class: "slots" }, relations.map((one) => slot(one, page, state))));
}

function slot(one, page, state) {
  const isAsked = state.relation === one.relation.key && state.side === one.side;
  const more = one.num_known - one.neighbours.length;
  return el("li", null,
    el("a", { class: "slot", href: toQuestion(page.entity.key, one.relation.key, one.side), "data-walk": true, "aria-current": isAsked ? "true" : null, title: one.relation.identifier },
      direction(one), el("span", { class: "tail" }, one.num_known ? count(one.num_known) : percent(one.likely))),
    one.neighbours.length ? el("p", { class: "near" }, one.neighbours.slice(0, 3).map((thing, i) => [i ? ", " : "", el("a", { href: toEntity(thing.key), "data-walk": true }, thing.name)]),
      one.num_known > 3 ? ` and ${count(one.num_known - 3)} more` : "") : null);
}

export function direction(one) {
  return one.side === "head" ? el("span", { class: "words" }, el("i", null, "? "), one.relation.name) : el("span", { class: "words" }, one.relation.name, el("i", null, " ?"));
}
