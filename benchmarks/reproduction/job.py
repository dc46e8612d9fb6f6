"""One training, named after everything that shapes it."""

from dataclasses import dataclass, fields, replace
from typing import Any

from kblrn_pyg.training.benchmark_recipes import BenchmarkRecipe, Schedule

# Data sets with the same training triples: one training serves them all, and
# stops for each when its own validation set says so.
JUDGED = {
    "FB15k": ("FB15k", "FB15k-num"),
    "FB15k-237": ("FB15k-237", "FB15k-237-num"),
}


@dataclass(frozen=True)
class Job:
    r"""One training.

    Args:
        dataset (str): The data set to train on.
        recipe (BenchmarkRecipe): How to train.
        experts (str): The instance of the model.
        hidden_channels (int): The embedding size; 0 without embeddings.
        seed (int, optional): The seed. (default: :obj:`0`)
        scorer (str, optional): The latent scorer. (default: :obj:`"distmult"`)
        numerical (str, optional): :obj:`"rbf"`, :obj:`"sign"` or :obj:`"layer"`.
            (default: :obj:`"rbf"`)
        threshold (float, optional): The fraction of a relation's triples that must
            have both numbers. (default: :obj:`0.9`)
        ignore_unknown (bool, optional): Whether layers learn nothing from whether a
            number is known. (default: :obj:`False`)
        permuted (bool, optional): Whether the numbers are permuted among the
            entities that have the attribute. (default: :obj:`False`)
        negatives (str, optional): :obj:`"triple"`, or :obj:`"shared"` to draw
            them once for a batch. (default: :obj:`"triple"`)
        max_hops (int, optional): The largest number of steps of a path.
            (default: :obj:`2`)
        infers (bool, optional): Whether it learns what follows from rules, too.
            (default: :obj:`False`)
    """

    dataset: str
    recipe: BenchmarkRecipe
    experts: str
    hidden_channels: int
    seed: int = 0
    scorer: str = "distmult"
    numerical: str = "rbf"
    threshold: float = 0.9
    ignore_unknown: bool = False
    permuted: bool = False
    negatives: str = "triple"
    max_hops: int = 2
    infers: bool = False

    @property
    def letters(self) -> str:
        """The letters of its experts, without those that have a name only."""
        return self.experts.partition("+")[0]

    @property
    def uses_rules(self) -> bool:
        """Whether it has features or a loss made of rules."""
        has_loss = "penalty" in self.recipe.model or self.infers
        return has_loss or bool(set("re") & set(self.letters))

    @property
    def name(self) -> str:
        """The name of its folder."""
        parts = [self.dataset, self.recipe.name, self.experts]
        if self.scorer != "distmult":
            parts.append(self.scorer.replace(":", "-"))
        if self.numerical != "rbf":
            parts.append(self.numerical)
        if self.threshold != 0.9:
            parts.append(f"t{self.threshold}")
        if self.ignore_unknown:
            parts.append("values")
        if self.permuted:
            parts.append("permuted")
        if self.negatives != "triple":
            parts.append(self.negatives)
        if self.infers:
            parts.append("inferred")
        if self.hidden_channels:
            parts.append(f"d{self.hidden_channels}")
        return "_".join([*parts, f"seed{self.seed}"])

    @property
    def schedule(self) -> Schedule:
        """How fast and how long it learns."""
        return self.recipe.schedule_of(self.experts)

    @property
    def beginnings(self) -> tuple["Job", ...]:
        """The trainings whose experts it begins with."""
        instances = self.recipe.beginnings(self.experts)
        return tuple(self._with_experts(experts) for experts in instances)

    def _with_experts(self, experts: str) -> "Job":
        if experts == "l":
            numbers = ("numerical", "threshold", "ignore_unknown", "permuted")
            usual = {one.name: one.default for one in fields(Job)}
            return replace(self, experts="l", **{name: usual[name] for name in numbers})
        return replace(self, experts=experts, hidden_channels=0, scorer="distmult")

    @property
    def judged(self) -> tuple[str, ...]:
        """The data sets that the training is judged on."""
        return JUDGED.get(self.dataset, (self.dataset,))

    def described(self, dataset: str) -> dict[str, Any]:
        r"""Returns what shapes it, and what it is judged on.

        Args:
            dataset (str): The data set it is judged on.
        """
        return {
            "trained_on": self.dataset,
            "dataset": dataset,
            "recipe": self.recipe.name,
            "experts": self.experts,
            "hidden_channels": self.hidden_channels,
            "scorer": self.scorer,
            "numerical": self.numerical,
            "threshold": self.threshold,
            "ignore_unknown": self.ignore_unknown,
            "permuted": self.permuted,
            "negatives": self.negatives,
            "max_hops": self.max_hops,
            "infers": self.infers,
            "seed": self.seed,
            "begins_with": [beginning.name for beginning in self.beginnings],
            "patience": self.schedule.patience,
            "most_epochs": self.schedule.epochs,
            **self.recipe.model,
            **self.schedule.training,
        }


def trained_on(dataset: str) -> str:
    r"""Returns the data set that has the training triples of another.

    Args:
        dataset (str): The data set to judge on.
    """
    return next((base for base, all_ in JUDGED.items() if dataset in all_), dataset)
