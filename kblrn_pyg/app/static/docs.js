// A plain description of the JSON interface, made of its OpenAPI file.

import { el } from "./dom.js";

const found = await (await fetch("/openapi.json")).json();
const { schemas } = found.components;

const nameOf = (ref) => ref.split("/").pop();

function typeOf(schema) {
  if (!schema) return "";
  if (schema.$ref) return nameOf(schema.$ref);
  if (schema.anyOf) return schema.anyOf.map(typeOf).filter((one) => one !== "null").join(" or ");
  if (schema.enum) return schema.enum.join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  const limits = [schema.minimum !== undefined ? `from ${schema.minimum}` : "", schema.maximum !== undefined ? `to ${schema.maximum}` : ""].filter(Boolean).join(" ");
  return [schema.type, limits].filter(Boolean).join(", ");
}

function table(header, rows) {
  return el("table", null, el("thead", null, el("tr", null, header.map((one) => el("th", { scope: "col" }, one)))),
    el("tbody", null, rows.map((row) => el("tr", null, row.map((cell) => el("td", null, cell))))));
}

function call([path, { get }]) {
  const content = get.responses["200"].content || {};
  const answer = content["application/json"] ? typeOf(content["application/json"].schema) : "text";
  const rows = (get.parameters || []).map((one) => [el("code", null, one.name), typeOf(one.schema), one.required ? "needed" : one.schema.default === undefined ? "" : `${one.schema.default === "" ? "empty" : one.schema.default}`, one.description || ""]);
  return el("section", null, el("h2", null, el("code", null, `GET ${path}`)), el("p", null, get.description), el("p", { class: "soft" }, `Returns ${answer}.`),
    rows.length ? table(["parameter", "type", "default", "about"], rows) : null);
}

function schema([name, one]) {
  const rows = Object.entries(one.properties || {}).map(([key, value]) => [el("code", null, key), typeOf(value), value.description || ""]);
  return el("section", { id: name }, el("h2", null, name), el("p", null, one.description || ""), table(["field", "type", "about"], rows));
}

document.getElementById("calls").append(...Object.entries(found.paths).map(call), el("h1", null, "What is returned"), ...Object.entries(schemas).filter(([name]) => !/Validation/.test(name)).map(schema));
