"""A recipe: groups of experts that are trained together, with their settings."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from kblrn_pyg.nn.settings import EXPERT_LETTERS, ModelSettings, are_letters
from kblrn_pyg.rules.settings import RuleSettings
from kblrn_pyg.settings import check_types, concerns, used_by
from kblrn_pyg.training.settings import FitSettings

# The factor of an expert, or factors by relation; OTHERS are those without one.
Factor = float | Mapping[str, float]
OTHERS = "*"

# Settings of embeddings that a recipe gives to one scorer, and not to others.
_OF_ONE_SCORER = ("reciprocal", "n3", "l2", "dura", "relation_prediction", "precision")


@dataclass(frozen=True)
class Stage:
    r"""Experts that are trained together.

    Args:
        experts (str): Their letters.
        model (dict, optional): The fields of :class:`ModelSettings` that differ from
            their defaults. (default: :obj:`{}`)
        training (dict, optional): The fields of :class:`FitSettings` that differ
            from their defaults. (default: :obj:`{}`)
    """

    experts: str
    model: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.experts or not are_letters(self.experts):
            raise ValueError(
                f"'experts' must have letters of {EXPERT_LETTERS}, each at most once "
                f"(got {self.experts!r})"
            )
        check_types(ModelSettings, self.model)
        check_types(FitSettings, self.training)
        if "experts" in self.model:
            raise ValueError("'model' must not have 'experts', which a stage has")
        _ = self.model_settings, self.fit_settings  # or else they are wrong

    @property
    def model_settings(self) -> ModelSettings:
        """All settings of the model."""
        return ModelSettings(experts=self.experts, **self.model)

    @property
    def fit_settings(self) -> FitSettings:
        """All settings of the training."""
        return FitSettings(**self.training)

    @property
    def uses_numbers(self) -> bool:
        """Whether any of its experts uses numbers."""
        has_bins = self.model_settings.evidence_bins > 0
        return "n" in self.experts or ("e" in self.experts and has_bins)

    def changed(self, model: Mapping[str, Any], training: Mapping[str, Any]) -> "Stage":
        r"""Returns the stage with some settings changed.

        Args:
            model (dict): Settings of the model. Those that apply to none of the
                experts are left out.
            training (dict): Settings of the training.
        """
        letters = used_by(ModelSettings)
        mine = {
            name: value
            for name, value in model.items()
            if name != "experts" and concerns(letters[name], self.experts)
        }
        kept = dict(self.model)
        if "scorer" in mine and mine["scorer"] != self.model.get("scorer"):
            kept = {k: v for k, v in kept.items() if k not in _OF_ONE_SCORER}
        if mine.get("num_negatives") is not None:
            kept.pop("precision", None)  # which sampling for each triple cannot use
        if mine.get("sparse") and "num_negatives" not in mine:
            raise ValueError("'sparse' must come with 'num_negatives' (got none)")
        return replace(self, model=kept | mine, training=self.training | dict(training))

    def restricted(self, experts: str) -> "Stage | None":
        r"""Returns the stage without other experts, or :obj:`None` if no expert is
        left.

        Args:
            experts (str): The letters to keep.
        """
        letters = "".join(letter for letter in self.experts if letter in experts)
        if not letters:
            return None
        concerned = used_by(ModelSettings)
        model = {k: v for k, v in self.model.items() if concerns(concerned[k], letters)}
        return replace(self, experts=letters, model=model)


@dataclass(frozen=True)
class Recipe:
    r"""The settings for building and training a model.

    The experts of each stage are trained separately from those of the others. Of
    several stages with the same experts, the one with the best validation is kept.
    The trained experts are multiplied, with exponents that are chosen on a
    validation set; see :meth:`~kblrn_pyg.training.balance`.

    Args:
        name (str): Its name.
        stages (tuple): The stages.
        rules (dict, optional): The fields of :class:`RuleSettings` that differ from
            their defaults. (default: :obj:`{}`)
        factors (dict, optional): The exponent of each expert by name, or exponents
            by relation, where :obj:`"*"` stands for all other relations.
            (default: :obj:`None`, chosen on a validation set)
        most_validated (int, optional): The maximum number of validation triples for
            making choices, drawn at random. (default: :obj:`None`, all)
        why (str, optional): Why it was chosen. (default: :obj:`""`)

    Example:
        >>> from dataclasses import replace
        >>> evidence = Stage("e", {"num_negatives": None}, {"epochs": 2, "lr": 0.05})
        >>> recipe = Recipe("mine", (evidence,))
        >>> replace(recipe, name="other").experts
        'e'
    """

    name: str
    stages: tuple[Stage, ...]
    rules: dict[str, Any] = field(default_factory=dict)
    factors: dict[str, Factor] | None = None
    most_validated: int | None = None
    why: str = ""

    def __post_init__(self) -> None:
        if not self.stages:
            raise ValueError("'stages' must have at least one stage (got none)")
        for one in self.groups:
            for other in self.groups:
                if one != other and set(one) & set(other):
                    raise ValueError(
                        "'stages' must have the same experts, or none in common (got "
                        f"{one!r} and {other!r})"
                    )
        if self.most_validated is not None and self.most_validated < 1:
            raise ValueError(
                f"'most_validated' must be positive (got {self.most_validated})"
            )
        check_types(RuleSettings, self.rules)
        _ = self.rule_settings  # or else they are wrong

    @property
    def groups(self) -> list[str]:
        """The groups of experts that are trained together, as letters, without
        duplicates."""
        return list(dict.fromkeys(stage.experts for stage in self.stages))

    @property
    def experts(self) -> str:
        """The letters of all experts, in the order of the paper."""
        letters = set("".join(self.groups))
        return "".join(letter for letter in EXPERT_LETTERS if letter in letters)

    @property
    def rule_settings(self) -> RuleSettings:
        """All settings of rules."""
        return RuleSettings(**self.rules)

    def changed(
        self,
        model: Mapping[str, Any] | None = None,
        training: Mapping[str, Any] | None = None,
        rules: Mapping[str, Any] | None = None,
    ) -> "Recipe":
        r"""Returns the recipe with some settings changed, in every stage.

        Args:
            model (dict, optional): Settings of the model; :obj:`experts` restricts
                the recipe to these. (default: :obj:`None`)
            training (dict, optional): Settings of the training.
                (default: :obj:`None`)
            rules (dict, optional): Settings of rules. (default: :obj:`None`)

        Example:
            >>> recipe = Recipe("mine", (Stage("l"), Stage("e")))
            >>> [one.training for one in recipe.changed(training={"lr": 0.5}).stages]
            [{'lr': 0.5}, {'lr': 0.5}]
        """
        model = dict(model or {})
        found = self.restricted(model["experts"]) if "experts" in model else self
        stages = (one.changed(model, training or {}) for one in found.stages)
        rules = self.rules | dict(rules or {})
        return replace(found, stages=_each_once(stages), rules=rules)

    def restricted(self, experts: str) -> "Recipe":
        r"""Returns the recipe with fewer experts.

        Args:
            experts (str): The letters to keep.
        """
        if missing := [letter for letter in experts if letter not in self.experts]:
            raise ValueError(
                f"'experts' must be among {self.experts!r}, the experts of recipe "
                f"{self.name} (got {missing[0]!r})"
            )
        kept = (one.restricted(experts) for one in self.stages)
        return replace(self, stages=_each_once(filter(None, kept)))

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, as stored in files, without empty ones."""
        values = asdict(self) | {"stages": [asdict(one) for one in self.stages]}
        return {
            name: value for name, value in values.items() if value not in (None, {}, "")
        }


def _each_once(stages: Iterable[Stage]) -> tuple[Stage, ...]:
    """Removes stages that changes have made equal."""
    found: list[Stage] = []
    for stage in stages:
        if stage not in found:
            found.append(stage)
    return tuple(found)
