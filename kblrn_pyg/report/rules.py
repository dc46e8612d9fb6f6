"""The rules that weigh most, with their measures."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from torch_geometric.data import HeteroData
from tqdm import tqdm

from kblrn_pyg.nn import KBLRN
from kblrn_pyg.plotting import heaviest_rules
from kblrn_pyg.plotting.weights import WeightedRules
from kblrn_pyg.report.bars import Scale
from kblrn_pyg.report.html import (
    Html,
    Section,
    body_words,
    column,
    element,
    join,
    number,
    table,
)
from kblrn_pyg.rules import body_text

_NUM_RULES = 10
# So many relations are open from the beginning.
_NUM_OPEN = 2


def rules_section(
    model: KBLRN,
    train: HeteroData,
    relations: Sequence[int],
    short: Mapping[str, str],
    progress: bool = False,
) -> Section | None:
    r"""Lists the heaviest rules of relations, if the model has any.

    Args:
        model (KBLRN): The model.
        train (HeteroData): Its knowledge base.
        relations (sequence): The relations.
        short (dict): The short name of each relation.
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
    """
    if model.relational is None:
        return None
    rules = model.relational.features.rules
    having = [r for r in relations if rules.ptr[r + 1] > rules.ptr[r]]
    if not having:
        return None
    bar = tqdm(having, desc="Measuring rules", disable=not progress)
    found = [heaviest_rules(model, train, rules.relations[r], _NUM_RULES) for r in bar]
    parts = [_relation(one, short, place) for place, one in enumerate(found)]
    note = element(
        "p",
        "A rule adds its weight to the score of every pair (h, t) for which its body "
        "holds. Head coverage is the part of the relation’s facts for which it does; "
        "PCA confidence the part of the pairs that are facts, among those whose "
        "entity has facts of the relation at all; support the number of such facts.",
        class_="note",
    )
    return Section("rules", "Heaviest rules", join([note, *parts]))


def _relation(found: WeightedRules, short: Mapping[str, str], place: int) -> Html:
    relations = [short[name] for name in found.rules.relations]
    rules = replace(found.rules, relations=relations)
    name = relations[rules.head[0]]
    which = f"all of its {found.num_rules:,} rules"
    if len(rules) < found.num_rules:
        which = f"{len(rules)} of {found.num_rules:,} rules"
    header = [
        column("weight"),
        column("body", is_number=False),
        *map(column, ("head coverage", "PCA confidence")),
        element("th", "support", scope="col", class_="number wide"),
    ]
    scale = Scale.of(found.weight.tolist())
    rows = [
        element(
            "tr",
            scale.cell(weight),
            element("td", body_words(body_text(rules, i))),
            number(_part(rules.head_coverage[i])),
            number(_part(rules.pca_confidence[i])),
            element("td", f"{rules.support[i]:,}", class_="number wide"),
        )
        for i, weight in enumerate(found.weight.tolist())
    ]
    title = body_words(f"{name}(h, t) ⇐ …")
    return element(
        "details",
        element("summary", title, element("small", which)),
        table(header, rows, f"Heaviest rules of {name}", "weights"),
        open=place < _NUM_OPEN,
    )


def _part(value: float) -> str:
    return "< 0.01" if 0 < value < 0.005 else f"{value:.2f}"
