"""Explanations as text."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kblrn_pyg.data.words import listing, rank_text, signed
from kblrn_pyg.frames import html_table
from kblrn_pyg.table import format_table

if TYPE_CHECKING:
    from kblrn_pyg.explain.reasons import Reason, Reasons

_INDENT = " " * 9  # as wide as a contribution
_STANDINGS = ("", "(h, r, ?)", "(?, r, t)")


def to_text(reasons: "Reasons", max_parts: int) -> str:
    """Returns the reasons as text; see :meth:`Reasons.to_text`."""
    if max_parts < 0:
        raise ValueError(f"'max_parts' must not be negative (got {max_parts})")
    head, tail = reasons.head.name, reasons.tail.name
    lines = [f"{reasons.relation.name}(h, t) for h = {head}, t = {tail}"]
    known = "in the knowledge base" if reasons.known else "not in the knowledge base"
    lines += [f"score {signed(reasons.score)}, {known}"]
    num_own = sum(part.own for parts in reasons.parts.values() for part in parts)
    if num_own:
        lines += [
            f"the fact is its own evidence: without it, {num_own} of the reasons "
            f"would not hold ({signed(reasons.own_evidence)}); training leaves that "
            "out"
        ]
    lines += ["", _standings(reasons)]
    width = max(10, *map(len, reasons.parts)) + 2
    for expert, score in reasons.experts.items():
        lines += ["", f"{expert:<{width}}{signed(score)}"]
        lines += _parts(reasons.parts[expert], max_parts)
    return "\n".join(lines)


def to_html(reasons: "Reasons", max_parts: int = 10) -> str:
    """Returns the reasons as tables of HTML, whose text is escaped."""
    head, tail = reasons.head.name, reasons.tail.name
    known = "in the knowledge base" if reasons.known else "not in the knowledge base"
    title = f"{reasons.relation.name}({head}, {tail}): {signed(reasons.score)}, {known}"
    rows = [
        [expert, signed(part.contribution), part.text, part.note_text]
        for expert in reasons.experts
        for part in reasons.parts[expert][:max_parts]
    ]
    parts = html_table(["expert", "adds", "reason", "note"], rows, title)
    return parts + html_table(_STANDINGS, _standing_rows(reasons))


def _standings(reasons: "Reasons") -> str:
    return format_table(_STANDINGS, _standing_rows(reasons))


def _standing_rows(reasons: "Reasons") -> list[list[str]]:
    both = (reasons.tail_query, reasons.head_query)
    rows = [
        ["probability", *(f"{one.probability:.3g}" for one in both)],
        ["rank", *(rank_text(one.rank) for one in both)],
    ]
    for expert in reasons.tail_query.without:
        ranks = (rank_text(one.without[expert]) for one in both)
        rows += [[f"rank without {expert}", *ranks]]
    return rows + [["candidates", *(f"{one.num_candidates:,}" for one in both)]]


def _parts(parts: Sequence["Reason"], max_parts: int) -> Iterator[str]:
    for part in parts[:max_parts]:
        own = "   (by this fact itself)" if part.own else ""
        contribution = signed(part.contribution).rjust(len(_INDENT) - 2)
        yield f"{contribution}  {part.text}{own}"
        if part.note:
            yield f"{_INDENT}  {part.note_text}"
        # Only paths with a middle are ever left out.
        num_left = part.num_paths - len(part.paths)
        # What the part itself names is not named once more.
        names = [one.name for one in part.middles if one not in part.words]
        if names or num_left:
            yield f"{_INDENT}  x = {listing(names, len(names) + num_left)}"
    left = parts[max_parts:]
    if left:
        together = signed(math.fsum(part.contribution for part in left))
        yield f"{_INDENT}and {len(left):,} more, together {together}"
