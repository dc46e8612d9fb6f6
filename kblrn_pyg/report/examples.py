"""Test queries with the answers of the model, and the reasons for them."""

from collections.abc import Mapping
from typing import NamedTuple

from tqdm import tqdm

from kblrn_pyg.data.queries import SIDES
from kblrn_pyg.data.words import in_words, minus, rank_text, signed
from kblrn_pyg.evaluation import RankTable
from kblrn_pyg.explain import Named, Reasons, explain
from kblrn_pyg.predict import Prediction, predict_heads, predict_tails
from kblrn_pyg.report.bars import Scale
from kblrn_pyg.report.choose import choose_rows, kinds
from kblrn_pyg.report.context import Context
from kblrn_pyg.report.html import Html, Section, column, element, join, number, table
from kblrn_pyg.report.reasons import all_values, reasons_table

_NUM_ANSWERS = 5
_VERDICTS = (("right", "✓ right"), ("near", "≈ near"), ("wrong", "✗ wrong"))


class Example(NamedTuple):
    r"""A test query, and how the model answers it.

    Args:
        side (str): The side that it asks for.
        kind (int): See :meth:`~kblrn_pyg.report.choose.kinds`.
        rank (float): The rank of the true answer.
        num_candidates (int): The number of candidates.
        answers (list): The best answers, without others that are known.
        true (Reasons): The reasons for the score of the true answer.
        rival (Reasons, optional): Those of the best answer, if it is another
            one.
    """

    side: str
    kind: int
    rank: float
    num_candidates: int
    answers: list[Prediction]
    true: Reasons
    rival: Reasons | None


def examples_section(
    context: Context, table: RankTable, num_examples: int, seed: int = 0
) -> Section | None:
    r"""Shows some queries, some of them answered well and some badly.

    Args:
        context (Context): The model and its data set.
        table (RankTable): The ranks of the test split.
        num_examples (int): The number of queries.
        seed (int, optional): The seed of the choice. (default: :obj:`0`)
    """
    rows = choose_rows(table, num_examples, seed)
    if not rows:
        return None
    bar = tqdm(rows, desc="Explaining", disable=not context.progress)
    shown = [_article(find_example(context, table, row), context.short) for row in bar]
    note = element(
        "p",
        "Queries of the test split, drawn at random: some that the model answers "
        "right, some nearly right, some wrong. Other known answers are left out of "
        "the lists, but not of the probabilities. The score is the sum of all "
        "contributions.",
        class_="note",
    )
    return Section("examples", "Predictions, explained", join([note, *shown]))


def find_example(context: Context, table: RankTable, row: int) -> Example:
    r"""Asks the query of a row, and explains its answers.

    Args:
        context (Context): The model and its data set.
        table (RankTable): The ranks of the test split.
        row (int): The row.
    """
    model, known, side = context.model, context.known, SIDES[table.side[row]]
    head, rel, tail = (int(c[row]) for c in (table.head, table.relation, table.tail))
    true = head if side == "head" else tail
    # All known answers may have to be left out.
    k = _NUM_ANSWERS + int(table.num_answers[row])
    if side == "head":
        found = predict_heads(model, rel, tail, k=k, known=known)
    else:
        found = predict_tails(model, head, rel, k=k, known=known)
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
    true = example.true
    answer = _asked(true, example.side).name
    rank = f"rank {rank_text(example.rank)} of {example.num_candidates:,}"
    told = [element("strong", verdict), " The true answer, ", element("b", answer)]
    scale = Scale.of(
        value for one in (true, example.rival) if one for value in all_values(one)
    )
    return element(
        "article",
        _title(example, short),
        element("p", *told, f", has {rank}.", class_="verdict"),
        element(
            "div",
            element("div", element("h4", "Best answers"), _answers(example)),
            element(
                "div",
                element("h4", f"Why {answer} scores {_score(true)}"),
                reasons_table(true, example.side, scale, short),
            ),
            class_="split",
        ),
        _rival(example, scale, short),
        class_=f"example {kind}",
    )


def _title(example: Example, short: Mapping[str, str]) -> Html:
    true, asked = example.true, element("span", "?", class_="asked")
    relation = element("i", in_words(short[true.relation.identifier]))
    head: str = asked if example.side == "head" else true.head.name
    tail: str = asked if example.side == "tail" else true.tail.name
    return element("h3", head, " ", relation, " ", tail)


def _answers(example: Example) -> Html:
    true = _asked(example.true, example.side).id
    rows = [
        _answer_row(str(place), p, example.side, true)
        for place, p in enumerate(example.answers, start=1)
    ]
    if all(_answer(p, example.side) != true for p in example.answers):
        rows.append(_last_row(example))
    header = [
        column("place"),
        column("answer", is_number=False),
        *map(column, ("probability", "score")),
    ]
    return table(header, rows, "Best answers", "answers")


def _answer_row(place: str, p: Prediction, side: str, true: int) -> Html:
    name = p.head if side == "head" else p.tail
    is_true = _answer(p, side) == true
    return element(
        "tr",
        number(place),
        element("td", name, " ✓" if is_true else ""),
        number(_percent(p.probability)),
        number(minus(f"{p.score:.2f}")),
        class_="true" if is_true else None,
    )


def _last_row(example: Example) -> Html:
    """The true answer, which is not among the best ones."""
    true = example.true
    standing = true.head_query if example.side == "head" else true.tail_query
    return element(
        "tr",
        number(rank_text(example.rank)),
        element("td", _asked(true, example.side).name, " ✓"),
        number(_percent(standing.probability)),
        number(minus(f"{true.score:.2f}")),
        class_="true far",
    )


def _rival(example: Example, scale: Scale, short: Mapping[str, str]) -> Html:
    rival = example.rival
    if rival is None:
        return Html("")
    name = _asked(rival, example.side).name
    return element(
        "details",
        element("summary", f"Why {name} scores {_score(rival)}"),
        reasons_table(rival, example.side, scale, short),
    )


def _asked(reasons: Reasons, side: str) -> Named:
    return reasons.head if side == "head" else reasons.tail


def _score(reasons: Reasons) -> str:
    return minus(signed(reasons.score))


def _percent(probability: float) -> str:
    return "< 0.1 %" if probability < 0.001 else f"{100 * probability:.1f} %"
