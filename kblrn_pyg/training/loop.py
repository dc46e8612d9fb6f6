"""The training loop."""

import logging
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any

import torch

from kblrn_pyg.data import DataError, flat_triples
from kblrn_pyg.evaluation import device_of, evaluate, kb_for
from kblrn_pyg.nn.one_thread import one_torch_thread
from kblrn_pyg.progress import ProgressBar
from kblrn_pyg.shard import agreed, any_says, process_rank
from kblrn_pyg.sizes import choice_text, choose_training
from kblrn_pyg.training import process
from kblrn_pyg.training.checkpoint import Position, save_checkpoint
from kblrn_pyg.training.interface import Callback, FitResult, Progress, Trainable
from kblrn_pyg.training.process import Interrupted, InterruptGuard
from kblrn_pyg.training.run import Run
from kblrn_pyg.training.settings import FitSettings
from kblrn_pyg.training.sharded import own_run
from kblrn_pyg.training.state import TrainingState
from kblrn_pyg.training.validation import (
    Graph,
    ValidationSet,
    known_splits,
    validation_sets,
)

logger = logging.getLogger(__name__)


def fit(
    model: Trainable,
    train: Graph,
    val: Graph | Mapping[str, Graph] | None = None,
    filter_with: Sequence[Graph] | Mapping[str, Sequence[Graph]] = (),
    *,
    run: Run | None = None,
    resume: bool = True,
    progress: bool = False,
    callbacks: Iterable[Callback] = (),
    settings: FitSettings | None = None,
    **changes: Any,
) -> FitResult:
    r"""Trains a model, by default with Adam.

    The defaults are those of the `"KBLRN" <https://arxiv.org/abs/1709.04676>`_
    paper.

    The random numbers of an epoch depend only on the seed and the epoch. A
    checkpoint is saved after every epoch, before every validation, and on Ctrl-C,
    which takes effect after the current batch. A training run that was stopped, or
    killed at any moment, can therefore be restarted with the same arguments, and
    ends with exactly the same weights as without the interruption, given the same
    number of threads. The random number generators of the caller are not affected,
    and the model is in evaluation mode at the end.

    Args:
        model (KBLRN): The model.
        train (HeteroData or Data): The knowledge base, whose known triples
            (:obj:`edge_index`) are the training triples.
        val (HeteroData or Data or dict, optional): The split to validate on, or
            several splits by name. Each of them has its own early stopping and
            best weights; training ends when all have stopped. At the end the
            model has the best weights of the first one.
            (default: :obj:`None`, do not validate)
        filter_with (sequence or dict, optional): Additional splits whose answers
            do not count as wrong in validation, or such splits by the name of
            the validation set. (default: :obj:`()`)
        run (Run, optional): The folder to save to.
            (default: :obj:`None`, save nothing)
        resume (bool, optional): Whether to continue from the checkpoint of the
            run, if there is one; otherwise it is overwritten.
            (default: :obj:`True`)
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
        callbacks (iterable, optional): Functions to call with a
            :class:`Progress` after each validation. (default: :obj:`()`)
        settings (FitSettings, optional): The settings.
            (default: :obj:`None`, those of the paper, or, for a model with
            row-sparse gradients, what :meth:`~kblrn_pyg.sizes.choose_training`
            chooses)
        **changes (optional): Fields of :class:`FitSettings` that differ from
            :obj:`settings`, such as :obj:`epochs`, :obj:`batch_size`, :obj:`lr`,
            :obj:`validate_every`, :obj:`patience` or :obj:`seed`. A finished run
            can be continued by calling this again with more epochs.

    Example:
        >>> from kblrn_pyg import KBLRN
        >>> from kblrn_pyg.datasets import Families
        >>> model = KBLRN.from_data(Families()[0], "n")
        >>> fit(model, Families()[0], epochs=1, lr=0.02).epochs_done
        1
    """
    process.join_processes()
    process.keep_freed_memory()
    if settings is None:
        chosen = choose_training(bool(model.config.get("sparse")), changes)
        if chosen:
            logger.info(choice_text(model.num_nodes, chosen))
        changes = chosen | changes
    settings = (settings or FitSettings()).changed(changes)
    sets = validation_sets(model, val, filter_with, settings.patience)
    training = _Training(model, train, sets, settings, run)
    stoppable = InterruptGuard(enabled=run is not None)
    with process.only_training(), process.own_random_numbers(), stoppable as guard:
        try:
            training.begin(resume)
            training.learn(guard, tuple(callbacks), progress)
        except KeyboardInterrupt:
            if run is None:
                raise
            logger.info("interrupted, call 'fit' again to continue %s", run.path)
            raise Interrupted(f"interrupted, {run.path} can be continued") from None
        finally:
            model.train(False)
            if run is not None:
                run.close()
    return training.result()


class _Training:
    """A training run: epochs, validations, and saving."""

    def __init__(
        self,
        model: Trainable,
        train: Graph,
        sets: Sequence[ValidationSet],
        settings: FitSettings,
        run: Run | None,
    ) -> None:
        self.model, self.sets, self.settings, self.run = model, sets, settings, run
        self.own_run = own_run(run)
        triples = flat_triples(kb_for(model, train, "train"), "edge_index")
        if triples[0].numel() == 0:
            raise ValueError("'train' must have at least one triple (got none)")
        self.shuffling, device = torch.Generator(), device_of(model)
        # The exact loss scores every candidate of a query: once, if it can.
        exact = getattr(model, "is_exact", False)
        self.loader = model.loader(
            *(index.to(device) for index in triples),
            batch_size=settings.batch_size,
            shuffle=True,
            generator=self.shuffling,
            **({"by_query": True} if exact else {}),
        )
        if model.config.get("sparse") and settings.optimizer != "adagrad":
            raise ValueError(
                "'optimizer' must be adagrad for row-sparse gradients (got "
                f"{settings.optimizer})"
            )
        self.state = TrainingState(model, sets, settings, triples)

    def begin(self, resume: bool) -> None:
        run = self.run
        if run is None:
            return
        continues = agreed(resume and run.checkpoint_path.exists())
        writes = self.own_run is not None
        if continues:
            if writes:
                run.lock()
            self.state.load(run.checkpoint_path)
        with run.started(self.state.history) if writes else nullcontext():
            if writes:
                self._write_settings(run)
            # All processes take part in what the first one saves.
            if not continues:  # there is a model, even if nothing is to be learned
                self._save()
            if not agreed(continues and run.model_path.exists()):
                self._save_model()

    def _write_settings(self, run: Run) -> None:
        if run.settings is not None:
            run.write_settings(run.settings)
        elif not run.settings_path.exists():
            model, training = dict(self.model.config), asdict(self.settings)
            run.write_settings({"model": model, "training": training})

    def learn(
        self, guard: InterruptGuard, callbacks: Sequence[Callback], progress: bool
    ) -> None:
        epochs, num_batches = self.settings.epochs, len(self.loader)
        position = self.state.position
        bar = ProgressBar(
            total=epochs * num_batches,
            initial=position.epoch * num_batches + position.batch,
            unit="batch",
            disable=not progress or process_rank() > 0,
        )
        with bar:
            while not self.state.stopped and self.state.position.epoch < epochs:
                text = f"epoch {self.state.position.epoch + 1}/{epochs}"
                bar.set_description(text, refresh=False)
                self._train_epoch(guard, bar)
                self._end_epoch(guard, callbacks)
                self._stop_if_asked(guard)
        if self.sets and (best := self.sets[0].weights) is not None:
            self.model.load_state_dict(best)
        self._save_model()
        self.state.sharded.join(self.sets)

    def result(self) -> FitResult:
        best = {one.name: one.best for one in self.sets if one.best is not None}
        state = self.state
        return FitResult(best, state.position.epoch, state.history, state.stopped)

    def _train_epoch(self, guard: InterruptGuard, bar: Any) -> None:
        self.model.train()
        self.state.scale_rates(self.settings.lr_decay**self.state.position.epoch)
        start = time.perf_counter()
        for batch in self._remaining_batches():
            loss, size = self._step(*batch), batch[0].numel()
            self.state.position.add_batch(loss, size, time.perf_counter() - start)
            bar.set_postfix(self._figures(), refresh=False)
            bar.update()
            self._stop_if_asked(guard)
            start = time.perf_counter()

    def _remaining_batches(self) -> Iterator[tuple[Any, ...]]:
        """The batches of the epoch, except those before a checkpoint."""
        numbers = (self.settings.seed, self.state.position.epoch, 0)  # 0: the only rank
        process.seed_all(*numbers)
        # The order of the triples must not depend on negatives and dropout.
        self.shuffling.manual_seed(process.derive_seed(*numbers, 1))
        done = self.state.position.batch
        if done == len(self.loader):  # only validation is missing
            return
        batches = iter(self.loader)
        for _ in range(done):
            next(batches)
        if done and self.state.rng is not None:
            process.set_rng_states(self.state.rng)
        yield from batches

    def _step(self, *batch: Any) -> float:
        own = getattr(self.model, "uses_own_threads", False)
        with one_torch_thread() if own else nullcontext():
            value = self._find_gradients(*batch)
            self.state.optimizer.step()
        return value

    def _find_gradients(self, *batch: Any) -> float:
        self.state.optimizer.zero_grad()
        loss = self.model.loss(*batch)
        value = loss.item()
        if not math.isfinite(value):
            position = self.state.position
            raise DataError(
                f"the loss became {value} in epoch {position.epoch + 1}, batch "
                f"{position.batch + 1}, expected a number: try a smaller 'lr' (got "
                f"{self.settings.lr})"
            )
        loss.backward()
        self.state.sharded.add_up_gradients()
        return value

    def _end_epoch(self, guard: InterruptGuard, callbacks: Sequence[Callback]) -> None:
        position = self.state.position
        epoch, line = position.epoch + 1, None
        if self.settings.validates(epoch):
            line = position.log_line()
            line |= self._validate(epoch, guard)
            self.state.history.append(line)
            self.model.train(False)
            for callback in callbacks:
                callback(Progress(self.model, epoch, line, self.own_run))
        seconds = position.seconds_before + position.seconds
        self.state.position = Position(epoch, seconds_before=seconds)
        self._save()
        # After the checkpoint, so that the log never knows more than it.
        if line is not None and self.own_run is not None:
            self.own_run.log(line)

    def _validate(self, epoch: int, guard: InterruptGuard) -> dict[str, Any]:
        """Validates on all sets that have not stopped yet."""
        sets = [one for one in self.sets if not one.stopping.stopped]
        if not sets:
            return {}
        # Validation may take longer than the epoch. It can be left at any time,
        # because it is done again when the training continues. Several processes
        # leave it at its end, together.
        self._save()
        with guard.at_once() if self.state.sharded.shard is None else nullcontext():
            found = [
                evaluate(self.model, one.data, one.filter_with).metrics()
                for one in sets
            ]
        # What a longer training would not have looked at must not end it.
        counts = self.settings.is_scheduled(epoch)
        improved = [
            one
            for one, metrics in zip(sets, found)
            if one.stopping.update(epoch, metrics.mrr, counts)
        ]
        if improved:
            state = self.model.state_dict()
            weights = {name: value.clone() for name, value in state.items()}
        for one in improved:
            one.weights = weights
        if self.sets[0] in improved:
            self._save_model()
        return {one.name: metrics.to_dict() for one, metrics in zip(sets, found)}

    def _figures(self) -> dict[str, str]:
        line = self.state.position.log_line()
        speed = f"{line['triples_per_second']:,.0f}"
        figures = {"loss": f"{line['loss']:.4f}", "triples/s": speed}
        history = self.state.history
        if history and self.sets and self.sets[0].name in history[-1]:
            figures["MRR"] = f"{history[-1][self.sets[0].name]['mrr']:.4f}"
        return figures

    def _stop_if_asked(self, guard: InterruptGuard) -> None:
        if any_says(guard.requested):
            self._save()
            # All processes have got here. Any other error may be that of one process,
            # which must not wait for the others: it leaves the model split.
            self.state.sharded.join()
            raise KeyboardInterrupt

    def _save(self) -> None:
        if self.run is None:
            return
        checkpoint = self.state.checkpoint()  # of all processes
        if self.own_run is not None:
            save_checkpoint(self.own_run.checkpoint_path, checkpoint)

    def _save_model(self) -> None:
        """Saves a model file, if the model has a knowledge base to save with it."""
        save = getattr(self.model, "save", None)
        has_kb = getattr(self.model, "kb", None) is not None
        if self.run is None or save is None or not has_kb:
            return
        with self.state.sharded.joined():
            if self.own_run is not None:
                path = self.own_run.model_path
                save(path, known=known_splits(self.model, self.sets))
