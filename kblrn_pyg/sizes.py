"""Default settings that depend on the size of a knowledge base."""

from collections.abc import Collection
from typing import Any

# From this number of entities on, nothing of a batch may be as large as that.
LARGE = 50_000

_MODEL = {"num_negatives": 1024, "negatives": "shared"}
# Without dropout, embeddings begin to learn by heart after ten epochs.
_EMBEDDINGS = {"sparse": True, "dropout": 0.2}
_TRAINING = {"optimizer": "adagrad", "lr": 0.05, "batch_size": 1024}


def choose_model(
    num_nodes: int, given: Collection[str], can_be_sparse: bool = True
) -> dict[str, Any]:
    r"""Returns settings, other than the given ones, for a model of a large
    knowledge base.

    Args:
        num_nodes (int): The number of entities.
        given (collection): The names of the settings that were given.
        can_be_sparse (bool, optional): Whether the embeddings can have row-sparse
            gradients. (default: :obj:`True`)

    Example:
        >>> choose_model(150_000, [])
        {'num_negatives': 1024, 'negatives': 'shared', 'sparse': True, 'dropout': 0.2}
        >>> choose_model(150_000, ["num_negatives"])
        {}
        >>> choose_model(15_000, [])
        {}
    """
    if num_nodes < LARGE or {*_MODEL, "sparse"} & set(given):
        return {}
    chosen = _MODEL | (_EMBEDDINGS if can_be_sparse else {})
    return {name: value for name, value in chosen.items() if name not in given}


def choose_training(is_sparse: bool, given: Collection[str]) -> dict[str, Any]:
    r"""Returns settings, other than the given ones, for training with row-sparse
    gradients.

    Args:
        is_sparse (bool): Whether the model has row-sparse gradients.
        given (collection): The names of the settings that were given.

    Example:
        >>> choose_training(True, ["lr"])
        {'optimizer': 'adagrad', 'batch_size': 1024}
        >>> choose_training(False, [])
        {}
    """
    if not is_sparse or "optimizer" in given:
        return {}
    return {name: value for name, value in _TRAINING.items() if name not in given}


def choice_text(num_nodes: int, chosen: dict[str, Any]) -> str:
    r"""Returns a line that describes the choice.

    Args:
        num_nodes (int): The number of entities.
        chosen (dict): The settings.

    Example:
        >>> choice_text(150_000, {"num_negatives": 1024, "sparse": True})
        'chosen for 150,000 entities: num_negatives=1024, sparse=True'
    """
    values = ", ".join(f"{name}={value}" for name, value in chosen.items())
    return f"chosen for {num_nodes:,} entities: {values}"
