"""Chooses a recipe by the size of a knowledge base and by time."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kblrn_pyg.recipes.budget import format_seconds, parse_budget
from kblrn_pyg.recipes.files import read_recipe
from kblrn_pyg.recipes.material import Material
from kblrn_pyg.recipes.named import (
    FEW_TRIPLES,
    NAMES,
    PAPER,
    VERY_MANY_TRIPLES,
    features,
    multiplied,
    of_few_triples,
    sampled,
    sampled_features,
)
from kblrn_pyg.recipes.recipe import Recipe, Stage
from kblrn_pyg.recipes.timing import StageTime
from kblrn_pyg.shard import agreed
from kblrn_pyg.sizes import LARGE

# The time that recipe auto may take, if nobody says another one.
USUAL_BUDGET = 3600.0
# The fraction of a budget that estimates may fill: a machine may become busy.
_USED = 0.8
# The fraction of a budget that measuring may take from training.
_MEASURED = 0.3
# The time of 'balance' in validations: one for each expert, of several factors at once.
_BALANCINGS = 9
# The most validation triples that choices are made with.
_MOST_VALIDATED = 5000

# Sizes of embeddings and epochs, from the best to the fastest.
_MULTIPLIED = ((512, 30), (256, 30), (256, 20), (128, 20), (128, 10), (64, 10), (32, 5))
_SAMPLED = ((200, 50), (100, 50), (100, 20), (100, 10), (50, 5), (50, 1))

# Settings by which stages of the same experts differ.
_TOLD = ("n3", "dropout")

Stages = tuple[Stage, ...]
Changes = Mapping[str, Mapping[str, Any]]


def choose_recipe(
    recipe: str | Recipe,
    material: Material,
    budget: str | float | None = None,
    changes: Changes | None = None,
) -> Recipe:
    r"""Returns a recipe with stages for a knowledge base.

    Args:
        recipe (str or Recipe): A name, a file, the folder of a run, or a recipe.
        material (Material): The knowledge base.
        budget (str or float, optional): The time that training may take.
            (default: :obj:`None`, that of the recipe)
        changes (dict, optional): The settings that differ, as arguments of
            :meth:`Recipe.changed`. (default: :obj:`None`)
    """
    changes = changes or {}
    if recipe != "auto" and budget is not None:
        raise ValueError(
            f"'budget' must not be given unless the recipe is auto (got {budget!r})"
        )
    if recipe == "auto":
        seconds = parse_budget(budget) if isinstance(budget, str) else budget
        seconds = USUAL_BUDGET if seconds is None else seconds
        return _by_time(material, seconds, changes)
    if recipe == "best":
        stages = _without_limit(material)
        found = Recipe("best", stages).changed(**changes)
        return replace(found, why=_text(material, found.stages))
    if recipe == "paper":
        letters = "lrn" if material.has_numbers else "lr"
        return PAPER.restricted(letters).changed(**changes)
    if isinstance(recipe, Recipe):
        return recipe.changed(**changes)
    if not Path(recipe).suffix and not Path(recipe).exists():
        raise ValueError(
            f"'recipe' must be one of {', '.join(NAMES)}, or a file (got {recipe!r})"
        )
    found = read_recipe(recipe).changed(**changes)
    if Path(recipe).is_dir():  # a run: its reasons are about other data or settings
        found = replace(found, why=_stages_text(found.stages))
    return found


def _by_time(material: Material, budget: float, changes: Changes) -> Recipe:
    """Returns the first of several recipes, from the best to the fastest, that fits
    the budget."""
    if not budget > 0:
        raise ValueError(f"'budget' must be positive (got {budget})")
    start = time.perf_counter()
    clock = _Clock(material.validated_with(_MOST_VALIDATED))
    wanted = changes.get("model", {}).get("experts", "")
    recipe: Recipe | None = None
    for stages in _from_best_to_fastest(material):
        faster = Recipe("auto", stages, most_validated=_MOST_VALIDATED)
        if recipe is not None and not set(wanted) <= set(faster.experts):
            continue
        recipe = faster.changed(**changes)
        training = clock.seconds(recipe)
        training, measuring = agreed((training, time.perf_counter() - start))
        seconds = training + measuring
        # A slow measurement must not leave only the weakest recipe.
        if training + min(measuring, _MEASURED * budget) < _USED * budget:
            break
    assert recipe is not None
    limit = "within" if seconds < budget else "more than"
    times = f"about {format_seconds(seconds)}, {limit} {format_seconds(budget)}"
    if measuring > _MEASURED * budget:
        times += (
            f", {format_seconds(measuring)} of which were measuring (kernels are "
            "compiled when they are first called, and kept)"
        )
    return replace(recipe, why=f"{_text(material, recipe.stages)}; {times}")


def _without_limit(material: Material) -> Stages:
    letters = _features_of(material)
    if material.num_nodes >= LARGE:
        return next(_of_many_entities(letters))
    size = 256 if material.num_triples < FEW_TRIPLES else 512
    return _choosable(of_few_triples(letters, size), material)


def _from_best_to_fastest(material: Material) -> Iterator[Stages]:
    letters = _features_of(material)
    if material.num_nodes >= LARGE:
        yield from _of_many_entities(letters)
        return
    if material.num_triples < FEW_TRIPLES:
        yield _choosable(of_few_triples(letters), material)
    for size, epochs in _MULTIPLIED:
        if size < 512 or material.num_triples >= FEW_TRIPLES:
            yield multiplied(size, epochs), features(letters, 4, True)
    yield (features(letters, 4, True),)
    yield (features(letters, 1, False),)
    yield (features("eo", 1, False),)


def _of_many_entities(letters: str) -> Iterator[Stages]:
    for size, epochs in _SAMPLED:
        if "e" in letters:
            yield sampled("l", size, epochs), sampled_features(letters, 4)
    for size, epochs in _SAMPLED:
        yield (sampled(f"l{letters.replace('e', '')}", size, epochs),)


def _choosable(stages: Stages, material: Material) -> Stages:
    """Without a validation set, there is nothing to choose between stages by."""
    if material.val is not None:
        return stages
    first = {stage.experts: stage for stage in reversed(stages)}
    return tuple(reversed(first.values()))


def _features_of(material: Material) -> str:
    """The experts without embeddings that have features, and loops."""
    letters = "rn" if material.has_numbers else "r"
    return letters + ("eo" if material.num_triples < VERY_MANY_TRIPLES else "o")


class _Clock:
    """Measures stages, those that differ by their epochs once."""

    def __init__(self, material: Material) -> None:
        self.material = material
        self.measured: list[tuple[Stage, StageTime]] = []

    def seconds(self, recipe: Recipe) -> float:
        """Estimates the time of a recipe."""
        times = {id(one): self._time_of(one, recipe) for one in recipe.stages}
        seconds = sum(times[id(one)].of(one) for one in recipe.stages)
        if len(recipe.groups) > 1:
            first = {one.experts: one for one in reversed(recipe.stages)}
            seconds += _BALANCINGS * sum(
                times[id(one)].validation for one in first.values()
            )
        return seconds

    def _time_of(self, stage: Stage, recipe: Recipe) -> StageTime:
        for known, found in self.measured:
            if (known.experts, known.model) == (stage.experts, stage.model):
                return found
        found = self.material.time_of(stage, self.material.rules(recipe))
        self.measured.append((stage, found))
        return found


def _text(material: Material, stages: Sequence[Stage]) -> str:
    """Describes the choice and its reason."""
    sizes = f"{material.num_nodes:,} entities and {material.num_triples:,} triples"
    text = f"for {sizes}: {_stages_text(stages)}"
    if len({stage.experts for stage in stages}) > 1:
        text += ", learned apart and balanced on the validation set"
    return text


def _stages_text(stages: Sequence[Stage]) -> str:
    groups: dict[str, list[str]] = {}
    for stage in stages:
        groups.setdefault(stage.experts, []).append(stage_text(stage))
    parts = [f"{name} ({' or '.join(texts)})" for name, texts in groups.items()]
    return " and ".join(parts)


def stage_text(stage: Stage) -> str:
    r"""Returns the settings of a stage in a few words.

    Args:
        stage (Stage): The stage.

    Example:
        >>> stage_text(Stage("l", {"hidden_channels": 32, "n3": 0.1}, {"epochs": 5}))
        'distmult of size 32, n3 0.1, 5 epochs'
        >>> stage_text(Stage("re", {"evidence_kinds": True}, {"epochs": 1}))
        'evidence kinds, 1 epoch'
    """
    model, epochs = stage.model_settings, stage.fit_settings.epochs
    parts = []
    if "l" in stage.experts:
        parts.append(f"{'+'.join(model.scorer)} of size {model.hidden_channels}")
    parts += [f"{name} {stage.model[name]}" for name in _TOLD if name in stage.model]
    if model.evidence_kinds:
        parts.append("evidence kinds")
    parts.append("1 epoch" if epochs == 1 else f"{epochs} epochs")
    return ", ".join(parts)
