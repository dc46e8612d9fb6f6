"""Tunes the settings of a recipe with Optuna."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data import as_kb
from kblrn_pyg.recipes.apply import grouped, stored_plan, train_stage
from kblrn_pyg.recipes.choose import choose_recipe
from kblrn_pyg.recipes.device import find_device
from kblrn_pyg.recipes.files import PLAN_PATH, RECIPE_NAME, write_recipe
from kblrn_pyg.recipes.material import Material
from kblrn_pyg.recipes.recipe import Recipe, Stage
from kblrn_pyg.recipes.space import parameters_of, suggest_stage
from kblrn_pyg.recipes.trials import (
    TRIALS_NAME,
    enqueue,
    open_study,
    sampler_of,
    stored_trials,
)
from kblrn_pyg.rules import RuleSet
from kblrn_pyg.training import Progress, Run

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TuneResult:
    r"""The result of tuning.

    Args:
        recipe (Recipe): The recipe with the best stages.
        mrr (dict): The MRR of each of them on the validation set, by the letters of
            its experts.
        trials (dict): The number of trials of each, including pruned ones.
    """

    recipe: Recipe
    mrr: dict[str, float]
    trials: dict[str, int]


def tune(
    data: HeteroData | Data,
    val: HeteroData | Data,
    filter_with: Sequence[HeteroData | Data] = (),
    trials: int = 30,
    recipe: str | Recipe = "auto",
    run: Run | None = None,
    progress: bool = False,
    device: str = "auto",
    **fixed: Any,
) -> TuneResult:
    r"""Searches for good settings of the stages of a recipe.

    Each stage is tuned on its own, by its MRR on the validation set; embeddings get
    two thirds of the trials. The first trials are the stages of the recipe. Trials
    that are worse than the median of the others after the same number of epochs are
    pruned.

    Args:
        data (HeteroData or Data): The knowledge base.
        val (HeteroData or Data): The split to validate on.
        filter_with (sequence, optional): Additional splits whose answers do not count
            as wrong in validation. (default: :obj:`()`)
        trials (int, optional): The number of trials. (default: :obj:`30`)
        recipe (str or Recipe, optional): The recipe to start from; see
            :meth:`train_by_recipe`. (default: :obj:`"auto"`)
        run (Run, optional): The folder that stores all trials, in SQLite. If it has
            some, tuning continues from them. (default: :obj:`None`, keep nothing)
        progress (bool, optional): Whether to show progress bars.
            (default: :obj:`False`)
        device (str, optional): See :meth:`train_by_recipe`.
            (default: :obj:`"auto"`)
        **fixed (optional): Settings that are not tuned, with their values.
    """
    _require_optuna()
    if trials < 1:
        raise ValueError(f"'trials' must be positive (got {trials})")
    known = [as_kb(one) for one in filter_with]
    place = find_device(device)
    material = Material(as_kb(data), as_kb(val), known, place, progress)
    if run is None:
        return _tuned(material, recipe, trials, None, fixed)
    run.lock()  # others would end trials that are not theirs
    try:
        return _tuned(material, recipe, trials, run, fixed)
    finally:
        run.close()
        with suppress(OSError):  # a new folder that nothing was written to
            run.path.rmdir()


def _tuned(
    material: Material,
    recipe: str | Recipe,
    trials: int,
    run: Run | None,
    fixed: Mapping[str, Any],
) -> TuneResult:
    plan = stored_plan(run) if run is not None else None
    if plan is None:
        plan = choose_recipe(recipe, material, changes=grouped(fixed))
    if run is not None:
        write_recipe(plan, run.path / PLAN_PATH)
    search = _Search(plan, material, run, fixed)
    found = {group: search.stage(group, trials) for group in plan.groups}
    tuned = Recipe(
        "tuned",
        tuple(stage for stage, _, _ in found.values()),
        plan.rules,
        most_validated=plan.most_validated,
        why=f"the best of {sum(number for _, _, number in found.values())} trials",
    )
    if run is not None:
        write_recipe(tuned, run.path / RECIPE_NAME)
    return TuneResult(
        tuned,
        {group: mrr for group, (_, mrr, _) in found.items()},
        {group: number for group, (_, _, number) in found.items()},
    )


class _Search:
    """Trials of all stages of a recipe."""

    def __init__(
        self,
        plan: Recipe,
        material: Material,
        run: Run | None,
        fixed: Mapping[str, Any],
    ) -> None:
        self.plan, self.run, self.fixed = plan, run, fixed
        self.material = material.validated_with(plan.most_validated)
        self.rules: RuleSet | None = material.rules(plan)

    def stage(self, group: str, trials: int) -> tuple[Stage, float, int]:
        """Returns the best stage, its MRR, and the number of its trials."""
        path = None if self.run is None else self.run.path / TRIALS_NAME
        study = open_study(path, group)
        with stored_trials(path):
            return self._search(study, group, trials)

    def _search(self, study: Any, group: str, trials: int) -> tuple[Stage, float, int]:
        from optuna.trial import TrialState

        stages = [one for one in self.plan.stages if one.experts == group]
        # Those that a killed process has begun, and nobody will end.
        for trial in study.get_trials(states=(TrialState.RUNNING,)):
            study.tell(trial.number, state=TrialState.FAIL)
        first = [parameters_of(one, self.fixed) for one in stages]
        enqueue(study, [values for values in first if values is not None])
        ended = (TrialState.COMPLETE, TrialState.PRUNED)
        share = self._share(group, trials)
        while (number := len(study.get_trials(states=ended))) < share:
            # What is tried depends on what was: a search that was killed, and goes
            # on, ends as another one does.
            study.sampler = sampler_of(number)
            study.optimize(lambda one: self._mrr(stages[0], one), n_trials=1)
        best = suggest_stage(stages[0], study.best_trial, self.fixed)
        return best, study.best_value, number

    def _share(self, group: str, trials: int) -> int:
        groups = self.plan.groups
        if len(groups) == 1:
            return trials
        first = max(1, round(trials * 2 / 3))
        others = max(1, (trials - first) // (len(groups) - 1))
        return first if group == groups[0] else others

    def _mrr(self, base: Stage, trial: Any) -> float:
        import optuna

        def report(progress: Progress) -> None:
            trial.report(progress.line["val"]["mrr"], progress.epoch)
            if trial.should_prune():
                raise optuna.TrialPruned

        stage = suggest_stage(base, trial, self.fixed)
        _, result = train_stage(stage, self.material, self.rules, callbacks=[report])
        assert result.best_mrr is not None
        logger.info("%s: MRR %.4f", stage, result.best_mrr)
        return result.best_mrr


def _require_optuna() -> None:
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise ImportError(
            "tuning needs Optuna, which is not installed: pip install 'kblrn_pyg[tune]'"
        ) from None
