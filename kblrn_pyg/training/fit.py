"""Learning the weights of a model."""

import hashlib
import logging
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from tqdm import tqdm

from kblrn_pyg.data import DataError, flat_triples
from kblrn_pyg.data.kb import FlatTriples
from kblrn_pyg.evaluation import evaluate, kb_for
from kblrn_pyg.training.checkpoint import (
    Checkpoint,
    Weights,
    load_checkpoint,
    save_checkpoint,
    versions,
)
from kblrn_pyg.training.plan import Plan
from kblrn_pyg.training.position import Position
from kblrn_pyg.training.process import (
    Interrupted,
    InterruptGuard,
    Process,
    derive_seed,
    get_rng_states,
    keep_freed_memory,
    own_random_numbers,
    seed_all,
    set_rng_states,
    set_threads,
)
from kblrn_pyg.training.run import Run
from kblrn_pyg.training.stopping import EarlyStopping
from kblrn_pyg.training.trainable import Trainable

logger = logging.getLogger(__name__)

# Sets the order of the triples apart from what else is random: negatives, dropout.
_SHUFFLING = 1


@dataclass(frozen=True)
class FitResult:
    r"""How a training went.

    Args:
        best_epoch (int, optional): The epoch of the best validation, whose
            weights the model has now; :obj:`None` without validation.
        best_mrr (float, optional): The mean reciprocal rank of it.
        epochs_done (int): The number of epochs.
        history (list): The lines of the log.
        stopped_early (bool): Whether the stopping rule ended the training.
    """

    best_epoch: int | None
    best_mrr: float | None
    epochs_done: int
    history: list[dict[str, Any]]
    stopped_early: bool


def fit(
    model: Trainable,
    train: HeteroData | Data,
    val: HeteroData | Data | None = None,
    filter_with: Sequence[HeteroData | Data] = (),
    epochs: int = 100,
    batch_size: int = 512,
    lr: float = 0.001,
    lr_decay: float = 1.0,
    feature_lr: float | None = None,
    validate_every: int = 5,
    patience: int = 0,
    seed: int = 0,
    run: Run | None = None,
    resume: bool = True,
    progress: bool = False,
) -> FitResult:
    r"""Learns the weights of a model with Adam.

    The defaults are those of the `"KBLRN" <https://arxiv.org/abs/1709.04676>`_
    paper.

    The random numbers of an epoch depend on the seed and the epoch alone, and
    a checkpoint is saved after every epoch, before every validation, and when
    Ctrl-C asks to stop, which takes effect after the batch. A training that was
    stopped, or killed at any moment, and is started again with the same
    arguments thus ends with the very same weights as if nothing had happened,
    given the same number of threads. The random numbers of the caller stay as
    they were.

    Args:
        model (KBLRN): The model.
        train (HeteroData or Data): The knowledge base, whose known triples
            (:obj:`edge_index`) are learnt.
        val (HeteroData or Data, optional): The split to validate on. At the end the
            model has the weights of the best validation.
            (default: :obj:`None`, do not validate)
        filter_with (sequence, optional): Further splits whose answers do not
            count as wrong in validation. (default: :obj:`()`)
        epochs (int, optional): The number of epochs. A finished run continues
            when it is started again with more of them. (default: :obj:`100`)
        batch_size (int, optional): The number of triples in a batch, or of
            distinct queries if the loss is over all entities.
            (default: :obj:`512`)
        lr (float, optional): The learning rate. (default: :obj:`0.001`)
        lr_decay (float, optional): What it is multiplied with after each epoch.
            (default: :obj:`1.0`)
        feature_lr (float, optional): The learning rate of the weights of
            relational and numerical features. Those of rare relations have few
            chances to learn, and their rules need large weights.
            (default: :obj:`None`, that of everything)
        validate_every (int, optional): The number of epochs between two
            validations; the last epoch is validated in any case.
            (default: :obj:`5`)
        patience (int, optional): How many validations in a row may bring no
            better mean reciprocal rank; see :class:`EarlyStopping`.
            (default: :obj:`0`)
        seed (int, optional): The seed of shuffling, negatives and dropout. The
            initial weights are those that the model has. (default: :obj:`0`)
        run (Run, optional): The folder to save to.
            (default: :obj:`None`, save nothing)
        resume (bool, optional): Whether to continue from the checkpoint of the
            run, if there is one; otherwise it is overwritten.
            (default: :obj:`True`)
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
    """
    plan = Plan(
        epochs, batch_size, lr, lr_decay, feature_lr, validate_every, patience, seed
    )
    keep_freed_memory()
    training = _Training(model, train, val, filter_with, plan, run)
    with own_random_numbers(), InterruptGuard(enabled=run is not None) as guard:
        try:
            training.begin(resume)
            training.learn(guard, progress)
        except KeyboardInterrupt:
            if run is None:
                raise
            logger.info("interrupted, call 'fit' again to continue %s", run.path)
            raise Interrupted(f"interrupted, {run.path} can be continued") from None
        finally:
            if run is not None:
                run.close()
    return training.result()


class _Training:
    """A training and its state."""

    def __init__(
        self,
        model: Trainable,
        train: HeteroData | Data,
        val: HeteroData | Data | None,
        filter_with: Sequence[HeteroData | Data],
        plan: Plan,
        run: Run | None,
    ) -> None:
        train = kb_for(model, train, "train")
        self.val = None if val is None else kb_for(model, val, "val")
        self.model, self.filter_with, self.plan = model, filter_with, plan
        self.process = Process.from_environment()
        self.run = run if self.process.is_main else None
        triples = _some_triples("train", train, "edge_index")
        asked: tuple[Tensor, ...] = ()
        if self.val is not None:
            asked = _some_triples("val", self.val, "edge_label_index")
        # What must be the same to continue bit for bit; more epochs are fine.
        self.settings = {
            **model.config,
            **asdict(plan),
            "triples": _digest(*triples, *asked),
        }
        del self.settings["epochs"]
        self.fingerprint = model.fingerprint()

        parameters = list(model.parameters())
        self.shuffling = torch.Generator()
        # The exact loss scores every candidate of a query: once, if it can.
        by_query = {"by_query": True} if getattr(model, "is_exact", False) else {}
        self.loader = model.loader(
            *(index.to(parameters[0].device) for index in triples),
            batch_size=plan.batch_size,
            shuffle=True,
            generator=self.shuffling,
            **by_query,
        )
        # Fused, because it is seven times faster on a CPU.
        groups = plan.parameter_groups(model)
        self.rates = [group["lr"] for group in groups]
        self.optimizer = torch.optim.Adam(groups, fused=True)

        self.position = Position()
        self.stopping = EarlyStopping(plan.patience)
        self.history: list[dict[str, Any]] = []
        self.best: Weights | None = None
        self.rng: dict[str, Any] | None = None  # of the checkpoint

    @property
    def finished(self) -> bool:
        return self.stopping.stopped or self.position.epoch >= self.plan.epochs

    def begin(self, resume: bool) -> None:
        if self.run is None:
            return
        continues = resume and self.run.checkpoint_path.exists()
        if continues:
            self._load()
        self.run.start_log(self.history)
        if not continues:
            self._save()  # there is a model, even if nothing is to be learned

    def learn(self, guard: InterruptGuard, progress: bool) -> None:
        epochs, num_batches = self.plan.epochs, len(self.loader)
        bar = tqdm(
            total=epochs * num_batches,
            initial=self.position.epoch * num_batches + self.position.batch,
            unit="batch",
            disable=not (progress and self.process.is_main),
        )
        with bar:
            while not self.finished:
                bar.set_description(f"epoch {self.position.epoch + 1}/{epochs}")
                self._train_epoch(guard, bar)
                self._end_epoch(guard)
                self._stop_if_asked(guard)
        if self.best is not None:
            self.model.load_state_dict(self.best)

    def result(self) -> FitResult:
        best, stopped = self.stopping.best_epoch, self.stopping.stopped
        mrr, done = self.stopping.best_value, self.position.epoch
        return FitResult(best, mrr, done, self.history, stopped)

    def _train_epoch(self, guard: InterruptGuard, bar: Any) -> None:
        self.model.train()
        for group, rate in zip(self.optimizer.param_groups, self.rates):
            group["lr"] = rate * self.plan.lr_decay**self.position.epoch
        start = time.perf_counter()
        for batch in self._remaining_batches():
            loss, size = self._step(*batch), batch[0].numel()
            seconds = time.perf_counter() - start
            self.position = self.position.after_batch(loss, size, seconds)
            bar.set_postfix(self._figures(), refresh=False)
            bar.update()
            self._stop_if_asked(guard)
            start = time.perf_counter()

    def _remaining_batches(self) -> Iterator[tuple[Any, ...]]:
        """The batches of the epoch, but for those that a checkpoint has done."""
        numbers = (self.plan.seed, self.position.epoch, self.process.rank)
        seed_all(*numbers)
        self.shuffling.manual_seed(derive_seed(*numbers, _SHUFFLING))
        done = self.position.batch
        if done == len(self.loader):  # only validation is missing
            return
        batches = iter(self.loader)
        for _ in range(done):
            next(batches)
        if done and self.rng is not None:
            set_rng_states(self.rng)
        yield from batches

    def _step(self, *batch: Any) -> float:
        self.optimizer.zero_grad()
        loss = self.model.loss(*batch)
        value = loss.item()
        if not math.isfinite(value):
            raise DataError(
                f"the loss became {value} in epoch {self.position.epoch + 1}, batch "
                f"{self.position.batch + 1}, expected a number: try a smaller 'lr' "
                f"(got {self.plan.lr})"
            )
        loss.backward()
        self.optimizer.step()
        return value

    def _end_epoch(self, guard: InterruptGuard) -> None:
        epoch, line = self.position.epoch + 1, None
        if self.plan.validates(epoch):
            line = self.position.log_line()
            if self.val is not None:
                line["val"] = self._validate(epoch, self.val, guard)
            self.history.append(line)
        self.position = self.position.after_epoch()
        self._save()
        # After the checkpoint, so that the log never knows more than it.
        if line is not None and self.run is not None:
            self.run.log(line)

    def _validate(
        self, epoch: int, val: HeteroData, guard: InterruptGuard
    ) -> dict[str, Any]:
        # Validation may take longer than the epoch. It can be left at any time,
        # because it is done again when the training continues.
        self._save()
        with guard.at_once():
            metrics = evaluate(self.model, val, self.filter_with).metrics()
        # What a longer training would not have looked at must not end it.
        counts = self.plan.is_scheduled(epoch)
        if self.stopping.update(epoch, metrics.mrr, counts):
            state = self.model.state_dict()
            self.best = {name: value.clone() for name, value in state.items()}
        return metrics.to_dict()

    def _figures(self) -> dict[str, str]:
        figures = {
            "loss": f"{self.position.mean_loss:.4f}",
            "triples/s": f"{self.position.triples_per_second:,.0f}",
        }
        if self.history and "val" in self.history[-1]:
            figures["MRR"] = f"{self.history[-1]['val']['mrr']:.4f}"
        return figures

    def _stop_if_asked(self, guard: InterruptGuard) -> None:
        if guard.requested:
            self._save()
            raise KeyboardInterrupt

    def _save(self) -> None:
        if self.run is None:
            return
        checkpoint = Checkpoint(
            model=self.model.state_dict(),
            optimizer=self.optimizer.state_dict(),
            rng=get_rng_states(),
            position=asdict(self.position),
            stopping=self.stopping.state_dict(),
            history=self.history,
            best=self.best,
            settings=self.settings,
            fingerprint=self.fingerprint,
            num_threads=set_threads(None),
        )
        save_checkpoint(self.run.checkpoint_path, checkpoint)

    def _load(self) -> None:
        assert self.run is not None
        path = self.run.checkpoint_path
        checkpoint = load_checkpoint(path, self.fingerprint, self.settings)
        now = {"threads": set_threads(None), **versions()}
        then = {"threads": checkpoint.num_threads, **checkpoint.versions}
        changed = [f"{key} {then[key]}" for key in now if now[key] != then[key]]
        if changed:
            logger.warning("%s was made with %s", path, ", ".join(changed))
        self.model.load_state_dict(checkpoint.model)
        self.optimizer.load_state_dict(checkpoint.optimizer)
        self.position = Position(**checkpoint.position)
        self.stopping.load_state_dict(checkpoint.stopping)
        self.history, self.best = checkpoint.history, checkpoint.best
        self.rng = checkpoint.rng


def _some_triples(name: str, data: HeteroData, key: str) -> FlatTriples:
    triples = flat_triples(data, key)
    if triples[0].numel() == 0:
        raise ValueError(f"'{name}' must have at least one triple (got none)")
    return triples


def _digest(*columns: Tensor) -> str:
    """Tells apart the triples that are trained and validated on."""
    digest = hashlib.sha256()
    for column in columns:
        digest.update(len(column).to_bytes(8, "little"))
        digest.update(column.cpu().numpy().tobytes())
    return digest.hexdigest()
