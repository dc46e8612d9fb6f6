"""An explanation as a table."""

from collections.abc import Iterator, Mapping

from kblrn_pyg.explain import BodyReason, NumberReason, Reasons
from kblrn_pyg.explain.text import listing, rank_text
from kblrn_pyg.plotting.words import in_words, number_text, value_text
from kblrn_pyg.report.bars import Scale
from kblrn_pyg.report.html import Html, body_words, column, element, table

_MAX_BODIES = 5


def reasons_table(
    reasons: Reasons, asks_heads: bool, scale: Scale, short: Mapping[str, str]
) -> Html:
    r"""Returns the parts of a score, those of each expert behind their sum.

    Args:
        reasons (Reasons): The explanation.
        asks_heads (bool): Whether the query asks for heads, else for tails.
        scale (Scale): What the bars are drawn to.
        short (dict): The short name of each relation.
    """
    standing = reasons.head_query if asks_heads else reasons.tail_query
    rows = []
    for expert, value in reasons.experts.items():
        note = _nothing(reasons, expert)
        if not note and expert in standing.without:
            note = f"without it, rank {rank_text(standing.without[expert])}"
        rows.append(_row(scale, value, _title(reasons, expert), note, "expert"))
        rows += _parts(reasons, expert, scale, short)
    header = [column("part of score"), column("reason", is_number=False)]
    caption = f"Why {reasons.head.name}, {reasons.relation.name}, {reasons.tail.name}"
    return table(header, rows, caption, "reasons")


def all_parts(reasons: Reasons) -> list[float]:
    r"""Returns all values that :meth:`reasons_table` may draw.

    Args:
        reasons (Reasons): The explanation.
    """
    bodies = (reasons.relational or ())[_MAX_BODIES:]
    return [
        *reasons.experts.values(),
        *(part.contribution for parts in reasons.parts.values() for part in parts),
        sum(body.weight for body in bodies),
    ]


def _title(reasons: Reasons, expert: str) -> str:
    scorers = reasons.latent or ()
    if expert == "latent" and len(scorers) == 1:
        return f"latent expert ({scorers[0].scorer})"
    return f"{expert} expert"


def _nothing(reasons: Reasons, expert: str) -> str:
    """Why an expert that has nothing to say has not."""
    if reasons.parts[expert]:
        return ""
    if expert == "relational":
        return "no body of its rules holds"
    return "the relation has no numerical attributes"


def _parts(
    reasons: Reasons, expert: str, scale: Scale, short: Mapping[str, str]
) -> Iterator[Html]:
    if expert == "latent":
        for scorer in reasons.latent or ():
            if len(reasons.latent or ()) > 1:
                yield _row(scale, scorer.contribution, scorer.scorer)
    elif expert == "relational":
        yield from _bodies(reasons.relational or (), scale, short)
    else:
        for one in reasons.numerical or ():
            yield _row(scale, one.contribution, in_words(one.attribute.name), _sum(one))


def _bodies(
    bodies: tuple[BodyReason, ...], scale: Scale, short: Mapping[str, str]
) -> Iterator[Html]:
    for body in bodies[:_MAX_BODIES]:
        middles = [middle.name for middle in body.middles]
        note = ""
        if body.num_middles:
            note = f"x = {listing(middles, body.num_middles)}"
        atoms = [
            f"{short[a.relation.identifier]}({a.start}, {a.end})" for a in body.atoms
        ]
        yield _row(scale, body.weight, body_words(" ∧ ".join(atoms)), note)
    left = bodies[_MAX_BODIES:]
    if left:
        weight = sum(body.weight for body in left)
        yield _row(scale, weight, f"{len(left):,} more bodies")


def _sum(one: NumberReason) -> str:
    """How the difference comes about, and what it usually is."""
    name = one.attribute.name
    if one.head is None or one.tail is None or one.difference is None:
        values = (v if v is None else value_text(name, v) for v in (one.head, one.tail))
        return "{} and {}".format(*(v or "unknown" for v in values))
    head, tail = value_text(name, one.head), value_text(name, one.tail)
    tail = f"({tail})" if tail.startswith("−") else tail
    text = f"{head} − {tail} = {value_text('', one.difference)}"
    if one.centre is None or one.width is None:
        return text
    centre, width = (number_text(v, one.width) for v in (one.centre, one.width))
    return f"{text}, usually {centre} ± {width}"


def _row(
    scale: Scale, value: float, words: str, note: str = "", kind: str | None = None
) -> Html:
    cell = [words, element("small", note)] if note else [words]
    return element("tr", scale.cell(value), element("td", *cell), class_=kind)
