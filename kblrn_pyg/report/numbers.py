"""The differences that the numerical expert uses."""

from tqdm import tqdm

from kblrn_pyg.data import Vocabulary
from kblrn_pyg.nn import NumericalExpert
from kblrn_pyg.plotting import plot_differences
from kblrn_pyg.report.context import Context
from kblrn_pyg.report.figures import pictures
from kblrn_pyg.report.html import Section, element, join


def numbers_section(expert: NumericalExpert, context: Context) -> Section | None:
    r"""Draws the numerical features of relations, if there are any.

    Args:
        expert (NumericalExpert): The expert.
        context (Context): The model, its data set, and how much to show.
    """
    having = [r for r in context.relations if expert.ptr[r + 1] > expert.ptr[r]]
    having = having[: context.max_relations]
    if not having:
        return None
    names = Vocabulary.of(context.train).relations.identifiers
    images = []
    for r in tqdm(having, desc="Drawing", disable=not context.progress):
        figure = plot_differences(context.train, [names[r]], model=context.model)
        what = f"Histogram of head minus tail for {context.short[names[r]]}"
        images += pictures(figure, what)
    note = element(
        "p",
        "Head minus tail of an attribute over the training triples of a relation, and "
        "the function of it that the numerical expert weighs.",
        class_="note",
    )
    content = join([note, element("div", *images, class_="pictures")])
    return Section("numbers", "Numerical differences", content)
