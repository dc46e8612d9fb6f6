"""Recipes of the benchmarks: that of the paper, and a modern one."""

from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Schedule:
    r"""The optimisation settings and the length of training.

    Args:
        training (dict): Arguments of :meth:`fit`, except for epochs.
        epochs (int): The maximum number of epochs.
        patience (int): The number of consecutive validations without a better MRR
            to tolerate.
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
class BenchmarkRecipe:
    r"""The training of the models in a benchmark table: all instances, on all of
    its data sets, with the options that validation chooses from.

    The recipe of one model is a :class:`~kblrn_pyg.recipes.Recipe`.

    Args:
        name (str): Its name.
        sizes (tuple): The embedding sizes to choose from by validation.
        model (dict): Additional arguments of :meth:`KBLRN.from_data`.
        schedule (Schedule): The schedule of training.
        paper_rules (bool): Whether rules need the paper's confidence.
        scorers (tuple): The latent scorers to choose from by validation, where
            a row names none.
        negatives (str, optional): How negatives are drawn, where a row does not
            say it; see :class:`KBLRN`. (default: :obj:`"triple"`)
        without_latent (Schedule, optional): The schedule of models without
            embeddings. (default: :obj:`None`, that of all)
        evidence_alone (Schedule, optional): The schedule of the evidence expert,
            which has few weights. (default: :obj:`None`, that of all without
            embeddings)
        beside_evidence (Schedule, optional): The schedule of models without
            embeddings that combine it with other experts.
            (default: :obj:`None`, that of all without embeddings)
        apart (bool, optional): Whether embeddings, the other experts with letters,
            and each expert without one are trained separately, and then balanced on
            the validation set; see :meth:`~kblrn_pyg.training.balance`.
            (default: :obj:`False`, all experts are trained together)
        changes (dict, optional): The fields that differ on a data set, by its name.
    """

    name: str
    sizes: tuple[int, ...]
    model: dict[str, Any]
    schedule: Schedule
    paper_rules: bool
    scorers: tuple[str, ...]
    negatives: str = "triple"
    without_latent: Schedule | None = None
    evidence_alone: Schedule | None = None
    beside_evidence: Schedule | None = None
    apart: bool = False
    changes: dict[str, dict[str, Any]] = field(default_factory=dict)

    def on(self, dataset: str) -> "BenchmarkRecipe":
        r"""Returns the recipe for one data set.

        Args:
            dataset (str): The data set to train on.
        """
        return replace(self, **self.changes.get(dataset, {}))

    def beginnings(self, experts: str) -> tuple[str, ...]:
        r"""Returns the instances whose experts initialise a model.

        Args:
            experts (str): The instance of the model.
        """
        parts = _parts(experts)
        return parts if self.apart and len(parts) > 1 else ()

    def schedule_of(self, experts: str) -> Schedule:
        r"""Returns the schedule of a model.

        Args:
            experts (str): The instance of the model.
        """
        if self.beginnings(experts):
            return _AS_THEY_ARE
        letters, special = experts.partition("+")[0], None
        if "l" not in letters:
            if "e" in letters:
                is_alone = experts == "e"
                special = self.evidence_alone if is_alone else self.beside_evidence
            special = special or self.without_latent
        return special or self.schedule

    def shortened(self) -> "BenchmarkRecipe":
        """The same in seconds, as a test."""
        schedules = {
            name: schedule.shortened()
            for name in (
                "schedule",
                "without_latent",
                "evidence_alone",
                "beside_evidence",
            )
            if (schedule := getattr(self, name)) is not None
        }
        return replace(
            self, sizes=(8,), scorers=self.scorers[:1], changes={}, **schedules
        )


def _parts(experts: str) -> tuple[str, ...]:
    """Splits an instance, such as lr+node, into separately trained parts: l, r and
    +node."""
    letters, *own = experts.split("+")
    embeddings, others = "l" if "l" in letters else "", letters.replace("l", "")
    with_letters = tuple(one for one in (embeddings, others) if one)
    return with_letters + tuple(f"+{name}" for name in own)


# Section 5 of the paper, to the letter.
PAPER = BenchmarkRecipe(
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


def _embeddings(n3: float) -> dict[str, Any]:
    """The loss over all entities; batches are of queries, with all answers."""
    return {
        "num_negatives": None,
        "reciprocal": True,
        "n3": n3,
        "precision": "bfloat16",
    }


def _dropped(dropout: float) -> dict[str, Any]:
    """For data sets on which embeddings without reciprocal relations and with
    dropout work better."""
    return {"num_negatives": None, "dropout": dropout, "precision": "bfloat16"}


def _adam(epochs: int) -> Schedule:
    training = {"batch_size": 128, "lr": 0.001, "lr_decay": 0.9, "validate_every": 2}
    return Schedule(training, epochs, patience=1)


def _features(epochs: int) -> Schedule:
    """One weight for each feature."""
    training = {"batch_size": 256, "lr": 0.01, "lr_decay": 0.85, "validate_every": 2}
    return Schedule(training, epochs, patience=1)


def _adagrad(epochs: int) -> Schedule:
    training = {"batch_size": 256, "optimizer": "adagrad", "lr": 0.1}
    return Schedule(training | {"validate_every": 3}, epochs, patience=2)


# Six weights for each relation; without kinds of evidence, they are learned soon.
_EVIDENCE = Schedule(
    {"batch_size": 512, "lr": 0.01, "validate_every": 1}, epochs=2, patience=0
)

MODERN = BenchmarkRecipe(
    name="modern",
    scorers=("complex",),
    sizes=(512,),
    model=_embeddings(n3=0.05) | {"relation_prediction": 4.0, "evidence_kinds": True},
    paper_rules=False,
    schedule=_adagrad(epochs=30),
    without_latent=_features(epochs=12),
    beside_evidence=_features(epochs=4),
    evidence_alone=Schedule(
        {"batch_size": 512, "optimizer": "adagrad", "lr": 0.1, "validate_every": 2},
        epochs=2,
        patience=0,
    ),
    # Embeddings know almost all training triples, so that rules would learn nothing
    # beside them: experts learn apart, and validation says how far to trust each.
    apart=True,
    changes={
        "FB15k": {
            "sizes": (256,),
            "model": _embeddings(n3=0.01),
            "evidence_alone": _EVIDENCE,
            # What rules of little confidence reach would be 45 times as many entities.
            "paper_rules": True,
            "schedule": _adagrad(epochs=24),
        },
        "FB122": {
            "sizes": (200,),
            "model": _dropped(0.5),
            "schedule": _adam(24),
            "evidence_alone": _EVIDENCE,
        },
        "WN18": {
            "sizes": (256,),
            "model": _embeddings(n3=0.05),
            "schedule": _adagrad(epochs=18),
            "evidence_alone": _EVIDENCE,
        },
    },
)

RECIPES = {recipe.name: recipe for recipe in (PAPER, MODERN)}
