"""How the systems that the paper compares with are trained here.

Each has a recipe of its own. Where rules are in the loss, everything else is as in the
recipe without them.
"""

from dataclasses import replace
from typing import Any

from kblrn_pyg.training.benchmark_recipes import MODERN, BenchmarkRecipe, Schedule


def _system(name: str, scorer: str, size: int, **given: Any) -> BenchmarkRecipe:
    """Returns a recipe with one size and one scorer."""
    is_exact = given["model"]["num_negatives"] is None
    given |= {"paper_rules": False, "negatives": "triple" if is_exact else "shared"}
    return BenchmarkRecipe(name=name, scorers=(scorer,), sizes=(size,), **given)


def _learn(
    optimizer: str, lr: float, epochs: int, batch_size: int = 512, **training: Any
) -> Schedule:
    training |= {"batch_size": batch_size, "optimizer": optimizer, "lr": lr}
    every = max(2, epochs // 10)
    return Schedule(training | {"validate_every": every}, epochs, patience=1)


def _translating(
    name: str, scorer: str = "transe", size: int = 100, **model: Any
) -> BenchmarkRecipe:
    """Rules beside embeddings, if there are any, learn apart from them."""
    return _system(
        name,
        scorer,
        size,
        model={"num_negatives": 200, **model},
        schedule=_learn("adam", 0.003, epochs=30, batch_size=1024),
        without_latent=MODERN.without_latent,
        apart=True,
        # Few relations of many facts each: these go on learning for longer.
        changes={"WN18": {"schedule": _learn("adam", 0.003, 90, batch_size=1024)}},
    )


def _with_penalty(
    name: str, recipe: BenchmarkRecipe, penalty: str, weight: float
) -> BenchmarkRecipe:
    """Returns the same embeddings with rules in their loss, on every data set."""
    added = {"penalty": penalty, "penalty_weight": weight}
    changes = {
        dataset: change | {"model": change.get("model", recipe.model) | added}
        for dataset, change in recipe.changes.items()
    }
    return replace(recipe, name=name, model=recipe.model | added, changes=changes)


TRANSE = _translating("transe")
TRANSH = _translating("transh", "transh")
TRANSR = _translating("transr", "transr", size=50)
KALE_JOINT = _with_penalty("kale", TRANSE, "kale", 5.0)
ASR_COMPLEX = _with_penalty("asr", MODERN, "asr", 0.01)
CONVE = _system(
    "conve",
    "conve",
    200,
    model={"num_negatives": None, "reciprocal": True, "precision": "bfloat16"},
    schedule=_learn("adam", 0.002, epochs=20, batch_size=128, lr_decay=0.88),
    # More facts, and more of them follow from others, take more steps.
    changes={
        "FB15k": {"schedule": _learn("adam", 0.003, 30, batch_size=128, lr_decay=0.95)},
    },
)
RGCN_PLUS = _system(
    "rgcn",
    "distmult+rgcn:distmult",
    100,
    model={"num_negatives": 500},
    schedule=_learn("adam", 0.005, epochs=40, batch_size=4096),
    # A step convolves over all facts, so that larger batches take less time.
    changes={
        "FB15k": {"schedule": _learn("adam", 0.01, epochs=60, batch_size=8192)},
    },
)
NODE_LINK = _system(
    "node+link",
    "distmult",
    0,
    model={"num_negatives": None},
    schedule=Schedule(
        {"batch_size": 256, "lr": 0.03, "lr_decay": 0.5, "validate_every": 2},
        epochs=2,
        patience=0,
    ),
    # No two entities of a triple to validate or to test on are linked in the training
    # set of FB15k-237, where many are: links that learn beside nodes leave little for
    # nodes to learn, and then speak for what cannot be true.
    apart=True,
)
