"""The heaviest rules of the relational expert, with their measures."""

from collections.abc import Mapping
from dataclasses import replace

from tqdm import tqdm

from kblrn_pyg.explain import WeightedRules, heaviest_rules
from kblrn_pyg.nn import RelationalExpert
from kblrn_pyg.report.bars import Scale
from kblrn_pyg.report.context import Context
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
# How many relations are unfolded at first.
_NUM_OPEN = 2


def rules_section(expert: RelationalExpert, context: Context) -> Section | None:
    r"""Lists the heaviest rules of relations, if there are any.

    Args:
        expert (RelationalExpert): The expert.
        context (Context): The model, its data set, and how much to show.
    """
    rules, shown = expert.features.rules, context.relations[: context.max_relations]
    having = [rules.relations[r] for r in shown if rules.ptr[r + 1] > rules.ptr[r]]
    if not having:
        return None
    parts = [
        _relation(
            heaviest_rules(context.model, context.train, relation, _NUM_RULES),
            context.short,
            place,
        )
        for place, relation in enumerate(
            tqdm(having, desc="Measuring rules", disable=not context.progress)
        )
    ]
    note = element(
        "p",
        "A rule adds its weight to the score of every pair (h, t) for which its body "
        "holds. Support is the number of the relation’s facts for which it does, head "
        "coverage their fraction; PCA confidence is the fraction of the pairs that are "
        "facts, among those whose entity has facts of the relation at all.",
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
            number(_fraction(rules.head_coverage[i])),
            number(_fraction(rules.pca_confidence[i])),
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


def _fraction(value: float) -> str:
    return "< 0.01" if 0 < value < 0.005 else f"{value:.2f}"
