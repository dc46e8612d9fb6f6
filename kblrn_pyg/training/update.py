"""Adds facts, entities and numbers to a trained model, without retraining."""

import logging
import os
from collections.abc import Iterable

from kblrn_pyg.data import (
    NamedTriples,
    NamedValues,
    Vocabulary,
    read_rdf,
    read_triples,
    read_values,
)
from kblrn_pyg.data.rdf import is_rdf
from kblrn_pyg.data.sources import Source
from kblrn_pyg.data.update import KBUpdate, grown_split, update_kb
from kblrn_pyg.data.values import average_repeated, join_values
from kblrn_pyg.nn import KBLRN, Expert
from kblrn_pyg.training.fold_in import FoldInSettings, fold_in, leave_out
from kblrn_pyg.training.process import own_random_numbers, seed_all

logger = logging.getLogger(__name__)


def update_model(
    model: KBLRN,
    triples: Source | None = None,
    numbers: Source | None = None,
    retracted: Source | None = None,
    fold_in: bool = True,
    header: bool | None = None,
    settings: FoldInSettings | None = None,
    decimal: str = ".",
) -> KBLRN:
    r"""Returns a model with the same weights, and with added or retracted facts.

    Rules, paths, evidence and numbers apply to new facts and entities at once.
    Weights per entity, such as embeddings, are learned for new entities in a few
    steps, with everything else frozen. The given model is not changed.

    Args:
        model (KBLRN): The model, created by :meth:`KBLRN.from_data`, or loaded.
        triples (optional): The facts to add: a file, a
            :class:`pandas.DataFrame`, or tuples; see
            :meth:`~kblrn_pyg.data.read_triples`. Entities may be new, relations
            may not. (default: :obj:`None`)
        numbers (optional): The numbers to add, see
            :meth:`~kblrn_pyg.data.read_values`, of existing attributes; a number
            replaces the former one. (default: :obj:`None`)
        retracted (optional): The facts to remove, all of which must be known.
            (default: :obj:`None`)
        fold_in (bool, optional): If set to :obj:`False`, experts with embeddings
            give new entities a score of zero. (default: :obj:`True`)
        header (bool, optional): Whether files begin with a header; see
            :meth:`~kblrn_pyg.data.read_triples`. (default: :obj:`None`)
        settings (FoldInSettings, optional): The settings for learning the rows of
            new entities. (default: :obj:`None`, see :class:`FoldInSettings`)
        decimal (str, optional): The decimal point of numbers in files.
            (default: :obj:`"."`)

    Example:
        >>> from kblrn_pyg.datasets import Families
        >>> model = KBLRN.from_data(Families()[0], experts="ln", hidden_channels=8)
        >>> updated = model.update([("Nils Novel", "born_in", "Quarstead")])
        >>> updated.num_nodes - model.num_nodes
        1
    """
    update = read_update(model, triples, numbers, retracted, header, decimal)
    return apply_update(model, update, fold_in, settings)


def read_update(
    model: KBLRN,
    triples: Source | None = None,
    numbers: Source | None = None,
    retracted: Source | None = None,
    header: bool | None = None,
    decimal: str = ".",
) -> KBUpdate:
    r"""Reads the facts and numbers to add and remove; see :meth:`update_model`."""
    if triples is None and numbers is None and retracted is None:
        raise ValueError("'triples', 'numbers' or 'retracted' must be given (got none)")
    kb, names = model.require_kb(), _AllNames(model.vocabulary)
    tables: list[NamedValues] = []
    facts = None
    if triples is not None:
        facts, values = _read_facts(triples, header, names)
        tables += [] if values is None else [values]
    if numbers is not None:
        read = read_values(numbers, header=header, average=False, decimal=decimal)
        tables.append(read)
    gone = None
    if retracted is not None:
        gone, _ = _read_facts(retracted, header, names)
    values = average_repeated(join_values(tables)) if tables else None
    return update_kb(kb, facts, values, gone)


def apply_update(
    model: KBLRN,
    update: KBUpdate,
    fold_in: bool = True,
    settings: FoldInSettings | None = None,
) -> KBLRN:
    r"""Creates the model of an updated knowledge base; see :meth:`update_model`.

    Args:
        model (KBLRN): The model.
        update (KBUpdate): What became of its knowledge base.
        fold_in (bool, optional): See :meth:`update_model`.
            (default: :obj:`True`)
        settings (FoldInSettings, optional): See :meth:`update_model`.
            (default: :obj:`None`)
    """
    settings = settings or FoldInSettings()
    with own_random_numbers():
        seed_all(settings.seed)
        experts = {name: one.with_facts(update) for name, one in _experts(model)}
        if update.num_new:
            for expert in experts.values():
                _add_rows(expert, update, fold_in, settings)
    updated = KBLRN(
        int(update.kb["entity"].num_nodes),
        len(update.kb.edge_types),
        experts,
        model.num_negatives,
        model.negatives,
    )
    updated.kb, updated.settings = update.kb, model.settings
    updated.calibration = model.calibration
    updated.known = tuple(grown_split(split, update) for split in model.known)
    return updated.train(model.training)


def _add_rows(
    expert: Expert, update: KBUpdate, is_folded_in: bool, settings: FoldInSettings
) -> None:
    if not expert.entity_tables():
        return
    if is_folded_in:
        fold_in(expert, update, settings)
        logger.info("the %s expert: new entities are folded in", expert.name)
    else:
        leave_out(expert, update)
        logger.info("the %s expert is silent about new entities", expert.name)


def _experts(model: KBLRN) -> Iterable[tuple[str, Expert]]:
    return model.experts.items()  # type: ignore[return-value]


def _read_facts(
    source: Source, header: bool | None, names: "_AllNames"
) -> tuple[NamedTriples, NamedValues | None]:
    is_path = isinstance(source, str | os.PathLike)
    if is_path and is_rdf(source):  # type: ignore[arg-type]
        content = read_rdf(source, average=False)  # type: ignore[arg-type]
        return content.triples, content.values if len(content.values) else None
    return read_triples(source, header, other_names=names), None


class _AllNames:
    """The names of a knowledge base, which are not column names."""

    def __init__(self, names: Vocabulary) -> None:
        self._names = names

    def __contains__(self, name: object) -> bool:
        known = self._names.entities, self._names.relations
        return any(one.exact(str(name)) for one in known)
