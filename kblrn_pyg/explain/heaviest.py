"""The rules of a relation with the largest weights."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import HeteroData
from torch_geometric.data.storage import EdgeStorage

from kblrn_pyg.data import DataError, Vocabulary
from kblrn_pyg.nn import KBLRN, RelationalExpert
from kblrn_pyg.rules import PathFeatures, RuleSet, body_text
from kblrn_pyg.rules.columns import Ids
from kblrn_pyg.rules.measure import measure_bodies
from kblrn_pyg.rules.text import about
from kblrn_pyg.table import format_table


@dataclass(frozen=True)
class WeightedRules:
    r"""Rules of one relation with their weights, the largest first.

    Args:
        rules (RuleSet): The rules, with all measures.
        weight (numpy.ndarray): The weight of each.
        num_rules (int): The number of rules that the relation has.
    """

    rules: RuleSet
    weight: NDArray[np.float64]
    num_rules: int

    def to_text(self) -> str:
        """Returns the rules as a table."""
        rules = self.rules
        rows = [
            (
                f"{weight:+.3f}",
                f"{rules.head_coverage[i]:.3f}",
                f"{about(rules, i)}{rules.pca_confidence[i]:.3f}",
                f"{rules.support[i]:,}",
                body_text(rules, i),
            )
            for i, weight in enumerate(self.weight)
        ]
        header = ("weight", "coverage", "PCA conf.", "support", "body")
        return format_table(header, rows)


def heaviest_rules(
    model: KBLRN, data: HeteroData, relation: str, number: int = 15
) -> WeightedRules:
    r"""Returns the rules of a relation with the largest weights of either sign.

    Measures that mining left out are computed here, or estimated as in
    :meth:`mine_rules`.

    Args:
        model (KBLRN): The model; the first of its experts with weights of rules is
            used.
        data (HeteroData): The knowledge base.
        relation (str): The relation, by name.
        number (int, optional): The maximum number of rules. (default: :obj:`15`)
    """
    experts = (e for e in model.experts.values() if isinstance(e, RelationalExpert))
    expert = next(experts, None)
    if expert is None:
        raise DataError(
            "the model has no relational expert, its experts are "
            f"{', '.join(model.experts)}"
        )
    if number < 0:
        raise ValueError(f"'number' must not be negative (got {number})")
    names = Vocabulary.of(data).relations
    r = names.resolve(relation)
    features = expert.features
    place = features.rules.of(r)
    if place.start == place.stop:
        raise DataError(f"the model has no rules for the relation {names[r]!r}")
    weight = expert.weight.detach().cpu().double().numpy()[place]
    heaviest = np.argsort(-np.abs(weight), kind="stable")[:number]
    order = heaviest[np.argsort(-weight[heaviest], kind="stable")]
    chosen = place.start + order
    rules = features.rules.select(chosen)
    if (rules.support < 0).any() or (rules.head_size < 0).any():
        rules = _count_support(rules, chosen, features, data[data.edge_types[r]])
    if (rules.pca_body_size < 0).any():
        rules = measure_bodies(rules, features.adjacency, features.all_facts)
    return WeightedRules(rules, weight[order], len(weight))


def _count_support(
    rules: RuleSet, chosen: Ids, features: PathFeatures, facts: EdgeStorage
) -> RuleSet:
    """Counts the facts of the relation for which each body holds."""
    head, tail = facts.edge_index.unique(dim=1).numpy()
    rel = np.full_like(head, rules.head[0])
    found = features.pairs(head, rel, tail).rule
    support = np.bincount(found, minlength=len(features.rules))[chosen]
    return replace(rules, support=support, head_size=np.full_like(chosen, len(head)))
