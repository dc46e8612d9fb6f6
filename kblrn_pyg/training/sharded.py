"""Training by several processes, each with the embeddings of its own entities.

With a single process, the model is whole, and the functions here have no effect.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from torch.optim import Optimizer

from kblrn_pyg.nn.kblrn import KBLRN
from kblrn_pyg.shard import Shard, add_up_gradients, num_processes, process_rank
from kblrn_pyg.training.checkpoint import Checkpoint
from kblrn_pyg.training.interface import Trainable
from kblrn_pyg.training.run import Run
from kblrn_pyg.training.validation import ValidationSet


def own_run(run: Run | None) -> Run | None:
    """Returns the folder to write to; only the first process has one."""
    return run if process_rank() == 0 else None


class ShardedModel:
    r"""A model whose entities are split among the processes, if there are several.

    All methods but :meth:`own` need all processes.

    Args:
        model (KBLRN): The model, which is split.
    """

    def __init__(self, model: Trainable) -> None:
        self.model: Any = model
        self.split: set[str] = set()  # the names of the parameters that are split
        if num_processes() > 1:
            self.split = _splittable(model).split_entities(
                Shard.of_this_process(model.num_nodes)
            )

    @property
    def shard(self) -> Shard | None:
        """The entities of this process, if the model is split."""
        return getattr(self.model, "shard", None)

    def add_up_gradients(self) -> None:
        """Sums the gradients of parameters that every process has."""
        if self.shard is None:
            return
        named = self.model.named_parameters()
        add_up_gradients([one for name, one in named if name not in self.split])

    def join(self, sets: Sequence[ValidationSet] = ()) -> None:
        r"""Gives the whole model back to every process.

        Args:
            sets (sequence, optional): Validation sets whose best weights are also
                joined. (default: :obj:`()`)
        """
        if self.shard is None:
            return
        for one in sets:
            if one.weights is not None:
                one.weights = self.shard.gather_all(one.weights, self.split)
        self.model.join_entities()

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Gives the whole model to every process, within the context."""
        shard, state = self.shard, self.model.state_dict()
        self.join()
        yield  # what fails here leaves the model whole
        if shard is not None:
            self.model.split_entities(shard)
            self.model.load_state_dict(state)

    def whole(self, checkpoint: Checkpoint, optimizer: Optimizer) -> Checkpoint:
        """Returns a checkpoint that any number of processes can resume from."""
        if self.shard is None:
            return checkpoint
        return self._changed(checkpoint, optimizer, self.shard.gather_all)

    def own(self, checkpoint: Checkpoint, optimizer: Optimizer) -> Checkpoint:
        """Returns what this process needs of a checkpoint."""
        if self.shard is None:
            return checkpoint
        return self._changed(checkpoint, optimizer, self.shard.cut_all)

    def _changed(
        self,
        checkpoint: Checkpoint,
        optimizer: Optimizer,
        change: Callable[[Any, set[str]], dict[str, Any]],
    ) -> Checkpoint:
        """Applies a function to everything that has one row per entity."""
        names = {id(one): name for name, one in self.model.named_parameters()}
        order = [names[id(p)] for g in optimizer.param_groups for p in g["params"]]
        states = {}
        for i, values in checkpoint.optimizer["state"].items():
            rows = {key for key, value in values.items() if value.dim() > 0}
            states[i] = change(values, rows if order[i] in self.split else set())
        best = checkpoint.best.items()
        return replace(
            checkpoint,
            model=change(checkpoint.model, self.split),
            optimizer=checkpoint.optimizer | {"state": states},
            best={name: change(weights, self.split) for name, weights in best},
        )


def _splittable(model: Trainable) -> KBLRN:
    """Returns the model, unless several processes cannot train it."""
    if not isinstance(model, KBLRN):
        raise ValueError("'model' must be a KBLRN to be trained by processes")
    if not model.is_exact and model.negatives != "shared":
        raise ValueError(
            "'negatives' must be shared, or 'num_negatives' all, to train with "
            f"several processes (got {model.negatives!r})"
        )
    if model.shard is not None:
        raise ValueError(
            "'model' must be whole, a training that failed has left it split among "
            "processes"
        )
    return model
