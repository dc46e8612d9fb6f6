"""An explanation as a table."""

from collections.abc import Iterator, Mapping, Sequence

from kblrn_pyg.data.words import in_words, listing, rank_text
from kblrn_pyg.explain import Reason, Reasons
from kblrn_pyg.plotting.explanation import split_parts
from kblrn_pyg.report.html import Html, Scale, body_words, column, element, table

_MAX_PARTS = 5


def reasons_table(
    reasons: Reasons, side: str, scale: Scale, short: Mapping[str, str]
) -> Html:
    """Returns the parts of a score, those of each expert below their sum."""
    standing = reasons.head_query if side == "head" else reasons.tail_query
    rows = []
    for expert, value in reasons.experts.items():
        detail, note, parts = split_parts(expert, reasons.parts[expert])
        title = f"{expert} expert ({detail})" if detail else f"{expert} expert"
        if not note and expert in standing.without:
            note = f"without it, rank {rank_text(standing.without[expert])}"
        rows.append(_row(scale, value, title, note, "expert"))
        rows += _parts(parts, scale, short)
    header = [column("contribution"), column("reason", is_number=False)]
    caption = f"Why {reasons.head.name}, {reasons.relation.name}, {reasons.tail.name}"
    return table(header, rows, caption, "reasons")


def all_values(reasons: Reasons) -> list[float]:
    """Returns all values that :meth:`reasons_table` may draw."""
    values = list(reasons.experts.values())
    for parts in reasons.parts.values():
        values += [part.contribution for part in parts]
        values.append(sum(part.contribution for part in parts[_MAX_PARTS:]))
    return values


def _parts(
    parts: Sequence[Reason], scale: Scale, short: Mapping[str, str]
) -> Iterator[Html]:
    for part in parts[:_MAX_PARTS]:
        text = "".join(
            word if isinstance(word, str) else short.get(word.identifier, word.name)
            for word in part.words
        )
        words = body_words(text) if part.paths else in_words(text)
        notes = [part.note_text] if part.note else []
        names = [one.name for one in part.middles if one not in part.words]
        if names:
            notes.append(f"x = {listing(names, part.num_paths)}")
        if part.own:
            notes.append("by this fact itself")
        yield _row(scale, part.contribution, words, "; ".join(notes))
    if left := parts[_MAX_PARTS:]:
        total = sum(part.contribution for part in left)
        yield _row(scale, total, f"{len(left):,} more")


def _row(
    scale: Scale, value: float, words: str, note: str = "", kind: str | None = None
) -> Html:
    cell = [words, element("small", note)] if note else [words]
    return element("tr", scale.cell(value), element("td", *cell), class_=kind)
