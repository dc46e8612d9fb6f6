// A text field with a list of suggestions, usable by keyboard and by screen readers.

import { el } from "./dom.js";

export class Combobox {
  // 'suggest' returns groups, {title, options: [{label, note, value}]}; 'choose' takes a value.
  constructor(input, suggest, choose) {
    this.input = input;
    this.suggest = suggest;
    this.choose = choose;
    this.options = [];
    this.at = -1;
    this.turn = 0;
    this.list = el("div", { class: "suggestions", role: "listbox", id: `${input.id}-list`, "aria-label": `Suggestions for ${input.id}`, hidden: true });
    input.after(this.list);
    for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-expanded", "false"], ["aria-controls", this.list.id]]) {
      input.setAttribute(name, value);
    }
    input.addEventListener("input", () => this.open(input.value));
    input.addEventListener("focus", () => { input.select(); this.open(""); });
    input.addEventListener("click", () => { if (this.list.hidden) this.open(""); });
    input.addEventListener("blur", () => this.close());
    input.addEventListener("keydown", (event) => this.key(event));
    // A press on the list must not take the focus from the field.
    this.list.addEventListener("pointerdown", (event) => event.preventDefault());
  }

  async open(letters) {
    const turn = ++this.turn;
    let groups = [];
    try {
      groups = await this.suggest(letters);
    } catch {
      groups = [];
    }
    // A later key, or leaving the field, has made this answer old.
    if (turn !== this.turn || document.activeElement !== this.input) return;
    this.show(groups, letters);
  }

  show(groups, letters) {
    this.options = [];
    this.at = -1;
    const parts = groups.filter((group) => group.options.length).map((group, g) => {
      const id = `${this.list.id}-group-${g}`;
      const rows = group.options.map((option) => {
        const row = el("div", { role: "option", id: `${this.list.id}-${this.options.length}`, "aria-selected": "false", title: option.title },
          el("span", { class: "label" }, option.label), option.note ? el("span", { class: "note" }, option.note) : null);
        const place = this.options.length;
        row.addEventListener("click", () => this.take(place));
        this.options.push({ row, value: option.value });
        return row;
      });
      return el("div", { role: "group", "aria-labelledby": group.title ? id : null },
        group.title ? el("div", { class: "group", id, role: "presentation" }, group.title) : null, rows);
    });
    if (!parts.length && letters.trim()) parts.push(el("div", { class: "nothing" }, "Nothing has these letters."));
    this.list.replaceChildren(...parts);
    this.list.hidden = !parts.length;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    if (letters.trim() && this.options.length) this.mark(0);
  }

  mark(place) {
    if (this.at >= 0) this.options[this.at].row.setAttribute("aria-selected", "false");
    this.at = place;
    if (place < 0) {
      this.input.removeAttribute("aria-activedescendant");
      return;
    }
    const { row } = this.options[place];
    row.setAttribute("aria-selected", "true");
    row.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", row.id);
  }

  key(event) {
    const last = this.options.length - 1;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (this.list.hidden) this.open("");
      else if (last >= 0) this.mark(event.key === "ArrowDown" ? (this.at >= last ? 0 : this.at + 1) : (this.at <= 0 ? last : this.at - 1));
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (this.at >= 0) this.take(this.at);
    } else if (event.key === "Escape" && !this.list.hidden) {
      event.preventDefault();
      this.close();
    }
  }

  take(place) {
    const { value } = this.options[place];
    this.close();
    this.choose(value);
  }

  close() {
    this.turn += 1;
    this.list.hidden = true;
    this.mark(-1);
    this.options = [];
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }
}
