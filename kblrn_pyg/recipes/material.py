"""The data that a recipe is applied to, and the data for making choices."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch_geometric.data import HeteroData

from kblrn_pyg.data import ask, flat_triples, layer_features
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.recipes.recipe import Recipe, Stage
from kblrn_pyg.recipes.timing import StageTime, build, measure
from kblrn_pyg.rules import RuleSet, RuleSettings, find_rules

# The least fraction of a relation's triples with both numbers for a layer of them.
LAYER_THRESHOLD = 0.1


@dataclass
class Material:
    r"""A knowledge base with everything that training on it needs.

    Args:
        data (HeteroData): The knowledge base.
        val (HeteroData, optional): The split to validate on.
        known (sequence, optional): Additional splits whose answers do not count as
            wrong. (default: :obj:`()`)
        device (str, optional): The device to train on. (default: :obj:`"cpu"`)
        progress (bool, optional): Whether to show progress bars.
            (default: :obj:`False`)
    """

    data: HeteroData
    val: HeteroData | None
    known: Sequence[HeteroData] = ()
    device: str = "cpu"
    progress: bool = False
    _rules: dict[tuple[RuleSettings, bool], RuleSet] = field(default_factory=dict)

    @property
    def num_nodes(self) -> int:
        """The number of entities."""
        return self.data["entity"].num_nodes

    @property
    def num_triples(self) -> int:
        """The number of training triples."""
        return sum(self.data[kind].edge_index.size(1) for kind in self.data.edge_types)

    @property
    def has_numbers(self) -> bool:
        """Whether any relation has numbers to compare."""
        return len(layer_features(self.data, LAYER_THRESHOLD)) > 0

    def rules(self, recipe: Recipe) -> RuleSet | None:
        r"""Returns the rules of a recipe, mined once.

        Args:
            recipe (Recipe): The recipe.
        """
        has_penalty = any(stage.model_settings.penalty for stage in recipe.stages)
        if not set("re") & set(recipe.experts) and not has_penalty:
            return None
        key = recipe.rule_settings, "e" in recipe.experts
        if key not in self._rules:
            settings, confidences = key
            found = find_rules(self.data, settings, self.progress, confidences)
            self._rules[key] = found
        return self._rules[key]

    def validated_with(self, most: int | None) -> "Material":
        r"""Returns the same with fewer validation triples, drawn at random.

        Args:
            most (int, optional): The maximum number of triples, or :obj:`None` for
                all.
        """
        if self.val is None or most is None:
            return self
        triples = flat_triples(self.val, "edge_label_index")
        number = triples[0].numel()
        if number <= most:
            return self
        drawn = torch.randperm(number, generator=torch.Generator().manual_seed(0))
        some = drawn[:most].sort().values
        head, rel, tail = (index[some] for index in triples)
        asked = ask(self.val, (head, rel, tail))
        known = [*self.known, self.val]  # the others are no wrong answers
        return replace(self, val=asked, known=known)

    def build(self, stage: Stage, rules: RuleSet | None) -> KBLRN:
        r"""Creates the model of a stage.

        Args:
            stage (Stage): The stage.
            rules (RuleSet, optional): The rules, which not all experts use.
        """
        return build(stage, self.data, rules)

    def time_of(self, stage: Stage, rules: RuleSet | None) -> StageTime:
        r"""Measures how long a stage takes.

        Args:
            stage (Stage): The stage.
            rules (RuleSet, optional): The rules.
        """
        return measure(stage, self.data, self.val, rules, self.device)
