"""Creates scorers from names and from embedding models."""

import inspect
from collections.abc import Callable, Sequence
from typing import TypeAlias

from torch_geometric.nn.kge import ComplEx, DistMult, KGEModel, RotatE, TransE

from kblrn_pyg.nn.scorers.complex import ComplExScorer, RotatEScorer
from kblrn_pyg.nn.scorers.conve import ConvE, ConvEScorer
from kblrn_pyg.nn.scorers.distmult import DistMultScorer
from kblrn_pyg.nn.scorers.pykeen import PyKEENModel, PyKEENScorer
from kblrn_pyg.nn.scorers.reciprocal import ReciprocalScorer
from kblrn_pyg.nn.scorers.rescal import RESCAL, RESCALScorer
from kblrn_pyg.nn.scorers.rgcn import RGCNScorer
from kblrn_pyg.nn.scorers.scorer import Scorer
from kblrn_pyg.nn.scorers.transe import FreeTransE, TransEScorer, UnitTransEScorer
from kblrn_pyg.nn.scorers.transh import TransH, TransHScorer
from kblrn_pyg.nn.scorers.transr import TransR, TransRScorer
from kblrn_pyg.nn.scorers.tucker import TuckER, TuckERScorer

# What a scorer can be made of.
AnyScorer: TypeAlias = str | KGEModel | Scorer

# The scorers that have a name.
SCORERS: dict[str, type[KGEModel]] = {
    "distmult": DistMult,
    "complex": ComplEx,
    "transe": FreeTransE,
    "unit-transe": TransE,
    "rotate": RotatE,
    "rescal": RESCAL,
    "transh": TransH,
    "transr": TransR,
    "tucker": TuckER,
    "conve": ConvE,
}


def _computation(kind: type[KGEModel]) -> tuple[Callable, ...]:
    """Returns the forward function of a model, to detect subclasses that override
    it."""
    names = ("forward", "project", "matrices")
    methods = (getattr(kind, name, None) for name in names)
    return tuple(method for method in methods if method is not None)


_FAST: dict[tuple[Callable, ...], type[Scorer]] = {
    _computation(DistMult): DistMultScorer,
    _computation(ComplEx): ComplExScorer,
    _computation(FreeTransE): TransEScorer,
    _computation(TransE): UnitTransEScorer,
    _computation(RotatE): RotatEScorer,
    _computation(RESCAL): RESCALScorer,
    _computation(TransH): TransHScorer,
    _computation(TransR): TransRScorer,
    _computation(TuckER): TuckERScorer,
    _computation(ConvE): ConvEScorer,
    _computation(PyKEENModel): PyKEENScorer,
}


def make_scorer(
    given: AnyScorer,
    num_nodes: int,
    num_relations: int,
    hidden_channels: int,
    reciprocal: bool = False,
    sparse: bool = False,
) -> Scorer:
    r"""Creates a scorer by its name, or from a given model.

    Args:
        given (str or KGEModel or Scorer): One of the names in :obj:`SCORERS`,
            an interaction of PyKEEN such as :obj:`"pykeen:quate"`, or an object,
            which, if :obj:`reciprocal`, has twice as many relations.
        num_nodes (int): The number of entities.
        num_relations (int): The number of relations.
        hidden_channels (int): The embedding size.
        reciprocal (bool, optional): See :class:`ReciprocalScorer`.
            (default: :obj:`False`)
        sparse (bool, optional): See :class:`LatentExpert`.
            (default: :obj:`False`)
    """
    sizes = num_nodes, num_relations * (1 + reciprocal)
    if isinstance(given, str):
        given = make_named_scorer(given, (*sizes, hidden_channels), sparse)
    if isinstance(given, KGEModel):
        given = _scorer_of(given)
    if not isinstance(given, Scorer):
        raise ValueError(
            f"'scorer' must be a name, a KGEModel or a Scorer (got {given!r})"
        )
    if given.kge.node_emb.sparse != sparse:
        raise ValueError(
            f"'scorer' must have {'row-sparse' if sparse else 'dense'} gradients (got "
            f"sparse={not sparse})"
        )
    if (given.num_nodes, given.num_relations) != sizes:
        raise ValueError(
            f"'scorer' must have {sizes[0]} nodes and {sizes[1]} relations (got "
            f"{given.num_nodes} and {given.num_relations})"
        )
    if given.needs_reciprocal and not reciprocal:
        raise ValueError(
            f"'reciprocal' must be True for {given.title}, which asks for tails only "
            "(got False)"
        )
    return ReciprocalScorer(given) if reciprocal else given


def make_named_scorer(
    name: str, sizes: tuple[int, int, int], sparse: bool = False
) -> Scorer:
    r"""Creates a scorer by its name; see :meth:`make_scorer`.

    Args:
        name (str): The name, in any case.
        sizes (tuple): The number of entities, that of relations, including
            reciprocal ones, and the embedding size.
        sparse (bool, optional): See :class:`LatentExpert`.
            (default: :obj:`False`)
    """
    kge = _make_kge(name.lower(), sizes, sparse)
    for one in ("rel_emb", "rel_emb_im"):
        if hasattr(kge, one):  # there are few relations
            getattr(kge, one).sparse = False
    return _scorer_of(kge)


def _scorer_of(kge: KGEModel) -> Scorer:
    return _FAST.get(_computation(type(kge)), Scorer)(kge)


def _make_kge(name: str, sizes: tuple[int, int, int], sparse: bool) -> KGEModel:
    """Creates an embedding model by its name."""
    source, _, interaction = name.partition(":")
    if source == "pykeen":
        return PyKEENModel(*sizes, interaction, sparse=sparse)
    if name not in SCORERS:
        known = ", ".join(SCORERS)
        raise ValueError(
            f"'scorer' must be one of {known}, an interaction of PyKEEN such as "
            "pykeen:quate, or, in a model of a knowledge base, rgcn: and one of the "
            f"former (got {name!r})"
        )
    return SCORERS[name](*sizes, sparse=sparse)


def scorer_name(given: AnyScorer) -> str:
    r"""Returns the name of a scorer, or else that of its class.

    Args:
        given (str or KGEModel or Scorer): The scorer.
    """
    if isinstance(given, str):
        return given.lower()
    if isinstance(given, RGCNScorer):
        return f"rgcn:{scorer_name(given.scorer)}"
    kge = given.kge if isinstance(given, Scorer) else given
    if hasattr(kge, "scorer_name"):
        return kge.scorer_name
    names = {kind: name for name, kind in SCORERS.items()}
    name = names.get(type(kge), type(kge).__name__)
    norm = getattr(kge, "p_norm", None)
    usual = inspect.signature(type(kge).__init__).parameters.get("p_norm")
    if norm is None or (usual is not None and norm == usual.default):
        return name
    return f"{name} of norm {norm}"


def scorer_list(scorer: AnyScorer | Sequence[AnyScorer]) -> list[AnyScorer]:
    """Returns one scorer, or several, as a list."""
    if isinstance(scorer, str | KGEModel | Scorer):
        return [scorer]
    return list(scorer)
