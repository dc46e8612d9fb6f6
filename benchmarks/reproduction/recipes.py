"""Two ways to train: as the paper says, and with what the field has learned since."""

from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Recipe:
    r"""How models are trained.

    Args:
        name (str): Its name.
        sizes (tuple): The embedding sizes to choose from by validation.
        model (dict): Further arguments of :meth:`KBLRN.from_data`.
        training (dict): Arguments of :meth:`fit`, but for epochs.
        epochs (int): The most epochs.
        patience (int): How many validations in a row may bring no better MRR.
        paper_rules (bool): Whether rules need the paper's confidence.
        scorers (tuple): The latent scorers to choose from by validation, where
            a row names none.
        negatives (str, optional): How negatives are drawn, where a row does not
            say it; see :class:`KBLRN`. (default: :obj:`"triple"`)
        changes (dict, optional): What is different on a data set, by its name.
    """

    name: str
    sizes: tuple[int, ...]
    model: dict[str, Any]
    training: dict[str, Any]
    epochs: int
    patience: int
    paper_rules: bool
    scorers: tuple[str, ...]
    negatives: str = "triple"
    changes: dict[str, dict[str, Any]] = field(default_factory=dict)

    def on(self, dataset: str) -> "Recipe":
        r"""Returns the recipe for one data set.

        Args:
            dataset (str): The data set to train on.
        """
        return replace(self, **self.changes.get(dataset, {}))

    def shortened(self) -> "Recipe":
        """The same in seconds, to see that everything runs."""
        changes = {"batch_size": 512, "validate_every": 1, "lr": 0.02}
        return replace(
            self,
            sizes=(8,),
            scorers=self.scorers[:1],
            changes={},
            epochs=2,
            training=self.training | changes,
        )


# Section 5 of the paper, to the letter.
PAPER = Recipe(
    name="paper",
    sizes=(100, 200),
    model={"num_negatives": 500},
    training={"batch_size": 512, "lr": 0.001, "validate_every": 5},
    epochs=100,
    patience=0,
    paper_rules=True,
    scorers=("distmult",),
    # Negatives for each triple would take two to three times as long; the table
    # "negatives" shows what it changes.
    changes={"FB15k": {"negatives": "shared"}},
)


def _modern(
    scorer: str,
    size: int,
    epochs: int,
    lr_decay: float,
    paper_rules: bool = False,
    feature_lr: float | None = None,
    **dropouts: float,
) -> dict[str, Any]:
    """What recipe modern does on a data set."""
    return {
        "scorers": (scorer,),
        "sizes": (size,),
        "model": {"num_negatives": None, **dropouts},
        "training": {
            "batch_size": 128,  # queries, each with all of its answers
            "lr": 0.001,
            "lr_decay": lr_decay,
            "feature_lr": feature_lr,
            "validate_every": 2,
        },
        "epochs": epochs,
        "patience": 1,
        "paper_rules": paper_rules,
    }


_RESCAL = _modern("rescal", 128, epochs=24, lr_decay=0.9, dropout=0.5)
MODERN = Recipe(
    name="modern",
    **_RESCAL,
    changes={
        # A matrix for each of 1,345 relations would be too much, and so would be
        # what rules of little confidence reach: 45 times as many entities.
        "FB15k": _modern(
            "complex",
            100,
            epochs=16,
            lr_decay=0.88,
            paper_rules=True,
            feature_lr=0.01,
            dropout=0.3,
            latent_dropout=0.2,
        ),
        "FB122": _modern("complex", 200, epochs=24, lr_decay=0.9, dropout=0.5),
        "WN18": _modern("complex", 100, epochs=12, lr_decay=0.9, dropout=0.3),
    },
)

RECIPES = {recipe.name: recipe for recipe in (PAPER, MODERN)}
