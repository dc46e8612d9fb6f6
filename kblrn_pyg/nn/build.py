"""Creates experts from letters and settings."""

import logging
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from torch_geometric.data import HeteroData

from kblrn_pyg.data import layer_features, numerical_features
from kblrn_pyg.nn.evidence import EvidenceExpert
from kblrn_pyg.nn.expert import Expert
from kblrn_pyg.nn.features import FeatureExpert
from kblrn_pyg.nn.latent import LatentExpert
from kblrn_pyg.nn.layer import LayerExpert
from kblrn_pyg.nn.loops import LoopExpert
from kblrn_pyg.nn.numerical import NumericalExpert
from kblrn_pyg.nn.penalties import PENALTIES
from kblrn_pyg.nn.relational import RelationalExpert
from kblrn_pyg.nn.scorers import (
    AnyScorer,
    RGCNScorer,
    make_named_scorer,
    scorer_list,
    scorer_name,
)
from kblrn_pyg.nn.scorers.rgcn import choose_neighbors
from kblrn_pyg.nn.settings import (
    EXPERT_LETTERS,
    SCORER_NAMES,
    ModelSettings,
    are_letters,
    is_convolved,
)
from kblrn_pyg.rules import RuleSet, mine_rules
from kblrn_pyg.settings import changed, concerns
from kblrn_pyg.sizes import choice_text, choose_model

logger = logging.getLogger(__name__)

# The experts that have a letter: those of the paper in its order, and then others.
LETTERS = {
    LatentExpert.name: "l",
    RelationalExpert.name: "r",
    NumericalExpert.name: "n",
    EvidenceExpert.name: "e",
    LoopExpert.name: "o",
}


def instance_of(names: Iterable[str]) -> str:
    r"""Returns the letters of experts, and the names of those without a letter.

    Args:
        names (iterable): The names of the experts.

    Example:
        >>> instance_of(["latent", "numerical", "popularity"])
        'ln+popularity'
    """
    return "".join(LETTERS.get(name, f"+{name}") for name in names)


def build_experts(
    kb: HeteroData,
    experts: str | Sequence[str | Expert],
    scorer: AnyScorer | Sequence[AnyScorer],
    rules: RuleSet | None,
    given: dict[str, Any],
) -> tuple[dict[str, Expert], ModelSettings]:
    r"""Builds the experts of a model, and returns them with their settings.

    Args:
        kb (HeteroData): The knowledge base.
        experts (str or sequence): See :meth:`KBLRN.from_data`.
        scorer: See :class:`LatentExpert`.
        rules (RuleSet, optional): The rules of the relational expert.
        given (dict): The other settings that were given.
    """
    letters, own = _letters(experts)
    names = [name for name, letter in LETTERS.items() if letter in letters]
    own_names = _names(own, names)
    several = scorer_list(scorer)
    num_nodes = kb["entity"].num_nodes
    can_be_sparse = "l" in letters and _can_be_sparse(kb, several, given)
    if chosen := choose_model(num_nodes, given, can_be_sparse):
        logger.info(choice_text(num_nodes, chosen))
    given = chosen | given
    settings = ModelSettings(
        experts=instance_of([*names, *own_names]),
        scorer=[scorer_name(one) for one in several],
        **given,
    )
    _warn_of_unused(settings, letters, num_experts=len(names) + len(own))
    needs_rules = set("re") & set(letters) or ("l" in letters and settings.penalty)
    if rules is not None and not needs_rules:
        warnings.warn(
            "'rules' has no effect without the experts r or e, or a penalty",
            stacklevel=4,
        )
    elif rules is not None and rules.constants is not None and "e" not in letters:
        warnings.warn(
            "rules with constants have no effect without the expert e", stacklevel=4
        )
    if rules is None and needs_rules:
        rules = mine_rules(kb, confidences="e" in letters)
    built: dict[str, Expert] = {}
    if "l" in letters:
        built["latent"] = _latent(kb, settings, several, len(names) + len(own), rules)
    if "r" in letters:
        assert rules is not None
        built["relational"] = RelationalExpert(kb, rules.with_constants(None))
    if "n" in letters:
        built["numerical"] = _numerical(kb, settings)
    if "e" in letters:
        assert rules is not None
        built["evidence"] = _evidence(kb, settings, rules)
    if "o" in letters:
        built["loops"] = LoopExpert(kb)
    _warn_of_silent(built)
    return built | dict(zip(own_names, own)), settings


def _can_be_sparse(kb: HeteroData, scorers: list[Any], given: dict[str, Any]) -> bool:
    """Returns whether all scorers can have row-sparse gradients."""
    names = [one.lower() for one in scorers if isinstance(one, str)]
    inner = [one.removeprefix("rgcn:") for one in names]
    if len(names) < len(scorers) or not set(inner) <= set(SCORER_NAMES):
        return False
    num_facts = sum(kb[one].num_edges for one in kb.edge_types)
    samples = choose_neighbors(given.get("rgcn_neighbors"), num_facts) != -1
    return samples or not any(map(is_convolved, names))


def _letters(experts: str | Sequence[str | Expert]) -> tuple[str, list[Expert]]:
    """Separates letters from user-defined experts."""
    given = [experts] if isinstance(experts, str | Expert) else list(experts)
    letters = "".join(one for one in given if isinstance(one, str))
    own = [one for one in given if isinstance(one, Expert)]
    is_wrong = any(not isinstance(one, str | Expert) for one in given)
    if is_wrong or not are_letters(letters) or not (letters or own):
        raise ValueError(
            f"'experts' must have letters of {EXPERT_LETTERS}, each at most once, or "
            f"be a sequence of letters and experts (got {experts!r})"
        )
    return letters, own


def _names(own: list[Expert], taken: list[str]) -> list[str]:
    """Names user-defined experts; those of the same class are numbered."""
    names = list(taken)
    for expert in own:
        same = sum(name.rstrip("0123456789_") == expert.name for name in names)
        names.append(f"{expert.name}_{same + 1}" if same else expert.name)
    return names[len(taken) :]


def _latent(
    kb: HeteroData,
    settings: ModelSettings,
    scorers: list[Any],
    num_experts: int,
    rules: RuleSet | None,
) -> LatentExpert:
    penalty = None
    if settings.penalty is not None:
        assert rules is not None
        paths = rules.with_constants(None)
        penalty = PENALTIES[settings.penalty](kb, paths, settings.penalty_weight)
    return LatentExpert(
        kb["entity"].num_nodes,
        len(kb.edge_types),
        settings.hidden_channels,
        [_convolved(kb, settings, one) for one in scorers],
        settings.reciprocal,
        settings.dropout,
        settings.n3,
        settings.l2,
        settings.entity_dropout,
        settings.latent_dropout if num_experts > 1 else 0.0,
        settings.sparse,
        settings.dura,
        settings.relation_prediction,
        settings.precision,
        penalty,
    )


def _convolved(kb: HeteroData, settings: ModelSettings, scorer: Any) -> Any:
    """Puts an R-GCN in front of a scorer whose name asks for one."""
    if not isinstance(scorer, str) or not is_convolved(scorer):
        return scorer
    num_relations = len(kb.edge_types) * (1 + settings.reciprocal)
    return RGCNScorer(
        kb,
        make_named_scorer(
            scorer.lower().removeprefix("rgcn:"),
            (kb["entity"].num_nodes, num_relations, settings.hidden_channels),
            settings.sparse,
        ),
        settings.rgcn_layers,
        settings.rgcn_bases if settings.rgcn_blocks is None else None,
        settings.rgcn_blocks,
        settings.edge_dropout,
        settings.rgcn_neighbors,
    )


def _numerical(kb: HeteroData, settings: ModelSettings) -> FeatureExpert:
    if settings.numerical == "layer":
        layers = layer_features(kb, settings.threshold)
        return LayerExpert(kb, layers, settings.ignore_unknown)
    if "derived" in kb:
        warnings.warn(
            "derived attributes have no effect unless 'numerical' is layer",
            stacklevel=5,
        )
    features = numerical_features(kb, settings.threshold)
    return NumericalExpert(kb, features, settings.numerical, settings.learn_rbf)


def _evidence(
    kb: HeteroData, settings: ModelSettings, rules: RuleSet
) -> EvidenceExpert:
    if not rules.is_measured:
        logger.info(
            "the rules have no confidences: the evidence expert uses mined ones"
        )
        rules = mine_rules(kb).with_constants(rules.constants)
    elif len(rules) == 0 and rules.constants is not None:
        logger.info("the rules have no paths: the evidence expert looks for none")
    bins = settings.evidence_bins
    if bins and (rules.constants is not None or not kb["entity"].x.size(1)):
        has_rules = rules.constants is not None
        where = "rules with constants are given" if has_rules else "are no numbers"
        warnings.warn(f"'evidence_bins' has no effect where {where}", stacklevel=5)
        bins = 0
    return EvidenceExpert(
        kb,
        rules,
        settings.evidence_support,
        settings.evidence_shrinkage,
        settings.evidence_floor,
        settings.evidence_kinds,
        bins,
    )


def _warn_of_unused(settings: ModelSettings, letters: str, num_experts: int) -> None:
    """Warns about settings without an effect."""
    experts = {field.name: field.metadata["expert"] for field in fields(settings)}
    unused = {
        name: f"without the expert {experts[name]}"
        for name in changed(settings)
        if not concerns(experts[name], letters)
    }
    if settings.latent_dropout and num_experts == 1:
        unused["latent_dropout"] = "without further experts"
    if settings.precision != "float32" and _samples_for_triples(settings):
        unused["precision"] = "where entities are sampled for each triple"
    if settings.negatives == "shared" and settings.num_negatives is None:
        unused["negatives"] = "where the loss is over all entities"
    if settings.penalty is None and "penalty_weight" in changed(settings):
        unused["penalty_weight"] = "without a penalty"
    if not any(is_convolved(name) for name in settings.scorer):
        unused |= {
            name: "without a scorer rgcn:…"
            for name in changed(settings)
            if name.startswith("rgcn_") or name == "edge_dropout"
        }
    for name, reason in unused.items():
        warnings.warn(f"'{name}' has no effect {reason}", stacklevel=5)


def _samples_for_triples(settings: ModelSettings) -> bool:
    is_sampled = settings.num_negatives is not None and settings.negatives == "triple"
    return is_sampled and settings.relation_prediction == 0


def _warn_of_silent(experts: dict[str, Expert]) -> None:
    """Warns about experts without features."""
    why = {
        "relational": "there are no rules",
        "numerical": "no relation has enough triples with numbers on both sides",
    }
    for name, expert in experts.items():
        if isinstance(expert, FeatureExpert) and expert.weight.numel() == 0:
            warnings.warn(
                f"the {name} expert adds nothing to any score: {why[name]}",
                stacklevel=5,
            )
