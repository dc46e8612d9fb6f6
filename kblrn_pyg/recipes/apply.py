"""Builds and trains a model with a recipe."""

import logging
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data import as_kb
from kblrn_pyg.nn import KBLRN, ModelSettings
from kblrn_pyg.recipes.choose import choose_recipe
from kblrn_pyg.recipes.device import find_device
from kblrn_pyg.recipes.factors import as_plain, as_tensors
from kblrn_pyg.recipes.files import (
    PLAN_PATH,
    RECIPE_NAME,
    STAGES_NAME,
    read_recipe,
    write_recipe,
)
from kblrn_pyg.recipes.material import Material
from kblrn_pyg.recipes.recipe import Factor, Recipe, Stage
from kblrn_pyg.rules import RuleSet, RuleSettings
from kblrn_pyg.shard import agreed, process_rank
from kblrn_pyg.training import FitResult, FitSettings, Run, fit, seed_all
from kblrn_pyg.training.balancing import balance_relations, scale_experts
from kblrn_pyg.training.interface import Callback

logger = logging.getLogger(__name__)

# Takes a stage, what to learn from, the rules and the folder.
TrainStage = Callable[
    [Stage, Material, RuleSet | None, Run | None], tuple[KBLRN, FitResult]
]

# Experts that learn apart believe too much in themselves; without a validation set
# that says how much, this is what was chosen most often.
_USUAL_FACTOR = 0.5


@dataclass(frozen=True)
class RecipeResult:
    r"""A model that was trained with a recipe.

    Args:
        model (KBLRN): The model, in evaluation mode.
        recipe (Recipe): The choices made: the stages that were kept, with their
            best numbers of epochs, and the exponents of experts.
        stages (dict): The training result of each of these stages, by the letters
            of their experts.
    """

    model: KBLRN
    recipe: Recipe
    stages: dict[str, FitResult]


def train_by_recipe(
    data: HeteroData | Data,
    val: HeteroData | Data | None = None,
    filter_with: Sequence[HeteroData | Data] = (),
    recipe: str | Recipe = "auto",
    budget: str | float | None = None,
    run: Run | None = None,
    progress: bool = False,
    device: str = "auto",
    **changes: Any,
) -> RecipeResult:
    r"""Builds a model for a knowledge base and trains it with a recipe.

    A training run with a folder that was stopped, or killed at any moment, resumes
    when this is called again, and ends with exactly the same weights; see
    :meth:`fit`.

    Args:
        data (HeteroData or Data): The knowledge base.
        val (HeteroData or Data, optional): The split that all choices are made on.
            (default: :obj:`None`, nothing is chosen)
        filter_with (sequence, optional): Additional splits whose answers do not count
            as wrong in validation. (default: :obj:`()`)
        recipe (str or Recipe, optional): :obj:`"auto"`, :obj:`"best"` or
            :obj:`"paper"`, a recipe file, the folder of a run, or a recipe.
            (default: :obj:`"auto"`)
        budget (str or float, optional): The time that training may take, such as
            :obj:`"10m"`, or in seconds, for recipes that are chosen by time.
            (default: :obj:`None`, that of the recipe)
        run (Run, optional): The folder to save to.
            (default: :obj:`None`, save nothing)
        progress (bool, optional): Whether to show progress bars.
            (default: :obj:`False`)
        device (str, optional): :obj:`"cpu"`, :obj:`"cuda"`, or :obj:`"auto"`.
            (default: :obj:`"auto"`, CUDA if available)
        **changes (optional): Fields of :class:`ModelSettings`,
            :class:`FitSettings` and :class:`RuleSettings` that differ from those of
            the recipe; see :meth:`Recipe.changed`.

    Example:
        >>> from kblrn_pyg.datasets import Families
        >>> recipe = Recipe("quick", (Stage("n", training={"epochs": 1}),))
        >>> result = train_by_recipe(Families()[0], recipe=recipe)
        >>> result.model.instance, result.recipe.experts
        ('n', 'n')
    """
    known = [as_kb(one) for one in filter_with]
    asked = None if val is None else as_kb(val)
    place = find_device(device)
    material = Material(as_kb(data), asked, known, place, progress)
    plan = stored_plan(run) if run is not None else None
    if plan is None:
        plan = choose_recipe(recipe, material, budget, grouped(changes))
        logger.info("recipe %s: %s", plan.name, plan.why)
    elif isinstance(recipe, Recipe) and recipe != plan:
        raise ValueError(
            f"'recipe' must be that of the run, {plan.name} (got {recipe.name})"
        )
    return carry_out(plan, material, run)


def carry_out(
    plan: Recipe,
    material: Material,
    run: Run | None = None,
    train: TrainStage | None = None,
) -> RecipeResult:
    r"""Trains the stages of a recipe, or continues with them, and balances experts.

    Args:
        plan (Recipe): The recipe.
        material (Material): The data to train on.
        run (Run, optional): The folder to save to. (default: :obj:`None`)
        train (callable, optional): The function that trains a stage.
            (default: :obj:`None`, :meth:`train_stage`)
    """
    train = train or train_stage
    if len(plan.stages) == 1:
        return _one_stage(plan, material, run, train)
    with _removed_if_it_fails(run):
        return _several_stages(plan, material, run, train)


def stored_plan(run: Run) -> Recipe | None:
    r"""Returns the recipe that a run of several stages continues with, if it has one.

    Args:
        run (Run): The folder.
    """
    path = run.path / PLAN_PATH
    return agreed(read_recipe(path) if path.exists() else None)


def _one_stage(
    plan: Recipe, material: Material, run: Run | None, train: TrainStage
) -> RecipeResult:
    """Trains experts together; the folder of the run is that of the stage."""
    (stage,) = plan.stages
    chooser = material.validated_with(plan.most_validated)
    if run is not None and run.settings is None:
        run.settings = described(plan)
    model, result = train(stage, chooser, material.rules(plan), run)
    chosen = replace(plan, stages=(_with_best_epochs(stage, result),))
    _write(chosen, run)
    return RecipeResult(model, chosen, {stage.experts: result})


def _several_stages(
    plan: Recipe, material: Material, run: Run | None, train: TrainStage
) -> RecipeResult:
    chooser = material.validated_with(plan.most_validated)
    rules = material.rules(plan)
    if run is not None:
        run.settings = run.settings or described(plan)
        _begin(plan, run)
    kept: dict[str, tuple[Stage, FitResult, KBLRN]] = {}
    for number, stage in enumerate(plan.stages, start=1):
        name = f"{STAGES_NAME}/{number}-{stage.experts}"
        folder = None if run is None else Run(run.path / name)
        learned, result = train(stage, chooser, rules, folder)
        if stage.experts not in kept or _is_better(result, kept[stage.experts][1]):
            best = _with_best_epochs(stage, result)
            kept[stage.experts] = best, result, learned
    stages = tuple(stage for stage, _, _ in kept.values())
    model = material.build(together(stages), rules).to(material.device)
    for _, _, learned in kept.values():
        model.take_experts(learned)
    factors = _balance(model, plan, chooser)
    # Nothing is learned any more: this saves what there is.
    data, val, known = material.data, material.val, material.known
    fit(model, data, val, known, run=run, resume=False, epochs=0)
    chosen = replace(plan, stages=stages, factors=factors)
    _write(chosen, run)
    return RecipeResult(model, chosen, {name: one[1] for name, one in kept.items()})


def grouped(changes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    r"""Returns settings by group, as :meth:`Recipe.changed` expects them.

    Args:
        changes (dict): The settings by name.
    """
    groups = {"model": ModelSettings, "training": FitSettings, "rules": RuleSettings}
    names = {key: {one.name for one in fields(cls)} for key, cls in groups.items()}
    if unknown := set(changes).difference(*names.values()):
        raise TypeError(f"unknown settings: {', '.join(sorted(unknown))}")
    return {
        key: {name: value for name, value in changes.items() if name in names[key]}
        for key in groups
    }


def together(stages: Sequence[Stage]) -> Stage:
    r"""Returns a stage with the experts of all stages, without any training.

    Args:
        stages (sequence): The stages, each with different experts. Settings of the
            whole model are those of the first one.
    """
    model: dict[str, Any] = {}
    for stage in stages:
        model = stage.model | model
    letters = Recipe("together", tuple(stages)).experts
    return Stage(letters, model, {"epochs": 0})


def recipe_settings(plan: Recipe) -> dict[str, Any]:
    """Returns the information that a folder stores about the recipe as a whole."""
    values = {"name": plan.name, "why": plan.why}
    return values | {"most_validated": plan.most_validated}


def described(plan: Recipe) -> dict[str, Any]:
    r"""Returns the settings of a run, as stored in its folder.

    Args:
        plan (Recipe): The recipe.
    """
    first = {stage.experts: stage for stage in reversed(plan.stages)}
    found: dict[str, Any] = {
        "recipe": recipe_settings(plan),
        "model": asdict(together([first[one] for one in plan.groups]).model_settings),
        "rules": asdict(plan.rule_settings),
    }
    if len(plan.stages) == 1:
        return found | {"training": asdict(plan.stages[0].fit_settings)}
    for number, stage in enumerate(plan.stages, start=1):
        found[f"stage {number}, {stage.experts}"] = stage.model | stage.training
    return found


def train_stage(
    stage: Stage,
    material: Material,
    rules: RuleSet | None,
    run: Run | None = None,
    callbacks: Sequence[Callback] = (),
) -> tuple[KBLRN, FitResult]:
    r"""Builds the model of a stage and trains it.

    Args:
        stage (Stage): The stage.
        material (Material): The data to train on.
        rules (RuleSet, optional): The rules, which not all experts use.
        run (Run, optional): The folder to save to. (default: :obj:`None`)
        callbacks (sequence, optional): See :meth:`fit`. (default: :obj:`()`)
    """
    settings = stage.fit_settings
    seed_all(settings.seed)
    model = material.build(stage, rules).to(material.device)
    result = fit(
        model,
        material.data,
        material.val,
        material.known,
        run=run,
        progress=material.progress,
        callbacks=callbacks,
        settings=settings,
    )
    return model, result


def _balance(model: KBLRN, plan: Recipe, material: Material) -> dict[str, Factor]:
    """Scales experts by the factors of a recipe, or by those that validate best."""
    if plan.factors is not None:
        scale_experts(model, as_tensors(model, plan.factors))
        return plan.factors
    if material.val is not None:
        given = model, material.val, material.known, material.progress
        return as_plain(model, balance_relations(*given))
    names = [name for name, one in model.experts.items() if one.can_be_scaled]
    if len(names) == len(model.experts):
        names = names[1:]
    factors: dict[str, Factor] = dict.fromkeys(names, _USUAL_FACTOR)
    logger.warning(
        "there is no validation set to balance experts on: the scores of %s are "
        "multiplied by %s",
        ", ".join(names),
        _USUAL_FACTOR,
    )
    scale_experts(model, as_tensors(model, factors))
    return factors


def _is_better(one: FitResult, other: FitResult) -> bool:
    if one.best_mrr is None or other.best_mrr is None:
        return False  # without a validation set, the first one is as good as any
    return one.best_mrr > other.best_mrr


def _with_best_epochs(stage: Stage, result: FitResult) -> Stage:
    epochs = result.best_epoch or result.epochs_done
    return replace(stage, training=stage.training | {"epochs": epochs})


def _begin(plan: Recipe, run: Run) -> None:
    """Locks a folder, and writes the data that it needs to resume."""
    if process_rank() > 0:
        return
    run.lock()
    if run.settings is not None:
        run.write_settings(run.settings)
    path = run.path / PLAN_PATH
    path.parent.mkdir(exist_ok=True)
    write_recipe(plan, path)  # which may have more epochs than before


def _write(chosen: Recipe, run: Run | None) -> None:
    if run is not None and process_rank() == 0:
        write_recipe(chosen, run.path / RECIPE_NAME)


@contextmanager
def _removed_if_it_fails(run: Run | None) -> Iterator[None]:
    """Removes a new folder if nothing has been trained in it."""
    is_new = run is not None and not run.path.exists()
    try:
        yield
    except BaseException:
        if run is not None:
            run.close()
            has_learned = any(run.path.glob(f"{STAGES_NAME}/*/checkpoint.pt"))
            if is_new and not has_learned and process_rank() == 0:
                shutil.rmtree(run.path, ignore_errors=True)
        raise
