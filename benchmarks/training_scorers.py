"""An epoch of each scorer beside PyKEEN's model of the same name.

Both have embeddings of the same size, batches of the same size and Adam, and one of
two losses, each a softmax:

* ``sampled``: both draw 500 entities for each triple and side. PyKEEN replaces either
  side, so that a triple has 1,000 negatives. KBLRN's ``shared`` loss, which draws them
  once for all triples of a batch, is there for reference.
* ``exact``: both score all entities as answers to distinct queries of both sides, by
  reciprocal relations, and learn all known answers to a query at once.

PyKEEN would need gigabytes for all distances of a batch, and hours for images of
sampled triples: :obj:`MODELS` says which losses a scorer is timed by.
"""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from contestants import PAUSE, Contestant, LoopContestant, adam_of, as_in_fit, forever
from torch import Tensor
from torch_geometric.data import HeteroData

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples

BATCH, NEGATIVES = 512, 500
LOSSES = ("sampled", "exact")
# How many batches PyKEEN trains in a call, of which the first is not timed.
PYKEEN_BATCHES = 3


@dataclass(frozen=True)
class Model:
    r"""A scorer here, and a model there.

    Args:
        name (str): What PyKEEN calls it.
        losses (tuple): The losses it is timed by.
        size (int, optional): The size of embeddings. (default: :obj:`100`)
        theirs (dict, optional): Further arguments of PyKEEN's.
        ours (dict, optional): Further arguments of :meth:`KBLRN.from_data`.
    """

    name: str
    losses: tuple[str, ...] = ("sampled",)
    size: int = 100
    theirs: dict[str, Any] = field(default_factory=dict)
    ours: dict[str, Any] = field(default_factory=dict)


_SQUARED = {"scoring_fct_norm": 2, "power_norm": True}
# TuckER has no dropout and no batch normalisation here, R-GCN as many bases there.
_PLAIN_TUCKER = {
    "apply_batch_normalization": False,
    **{f"dropout_{i}": 0.0 for i in range(3)},
}
MODELS = {
    "distmult": Model("DistMult", LOSSES),
    "complex": Model("ComplEx", LOSSES),
    "rescal": Model("RESCAL", LOSSES),
    "tucker": Model("TuckER", LOSSES, theirs=_PLAIN_TUCKER),
    "conve": Model("ConvE", ("exact",), size=200),
    "transe": Model("TransE", theirs={"scoring_fct_norm": 1}),
    "rotate": Model("RotatE"),
    "transh": Model("TransH", theirs=_SQUARED),
    "transr": Model("TransR", size=50, theirs={"relation_dim": 50, **_SQUARED}),
    "rgcn:distmult": Model(
        "RGCN",
        LOSSES,
        theirs={"num_layers": 1, "decomposition_kwargs": {"num_bases": 2}},
        ours={"rgcn_layers": 1, "rgcn_bases": 2, "edge_dropout": 0.4},
    ),
}


def ours(
    data: HeteroData, scorer: str, loss: str, negatives: str = "triple"
) -> Contestant:
    r"""Returns the training of a scorer of this library.

    Args:
        data (HeteroData): The knowledge base.
        scorer (str): The scorer.
        loss (str): One of :obj:`LOSSES`.
        negatives (str, optional): See :class:`KBLRN`. (default: :obj:`"triple"`)
    """
    torch.manual_seed(0)
    model, is_exact = MODELS[scorer], loss == "exact"
    sampled = {"num_negatives": NEGATIVES, "negatives": negatives}
    settings = {"num_negatives": None, "reciprocal": True} if is_exact else sampled
    kblrn = KBLRN.from_data(
        data, "l", model.size, scorer=scorer, **settings, **model.ours
    )
    optimizer = adam_of(kblrn)
    given = {"by_query": is_exact, "batch_size": BATCH, "shuffle": True}
    loader = kblrn.loader(*flat_triples(data), **given)
    batches = forever(loader)

    def step() -> None:
        optimizer.zero_grad()
        with as_in_fit(kblrn):
            kblrn.loss(*next(batches)).backward()
            optimizer.step()

    kind = "shared" if negatives == "shared" else loss
    return Contestant(f"KBLRN {scorer}, {kind}", len(loader), step)


def pykeen(data: HeteroData, scorer: str, loss: str) -> Contestant:
    r"""Returns the training of PyKEEN's model by PyKEEN's own loop, called on as many
    triples as make some batches, and timed from the end of a batch to the next one's.

    Args:
        data (HeteroData): The knowledge base.
        scorer (str): Our name of the model.
        loss (str): One of :obj:`LOSSES`.
    """
    from pykeen.models import model_resolver
    from pykeen.sampling import BasicNegativeSampler
    from pykeen.training import LCWATrainingLoop, SLCWATrainingLoop, TrainingCallback
    from pykeen.triples import CoreTriplesFactory

    logging.getLogger("pykeen").setLevel(logging.ERROR)
    torch.manual_seed(0)
    model, is_exact = MODELS[scorer], loss == "exact"
    triples, sizes = torch.stack(flat_triples(data), dim=1), _sizes(data)
    if is_exact:
        triples, sizes["num_relations"] = _both_sides(triples, sizes["num_relations"])
    kge = model_resolver.make(
        model.name,
        triples_factory=CoreTriplesFactory(triples, **sizes),
        embedding_dim=model.size,
        loss="crossentropy",
        **model.theirs,
    )
    optimizer = torch.optim.Adam(kge.parameters(), lr=0.001)
    kind: type = LCWATrainingLoop if is_exact else SLCWATrainingLoop
    sampler = {
        "negative_sampler": BasicNegativeSampler,
        "negative_sampler_kwargs": {"num_negs_per_pos": 2 * NEGATIVES},
    }
    pieces = _by_queries(triples) if is_exact else _by_triples(triples)
    parts = forever(pieces)

    class Clock(TrainingCallback):
        times: list[float]

        def post_batch(self, *args: Any, **kwargs: Any) -> None:
            self.times.append(time.perf_counter())

    def step() -> Iterator[float]:
        some = CoreTriplesFactory(next(parts), **sizes)
        given = {} if is_exact else sampler
        loop = kind(model=kge, triples_factory=some, optimizer=optimizer, **given)
        clock = Clock()
        clock.times = []
        loop.train(
            some,
            num_epochs=1,
            batch_size=BATCH,
            callbacks=clock,
            use_tqdm=False,
            use_tqdm_batch=False,
        )
        return (later - one for one, later in pairwise(clock.times))

    num_batches = -(-_num_examples(triples, is_exact) // BATCH)
    return LoopContestant(f"PyKEEN {model.name}, {loss}", num_batches, step)


def _num_examples(triples: Tensor, is_exact: bool) -> int:
    """Returns the number of triples, or of queries."""
    return len(triples[:, :2].unique(dim=0)) if is_exact else len(triples)


def _sizes(data: HeteroData) -> dict[str, int]:
    return {
        "num_entities": data["entity"].num_nodes,
        "num_relations": len(data.edge_types),
    }


def _both_sides(triples: Tensor, num_relations: int) -> tuple[Tensor, int]:
    """Adds reciprocal facts: PyKEEN's loss asks for tails only."""
    head, rel, tail = triples.t()
    others = torch.stack([tail, rel + num_relations, head], dim=1)
    return torch.cat([triples, others]), 2 * num_relations


def _by_triples(triples: Tensor) -> list[Tensor]:
    shuffled = triples[torch.randperm(len(triples))]
    return list(shuffled.split(PYKEEN_BATCHES * BATCH))


def _by_queries(triples: Tensor) -> list[Tensor]:
    """Returns the triples of so many queries, with all of their answers."""
    _, query = torch.unique(triples[:, :2], dim=0, return_inverse=True)
    place = torch.randperm(int(query.max()) + 1)[query] // (PYKEEN_BATCHES * BATCH)
    order = torch.argsort(place, stable=True)
    return list(triples[order].split(torch.bincount(place).tolist()))


def contests(
    data: HeteroData, scorers: list[str], losses: list[str]
) -> Iterator[list[Contestant]]:
    r"""Returns those who are compared with each other, PyKEEN last.

    Args:
        data (HeteroData): The knowledge base.
        scorers (list): Names in :obj:`MODELS`.
        losses (list): Some of :obj:`LOSSES`.
    """
    for scorer in scorers:
        for loss in MODELS[scorer].losses:
            if loss not in losses:
                continue
            several = [ours(data, scorer, loss)]
            if loss == "sampled":
                several.append(ours(data, scorer, loss, "shared"))
            yield [*several, pykeen(data, scorer, loss)]


def compare_scorers(
    data: HeteroData, scorers: list[str], losses: list[str], turns: int
) -> None:
    r"""Prints seconds an epoch, and how many times as fast as PyKEEN each is.

    Args:
        data (HeteroData): The knowledge base.
        scorers (list): Names in :obj:`MODELS`.
        losses (list): Some of :obj:`LOSSES`.
        turns (int): How often each takes its turn; PyKEEN then trains some batches.
    """
    print(f"{'':30}{'a batch':>12}{'batches':>9}{'an epoch':>10}   PyKEEN / it")
    for several in contests(data, scorers, losses):
        *_, theirs = several
        for one in several:
            one.warm_up()
        for _ in range(turns):
            for one in several:
                one.take_turn(PAUSE, PYKEEN_BATCHES - 1)
        for one in several:
            print(
                f"{one.name:30}{1000 * one.batch:9.0f} ms{one.num_batches:9,}"
                f"{one.epoch:8.1f} s{theirs.epoch / one.epoch:11.1f}",
                flush=True,
            )
