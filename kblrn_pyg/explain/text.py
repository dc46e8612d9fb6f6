"""Explanations in words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kblrn_pyg.explain.reasons import BodyReason, NumberReason, Reasons

_WIDTH = 9  # of a contribution, its indentation included


def to_text(reasons: "Reasons", max_bodies: int) -> str:
    """Returns the reasons in words; see :meth:`Reasons.to_text`."""
    if max_bodies < 0:
        raise ValueError(f"'max_bodies' must not be negative (got {max_bodies})")
    head, tail = reasons.head.name, reasons.tail.name
    lines = [f"{reasons.relation.name}(h, t) for h = {head}, t = {tail}"]
    known = "a known fact" if reasons.known else "not a known fact"
    lines += [f"score {signed(reasons.score)}, {known}"]
    own = sum(body.own for body in reasons.relational or ())
    if own:
        lines += [
            f"the fact is its own evidence: without it, {own} of the bodies would not "
            f"hold ({signed(reasons.own_evidence)}); training leaves that out"
        ]
    lines += ["", *_standings(reasons)]
    for expert, contribution in reasons.experts.items():
        lines += ["", f"{expert:<12}{signed(contribution)}"]
        if expert == "latent":
            scorers = reasons.latent or ()
            lines += [_line(part.contribution, part.scorer) for part in scorers]
        elif expert == "relational":
            lines += _bodies(reasons.relational or (), max_bodies)
        else:
            lines += _numbers(reasons.numerical or ())
    return "\n".join(lines)


def signed(value: float) -> str:
    """Returns a contribution with its sign."""
    return f"{round(value, 3) + 0.0:+.3f}"  # adding 0 avoids '-0.000'


def plain(value: float | None) -> str:
    r"""Returns a value of an attribute, as short as it is exact enough to read.

    Args:
        value (float or None): The value; :obj:`None` is unknown.

    Example:
        >>> plain(1950.0), plain(1969.1666), plain(0.00123456), plain(None)
        ('1950', '1969.17', '0.00123', 'unknown')
    """
    if value is None:
        return "unknown"
    if value != 0 and not 0.1 <= abs(value) < 1e9:
        return f"{value:.3g}"
    return f"{value:.2f}".rstrip("0").rstrip(".")


def rank_text(rank: float) -> str:
    """Returns a rank, which may be a half."""
    return f"{rank:,.1f}".removesuffix(".0")


def listing(names: Sequence[str], total: int) -> str:
    r"""Lists names, and how many more there are.

    Args:
        names (sequence): Some names.
        total (int): How many there are in all.

    Example:
        >>> listing(["Ada", "Ben"], 5), listing([], 5)
        ('Ada, Ben and 3 more', '5 entities')
    """
    if not names:
        return f"{total:,} entities" if total > 1 else "1 entity"
    more = total - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")


def _standings(reasons: "Reasons") -> list[str]:
    both = (reasons.tail_query, reasons.head_query)
    rows = [["", "(h, r, ?)", "(?, r, t)"]]
    rows += [["probability", *(f"{one.probability:.3g}" for one in both)]]
    rows += [["rank", *(rank_text(one.rank) for one in both)]]
    for expert in reasons.tail_query.without:
        ranks = (rank_text(one.without[expert]) for one in both)
        rows += [[f"rank without {expert}", *ranks]]
    rows += [["candidates", *(f"{one.num_candidates:,}" for one in both)]]
    return _aligned(rows)


def _bodies(bodies: Sequence["BodyReason"], max_bodies: int) -> list[str]:
    if not bodies:
        return [" " * _WIDTH + "no body of its rules holds"]
    lines = []
    for body in bodies[:max_bodies]:
        note = "   (by this fact itself)" if body.own else ""
        lines += [_line(body.weight, body.text + note)]
        if body.num_middles:
            names = [middle.name for middle in body.middles]
            middles = listing(names, body.num_middles)
            lines += [" " * _WIDTH + f"  x = {middles}"]
    left = bodies[max_bodies:]
    if left:
        together = signed(sum(body.weight for body in left))
        lines += [" " * _WIDTH + f"and {len(left):,} more, together {together}"]
    return lines


def _numbers(numbers: Sequence["NumberReason"]) -> list[str]:
    if not numbers:
        return [" " * _WIDTH + "the relation has no numerical attributes"]
    header = ["attribute", "h", "t", "h - t", "centre", "width", "activation", "weight"]
    rows = [
        [
            one.attribute.name,
            *(plain(value) for value in (one.head, one.tail, one.difference)),
            *("-" if value is None else plain(value) for value in _curve(one)),
            f"{one.activation:.3g}",
            signed(one.weight),
        ]
        for one in numbers
    ]
    top, *others = _aligned([header, *rows])
    lines = [_line(one.contribution, row) for one, row in zip(numbers, others)]
    return [" " * _WIDTH + top, *lines]


def _curve(one: "NumberReason") -> tuple[float | None, float | None]:
    return one.centre, one.width


def _line(contribution: float, words: str) -> str:
    return f"{signed(contribution):>{_WIDTH - 2}}  {words}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligns the first column to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]
