"""Test queries with the answers of the model, and the reasons for them."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from kblrn_pyg.data.queries import SIDES
from kblrn_pyg.data.words import in_words, minus, rank_text, signed
from kblrn_pyg.evaluation import RankTable
from kblrn_pyg.explain import Named, Reasons, explain
from kblrn_pyg.predict import (
    Prediction,
    Predictions,
    predict_heads,
    predict_tails,
)
from kblrn_pyg.progress import ProgressBar
from kblrn_pyg.report.context import Context
from kblrn_pyg.report.html import (
    Html,
    Scale,
    Section,
    column,
    element,
    join,
    note,
    number,
    table,
)
from kblrn_pyg.report.reasons import all_values, reasons_table

# Up to this rank, an answer is nearly right.
_NEAR = 10
_NUM_ANSWERS = 5
_VERDICTS = (("right", "✓ right"), ("near", "≈ near"), ("wrong", "✗ wrong"))


class Example(NamedTuple):
    """A test query with the model's answers."""

    side: str
    kind: int  # see 'kinds'
    rank: float
    num_candidates: int
    answers: list[Prediction]  # the best ones, without others that are known
    true: Reasons
    rival: Reasons | None  # of the best answer, if it is another one


def examples_section(
    context: Context, table: RankTable, num_examples: int, seed: int
) -> Section | None:
    """Shows some queries, some of them answered correctly and some not."""
    rows = choose_rows(table, num_examples, seed)
    if not rows:
        return None
    bar = ProgressBar(rows, desc="Explaining", disable=not context.progress)
    shown = [_article(find_example(context, table, row), context.short) for row in bar]
    text = note(
        "Queries of the test split, drawn at random: some that the model answers "
        "right, some nearly right, some wrong. Other known answers are left out of "
        "the lists, but not of the probabilities. The score is the sum of all "
        "contributions."
    )
    return Section("examples", "Predictions, explained", join([text, *shown]))


def choose_rows(table: RankTable, number: int, seed: int = 0) -> list[int]:
    r"""Chooses rows of a rank table to show: right ones, then wrong ones.

    If possible, a third of them have rank 1, a third a rank up to 10, and a third a
    worse one. Each is drawn from the relation that has been drawn least often. No
    triple is drawn twice, and self-loops are drawn only if there is nothing else.

    Args:
        table (RankTable): The ranks.
        number (int): The number of rows.
        seed (int, optional): The seed. (default: :obj:`0`)
    """
    kind = kinds(table)
    order = np.random.default_rng(seed).permutation(len(table))
    is_loop = table.head == table.tail
    if not is_loop.all():
        order = order[~is_loop[order]]
    drawn = np.zeros(len(table.relations), np.int64)
    chosen: list[int] = []
    while len(chosen) < number and len(order):
        for wanted in range(3):
            rows = order[kind[order] == wanted]
            if len(rows) == 0 or len(chosen) == number:
                continue
            row = int(rows[np.argmin(drawn[table.relation[rows]])])
            drawn[table.relation[row]] += 1
            chosen.append(row)
            same = (table.head == table.head[row]) & (table.tail == table.tail[row])
            same &= table.relation == table.relation[row]
            order = order[~same[order]]
    return sorted(chosen, key=lambda row: kind[row])


def kinds(table: RankTable) -> np.ndarray:
    """Returns 0 for rows with rank 1, 1 for near ones and 2 for the others."""
    return (table.rank > 1).astype(np.int64) + (table.rank > _NEAR)


def find_example(context: Context, table: RankTable, row: int) -> Example:
    """Runs the query of a row of the test split's ranks, and explains its
    answers."""
    model, known, side = context.model, context.known, SIDES[table.side[row]]
    head, rel, tail = (int(c[row]) for c in (table.head, table.relation, table.tail))
    true = head if side == "head" else tail
    # All known answers may have to be left out.
    k = _NUM_ANSWERS + int(table.num_answers[row])
    if side == "head":
        found = predict_heads(model, rel, tail, k=k, known=known)
    else:
        found = predict_tails(model, head, rel, k=k, known=known)
    assert isinstance(found, Predictions)  # a list only for a list of queries
    answers = [p for p in found if not p.known or _answer(p, side) == true]
    answers = answers[:_NUM_ANSWERS]
    rivals = [p for p in answers[:1] if _answer(p, side) != true]
    triples = [(head, rel, tail), *((p.head_id, rel, p.tail_id) for p in rivals)]
    reasons = [explain(model, *one, max_middles=3, known=known) for one in triples]
    return Example(
        side,
        int(kinds(table)[row]),
        float(table.rank[row]),
        int(table.num_candidates[row]),
        answers,
        reasons[0],
        reasons[1] if rivals else None,
    )


def _answer(prediction: Prediction, side: str) -> int:
    return prediction.head_id if side == "head" else prediction.tail_id


def _article(example: Example, short: Mapping[str, str]) -> Html:
    kind, verdict = _VERDICTS[example.kind]
    true, rival, side = example.true, example.rival, example.side
    rank = f"rank {rank_text(example.rank)} of {example.num_candidates:,}"
    answer = element("b", _asked(true, side).name)
    told = [element("strong", verdict), " The true answer, ", answer, f", has {rank}."]
    both = [true] if rival is None else [true, rival]
    scale = Scale.of(value for one in both for value in all_values(one))
    titles = [
        f"Why {_asked(one, side).name} scores {minus(signed(one.score))}"
        for one in both
    ]
    tables = [reasons_table(one, side, scale, short) for one in both]
    shown = [
        _title(example, short),
        element("p", *told, class_="verdict"),
        element(
            "div",
            element("div", element("h4", "Best answers"), _answers(example)),
            element("div", element("h4", titles[0]), tables[0]),
            class_="split",
        ),
    ]
    if rival is not None:
        shown.append(element("details", element("summary", titles[1]), tables[1]))
    return element("article", *shown, class_=f"example {kind}")


def _title(example: Example, short: Mapping[str, str]) -> Html:
    true, asked = example.true, element("span", "?", class_="asked")
    relation = element("i", in_words(short[true.relation.identifier]))
    head: str = asked if example.side == "head" else true.head.name
    tail: str = asked if example.side == "tail" else true.tail.name
    return element("h3", head, " ", relation, " ", tail)


def _answers(example: Example) -> Html:
    side, true = example.side, example.true
    answer = _asked(true, side)
    rows, is_listed = [], False
    for place, p in enumerate(example.answers, start=1):
        is_true = _answer(p, side) == answer.id
        is_listed |= is_true
        name = p.head if side == "head" else p.tail
        kind = "true" if is_true else None
        rows.append(_row(str(place), name, p.probability, p.score, kind))
    if not is_listed:
        standing = true.head_query if side == "head" else true.tail_query
        figures = standing.probability, true.score
        rows.append(_row(rank_text(example.rank), answer.name, *figures, "true far"))
    header = [
        column("place"),
        column("answer", is_number=False),
        *map(column, ("probability", "score")),
    ]
    return table(header, rows, "Best answers", "answers")


def _row(
    place: str, name: str, probability: float, score: float, kind: str | None
) -> Html:
    percent = "< 0.1 %" if probability < 0.001 else f"{100 * probability:.1f} %"
    return element(
        "tr",
        number(place),
        element("td", name, " ✓" if kind else ""),
        number(percent),
        number(minus(f"{score:.2f}")),
        class_=kind,
    )


def _asked(reasons: Reasons, side: str) -> Named:
    return reasons.head if side == "head" else reasons.tail
