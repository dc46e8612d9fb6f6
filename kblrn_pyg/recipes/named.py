"""The recipes with a name."""

from typing import Any

from kblrn_pyg.recipes.device import fast_precision
from kblrn_pyg.recipes.recipe import Recipe, Stage

# The names of recipes, with what they are.
NAMES = {
    "auto": "the default, chosen by size and --budget",
    "best": "more candidates and larger embeddings, without a time limit",
    "paper": "section 5 of the paper",
}

# Section 5 of the paper. Its other embedding size is 200.
PAPER = Recipe(
    "paper",
    (
        Stage(
            "lrn",
            {"hidden_channels": 100, "num_negatives": 500},
            {"epochs": 100, "batch_size": 512, "lr": 0.001, "validate_every": 5},
        ),
    ),
    rules={"preset": "paper"},
    why="section 5 of the paper",
)

# Entities that the triples of a batch are compared with, if there are many.
_SHARED: dict[str, Any] = {"num_negatives": 1024, "negatives": "shared"}

# From this number of triples on, one set of embeddings has to do.
FEW_TRIPLES = 100_000
# From this number on, rules with constants may not fit into memory.
VERY_MANY_TRIPLES = 3_000_000


def multiplied(size: int, epochs: int, n3: float = 0.05) -> Stage:
    r"""Embeddings with reciprocal relations that also predict relations.

    Args:
        size (int): The embedding size.
        epochs (int): The maximum number of epochs.
        n3 (float, optional): The weight of the penalty. (default: :obj:`0.05`)
    """
    model: dict[str, Any] = {
        "scorer": ["complex"],
        "hidden_channels": size,
        "num_negatives": None,
        "reciprocal": True,
        "n3": n3,
        "relation_prediction": 4.0,
        "precision": fast_precision(),
    }
    training = {"optimizer": "adagrad", "lr": 0.1, "batch_size": 256}
    return Stage("l", model, training | _validated(epochs))


def dropped(size: int, epochs: int) -> Stage:
    r"""Embeddings for few facts, with dropout against overfitting.

    Args:
        size (int): The embedding size.
        epochs (int): The maximum number of epochs.
    """
    model = {
        "scorer": ["complex"],
        "hidden_channels": size,
        "num_negatives": None,
        "dropout": 0.5,
    }
    training = {"lr": 0.003, "batch_size": 128}
    return Stage("l", model, training | _validated(epochs))


def features(letters: str, epochs: int, kinds: bool) -> Stage:
    r"""Paths, numbers and evidence, which have a weight for each feature.

    Args:
        letters (str): The experts.
        epochs (int): The maximum number of epochs.
        kinds (bool): Whether to add up evidence of different kinds.
    """
    model: dict[str, Any] = {"num_negatives": None}
    if "n" in letters:
        model |= {"numerical": "layer", "threshold": 0.1}
    if "e" in letters and kinds:
        model["evidence_kinds"] = True
    # Few epochs are those of many triples, of which each has many batches.
    lr, patience = (0.03, 2) if epochs > 5 else (0.01, 0)
    training = {"lr": lr, "lr_decay": 0.9, "batch_size": 256, "epochs": epochs}
    return Stage(letters, model, training | {"validate_every": 1, "patience": patience})


def of_few_triples(letters: str, size: int = 128) -> tuple[Stage, ...]:
    r"""The stages that work best on various small knowledge bases; validation
    chooses among them.

    Args:
        letters (str): The experts without embeddings.
        size (int, optional): The embedding size. (default: :obj:`128`)
    """
    return (
        multiplied(size, 100),
        multiplied(size, 100, n3=0.2),
        dropped(size // 2, 100),
        features(letters, 20, kinds=False),
        features(letters, 20, kinds=True),
    )


def sampled(letters: str, size: int, epochs: int) -> Stage:
    r"""Experts for many entities: the cost of a batch does not depend on their
    number.

    Args:
        letters (str): The experts, including embeddings.
        size (int): The embedding size.
        epochs (int): The maximum number of epochs.
    """
    model = {"hidden_channels": size, "sparse": True, "dropout": 0.2}
    training = {"optimizer": "adagrad", "lr": 0.05, "batch_size": 1024}
    return Stage(letters, _SHARED | model, training | _validated(epochs))


def sampled_features(letters: str, epochs: int) -> Stage:
    r"""Paths, numbers and evidence for many entities.

    Args:
        letters (str): The experts.
        epochs (int): The maximum number of epochs.
    """
    training = {"lr": 0.01, "lr_decay": 0.9, "batch_size": 1024, "epochs": epochs}
    return Stage(letters, dict(_SHARED), training | {"validate_every": 1})


def _validated(epochs: int) -> dict[str, int]:
    """Validates after every tenth of the epochs, but at most four epochs apart, because
    embeddings for few facts overfit soon. Two validations without improvement are
    tolerated."""
    every = min(4, max(1, epochs // 10))
    return {"epochs": epochs, "validate_every": every, "patience": 2}
