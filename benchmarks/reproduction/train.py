"""Trains one model, watching several validation sets, and records what it gave."""

import fcntl
import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import HeteroData

from kblrn_pyg import KBLRN
from kblrn_pyg.data import numerical_features
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.evaluation import RankTable, Report, evaluate
from kblrn_pyg.rules import PAPER, RuleSet, mine_rules, read_rules
from kblrn_pyg.training import EarlyStopping, Run, fit, seed_all, set_threads
from reproduction.cardinality import asks_for_one
from reproduction.contributions import heaviest_rules
from reproduction.job import Job
from reproduction.records import (
    Places,
    Record,
    machine,
    peak_memory_mb,
    record_path,
    reset_peak_memory,
    versions,
    write_record,
    write_text,
)
from reproduction.usa_contains import usa_answers, usa_figures

Splits = dict[str, HeteroData]


def is_done(job: Job, places: Places) -> bool:
    r"""Tells whether all records of a training are there.

    Args:
        job (Job): The training.
        places (Places): Where to look.
    """
    paths = (record_path(places.results, job.name, name) for name in job.judged)
    return all(path.exists() for path in paths)


def run_job(job: Job, places: Places, progress: bool) -> bool:
    r"""Trains a model, or goes on with it, and writes its records.

    Returns whether it did; another process may be at it.

    Args:
        job (Job): The training.
        places (Places): Where data sets, folders and records are.
        progress (bool): Whether to show a progress bar.
    """
    return is_done(job, places) or _train(job, places, progress)


def _train(job: Job, places: Places, progress: bool) -> bool:
    """Trains a model unless its folder has all of it; tells whether it could."""
    if not all(_train(one, places, progress) for one in job.beginnings):
        return False
    folder = places.runs / job.name
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / "lock") as is_mine:
        if is_mine:
            _Campaign(job, places, folder).run(progress)
    return is_mine


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Two processes may share a campaign, but never a folder."""
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def permute_numbers(data: HeteroData, seed: int) -> None:
    r"""Permutes each attribute among the entities that have it.

    Args:
        data (HeteroData): The knowledge base, changed in place.
        seed (int): The seed.
    """
    generator = torch.Generator().manual_seed(seed)
    x = data["entity"].x.clone()
    for column in x.t():
        known = (~column.isnan()).nonzero().flatten()
        column[known] = column[known[torch.randperm(len(known), generator=generator)]]
    data["entity"].x = x


class _Campaign:
    """One training and the data sets that it is judged on."""

    def __init__(self, job: Job, places: Places, folder: Path) -> None:
        self.job, self.places, self.folder = job, places, folder
        reset_peak_memory()
        self.splits = {name: load_dataset(name, places.root) for name in job.judged}
        self.train = self.splits[job.dataset]["train"]
        if job.permuted:
            permute_numbers(self.train, job.seed)
        self.rules = self._rules() if "r" in job.experts else None
        seed_all(job.seed)
        self.model = self._new_model(job)
        for beginning in job.beginnings:
            self._begin_with(beginning)
        self.stopping = {n: EarlyStopping(job.schedule.patience) for n in job.judged}
        self.log_path = folder / "validations.jsonl"
        self.log = self._read_log()

    def run(self, progress: bool) -> None:
        every = self.job.schedule.training["validate_every"]
        epochs = range(every, self.job.schedule.epochs + 1, every)
        for epoch in epochs or [0]:  # experts may learn all that they know apart
            stopped = [name for name, one in self.stopping.items() if one.stopped]
            self._write_records(stopped)
            if len(stopped) == len(self.stopping):
                return
            if not any(line["epoch"] == epoch for line in self.log):
                self._learn_until(epoch, progress)
        self._write_records(self.job.judged)

    def _write_records(self, datasets: Iterable[str]) -> None:
        """Writes what is missing; training goes on from the checkpoint."""
        for name in datasets:
            path = record_path(self.places.results, self.job.name, name)
            if not path.exists():
                write_record(path, self._record(name))

    def _learn_until(self, epoch: int, progress: bool) -> None:
        start = time.perf_counter()
        fit(
            self.model,
            self.train,
            epochs=epoch,
            seed=self.job.seed,
            run=Run(self.folder),
            progress=progress,
            **self.job.schedule.training,
        )
        line: dict[str, Any] = {"epoch": epoch, "val": {}}
        for name, stopping in self.stopping.items():
            if stopping.stopped:
                continue
            metrics = self._rank(name, "val").metrics()
            line["val"][name] = metrics.to_dict()
            if stopping.update(epoch, metrics.mrr):
                torch.save(self.model.state_dict(), self._weights_path(name))
        line["seconds"] = time.perf_counter() - start
        line["peak_memory_mb"] = peak_memory_mb()
        self.log.append(line)
        lines = [json.dumps(line) + "\n" for line in self.log]
        write_text(self.log_path, "".join(lines))
        found = ", ".join(f"{n} {m['mrr']:.4f}" for n, m in line["val"].items())
        took = line["seconds"] / self.job.schedule.training["validate_every"]
        print(
            f"{self.job.name}: epoch {epoch}, validation MRR {found}; "
            f"{took:.0f} s an epoch, at most {self._minutes_left(epoch, took):.0f} "
            "minutes left",
            flush=True,
        )

    def _minutes_left(self, epoch: int, seconds_an_epoch: float) -> float:
        return (self.job.schedule.epochs - epoch) * seconds_an_epoch / 60

    def _read_log(self) -> list[dict[str, Any]]:
        """What was validated before the process was killed."""
        if not self.log_path.exists():
            return []
        lines = self.log_path.read_text(encoding="utf-8").splitlines()
        log = [json.loads(line) for line in lines]
        for line in log:
            for name, metrics in line["val"].items():
                self.stopping[name].update(line["epoch"], metrics["mrr"])
        return log

    def _new_model(self, job: Job) -> KBLRN:
        return KBLRN.from_data(
            self.train,
            job.experts,
            job.hidden_channels or 1,
            job.scorer,
            self.rules,
            numerical=job.numerical,
            negatives=job.negatives,
            **job.recipe.model,
        )

    def _begin_with(self, beginning: Job) -> None:
        """Takes over the experts of a model that has no others."""
        path = self.places.runs / beginning.name / _weights_name(beginning.dataset)
        other = self._new_model(beginning)
        other.load_state_dict(torch.load(path, weights_only=True))
        self.model.take_experts(other)

    def _rules(self) -> RuleSet:
        lines = self.train.get("rule_lines")
        if lines is not None:  # the data set comes with rules of its own
            path = self.folder / "rules.txt"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            names = [relation for _, relation, _ in self.train.edge_types]
            return read_rules(path, names, "kale", strict=False)[0]
        wanted = PAPER if self.job.recipe.paper_rules else {"confidences": False}
        return mine_rules(self.train, **wanted)

    def _rank(self, dataset: str, split: str) -> RankTable:
        splits = self.splits[dataset]
        other = splits["test" if split == "val" else "val"]
        return evaluate(self.model, splits[split], [other])

    def _weights_path(self, dataset: str) -> Path:
        return self.folder / _weights_name(dataset)

    def _record(self, dataset: str) -> Record:
        weights = torch.load(self._weights_path(dataset), weights_only=True)
        self.model.load_state_dict(weights)
        best = self.stopping[dataset].best_epoch
        judged = [line for line in self.log if dataset in line["val"]]
        return {
            "job": self.job.described(dataset),
            "versions": versions(),
            "machine": machine() | {"threads": set_threads(None)},
            "seconds": sum(line["seconds"] for line in judged),
            "peak_memory_mb": max(line["peak_memory_mb"] or 0 for line in self.log),
            "epochs": judged[-1]["epoch"],
            "best_epoch": best,
            "stopped_early": self.stopping[dataset].stopped,
            "num_rules": None if self.rules is None else len(self.rules),
            "val": next(one["val"][dataset] for one in judged if one["epoch"] == best),
            **self._test(dataset),
        }

    def _test(self, dataset: str) -> dict[str, Any]:
        table = self._rank(dataset, "test")
        found = {"test": self._report(dataset, table)}
        for part in ("test-I", "test-II"):
            if part in self.splits[dataset]:
                found[part] = self._rank_part(dataset, part)
        if self.model.relational is not None:
            found["heaviest_rules"] = heaviest_rules(self.model, table)
        if dataset == "FB15k-237":
            splits = self.splits[dataset]
            answers = usa_answers(splits, self.places.root)
            found["usa_contains"] = usa_figures(self.model, splits, answers)
        return found

    def _report(self, dataset: str, table: RankTable) -> dict[str, Any]:
        """All figures, but only of the relations that numbers could help."""
        report = Report.of(table).to_json()
        others = [self.splits[dataset][split] for split in ("val", "test")]
        has_one = asks_for_one(table, self.train, others)
        report["by_cardinality"] = {
            "one": table.metrics(has_one).to_dict(),
            "many": table.metrics(~has_one).to_dict(),
        }
        has_numbers = numerical_features(self.train).ptr.diff() > 0
        wanted = {table.relations[i] for i in has_numbers.nonzero().flatten().tolist()}
        report["by_relation"] = {
            name: metrics
            for name, metrics in report["by_relation"].items()
            if name in wanted
        }
        return report

    def _rank_part(self, dataset: str, part: str) -> dict[str, Any]:
        """A part of the test set, with all of the test set known."""
        splits = self.splits[dataset]
        known = [splits["val"], splits["test"]]
        return evaluate(self.model, splits[part], known).metrics().to_dict()


def _weights_name(dataset: str) -> str:
    return f"best_on_{dataset}.pt"
