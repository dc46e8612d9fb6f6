"""How the systems that the paper compares with are trained here.

Each has a recipe of its own, with settings that were compared on validation sets;
those of their papers are where they began.
"""

from typing import Any

from kblrn_pyg.training.benchmark_recipes import BenchmarkRecipe, Schedule


def _system(name: str, scorer: str, size: int, **given: Any) -> BenchmarkRecipe:
    """Returns a recipe with one size and one scorer."""
    is_exact = given["model"]["num_negatives"] is None
    given |= {"paper_rules": False, "negatives": "triple" if is_exact else "shared"}
    return BenchmarkRecipe(name=name, scorers=(scorer,), sizes=(size,), **given)


def _learn(optimizer: str, lr: float, epochs: int, batch_size: int = 512) -> Schedule:
    training = {"batch_size": batch_size, "optimizer": optimizer, "lr": lr}
    every = max(2, epochs // 10)
    return Schedule(training | {"validate_every": every}, epochs, patience=1)


def _translating(scorer: str, size: int = 100, **model: Any) -> BenchmarkRecipe:
    return _system(
        scorer if not model else str(next(iter(model.values()))),
        scorer,
        size,
        model={"num_negatives": 1000, **model},
        schedule=_learn("adam", 0.003, epochs=60, batch_size=1024),
    )


_DROPPED = {"num_negatives": None, "dropout": 0.4, "precision": "bfloat16"}
_COMPLEX = _learn("adam", 0.001, epochs=24, batch_size=128)

TRANSE = _translating("transe")
TRANSH = _translating("transh")
TRANSR = _translating("transr", size=50)
KALE_PRE = _translating("transe")
KALE_JOINT = _translating("transe", penalty="kale")
COMPLEX = _system("complex", "complex", 200, model=_DROPPED, schedule=_COMPLEX)
ASR_COMPLEX = _system(
    "asr", "complex", 200, model={**_DROPPED, "penalty": "asr"}, schedule=_COMPLEX
)
CONVE = _system(
    "conve",
    "conve",
    200,
    model={"num_negatives": None, "reciprocal": True, "precision": "bfloat16"},
    schedule=_learn("adam", 0.001, epochs=40, batch_size=128),
)
RGCN_PLUS = _system(
    "rgcn",
    "distmult+rgcn:distmult",
    100,
    model={"num_negatives": 500},
    schedule=_learn("adam", 0.005, epochs=40, batch_size=4096),
)
NODE_LINK = _system(
    "node+link",
    "distmult",
    0,
    model={"num_negatives": None},
    schedule=_learn("adam", 0.01, epochs=10, batch_size=256),
)
