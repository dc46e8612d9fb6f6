"""Test queries with the answers of the model, and the reasons for them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from torch_geometric.data import HeteroData
from tqdm import tqdm

from kblrn_pyg.evaluation import RankTable
from kblrn_pyg.evaluation.ranks import HEAD
from kblrn_pyg.explain import Reasons, explain
from kblrn_pyg.explain.text import rank_text, signed
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.plotting.fitting import minus
from kblrn_pyg.plotting.words import in_words
from kblrn_pyg.predict import Prediction, predict_heads, predict_tails
from kblrn_pyg.report.bars import Scale
from kblrn_pyg.report.choose import choose_rows, kinds
from kblrn_pyg.report.html import Html, Section, column, element, join, number, table
from kblrn_pyg.report.reasons import all_parts, reasons_table

_NUM_ANSWERS = 5
_VERDICTS = (("right", "✓ right"), ("near", "≈ near"), ("wrong", "✗ wrong"))


class Example(NamedTuple):
    r"""A test query, and what the model makes of it.

    Args:
        asks_heads (bool): Whether it asks for heads, else for tails.
        kind (int): See :meth:`~kblrn_pyg.report.choose.kinds`.
        rank (float): The rank of the true answer.
        num_candidates (int): The number of candidates.
        answers (list): The best answers without other ones that are known.
        true (Reasons): Why the true answer scores as it does.
        rival (Reasons, optional): Why the best other answer does, if it
            stands before the true one.
    """

    asks_heads: bool
    kind: int
    rank: float
    num_candidates: int
    answers: list[Prediction]
    true: Reasons
    rival: Reasons | None


def examples_section(
    model: KBLRN,
    table: RankTable,
    known: Sequence[HeteroData],
    short: Mapping[str, str],
    num_examples: int,
    seed: int = 0,
    progress: bool = False,
) -> Section | None:
    r"""Shows some queries, some of them answered well and some badly.

    Args:
        model (KBLRN): The model.
        table (RankTable): The ranks of the test split.
        known (sequence): The other splits.
        short (dict): The short name of each relation.
        num_examples (int): How many queries.
        seed (int, optional): The seed of the choice. (default: :obj:`0`)
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
    """
    rows = choose_rows(table, num_examples, seed)
    if not rows:
        return None
    bar = tqdm(rows, desc="Explaining", disable=not progress)
    shown = [_article(find_example(model, table, known, row), short) for row in bar]
    note = element(
        "p",
        "Queries of the test split, drawn at random: some that the model answers "
        "right, some almost, some wrong. Other known answers are left out of the "
        "lists, but have their part of the probability. The parts of a score add up "
        "to it.",
        class_="note",
    )
    return Section("examples", "Predictions, explained", join([note, *shown]))


def find_example(
    model: KBLRN, table: RankTable, known: Sequence[HeteroData], row: int
) -> Example:
    r"""Asks the query of a row, and explains its answers.

    Args:
        model (KBLRN): The model.
        table (RankTable): The ranks of the test split.
        known (sequence): The other splits.
        row (int): The row.
    """
    asks_heads = bool(table.side[row] == HEAD)
    head, rel, tail = (int(c[row]) for c in (table.head, table.relation, table.tail))
    true = head if asks_heads else tail
    # As many as there are known answers may be left out.
    k = _NUM_ANSWERS + int(table.num_answers[row])
    if asks_heads:
        found = predict_heads(model, rel, tail, k=k, known=known)
    else:
        found = predict_tails(model, head, rel, k=k, known=known)
    answers = [p for p in found if not p.known or _answer(p, asks_heads) == true]
    answers = answers[:_NUM_ANSWERS]
    rivals = [p for p in answers[:1] if _answer(p, asks_heads) != true]
    reasons = [
        explain(model, *triple, max_middles=3, known=known)
        for triple in [
            (head, rel, tail),
            *((p.head_id, rel, p.tail_id) for p in rivals),
        ]
    ]
    return Example(
        asks_heads,
        int(kinds(table)[row]),
        float(table.rank[row]),
        int(table.num_candidates[row]),
        answers,
        reasons[0],
        reasons[1] if rivals else None,
    )


def _answer(prediction: Prediction, asks_heads: bool) -> int:
    return prediction.head_id if asks_heads else prediction.tail_id


def _article(example: Example, short: Mapping[str, str]) -> Html:
    kind, verdict = _VERDICTS[example.kind]
    true = example.true
    answer = _asked(true, example.asks_heads)
    rank = f"rank {rank_text(example.rank)} of {example.num_candidates:,}"
    told = [element("strong", verdict), " The true answer, ", element("b", answer)]
    scale = Scale.of(
        value for one in (true, example.rival) if one for value in all_parts(one)
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
                reasons_table(true, example.asks_heads, scale, short),
            ),
            class_="split",
        ),
        _rival(example, scale, short),
        class_=f"example {kind}",
    )


def _title(example: Example, short: Mapping[str, str]) -> Html:
    true, asked = example.true, element("span", "?", class_="asked")
    relation = element("i", in_words(short[true.relation.identifier]))
    sides = [true.head.name, true.tail.name]
    head, tail = (asked, sides[1]) if example.asks_heads else (sides[0], asked)
    return element("h3", head, " ", relation, " ", tail)


def _answers(example: Example) -> Html:
    true = (example.true.head if example.asks_heads else example.true.tail).id
    rows = [
        _answer_row(str(place), p, example.asks_heads, true)
        for place, p in enumerate(example.answers, start=1)
    ]
    if all(_answer(p, example.asks_heads) != true for p in example.answers):
        rows.append(_last_row(example))
    header = [
        column("place"),
        column("answer", is_number=False),
        *map(column, ("probability", "score")),
    ]
    return table(header, rows, "Best answers", "answers")


def _answer_row(place: str, p: Prediction, asks_heads: bool, true: int) -> Html:
    name = p.head if asks_heads else p.tail
    is_true = _answer(p, asks_heads) == true
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
    standing = true.head_query if example.asks_heads else true.tail_query
    return element(
        "tr",
        number(rank_text(example.rank)),
        element("td", _asked(true, example.asks_heads), " ✓"),
        number(_percent(standing.probability)),
        number(minus(f"{true.score:.2f}")),
        class_="true far",
    )


def _rival(example: Example, scale: Scale, short: Mapping[str, str]) -> Html:
    rival = example.rival
    if rival is None:
        return Html("")
    name = _asked(rival, example.asks_heads)
    return element(
        "details",
        element("summary", f"Why {name} scores {_score(rival)}"),
        reasons_table(rival, example.asks_heads, scale, short),
    )


def _asked(reasons: Reasons, asks_heads: bool) -> str:
    return (reasons.head if asks_heads else reasons.tail).name


def _score(reasons: Reasons) -> str:
    return minus(signed(reasons.score))


def _percent(probability: float) -> str:
    return "< 0.1 %" if probability < 0.001 else f"{100 * probability:.1f} %"
