"""The sections about single experts: heaviest rules, and numerical differences."""

from collections.abc import Mapping
from dataclasses import replace
from functools import singledispatch

from torch.nn import Module

from kblrn_pyg.data import Vocabulary
from kblrn_pyg.explain import WeightedRules, heaviest_rules
from kblrn_pyg.nn import LayerExpert, NumericalExpert, RelationalExpert
from kblrn_pyg.nn.features import FeatureExpert
from kblrn_pyg.plotting import plot_differences
from kblrn_pyg.progress import ProgressBar
from kblrn_pyg.report.context import Context
from kblrn_pyg.report.figures import pictures
from kblrn_pyg.report.html import (
    Html,
    Scale,
    Section,
    body_words,
    column,
    element,
    join,
    note,
    number,
    table,
)
from kblrn_pyg.rules import body_text
from kblrn_pyg.rules.text import fraction_text

_NUM_RULES = 10
# How many relations are unfolded at first.
_NUM_OPEN = 2


@singledispatch
def expert_section(expert: Module, context: Context) -> Section | None:
    r"""Returns the section about an expert of a model, by default :obj:`None`.

    Register a section about your own expert as for any
    :meth:`functools.singledispatch`:

    .. code-block:: python

        @expert_section.register
        def _(expert: Popularity, context: Context) -> Section:
            name = context.short[context.train.edge_types[0][1]]
            return Section("popularity", "Popularity", element("p", name))

    Args:
        expert (Expert): The expert.
        context (Context): The model, its data set, and the amount of detail.
    """
    return None


@expert_section.register
def _rules_section(expert: RelationalExpert, context: Context) -> Section | None:
    """Lists the heaviest rules of relations, if there are any."""
    rules, shown = expert.features.rules, context.relations[: context.max_relations]
    having = [rules.relations[r] for r in shown if rules.ptr[r + 1] > rules.ptr[r]]
    if not having:
        return None
    parts: list[Html] = []
    for relation in ProgressBar(
        having, "Measuring rules", disable=not context.progress
    ):
        found = heaviest_rules(context.model, context.train, relation, _NUM_RULES)
        parts.append(_rules(found, context.short, len(parts) < _NUM_OPEN))
    text = note(
        "A rule adds its weight to the score of every pair (h, t) for which its body "
        "holds. Support is the number of the relation’s facts for which it does, head "
        "coverage their fraction; PCA confidence is the fraction of the pairs that are "
        "facts, among those whose entity has facts of the relation at all."
    )
    return Section("rules", "Heaviest rules", join([text, *parts]))


@expert_section.register
def _numbers_section(expert: NumericalExpert, context: Context) -> Section | None:
    """Draws the numerical features of relations, if there are any."""
    return _differences(expert, context)


@expert_section.register
def _layers_section(expert: LayerExpert, context: Context) -> Section | None:
    """Draws the layers of relations, if there are any."""
    return _differences(expert, context)


def _differences(expert: FeatureExpert, context: Context) -> Section | None:
    having = [r for r in context.relations if expert.speaks_of(r)]
    having = having[: context.max_relations]
    if not having:
        return None
    names = Vocabulary.of(context.train).relations.identifiers
    images = []
    for r in ProgressBar(having, desc="Drawing", disable=not context.progress):
        figure = plot_differences(context.train, [names[r]], model=context.model)
        what = f"Histogram of head minus tail for {context.short[names[r]]}"
        images += pictures(figure, what)
    text = note(
        "Head minus tail of an attribute over the training triples of a relation, and "
        "the function of it that the numerical expert weighs."
    )
    content = join([text, element("div", *images, class_="pictures")])
    return Section("numbers", "Numerical differences", content)


def _rules(found: WeightedRules, short: Mapping[str, str], is_open: bool) -> Html:
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
            number(fraction_text(rules.head_coverage[i])),
            number(fraction_text(rules.pca_confidence[i], rules.estimated[i])),
            element("td", f"{rules.support[i]:,}", class_="number wide"),
        )
        for i, weight in enumerate(found.weight.tolist())
    ]
    title = body_words(f"{name}(h, t) ⇐ …")
    return element(
        "details",
        element("summary", title, element("small", which)),
        table(header, rows, f"Heaviest rules of {name}", "weights"),
        open=is_open,
    )
