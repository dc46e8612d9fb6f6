// From the address of the page to what it shows.

import { aboutEntity } from "./about.js";
import { aloneCards, answerRow, expertChips, fullBar, glide, placesOf, sentence } from "./answers.js";
import { get } from "./api.js";
import { Combobox } from "./combobox.js";
import { count, el } from "./dom.js";
import { showReasons } from "./reasons.js";
import { address, asked, read, toEntity, toQuestion } from "./state.js";

const main = document.getElementById("main");
const about = document.getElementById("about");
const status = document.getElementById("status");
const fields = { entity: document.getElementById("entity"), relation: document.getElementById("relation") };
let info = null;
let page = null; // of the entity that is shown
let shown = ""; // the question whose toolbar is there
let turn = 0;

function go(href) {
  if (href !== location.pathname + location.search) history.pushState(null, "", href);
  render();
}

async function render() {
  const mine = ++turn;
  const state = read();
  main.setAttribute("aria-busy", "true");
  try {
    info ??= await get("model");
    document.getElementById("title").textContent = info.title;
    document.getElementById("sizes").textContent = `${count(info.num_entities)} entities · ${count(info.num_relations)} relations · ${count(info.num_facts)} facts`;
    // Both at once, though one does not need the other.
    const [entity, found] = await Promise.all([
      state.entity ? get("entity", new URLSearchParams({ entity: state.entity })) : null,
      state.entity && state.relation ? get("answers", asked(state, { k: state.k, ...(state.novel ? { novel: true } : {}) })) : null,
    ]);
    if (mine !== turn) return;
    page = entity;
    showFields(state, found);
    showAbout(state);
    if (found) await showAnswers(state, found, mine);
    else if (page) showQuestions(state);
    else showWelcome();
  } catch (error) {
    if (mine === turn) showProblem(error);
  } finally {
    if (mine === turn) main.removeAttribute("aria-busy");
  }
}

function showFields(state, found) {
  fields.entity.value = page ? page.entity.name : "";
  fields.relation.disabled = !page;
  fields.relation.placeholder = page ? "Choose a relation" : "Choose an entity first";
  fields.relation.value = found ? (state.side === "head" ? `? ${found.question.relation.name}` : `${found.question.relation.name} ?`) : "";
}

function showAbout(state) {
  about.hidden = !page || !state.relation;
  about.replaceChildren(...(about.hidden ? [] : aboutEntity(page, state)));
}

function showWelcome() {
  shown = "";
  document.title = `Ask ${info.title}`;
  status.textContent = "";
  const examples = info.examples.map((one) => el("li", null, el("a", { class: "example", href: toQuestion(one.entity.key, one.relation.key, one.side), "data-walk": true }, sentence(one).map((part) => (part.tagName === "A" ? el("span", { class: "given" }, part.textContent) : part)))));
  main.replaceChildren(el("section", { class: "welcome" },
    el("h1", null, "Ask what the knowledge base does not say"),
    el("p", null, "Type an entity, choose a relation, and read which answers the model considers likely, how sure it is, and why."),
    el("h2", null, "Try one of these"), el("ul", { class: "examples" }, examples)));
}

function showQuestions(state) {
  shown = "";
  document.title = `${page.entity.name} – ${info.title}`;
  status.textContent = `${page.entity.name}: choose a relation`;
  main.replaceChildren(el("div", { class: "entity" }, aboutEntity(page, state)));
}

async function showAnswers(state, found, mine) {
  const question = `${state.entity} ${state.relation} ${state.side}`;
  if (question !== shown) main.replaceChildren(...frame(found));
  shown = question;
  showToolbar(state, found);
  const list = main.querySelector("ol.answers");
  const before = placesOf(list);
  const full = fullBar(found.answers);
  const context = { state, info, total: found.experts, full };
  main.querySelector(".measure").textContent = `A full bar is a probability of ${Number((100 * full).toPrecision(3))}\u00a0% (${found.measure}). Its colours share it among the experts, by what each adds above the average entity.`;
  const rows = found.answers.map((row) => answerRow(row, context));
  const listed = found.answers.some((row) => row.entity.key === state.open);
  const kept = list.contains(document.activeElement) ? document.activeElement.closest("li")?.dataset.key : null;
  list.replaceChildren(...rows);
  glide(list, before);
  if (kept) rows.find((row) => row.dataset.key === kept)?.querySelector(".opener").focus();
  const best = found.answers[0];
  document.title = `${found.question.entity.name}, ${found.question.relation.name} – ${info.title}`;
  status.textContent = best ? `${found.answers.length} answers, the first is ${best.entity.name}` : "No answers";
  const [alone] = await Promise.all([
    info.experts.length > 1 ? get("alone", new URLSearchParams({ entity: state.entity, relation: state.relation, side: state.side, ...(state.novel ? { novel: true } : {}) })) : null,
    state.open ? showWhy(state, list, listed, mine) : null,
  ]);
  if (mine === turn && alone) main.querySelector(".more").replaceChildren(aloneCards(alone, info, state));
}

async function showWhy(state, list, listed, mine) {
  const found = await get("explanation", asked(state, { answer: state.open }));
  if (mine !== turn) return;
  const place = el("div", { class: "why-panel", role: "region", "aria-label": `Why ${found.answer.name}` });
  if (listed) [...list.children].find((item) => item.dataset.key === state.open).append(place);
  else {
    const name = el("div", { class: "row" }, el("span", { class: "rank" }, count(Math.round(found.rank))), el("div", { class: "name" }, el("a", { class: "opener", role: "button", "aria-expanded": "true", href: address({ ...state, open: null }), "data-walk": true }, found.answer.name)));
    list.append(el("li", { class: "open far", "data-key": state.open }, name, place));
  }
  place.append(showReasons(found, place.clientWidth));
}

function frame(found) {
  return [
    el("h1", { class: "question" }, sentence(found.question)),
    el("div", { class: "toolbar" }),
    el("p", { class: "soft measure" }),
    el("ol", { class: "answers" }),
    el("p", { class: "after" }),
    el("div", { class: "more" }),
  ];
}

function showToolbar(state, found) {
  const toolbar = main.querySelector(".toolbar");
  const focus = toolbar.contains(document.activeElement) ? document.activeElement.dataset.expert || document.activeElement.id : null;
  const novel = el("input", { type: "checkbox", id: "novel", checked: state.novel });
  novel.addEventListener("change", () => go(address({ ...state, novel: novel.checked, open: null })));
  toolbar.replaceChildren(
    info.experts.length > 1 ? expertChips(info, state, (name) => switchExpert(state, name)) : el("span"),
    el("label", { class: "check" }, novel, found.num_known ? `hide ${count(found.num_known)} known` : "hide known"),
    el("span", { class: "copies" }, el("button", { type: "button", id: "copy-csv", onclick: (event) => copyTable(state, event.target) }, "Copy CSV"),
      el("button", { type: "button", id: "copy-link", onclick: (event) => copy(location.href, event.target) }, "Copy link")));
  if (focus) [...toolbar.querySelectorAll("button, input")].find((one) => one.dataset.expert === focus || one.id === focus)?.focus();
  const more = state.k < 200 && found.answers.length === state.k;
  main.querySelector(".after").replaceChildren(...(more ? [el("a", { class: "button", href: address({ ...state, k: Math.min(state.k + 20, 200) }), "data-walk": true }, "More answers")] : []));
}

function switchExpert(state, name) {
  const all = info.experts.map((expert) => expert.name);
  const now = state.experts || all;
  const next = now.includes(name) ? now.filter((one) => one !== name) : all.filter((one) => now.includes(one) || one === name);
  if (!next.length) {
    status.textContent = "At least one expert must be asked.";
    return;
  }
  go(address({ ...state, experts: next.length === all.length ? null : next }));
}

async function copyTable(state, button) {
  const query = asked(state, { k: state.k, ...(state.novel ? { novel: true } : {}) });
  copy(await get("answers.csv", query), button, `/api/answers.csv?${query}`);
}

async function copy(text, button, instead) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    status.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed to copy";
    if (instead) open(instead, "_blank", "noopener");
  }
  setTimeout(() => { button.textContent = before; }, 1500);
}

function showProblem(error) {
  shown = "";
  about.hidden = true;
  const told = error.message || "something went wrong";
  const words = `${told[0].toUpperCase()}${told.slice(1)}${/[.?!]$/.test(told) ? "" : "."}`;
  status.textContent = words;
  const nearest = (error.nearest || []).map((one) => el("li", null, el("a", { href: toEntity(one.key), "data-walk": true }, one.name)));
  main.replaceChildren(el("section", { class: "problem" }, el("h1", null, "That did not work"), el("p", null, words),
    nearest.length ? [el("p", null, "Did you mean one of these?"), el("ul", null, nearest)] : el("p", null, el("a", { href: "/", "data-walk": true }, "Begin again"))));
}

async function suggestEntities(letters) {
  if (!letters.trim()) return [];
  const found = await get("entities", new URLSearchParams({ q: letters.slice(0, 200), limit: 12 }));
  return [{ options: found.map((one) => ({ label: one.name, note: `${count(one.num_facts)} facts`, title: one.identifier, value: one.key })) }];
}

async function suggestRelations(letters) {
  if (!page) return [];
  const wanted = letters.toLowerCase().replaceAll("?", "").trim();
  const has = (one) => `${one.relation.name} ${one.relation.identifier}`.toLowerCase().includes(wanted);
  const option = (one, note) => ({ label: one.side === "head" ? `? ${one.relation.name}` : `${one.relation.name} ?`, note, title: one.relation.identifier, value: one });
  const known = page.relations.filter((one) => one.num_known && has(one));
  const likely = page.relations.filter((one) => !one.num_known && has(one));
  const there = new Set(page.relations.map((one) => `${one.relation.id} ${one.side}`));
  const others = wanted ? await get("relations", new URLSearchParams({ q: wanted.slice(0, 200), limit: 20 })) : [];
  const rest = others.flatMap((relation) => ["tail", "head"].map((side) => ({ relation, side }))).filter((one) => !there.has(`${one.relation.id} ${one.side}`));
  return [
    { title: "Known of it", options: known.map((one) => option(one, `${count(one.num_known)} known`)) },
    { title: "Others like it have", options: likely.map((one) => option(one, "")) },
    { title: "Other relations", options: rest.map((one) => option(one, "")) },
  ];
}

new Combobox(fields.entity, suggestEntities, (key) => {
  go(toEntity(key));
  fields.entity.blur();
});
new Combobox(fields.relation, suggestRelations, (one) => {
  go(toQuestion(page.entity.key, one.relation.key, one.side));
  fields.relation.blur();
});
document.getElementById("ask").addEventListener("submit", (event) => event.preventDefault());
addEventListener("popstate", render);
addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-walk]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const before = read();
  go(link.getAttribute("href"));
  const after = read();
  if (before.entity !== after.entity || before.relation !== after.relation || before.side !== after.side) scrollTo(0, 0);
});
// A link that acts as a button obeys the space bar, too.
addEventListener("keydown", (event) => {
  if (event.key === " " && event.target.matches?.("a[role=button]")) {
    event.preventDefault();
    event.target.click();
  }
});
let last = innerWidth;
addEventListener("resize", () => {
  if (Math.abs(innerWidth - last) > 40 && read().open) { last = innerWidth; render(); }
});
render();
