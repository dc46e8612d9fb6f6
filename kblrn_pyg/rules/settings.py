"""The settings of rules, declared once."""

from dataclasses import dataclass

from kblrn_pyg.settings import changed, check_bins, setting, settle

# What the paper used: AMIE+ with its defaults and a minimal support of 1.
PAPER = {
    "min_head_coverage": 0.01,
    "min_pca_confidence": 0.1,
    "parallel": True,
    "skyline": True,
}

# Bodies with more pairs are not counted but estimated.
MAX_BODY_PAIRS = 10_000_000
# More rules with constants do not fit into the memory of most machines.
MAX_CONSTANT_RULES = 100_000_000
# An entity with more features would have too many pairs of them.
MAX_DEGREE = 10_000


@dataclass(frozen=True)
class MineSettings:
    """The settings of :meth:`mine_rules` that are command-line options."""

    max_hops: int = setting(2, "the largest number of steps of a path")
    min_head_coverage: float = setting(
        0.01, "the minimum fraction of a relation's facts that a rule covers"
    )
    min_support: int = setting(1, "the minimum number of facts that a rule covers")
    min_confidence: float = setting(
        0.0, "the minimum fraction of a body's pairs that are facts"
    )
    min_pca_confidence: float = setting(
        0.0, "the same, counting only pairs whose head has known tails"
    )
    max_rules_per_relation: int | None = setting(
        None, "keep at most this many, those with the largest support", none="all"
    )
    max_body_pairs: int = setting(
        MAX_BODY_PAIRS, "estimate the confidences of larger bodies from a sample"
    )
    parallel: bool = setting(False, "also mine bodies a(h, t) ∧ b(h, t)")

    def __post_init__(self) -> None:
        settle(self)
        if self.max_hops not in (1, 2):
            raise ValueError(f"'max_hops' must be 1 or 2 (got {self.max_hops})")
        check_fractions(
            min_head_coverage=self.min_head_coverage,
            min_confidence=self.min_confidence,
            min_pca_confidence=self.min_pca_confidence,
        )
        if self.max_body_pairs < 0:
            raise ValueError(
                f"'max_body_pairs' must be at least 0 (got {self.max_body_pairs})"
            )


@dataclass(frozen=True)
class ConstantSettings:
    """The settings of :meth:`mine_constants`."""

    min_support: int = setting(2, "the minimum number of entities that a rule covers")
    min_confidence: float = setting(
        0.0, "the minimum fraction of a body's entities for which a rule is true"
    )
    min_pca_confidence: float = setting(
        0.0, "the same, counting only entities that have any such fact"
    )
    max_rules_per_relation: int | None = setting(
        None, "keep at most this many, those with the largest support", none="all"
    )
    max_rules: int = setting(
        MAX_CONSTANT_RULES, "raise the minimum support until at most this many are left"
    )
    max_degree: int = setting(
        MAX_DEGREE, "entities with more facts do not count as examples of rules"
    )
    bins: int = setting(
        0, "bodies about numbers: 2, 4, 8, … up to this many bins per attribute"
    )

    def __post_init__(self) -> None:
        settle(self)
        check_fractions(
            min_confidence=self.min_confidence,
            min_pca_confidence=self.min_pca_confidence,
        )
        check_bins("bins", self.bins, least=0)
        for name in ("min_support", "max_rules", "max_degree"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"'{name}' must be at least 1 (got {getattr(self, name)})"
                )


@dataclass(frozen=True)
class RuleSettings:
    """The settings of :meth:`find_rules`; by default, rules are mined."""

    rules: str | None = setting(
        None, "a rule file, or 'provided' for those of the data set", expert="re"
    )
    preset: str | None = setting(
        None, "the rules that the paper used", expert="re", choices=("paper",)
    )
    min_head_coverage: float = setting(
        0.01, "the minimum head coverage of mined rules", expert="re"
    )

    def __post_init__(self) -> None:
        settle(self)
        if self.preset not in (None, "paper"):
            raise ValueError(f"'preset' must be paper (got {self.preset!r})")
        check_fractions(min_head_coverage=self.min_head_coverage)
        if self.rules is None:
            return
        for name, value in changed(self).items():
            if name != "rules":
                raise ValueError(
                    f"'{name}' must not be given together with 'rules' (got {value!r})"
                )


def check_counting(
    min_support: int, shrinkage: float, floor: float, max_degree: int, max_rules: int
) -> None:
    """Refuses settings by which rules with constants cannot be counted or believed."""
    if not min_support >= 0:
        raise ValueError(f"'min_support' must not be negative (got {min_support})")
    # The least support is raised until there are few enough rules: not for ever.
    for name, value in (("max_degree", max_degree), ("max_rules", max_rules)):
        if not value >= 0:
            raise ValueError(f"'{name}' must not be negative (got {value})")
    if not 0 <= shrinkage < float("inf"):
        raise ValueError(f"'shrinkage' must not be negative (got {shrinkage})")
    if not 0 < floor < float("inf"):
        raise ValueError(f"'floor' must be positive (got {floor})")


def check_fractions(**values: float) -> None:
    """Refuses values that are not between 0 and 1, by name."""
    for name, value in values.items():
        if not 0 <= value <= 1:
            raise ValueError(f"'{name}' must lie in 0 to 1 (got {value})")
