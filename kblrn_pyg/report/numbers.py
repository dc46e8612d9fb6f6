"""What the numerical expert sees of relations."""

from collections.abc import Mapping, Sequence

from torch_geometric.data import HeteroData
from tqdm import tqdm

from kblrn_pyg.data import Vocabulary
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.plotting import plot_differences
from kblrn_pyg.report.figures import pictures
from kblrn_pyg.report.html import Section, element, join


def numbers_section(
    model: KBLRN,
    train: HeteroData,
    relations: Sequence[int],
    short: Mapping[str, str],
    progress: bool = False,
) -> Section | None:
    r"""Draws the numerical features of relations, if the model has any.

    Args:
        model (KBLRN): The model.
        train (HeteroData): Its knowledge base.
        relations (sequence): The relations.
        short (dict): The short name of each relation.
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
    """
    having = with_numbers(model, relations)
    if not having:
        return None
    names = Vocabulary.of(train).relations.identifiers
    images = []
    for r in tqdm(having, desc="Drawing", disable=not progress):
        figure = plot_differences(train, [names[r]], model=model)
        what = f"Histogram of head minus tail for {short[names[r]]}"
        images += pictures(figure, what)
    note = element(
        "p",
        "Head minus tail of an attribute over the training triples of a relation, and "
        "what the numerical expert makes of it.",
        class_="note",
    )
    content = join([note, element("div", *images, class_="pictures")])
    return Section("numbers", "Numerical differences", content)


def with_numbers(model: KBLRN, relations: Sequence[int]) -> list[int]:
    r"""Returns the relations that have numerical features in a model.

    Args:
        model (KBLRN): The model.
        relations (sequence): The relations.
    """
    if model.numerical is None:
        return []
    sizes = model.numerical.ptr.diff().tolist()
    return [r for r in relations if sizes[r]]
