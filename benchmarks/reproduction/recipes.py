"""Two ways to train: that of the paper, and a modern one."""

from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Schedule:
    r"""How fast and how long a model learns.

    Args:
        training (dict): Arguments of :meth:`fit`, but for epochs.
        epochs (int): The maximum number of epochs.
        patience (int): The number of validations in a row that may bring no
            better MRR.
    """

    training: dict[str, Any]
    epochs: int
    patience: int

    def shortened(self) -> "Schedule":
        """The same in seconds, as a test."""
        changes = {"batch_size": 512, "validate_every": 1, "lr": 0.02}
        return Schedule(self.training | changes, min(self.epochs, 2), self.patience)


# Nothing is learned any more.
_AS_THEY_ARE = Schedule({"validate_every": 1}, epochs=0, patience=0)


@dataclass(frozen=True)
class Recipe:
    r"""How models are trained.

    Args:
        name (str): Its name.
        sizes (tuple): The embedding sizes to choose from by validation.
        model (dict): Further arguments of :meth:`KBLRN.from_data`.
        schedule (Schedule): How fast and how long they learn.
        paper_rules (bool): Whether rules need the paper's confidence.
        scorers (tuple): The latent scorers to choose from by validation, where
            a row names none.
        negatives (str, optional): How negatives are drawn, where a row does not
            say it; see :class:`KBLRN`. (default: :obj:`"triple"`)
        without_latent (Schedule, optional): The schedule of models without
            embeddings. (default: :obj:`None`, that of all)
        after_latent (Schedule, optional): If there is one, models with further
            experts begin with embeddings that were trained alone, and continue
            by this schedule. (default: :obj:`None`, all experts begin together)
        rules_apart (bool, optional): Whether rules, and numbers beside them,
            are then trained without embeddings, too, and multiplied with these
            as they are. (default: :obj:`False`)
        changes (dict, optional): What is different on a data set, by its name.
    """

    name: str
    sizes: tuple[int, ...]
    model: dict[str, Any]
    schedule: Schedule
    paper_rules: bool
    scorers: tuple[str, ...]
    negatives: str = "triple"
    without_latent: Schedule | None = None
    after_latent: Schedule | None = None
    rules_apart: bool = False
    changes: dict[str, dict[str, Any]] = field(default_factory=dict)

    def on(self, dataset: str) -> "Recipe":
        r"""Returns the recipe for one data set.

        Args:
            dataset (str): The data set to train on.
        """
        return replace(self, **self.changes.get(dataset, {}))

    def beginnings(self, experts: str) -> tuple[str, ...]:
        r"""Returns the instances whose experts a model begins with.

        Args:
            experts (str): The instance of the model.
        """
        if self.after_latent is None or "l" not in experts or experts == "l":
            return ()
        return ("l", experts.replace("l", "")) if self._is_apart(experts) else ("l",)

    def schedule_of(self, experts: str) -> Schedule:
        r"""Returns how fast and how long a model learns.

        Args:
            experts (str): The instance of the model.
        """
        special = None
        if "l" not in experts:
            special = self.without_latent
        elif self._is_apart(experts):
            special = _AS_THEY_ARE
        elif experts != "l":
            special = self.after_latent
        return special or self.schedule

    def _is_apart(self, experts: str) -> bool:
        return self.rules_apart and {"l", "r"} <= set(experts)

    def shortened(self) -> "Recipe":
        """The same in seconds, as a test."""
        schedules = {
            name: schedule.shortened()
            for name in ("schedule", "without_latent", "after_latent")
            if (schedule := getattr(self, name)) is not None
        }
        return replace(
            self, sizes=(8,), scorers=self.scorers[:1], changes={}, **schedules
        )


# Section 5 of the paper, to the letter.
PAPER = Recipe(
    name="paper",
    sizes=(100, 200),
    model={"num_negatives": 500},
    schedule=Schedule(
        {"batch_size": 512, "lr": 0.001, "validate_every": 5}, epochs=100, patience=0
    ),
    paper_rules=True,
    scorers=("distmult",),
    # Negatives for each triple would take two to three times as long; the table
    # "negatives" shows what it changes.
    changes={"FB15k": {"negatives": "shared"}},
)


def _together(lr_decay: float, epochs: int) -> dict[str, Any]:
    """All experts learn together from the beginning, and by one schedule."""
    training = {"batch_size": 128, "lr": 0.001, "validate_every": 2}
    schedule = Schedule(training | {"lr_decay": lr_decay}, epochs, patience=1)
    return {"schedule": schedule, "without_latent": None, "after_latent": None}


def _exact(**dropouts: float) -> dict[str, Any]:
    """The loss over all entities; batches are of queries, with all answers."""
    return {"num_negatives": None, **dropouts}


MODERN = Recipe(
    name="modern",
    scorers=("rescal",),
    sizes=(128,),
    model=_exact(dropout=0.2, entity_dropout=0.4),
    paper_rules=False,
    # Embeddings that learn beside rules from the beginning leave to them what
    # rules can do, and never learn it as well as they could.
    schedule=Schedule(
        {"batch_size": 256, "lr": 0.0015, "lr_decay": 0.967, "validate_every": 4},
        epochs=80,
        patience=2,
    ),
    without_latent=Schedule(
        {"batch_size": 256, "lr": 0.01, "lr_decay": 0.85, "validate_every": 2},
        epochs=12,
        patience=1,
    ),
    after_latent=Schedule(
        {
            "batch_size": 256,
            "lr": 0.0005,
            "feature_lr": 0.005,
            "lr_decay": 0.7,
            "validate_every": 1,
        },
        epochs=6,
        patience=1,
    ),
    changes={
        # A matrix for each of 1,345 relations would be too much, and so would be
        # what rules of little confidence reach: 45 times as many entities.
        "FB15k": {
            "scorers": ("complex",),
            "sizes": (100,),
            "model": _exact(dropout=0.2),
            "paper_rules": True,
            "schedule": Schedule(
                {"batch_size": 256, "lr": 0.004, "lr_decay": 0.9, "validate_every": 3},
                epochs=24,
                patience=2,
            ),
            # Embeddings know almost all training triples of FB15k, so that rules
            # would learn nothing beside them: what learned apart is multiplied.
            "rules_apart": True,
        },
        "FB122": {
            "scorers": ("complex",),
            "sizes": (200,),
            "model": _exact(dropout=0.5),
            **_together(lr_decay=0.9, epochs=24),
        },
        "WN18": {
            "scorers": ("complex",),
            "sizes": (100,),
            "model": _exact(dropout=0.3),
            **_together(lr_decay=0.9, epochs=12),
        },
    },
)

RECIPES = {recipe.name: recipe for recipe in (PAPER, MODERN)}
