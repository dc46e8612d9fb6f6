"""Tests whether a model uses its numbers, by the same recipe with other numbers."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from torch_geometric.data import HeteroData

from kblrn_pyg.data import layer_features, pair_attributes
from kblrn_pyg.data.control import CONTROLS, control_numbers
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.evaluation.control import ControlResult
from kblrn_pyg.nn import KBLRN, LayerExpert
from kblrn_pyg.recipes.apply import carry_out, train_stage
from kblrn_pyg.recipes.material import Material
from kblrn_pyg.recipes.recipe import Recipe, Stage
from kblrn_pyg.rules import RuleSet
from kblrn_pyg.training import FitResult, Run

# The model without numbers, beside the controls that have other ones.
WITHOUT = "without"


def control_by_recipe(
    plan: Recipe,
    splits: Mapping[str, HeteroData],
    split: str = "test",
    device: str = "cpu",
    progress: bool = False,
    tell: Callable[[str], Any] = lambda control: None,
) -> ControlResult:
    r"""Trains models with a recipe, on true numbers and on each control, and ranks
    the same queries with each model.

    Stages without numbers, such as those of embeddings, are trained once and used
    for all controls. Factors of experts are chosen again for each control.

    Args:
        plan (Recipe): The recipe, with an expert that uses numbers.
        splits (dict): All splits of a knowledge base.
        split (str, optional): The one to rank. (default: :obj:`"test"`)
        device (str, optional): The device to train on. (default: :obj:`"cpu"`)
        progress (bool, optional): Whether to show progress bars.
            (default: :obj:`False`)
        tell (callable, optional): A function to call with the name of each control
            before its training. (default: nothing)

    Example:
        >>> from kblrn_pyg.datasets import load_dataset
        >>> recipe = Recipe("quick", (Stage("n", training={"epochs": 1}),))
        >>> found = control_by_recipe(recipe, load_dataset("Families"), "val")
        >>> list(found.tables)
        ['true', 'permuted', 'random', 'known']
    """
    if not any(stage.uses_numbers for stage in plan.stages):
        raise ValueError(
            "'plan' must have the expert n, or e with evidence_bins: the experts "
            f"{plan.experts} have no numbers to control"
        )
    # Other numbers may deserve other factors.
    plans = dict.fromkeys(CONTROLS, replace(plan, factors=None))
    if (others := without_numbers(plan)) is not None:
        plans[WITHOUT] = others
    seed = plan.stages[0].fit_settings.seed
    shared = _SharedStages()
    rules: dict[Any, RuleSet] = {}  # facts are the same
    tables = {}
    for control, chosen in plans.items():
        tell(control)
        numbers = "true" if control == WITHOUT else control
        kbs = {name: control_numbers(kb, numbers, seed) for name, kb in splits.items()}
        asked = {name: kb for name, kb in kbs.items() if name != "train"}
        known = [kb for name, kb in asked.items() if name != "val"]
        given = kbs["train"], asked.get("val"), known, device, progress, rules
        material = _Controlled(*given, control, splits["train"])
        model = carry_out(chosen, material, train=shared.train).model
        others_asked = [kb for name, kb in asked.items() if name != split]
        tables[control] = evaluate(model, kbs[split], others_asked, progress=progress)
    return ControlResult(tables)


def without_numbers(plan: Recipe) -> Recipe | None:
    r"""Returns a recipe without numbers, or none if nothing is left.

    Args:
        plan (Recipe): The recipe.
    """
    letters = plan.experts.replace("n", "")
    if not letters:
        return None
    return replace(plan, factors=None).changed({"experts": letters, "evidence_bins": 0})


@dataclass
class _Controlled(Material):
    """A knowledge base with the numbers of a control."""

    control: str = "true"
    true: HeteroData | None = None  # with its own numbers

    def build(self, stage: Stage, rules: RuleSet | None) -> KBLRN:
        """Builds a model that compares what is compared with true numbers."""
        settings = stage.model_settings
        is_layer = "n" in stage.experts and settings.numerical == "layer"
        if self.control != "known" or not is_layer:
            return super().build(stage, rules)
        # Attributes that are constant would be left out.
        assert self.true is not None
        attributes = pair_attributes(self.true)
        found = layer_features(self.data, settings.threshold, attributes)
        layers = LayerExpert(self.data, found, settings.ignore_unknown)
        others = stage.restricted(stage.experts.replace("n", ""))
        if others is None:
            return KBLRN.from_data(self.data, [layers])
        values = asdict(others.model_settings) | {"experts": [others.experts, layers]}
        needs_rules = set("re") & set(others.experts) or settings.penalty is not None
        used = rules if needs_rules else None
        return KBLRN.from_data(self.data, **values, rules=used)


@dataclass
class _SharedStages:
    """Stages without numbers, which are trained once."""

    done: dict[str, tuple[KBLRN, FitResult]] = field(default_factory=dict)

    def train(
        self,
        stage: Stage,
        material: Material,
        rules: RuleSet | None,
        run: Run | None = None,
    ) -> tuple[KBLRN, FitResult]:
        """Trains a stage, unless it is known how that ends."""
        if stage.uses_numbers:
            return train_stage(stage, material, rules, run)
        key = repr(stage)
        if key not in self.done:
            self.done[key] = train_stage(stage, material, rules, run)
        return self.done[key]
