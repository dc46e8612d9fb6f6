"""The sections about single experts."""

from functools import singledispatch

from torch.nn import Module

from kblrn_pyg.nn import NumericalExpert, RelationalExpert
from kblrn_pyg.report.context import Context
from kblrn_pyg.report.html import Section
from kblrn_pyg.report.numbers import numbers_section
from kblrn_pyg.report.rules import rules_section


@singledispatch
def expert_section(expert: Module, context: Context) -> Section | None:
    r"""Returns the section about an expert of a model, by default none.

    A section about an expert of one's own is registered as for any
    :meth:`functools.singledispatch`:

    .. code-block:: python

        @expert_section.register
        def _(expert: Popularity, context: Context) -> Section:
            name = context.short[context.train.edge_types[0][1]]
            return Section("popularity", "Popularity", element("p", name))

    Args:
        expert (Expert): The expert.
        context (Context): The model, its data set, and how much to show.
    """
    return None


expert_section.register(RelationalExpert, rules_section)
expert_section.register(NumericalExpert, numbers_section)
