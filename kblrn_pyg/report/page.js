"use strict";

const order = new Intl.Collator(undefined, { numeric: true });

function compare(one, other, column) {
  const [a, b] = [one, other].map((row) => row.cells[column]);
  return "value" in a.dataset
    ? Number(a.dataset.value) - Number(b.dataset.value)
    : order.compare(a.textContent, b.textContent);
}

function sortBy(table, rows, header) {
  const first = header.dataset.first;
  const second = first === "ascending" ? "descending" : "ascending";
  const next = header.ariaSort === first ? second : first;
  for (const other of table.tHead.rows[0].cells) other.ariaSort = "none";
  header.ariaSort = next;
  const sign = next === "ascending" ? 1 : -1;
  const column = header.cellIndex;
  // Always from the first order, so that ties stand as they stood.
  const sorted = [...rows].sort((a, b) => sign * compare(a, b, column));
  table.tBodies[0].append(...sorted);
}

function filterBy(box, rows) {
  const words = box.value.toLowerCase().split(/\s+/);
  for (const row of rows) {
    const name = row.cells[0].textContent.toLowerCase();
    row.hidden = !words.every((word) => name.includes(word));
  }
  const number = [...rows].filter((row) => !row.hidden).length;
  const [left, all] = [number, rows.length].map((n) => n.toLocaleString("en"));
  document.querySelector(".filter output").textContent = `${left} of ${all}`;
}

const table = document.querySelector("table.relations");
if (table) {
  const rows = [...table.tBodies[0].rows];
  for (const header of table.tHead.rows[0].cells) {
    header.firstChild.addEventListener("click", () => sortBy(table, rows, header));
  }
  const box = document.getElementById("filter");
  box.addEventListener("input", () => filterBy(box, rows));
  box.parentNode.hidden = false;
}

// On paper nothing can be opened.
let closed = [];
window.addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  for (const one of closed) one.open = true;
});
window.addEventListener("afterprint", () => {
  for (const one of closed) one.open = false;
});
