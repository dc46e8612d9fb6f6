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
    # Negatives for each triple would take three times as long; the table
    # "negatives" shows what it changes.
    changes={"FB15k": {"negatives": "shared"}},
)


def _change(scorer: str, size: int, dropout: float) -> dict[str, Any]:
    return {
        "scorers": (scorer,),
        "sizes": (size,),
        "model": {"num_negatives": None, "dropout": dropout},
    }


# Tried out on the validation set of FB15k-237; what differs elsewhere is untuned.
MODERN = Recipe(
    name="modern",
    sizes=(128,),
    model={"num_negatives": None, "entity_dropout": 0.4},
    training={
        "batch_size": 128,  # queries, each with all of its answers
        "lr": 0.001,
        "lr_decay": 0.95,
        "validate_every": 2,
    },
    epochs=40,
    patience=2,
    paper_rules=False,
    scorers=("rescal",),
    changes={
        # A matrix for each of 1,345 relations would be too much, and so would be
        # what rules of little confidence reach: 45 times as many entities.
        "FB15k": _change("distmult", 200, dropout=0.3) | {"paper_rules": True},
        "FB122": _change("complex", 200, dropout=0.5),
        "WN18": _change("complex", 100, dropout=0.3) | {"epochs": 12},
    },
)

RECIPES = {recipe.name: recipe for recipe in (PAPER, MODERN)}
