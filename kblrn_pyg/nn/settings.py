"""The settings of a model, declared once."""

import math
from dataclasses import dataclass

from kblrn_pyg.settings import check_bins, setting, settle

# The letters of experts: those of the paper in its order, and then others.
EXPERT_LETTERS = "lrneo"

# The instances of the paper, and some others; any letters can be combined.
INSTANCES = ("l", "r", "n", "lr", "ln", "rn", "lrn", "e", "le", "lrne", "o", "lrneo")

# What the numerical expert is made of.
NUMERICAL_KINDS = ("rbf", "sign", "layer")

# The latent scorers that have a name.
SCORER_NAMES = (
    *("distmult", "complex", "transe", "unit-transe", "rotate", "rescal"),
    *("transh", "transr", "tucker", "conve"),
)

# The rule penalties that have a name.
PENALTY_NAMES = ("kale", "asr")

# The names of others: interactions of PyKEEN, and scorers behind an R-GCN.
SCORER_PATTERNS = ("pykeen:*", "rgcn:*")


@dataclass(frozen=True)
class ModelSettings:
    """The settings of :meth:`KBLRN.from_data`, with the defaults of the paper."""

    experts: str = setting(
        "lrn",
        "the experts: l (embeddings), r (paths), n (numbers), e (the best evidence), "
        "o (loops), or several of them",
    )
    hidden_channels: int = setting(100, "the embedding size", expert="l")
    scorer: list[str] = setting(
        ["distmult"],
        "the latent scorer, or several whose scores are added",
        expert="l",
        choices=(*SCORER_NAMES, *SCORER_PATTERNS),
    )
    reciprocal: bool = setting(
        False, "ask (?, r, t) as (t, r⁻¹, ?), with embeddings of r⁻¹", expert="l"
    )
    dropout: float = setting(
        0.0, "the fraction of a query's entries to drop", expert="l"
    )
    entity_dropout: float = setting(
        0.0, "the fraction of an entity's entries to drop", expert="l"
    )
    latent_dropout: float = setting(
        0.0, "the fraction of queries to answer without embeddings", expert="l"
    )
    n3: float = setting(0.0, "the weight of the nuclear 3-norm penalty", expert="l")
    l2: float = setting(0.0, "the weight of the squared 2-norm penalty", expert="l")
    dura: float = setting(0.0, "the weight of the duality-induced penalty", expert="l")
    relation_prediction: float = setting(
        0.0, "the weight of an additional loss for predicting relations", expert="l"
    )
    precision: str = setting(
        "float32",
        "the precision of products of queries and entities, in losses that share "
        "entities",
        expert="l",
        choices=("float32", "bfloat16"),
    )
    sparse: bool = setting(
        False, "update only those rows of the embeddings that a batch uses", expert="l"
    )
    penalty: str | None = setting(
        None,
        "rules in the loss: kale for TransE, asr for DistMult and ComplEx",
        expert="l",
        choices=PENALTY_NAMES,
    )
    penalty_weight: float = setting(1.0, "the weight of the rule penalty", expert="l")
    rgcn_layers: int = setting(1, "the number of layers of an R-GCN", expert="l")
    rgcn_bases: int = setting(
        2, "the number of bases for the relation matrices of an R-GCN", expert="l"
    )
    rgcn_blocks: int | None = setting(
        None,
        "the number of blocks of the relation matrices, instead of bases",
        expert="l",
        none="none",
    )
    edge_dropout: float = setting(
        0.4, "the fraction of facts that an R-GCN drops at each step", expert="l"
    )
    rgcn_neighbors: int | None = setting(
        None,
        "the number of neighbours of an entity that an R-GCN samples at each step; -1: "
        "all; auto: all of fewer than 500,000 facts, otherwise 20",
        expert="l",
        none="auto",
    )
    numerical: str = setting(
        "rbf",
        "the function of differences of numbers: a single one, or a layer of them",
        expert="n",
        choices=NUMERICAL_KINDS,
    )
    learn_rbf: bool = setting(False, "learn centres and widths", expert="n")
    threshold: float = setting(
        0.9,
        "the minimum fraction of a relation's triples with both numbers",
        expert="n",
    )
    ignore_unknown: bool = setting(
        False, "learn nothing from whether a number is known", expert="n"
    )
    evidence_support: int = setting(
        2, "the minimum support of rules with constants", expert="e"
    )
    evidence_shrinkage: float = setting(
        5.0,
        "the number added to body sizes, to lower the confidence of small bodies",
        expert="e",
    )
    evidence_floor: float = setting(
        0.03, "the confidence below which differences count little", expert="e"
    )
    evidence_kinds: bool = setting(
        False,
        "add up evidence of different kinds, each with a weight",
        expert="e",
    )
    evidence_bins: int = setting(
        0,
        "also use rules about numbers: 2, 4, 8, … up to this many bins per attribute",
        expert="e",
    )
    num_negatives: int | None = setting(
        500, "sampled entities for each triple and side", none="all"
    )
    negatives: str = setting(
        "triple",
        "whether entities are sampled for each triple, or shared by a batch",
        choices=("triple", "shared"),
    )

    def __post_init__(self) -> None:
        settle(self)
        for name in ("dropout", "entity_dropout", "latent_dropout", "edge_dropout"):
            if not 0 <= (value := getattr(self, name)) < 1:
                raise ValueError(
                    f"'{name}' must be at least 0 and less than 1 (got {value})"
                )
        for name in ("n3", "l2", "dura", "relation_prediction", "penalty_weight"):
            if not 0 <= (value := getattr(self, name)) < math.inf:
                raise ValueError(f"'{name}' must not be negative (got {value})")
        if self.evidence_support < 1:
            raise ValueError(
                f"'evidence_support' must be positive (got {self.evidence_support})"
            )
        check_bins("evidence_bins", self.evidence_bins, least=0)
        if not 0 <= self.evidence_shrinkage < math.inf:
            raise ValueError(
                "'evidence_shrinkage' must not be negative (got "
                f"{self.evidence_shrinkage})"
            )
        if not 0 < self.evidence_floor < math.inf:
            raise ValueError(
                f"'evidence_floor' must be positive (got {self.evidence_floor})"
            )
        positive = ("hidden_channels", "num_negatives", "rgcn_layers", "rgcn_bases")
        for name in (*positive, "rgcn_blocks"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ValueError(f"'{name}' must be positive (got {value})")
        if (number := self.rgcn_neighbors) is not None and number < 1 and number != -1:
            raise ValueError(
                f"'rgcn_neighbors' must be positive, or -1 for all (got {number})"
            )
        if self.penalty not in (None, *PENALTY_NAMES):
            raise ValueError(f"'penalty' must be kale or asr (got {self.penalty!r})")
        if self.negatives not in ("triple", "shared"):
            raise ValueError(
                f"'negatives' must be triple or shared (got {self.negatives!r})"
            )
        if self.sparse and self.num_negatives is None:
            raise ValueError(
                "'sparse' must be False where the loss is over all entities (got True)"
            )
        if self.precision not in ("float32", "bfloat16"):
            raise ValueError(
                f"'precision' must be float32 or bfloat16 (got {self.precision!r})"
            )
        if self.numerical not in NUMERICAL_KINDS:
            raise ValueError(
                f"'numerical' must be rbf, sign or layer (got {self.numerical!r})"
            )
        if self.ignore_unknown and self.numerical != "layer":
            raise ValueError(
                "'ignore_unknown' must be False unless 'numerical' is layer (got True)"
            )
        if self.learn_rbf and self.numerical == "layer":
            raise ValueError(
                "'learn_rbf' must be False where 'numerical' is layer (got True)"
            )


def are_letters(text: str) -> bool:
    r"""Returns whether a text has letters of experts only, without duplicates.

    Args:
        text (str): The text, which may be empty.
    """
    return set(text) <= set(EXPERT_LETTERS) and len(set(text)) == len(text)


def is_convolved(scorer: str) -> bool:
    r"""Returns whether the name of a scorer asks for an R-GCN in front of it.

    Args:
        scorer (str): The name.
    """
    return scorer.lower().startswith("rgcn:")
