"""Trains one model with several validation sets, and records the results."""

import copy
import fcntl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import HeteroData

from kblrn_pyg import KBLRN
from kblrn_pyg.data import numerical_features
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.evaluation import RankTable, Report, evaluate
from kblrn_pyg.nn import ModelSettings, NodeExpert
from kblrn_pyg.recipes.factors import as_plain
from kblrn_pyg.recipes.recipe import OTHERS, Factor
from kblrn_pyg.rules import (
    RuleSet,
    RuleSettings,
    find_rules,
    ground_rules,
    mine_rules,
    provided_rules,
)
from kblrn_pyg.settings import concerns
from kblrn_pyg.training import (
    Best,
    FitResult,
    Progress,
    Run,
    balance_relations,
    fit,
    seed_all,
    set_threads,
)
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
)
from reproduction.usa_contains import usa_answers, usa_figures

Splits = dict[str, HeteroData]

# The experts without a letter.
_OWN = {"node": NodeExpert}


def is_done(job: Job, places: Places) -> bool:
    r"""Tells whether all records of a training are there.

    Args:
        job (Job): The training.
        places (Places): Where to look.
    """
    paths = (record_path(places.results, job.name, name) for name in job.judged)
    return all(path.exists() for path in paths)


def run_job(job: Job, places: Places, progress: bool) -> bool:
    r"""Trains a model, or continues its training, and writes its records.

    Returns :obj:`False` if another process is training it.

    Args:
        job (Job): The training.
        places (Places): Where data sets, folders and records are.
        progress (bool): Whether to show a progress bar.
    """
    return is_done(job, places) or _train(job, places, progress)


def _train(job: Job, places: Places, progress: bool) -> bool:
    """Trains a model unless its training is complete; tells whether it could."""
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
    """Two processes may share a campaign, but not a training."""
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


def _usual(factors: dict[str, Factor]) -> dict[str, float]:
    """Returns the factor that most relations have."""
    return {
        name: one[OTHERS] if isinstance(one, Mapping) else one
        for name, one in factors.items()
    }


def with_facts(data: HeteroData, triples: torch.Tensor) -> HeteroData:
    r"""Returns a knowledge base with more facts, each of them once.

    Args:
        data (HeteroData): The knowledge base, which is not changed.
        triples (torch.Tensor): The facts, a row for each.
    """
    data = copy.copy(data)
    for rel, edge_type in enumerate(data.edge_types):
        more = triples[triples[:, 1] == rel][:, [0, 2]].t()
        facts = torch.cat([data[edge_type].edge_index, more], dim=1)
        data[edge_type].edge_index = facts.unique(dim=1)
    return data


def with_conclusions(data: HeteroData, rules: RuleSet) -> HeteroData:
    r"""Returns a knowledge base with all that follows from rules, as KALE-pre has it:
    until nothing else follows.

    Args:
        data (HeteroData): The knowledge base, which is not changed.
        rules (RuleSet): The rules.
    """
    before, data = -1, with_facts(data, torch.empty(0, 3, dtype=torch.long))
    while data.num_edges > before:
        before = data.num_edges
        found = ground_rules(data, rules).conclusion
        data = with_facts(data, torch.from_numpy(found))
    return data


class _Campaign:
    """One training and the data sets that it is judged on."""

    def __init__(self, job: Job, places: Places, folder: Path) -> None:
        self.job, self.places, self.folder = job, places, folder
        reset_peak_memory()
        self.splits = {name: load_dataset(name, places.root) for name in job.judged}
        self.train = self.splits[job.dataset]["train"]
        if job.permuted:
            permute_numbers(self.train, job.seed)
        self.rules = self._rules() if job.uses_rules else None
        seed_all(job.seed)
        self.model = self._new_model(job)
        self.last_validation = time.perf_counter()
        self.factors: dict[str, dict[str, Factor]] = {}  # of experts, by data set

    def run(self, progress: bool) -> None:
        schedule = self.job.schedule
        result = fit(
            self.model,
            self._facts(),
            {name: splits["val"] for name, splits in self.splits.items()},
            {name: [splits["test"]] for name, splits in self.splits.items()},
            run=Run(self.folder),
            progress=progress,
            callbacks=[self._end_validation],
            epochs=schedule.epochs,
            patience=schedule.patience,
            seed=self.job.seed,
            **schedule.training,
        )
        if self.job.beginnings:  # experts have learned all that they know apart
            result = self._balanced()
            self.model.load_state_dict(result.best[self.job.dataset].weights)
            self.model.save(Run(self.folder).model_path)
        for name in self.job.judged:
            path = record_path(self.places.results, self.job.name, name)
            if not path.exists():
                write_record(path, self._record(name, result))

    def _end_validation(self, progress: Progress) -> None:
        """Prints a line, and adds time and memory to the log."""
        line = progress.line
        self._add_costs(line)
        took = line["wall_seconds"] / self.job.schedule.training["validate_every"]
        minutes = (self.job.schedule.epochs - progress.epoch) * took / 60
        judged = [name for name in self.job.judged if name in line]
        found = ", ".join(f"{name} {line[name]['mrr']:.4f}" for name in judged)
        print(
            f"{self.job.name}: epoch {progress.epoch}, validation MRR {found}; "
            f"{took:.0f} s an epoch, at most {minutes:.0f} minutes left",
            flush=True,
        )

    def _add_costs(self, line: dict[str, Any]) -> None:
        now = time.perf_counter()
        line["wall_seconds"] = now - self.last_validation
        line["peak_memory_mb"] = peak_memory_mb()
        self.last_validation = now

    def _balanced(self) -> FitResult:
        """Takes over experts, and says how far to trust each, by each data set."""
        line: dict[str, Any] = {"epoch": 0}
        best = {}
        for name in self.job.judged:
            for beginning in self.job.beginnings:
                self._begin_with(beginning, name)
            splits = self.splits[name]
            found = balance_relations(self.model, splits["val"], [splits["test"]])
            self.factors[name] = as_plain(self.model, found)
            line[name] = self._rank(name, "val").metrics().to_dict()
            weights = copy.deepcopy(self.model.state_dict())
            best[name] = Best(0, line[name]["mrr"], False, weights)
            print(
                f"{self.job.name}: {name} {line[name]['mrr']:.4f} by validation with "
                f"factors {_usual(self.factors[name])}",
                flush=True,
            )
        self._add_costs(line)
        return FitResult(best, 0, [line], False)

    def _new_model(self, job: Job) -> KBLRN:
        values = {
            "hidden_channels": job.hidden_channels,
            "scorer": job.scorer.split("+"),
            "numerical": job.numerical,
            "threshold": job.threshold,
            "ignore_unknown": job.ignore_unknown,
            "negatives": job.negatives,
            **job.recipe.model,
        }
        # A recipe has settings of all experts; those of none are for any model.
        used_by = {one.name: one.metadata["expert"] for one in fields(ModelSettings)}
        own = [_OWN[name](self.train) for name in job.experts.split("+")[1:]]
        has_rules = set("re") & set(job.letters) or "penalty" in job.recipe.model
        return KBLRN.from_data(
            self.train,
            [*job.letters, *own],
            rules=self.rules if has_rules else None,
            **{
                key: value
                for key, value in values.items()
                if concerns(used_by[key], job.letters)
            },
        )

    def _facts(self) -> HeteroData:
        """Returns what the model learns, maybe with what follows from rules."""
        if not self.job.infers:
            return self.train
        assert self.rules is not None
        return with_conclusions(self.train, self.rules)

    def _begin_with(self, beginning: Job, judged: str) -> None:
        """Takes over the experts of a model that has no others."""
        other = self._new_model(beginning)
        run = Run(self.places.runs / beginning.name)
        weights = run.best_weights(other.fingerprint(), judged)
        other.load_state_dict(weights)
        self.model.take_experts(other)

    def _rules(self) -> RuleSet:
        needs_confidences = "e" in self.job.letters
        # Where a data set comes with rules, these are the features of the paper; the
        # evidence expert, which is not of the paper, has mined ones everywhere.
        if "rule_lines" in self.train and not needs_confidences:
            return provided_rules(self.train)
        if self.job.max_hops == 1:
            # Every relation that two entities have may say that they have another.
            settings = {"min_head_coverage": 0.0, "confidences": False}
            return mine_rules(self.train, max_hops=1, **settings)
        preset = "paper" if self.job.recipe.paper_rules else None
        settings = RuleSettings(preset=preset)
        return find_rules(self.train, settings, confidences=needs_confidences)

    def _rank(self, dataset: str, split: str) -> RankTable:
        splits = self.splits[dataset]
        other = splits["test" if split == "val" else "val"]
        return evaluate(self.model, splits[split], [other])

    def _record(self, dataset: str, result: FitResult) -> Record:
        best = result.best[dataset]
        self.model.load_state_dict(best.weights)
        judged = [line for line in result.history if dataset in line]
        return {
            "job": self.job.described(dataset),
            "versions": versions(),
            "machine": machine() | {"threads": set_threads(None)},
            "seconds": sum(line["wall_seconds"] for line in judged),
            "peak_memory_mb": max(one["peak_memory_mb"] or 0 for one in result.history),
            "epochs": judged[-1]["epoch"],
            "best_epoch": best.epoch,
            "stopped_early": best.stopped_early,
            "factors": self.factors.get(dataset),
            "num_rules": None if self.rules is None else len(self.rules),
            "val": next(one[dataset] for one in judged if one["epoch"] == best.epoch),
            **self._test(dataset),
        }

    def _test(self, dataset: str) -> dict[str, Any]:
        table = self._rank(dataset, "test")
        found = {"test": self._report(dataset, table)}
        for part in ("test-I", "test-II"):
            if part in self.splits[dataset]:
                found[part] = self._rank_part(dataset, part)
        if "r" in self.job.letters:
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
