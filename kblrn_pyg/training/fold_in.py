"""Learns the rows of new entities in a few steps, with everything else frozen."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Adagrad

from kblrn_pyg.data import flat_triples
from kblrn_pyg.data.kb import FlatTriples
from kblrn_pyg.data.update import KBUpdate
from kblrn_pyg.nn import KBLRN, Expert
from kblrn_pyg.settings import setting, settle

# At most how many entities stand for all that have a role.
_MAX_EXAMPLES = 100


@dataclass(frozen=True)
class FoldInSettings:
    """The settings for learning the rows of new entities."""

    epochs: int = setting(2, "how often each fact of a new entity is seen, at least")
    least_steps: int = setting(30, "the minimum number of steps")
    batch_size: int = setting(2048, "the number of facts in a step")
    num_negatives: int = setting(128, "sampled entities that the facts of a step share")
    lr: float = setting(
        0.8, "the learning rate of Adagrad, relative to the size of other entries"
    )
    seed: int = setting(0, "the seed of all random numbers")

    def __post_init__(self) -> None:
        settle(self)
        for name in ("epochs", "least_steps", "batch_size", "num_negatives", "lr"):
            if not (value := getattr(self, name)) > 0:
                raise ValueError(f"'{name}' must be positive (got {value})")


def fold_in(expert: Expert, update: KBUpdate, settings: FoldInSettings) -> None:
    r"""Learns the rows of new entities with the loss of the expert alone.

    A row is initialised with the mean row of the entities that have the same roles,
    that is, which are the head, or the tail, of the same relations. The loss is
    that of training, over the facts of new entities, against sampled entities.

    Args:
        expert (Expert): The expert, which has one row per entity.
        update (KBUpdate): The update of the knowledge base.
        settings (FoldInSettings): The settings of learning them.
    """
    tables, facts = expert.entity_tables(), _facts_of_new(update)
    _start(tables, facts, update)
    if facts[0].numel() == 0:
        return
    alone = KBLRN(
        int(update.kb["entity"].num_nodes),
        len(update.kb.edge_types),
        {expert.name: expert},
        settings.num_negatives,
        "shared",
    )
    was_training = expert.training
    alone.eval()  # frozen layers may not even count what they see
    with _only(alone, tables), expert.with_sparse_gradients():
        rows = [_NewRows(table, update.num_before) for table in tables]
        optimizer = Adagrad(
            [{"params": [one.rows], "lr": settings.lr * one.size} for one in rows]
        )
        for batch in _batches(facts, settings):
            head_index, rel_type, tail_index = batch
            alone.loss(head_index, rel_type, tail_index).backward()
            for one in rows:
                one.take_gradient()
            optimizer.step()
    expert.train(was_training)


def leave_out(expert: Expert, update: KBUpdate) -> None:
    r"""Sets the rows of new entities to zero, so that the expert gives them a score
    of zero.

    Args:
        expert (Expert): The expert, which has one row per entity.
        update (KBUpdate): The update of the knowledge base.
    """
    first = update.num_before
    with torch.no_grad():
        for table in expert.entity_tables():
            table[first:] = 0
    if not _is_silent_about(expert, first, update):
        raise ValueError(
            f"'fold_in' must be True for the {expert.name} expert, whose scores of an "
            "entity without a row are not zero (got False)"
        )


@torch.no_grad()
def _is_silent_about(expert: Expert, entity: int, update: KBUpdate) -> bool:
    """Returns whether all scores of an entity are zero, in all relations."""
    device = expert.entity_tables()[0].device
    rel = torch.arange(len(update.kb.edge_types), device=device)
    new, other = torch.full_like(rel, entity), torch.zeros_like(rel)
    was_training = expert.training
    expert.eval()
    scores = torch.stack([expert(new, rel, other), expert(other, rel, new)])
    expert.train(was_training)
    return not bool(scores.any())


class _NewRows:
    """The rows of new entities in a table, as parameters of an optimiser."""

    def __init__(self, table: Parameter, first: int) -> None:
        self.table, self.first = table, first
        self.rows = table.data[first:].requires_grad_()  # the memory of the table
        some = table.data[torch.randint(first, (_MAX_EXAMPLES,), device=table.device)]
        # The root mean square of entries.
        self.size = float(some.square().mean().sqrt()) or 1.0

    def take_gradient(self) -> None:
        """Takes the gradient of these rows from that of the table."""
        grad = self.table.grad
        self.table.grad = None
        if grad is None:
            self.rows.grad = None
        elif grad.is_sparse:
            index, values = grad._indices()[0], grad._values()
            is_new = index >= self.first
            own = torch.zeros_like(self.rows)
            own.index_add_(0, index[is_new] - self.first, values[is_new])
            self.rows.grad = own
        else:
            self.rows.grad = grad[self.first :]


@contextmanager
def _only(model: KBLRN, tables: list[Parameter]) -> Iterator[None]:
    """Freezes everything but some parameters."""
    kept, before = set(map(id, tables)), {}
    for one in model.parameters():
        before[one] = one.requires_grad
        one.requires_grad_(id(one) in kept)
    try:
        yield
    finally:
        for one, needed in before.items():
            one.requires_grad_(needed)


def _facts_of_new(update: KBUpdate) -> FlatTriples:
    """Returns the facts that new entities take part in."""
    head, rel, tail = flat_triples(update.kb)
    is_new = (head >= update.num_before) | (tail >= update.num_before)
    return head[is_new], rel[is_new], tail[is_new]


def _batches(facts: FlatTriples, settings: FoldInSettings) -> Iterator[list[Tensor]]:
    num_batches = -(-facts[0].numel() // settings.batch_size)
    epochs = max(settings.epochs, -(-settings.least_steps // num_batches))
    for _ in range(epochs):
        order = torch.randperm(facts[0].numel())
        for part in order.split(settings.batch_size):
            yield [column[part] for column in facts]


@torch.no_grad()
def _start(tables: list[Parameter], facts: FlatTriples, update: KBUpdate) -> None:
    """Gives each new entity the mean row of the entities that have its roles."""
    first, number = update.num_before, update.num_new
    head, rel, tail = facts
    entity = torch.cat([head, tail])
    role = torch.cat([2 * rel, 2 * rel + 1])
    is_new = entity >= first
    entity, role = entity[is_new] - first, role[is_new]
    examples, of_role = _examples(update)
    for table in tables:
        means = _means(table[examples], of_role, 2 * len(update.kb.edge_types))
        rows = _means(means[role], entity, number)
        table[first:] = rows


def _examples(update: KBUpdate) -> tuple[Tensor, Tensor]:
    """Returns some of the former entities in each role, with their roles."""
    head, rel, tail = flat_triples(update.before)
    entity, role = torch.cat([head, tail]), torch.cat([2 * rel, 2 * rel + 1])
    order = torch.randperm(len(role))
    order = order[torch.argsort(role[order], stable=True)]
    entity, role = entity[order], role[order]
    begin = torch.searchsorted(role, role)
    keep = torch.arange(len(role)) - begin < _MAX_EXAMPLES
    return entity[keep], role[keep]


def _means(rows: Tensor, group: Tensor, number: int) -> Tensor:
    """Returns the mean row of each group, zero for an empty one."""
    total = rows.new_zeros(number, rows.size(1)).index_add_(0, group, rows)
    size = torch.bincount(group, minlength=number).clamp(min=1)
    return total / size[:, None].to(rows)
