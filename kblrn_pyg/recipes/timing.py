"""Estimates the time of a stage on this machine from its first batches."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import torch
from torch_geometric.data import HeteroData

from kblrn_pyg.data import ask, flat_triples
from kblrn_pyg.data.kb import num_edges
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.recipes.recipe import Stage
from kblrn_pyg.rules import RuleSet
from kblrn_pyg.shard import agreed
from kblrn_pyg.training.optimizers import make_optimizer
from kblrn_pyg.training.process import own_random_numbers, seed_all

# Batches that are measured: no more when this time is over, but for a few.
_LEAST_BATCHES, _MOST_BATCHES = 4, 10
_ENOUGH_SECONDS, _TOO_MANY_SECONDS = 3.0, 120.0
# Triples that are ranked, to tell the time of one from that of preparing.
_FEW_RANKED, _MORE_RANKED = 8, 200


@dataclass(frozen=True)
class StageTime:
    r"""The estimated time of a stage.

    Args:
        batch (float): The seconds of a batch.
        num_batches (int): The number of batches of an epoch.
        validation (float): The seconds of a validation.
    """

    batch: float
    num_batches: int
    validation: float

    def of(self, stage: Stage) -> float:
        r"""Returns the seconds of a stage, if it does not stop early.

        Args:
            stage (Stage): The stage, which may have another number of epochs.
        """
        settings = stage.fit_settings
        validations = -(-settings.epochs // settings.validate_every)
        epochs = settings.epochs * self.num_batches * self.batch
        return epochs + validations * self.validation


def measure(
    stage: Stage,
    data: HeteroData,
    val: HeteroData | None,
    rules: RuleSet | None,
    device: str = "cpu",
) -> StageTime:
    r"""Times the first batches of a stage, and some validation queries.

    The random number generators are not affected. With several processes, the
    measurement of the first one is used.

    Args:
        stage (Stage): The stage.
        data (HeteroData): The knowledge base.
        val (HeteroData, optional): The split to validate on.
        rules (RuleSet, optional): The rules of its experts.
        device (str, optional): The device. (default: :obj:`"cpu"`)
    """
    settings = stage.fit_settings
    with own_random_numbers():
        seed_all(settings.seed)
        model = build(stage, data, rules).to(device)
        model.train()
        head, rel, tail = (index.to(device) for index in flat_triples(data))
        loader = model.loader(
            head,
            rel,
            tail,
            batch_size=settings.batch_size,
            shuffle=True,
            by_query=model.is_exact,
        )
        seconds = _batch_seconds(model, loader, settings.optimizer)
        found = StageTime(min(seconds), len(loader), _validation(model, val))
    return agreed(found)


def build(stage: Stage, data: HeteroData, rules: RuleSet | None) -> KBLRN:
    r"""Creates the model of a stage.

    Args:
        stage (Stage): The stage.
        data (HeteroData): The knowledge base.
        rules (RuleSet, optional): The rules, which not all experts use.
    """
    settings = stage.model_settings
    needs_rules = set("re") & set(stage.experts) or settings.penalty is not None
    used = rules if needs_rules else None
    return KBLRN.from_data(data, stage.experts, rules=used, **stage.model)


def _batch_seconds(
    model: KBLRN, loader: Iterable[Any], optimizer_name: str
) -> list[float]:
    groups = [{"params": list(model.parameters()), "lr": 1e-6}]
    optimizer = make_optimizer(optimizer_name, groups)
    seconds: list[float] = []
    # The first batches compile and allocate; few ones are gone through again.
    again = chain.from_iterable(repeat(loader))
    for number, batch in enumerate(again, start=1):
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = model.loss(*batch)
        loss.backward()
        optimizer.step()
        loss.item()
        seconds.append(time.perf_counter() - start)
        is_enough = number >= _LEAST_BATCHES and sum(seconds[1:]) > _ENOUGH_SECONDS
        if is_enough or number == _MOST_BATCHES or sum(seconds) > _TOO_MANY_SECONDS:
            break
    return seconds[1:] or seconds


def _validation(model: KBLRN, val: HeteroData | None) -> float:
    """Returns the seconds of ranking all triples of a validation set."""
    if val is None:
        return 0.0
    number = num_edges(val, "edge_label_index")
    few, more = min(_FEW_RANKED, number), min(_MORE_RANKED, number)
    _ranking_seconds(model, val, few)  # which compiles
    seconds = [_ranking_seconds(model, val, one) for one in (few, more)]
    if more == few:
        return seconds[0]
    # What is prepared once takes the same time, however many triples there are.
    of_one = max(0.0, seconds[1] - seconds[0]) / (more - few)
    return seconds[0] + of_one * (number - few)


def _ranking_seconds(model: KBLRN, val: HeteroData, number: int) -> float:
    triples = flat_triples(val, "edge_label_index")
    some = torch.linspace(0, triples[0].numel() - 1, number).long()
    head, rel, tail = (index[some] for index in triples)
    asked = ask(val, (head, rel, tail))
    start = time.perf_counter()
    evaluate(model, asked)
    return time.perf_counter() - start
