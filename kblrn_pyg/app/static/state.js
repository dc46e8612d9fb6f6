// What the page shows is in its address, so that links, back and forward work.

export function read(address = location.search) {
  const query = new URLSearchParams(address);
  const experts = query.get("experts");
  return {
    entity: query.get("entity"),
    relation: query.get("relation"),
    side: query.get("side") === "head" ? "head" : "tail",
    experts: experts === null ? null : experts.split(","),
    novel: query.get("novel") === "1",
    k: Math.min(Math.max(Number.parseInt(query.get("k"), 10) || 10, 1), 200),
    open: query.get("open"),
  };
}

export function address(state) {
  const query = new URLSearchParams();
  if (state.entity) query.set("entity", state.entity);
  if (state.entity && state.relation) {
    query.set("relation", state.relation);
    if (state.side === "head") query.set("side", "head");
    if (state.experts) query.set("experts", state.experts.join(","));
    if (state.novel) query.set("novel", "1");
    if (state.k && state.k !== 10) query.set("k", state.k);
    if (state.open) query.set("open", state.open);
  }
  const text = query.toString();
  return text ? `/?${text}` : "/";
}

// The part of the state that decides what is asked, for the interface.
export function asked(state, more = {}) {
  const query = new URLSearchParams({ entity: state.entity, relation: state.relation, side: state.side, ...more });
  if (state.experts) query.set("experts", state.experts.join(","));
  return query;
}

export const toEntity = (key) => address({ entity: key });
export const toQuestion = (entity, relation, side) => address({ entity, relation, side });
