// Calls of the JSON interface. What was asked before may be asked again for free.

const kept = new Map();
const MOST = 60;

export class Refused extends Error {
  constructor(detail, nearest) {
    super(detail);
    this.nearest = nearest;
  }
}

export async function get(path, query = "") {
  const url = `/api/${path}${query ? `?${query}` : ""}`;
  if (kept.has(url)) return kept.get(url);
  let response;
  try {
    response = await fetch(url);
  } catch {
    throw new Refused("The server does not answer. Is “kblrn serve” still running?", []);
  }
  const isJson = (response.headers.get("content-type") || "").includes("json");
  const found = isJson ? await response.json() : await response.text();
  if (!response.ok) throw new Refused(found.detail || "The server could not answer.", found.nearest || []);
  kept.set(url, found);
  if (kept.size > MOST) kept.delete(kept.keys().next().value);
  return found;
}
