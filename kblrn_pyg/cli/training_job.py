"""Training, testing and printing, whatever the recipe."""

import argparse
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kblrn_pyg.cli.options import (
    figures_table,
    given_settings,
    is_first_process,
    option_name,
    shows_progress,
    tell,
)
from kblrn_pyg.data import DataError
from kblrn_pyg.recipes.files import RECIPE_NAME, read_recipe, write_recipe
from kblrn_pyg.recipes.named import NAMES
from kblrn_pyg.recipes.recipe import OTHERS, Factor, Recipe, Stage
from kblrn_pyg.settings import changed
from kblrn_pyg.training.run import Run

if TYPE_CHECKING:
    from kblrn_pyg.nn import KBLRN
    from kblrn_pyg.recipes.material import Material
    from kblrn_pyg.runs import Settings, Splits
    from kblrn_pyg.training import FitResult


def as_groups(plan: Recipe) -> dict[str, Any]:
    """Returns the settings of a recipe of one stage, by their group."""
    (stage,) = plan.stages
    return {
        "model": stage.model_settings,
        "training": stage.fit_settings,
        "rules": plan.rule_settings,
    }


def as_recipe(groups: Mapping[str, Any], epochs: int) -> Recipe:
    """Returns settings by group as a recipe of one stage."""
    model = changed(groups["model"])
    model.pop("experts", None)
    training = changed(groups["training"]) | {"epochs": epochs}
    stage = Stage(groups["model"].experts, model, training)
    return Recipe("own", (stage,), changed(groups["rules"]))


def only_facts(splits: "Splits") -> "Splits":
    """Returns a knowledge base with all facts as training triples."""
    from kblrn_pyg.data import with_all_facts

    tell("learning from all facts, so that no evaluation is possible")
    return {"train": with_all_facts(splits)}


@dataclass
class Job:
    """A training run with its folder and its data set."""

    folder: Run
    splits: "Splits"
    settings: "Settings"
    device: str

    @property
    def material(self) -> "Material":
        """The data to train on."""
        from kblrn_pyg.recipes.material import Material
        from kblrn_pyg.runs import other_answers

        val = self.splits["val"] if self._asks("val") else None
        known = other_answers(self.splits, "val")
        train, progress = self.splits["train"], shows_progress()
        return Material(train, val, known, self.device, progress)

    def plan(
        self, recipe: str, options: argparse.Namespace, groups: Mapping[str, type]
    ) -> Recipe:
        """Returns the recipe: that of a run that is continued, or a new one."""
        from kblrn_pyg.recipes.apply import stored_plan
        from kblrn_pyg.recipes.choose import choose_recipe

        names = ("model", "training", "rules")
        changes = {name: given_settings(options, groups[name]) for name in names}
        if (plan := stored_plan(self.folder)) is not None:
            return _continued(plan, options, changes)
        if recipe == "auto" and is_first_process():
            tell("recipe auto: timing the first batches on this machine")
        found = choose_recipe(recipe, self.material, options.budget, changes)
        if is_first_process():
            tell(f"recipe {found.name}: {found.why or 'as it was given'}")
        return found

    def train_in_stages(self, plan: Recipe) -> None:
        """Trains experts separately, and reports the results."""
        from kblrn_pyg.recipes.apply import carry_out, described

        self.folder.settings = self.settings | described(plan)
        done = carry_out(plan, self.material, self.folder)
        figures: dict[str, Any] = {
            "stages": {name: _figures(one) for name, one in done.stages.items()},
            "factors": done.recipe.factors,
        }
        lines = [f"{name}: {_epochs_text(one)}" for name, one in done.stages.items()]
        factors = (done.recipe.factors or {}).items()
        scaled = ", ".join(f"{name} {_factor_text(one)}" for name, one in factors)
        lines.append(f"factors of experts: {scaled}")
        last = [name for name, one in done.stages.items() if _is_last(one)]
        self._finish(done.model, figures, lines, " and ".join(last))

    def train_together(self, model: "KBLRN", groups: Mapping[str, Any]) -> None:
        """Trains all experts together, and reports the results."""
        from kblrn_pyg.training import fit

        self.folder.settings = self.settings
        about = self.settings.get("recipe", {})
        material = self.material.validated_with(about.get("most_validated"))
        result = fit(
            model,
            material.data,
            material.val,
            material.known,
            run=self.folder,
            progress=material.progress,
            settings=groups["training"],
        )
        if is_first_process():
            epochs = result.best_epoch or result.epochs_done
            chosen = as_recipe(groups, epochs)
            write_recipe(chosen, self.folder.path / RECIPE_NAME)
        last = groups["model"].experts if _is_last(result) else ""
        figures = _figures(result)
        if material.val is not None and material.val is self.splits.get(
            "val"
        ):  # the whole set was validated on
            for line in result.history:
                if line["epoch"] == result.best_epoch and "val" in line:
                    figures["val"] = line["val"]
        self._finish(model, figures, [_epochs_text(result)], last)

    def _asks(self, split: str) -> bool:
        """Returns whether a split has triples, which may not be the case for
        imported data sets."""
        from kblrn_pyg.data.kb import num_edges

        if split not in self.splits:
            return False
        return num_edges(self.splits[split], "edge_label_index") > 0

    def _finish(
        self, model: "KBLRN", figures: dict[str, Any], lines: list[str], last: str
    ) -> None:
        """Evaluates a model, writes its figures and prints them."""
        from kblrn_pyg.evaluation import evaluate
        from kblrn_pyg.runs import other_answers

        for split in ("val", "test"):
            if self._asks(split) and split not in figures:
                others = other_answers(self.splits, split)
                progress = shows_progress()
                table = evaluate(model, self.splits[split], others, progress=progress)
                figures[split] = table.metrics().to_dict()
        if not is_first_process():
            return
        self.folder.write_json("metrics.json", figures)
        rows = {name: figures[name] for name in self.splits if name in figures}
        if rows:
            print(figures_table("split", rows) + "\n")
        elif not self.settings.get("all_facts"):
            print("nothing was held out to test on\n")
        if last:
            print(
                f"the best epoch of {last} was the last one: more epochs may help "
                "('--resume --epochs N')"
            )
        begins_with = (self.settings.get("start") or {}).get("begin_with")
        is_asked = all(self._asks(split) for split in ("val", "test"))
        if "n" in model.instance and is_asked and not begins_with:
            command = shlex.join(["kblrn", "control", str(self.folder.path)])
            print(f"'{command}' tells whether the numbers are used")
        print("\n".join(lines) + f"; saved {self.folder.path}")


def _continued(
    plan: Recipe, options: argparse.Namespace, changes: Mapping[str, Any]
) -> Recipe:
    """Returns the plan of a run that continues, possibly with more epochs."""
    given = options.recipe
    if given not in (None, *NAMES) and Path(given).exists():
        given = read_recipe(given).name  # as the command that began it said
    if given is not None and given != plan.name:
        raise DataError(
            f"the run was made by recipe {plan.name}, it cannot continue by {given}"
        )
    for group, values in changes.items():
        for name, value in values.items():
            if name != "epochs" and plan.changed(**{group: {name: value}}) != plan:
                raise DataError(
                    f"the run was made with another {option_name(name)[2:]}, it cannot "
                    f"continue with {value}"
                )
    if "epochs" not in changes["training"]:
        return plan
    return plan.changed(training={"epochs": changes["training"]["epochs"]})


def _figures(result: "FitResult") -> dict[str, Any]:
    figures: dict[str, Any] = {
        "best_epoch": result.best_epoch,
        "epochs_done": result.epochs_done,
        "stopped_early": result.stopped_early,
    }
    for line in result.history:
        figures["seconds"] = line["seconds"]
    return figures


def _epochs_text(result: "FitResult") -> str:
    stopped = ", stopped early" if result.stopped_early else ""
    best = f", best after {result.best_epoch}" if result.best_epoch else ""
    epochs = "1 epoch" if result.epochs_done == 1 else f"{result.epochs_done} epochs"
    return f"{epochs}{stopped}{best}"


def _factor_text(factor: Factor) -> str:
    if not isinstance(factor, Mapping):
        return f"{factor:.2g}"
    number = len(factor) - 1
    others = "1 relation" if number == 1 else f"{number} relations"
    return f"{factor[OTHERS]:.2g} (others for {others})"


def _is_last(result: "FitResult") -> bool:
    """Returns whether longer training might have found something better."""
    best = result.best_epoch
    return best is not None and best == result.epochs_done and len(result.history) > 1
