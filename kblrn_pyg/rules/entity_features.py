"""The features of entities: facts, and the intervals of their numbers."""

from torch_geometric.data import HeteroData

from kblrn_pyg.data import Intervals, quantile_intervals
from kblrn_pyg.kernels.adjacency import Adjacency
from kblrn_pyg.kernels.entity_features import Features, Numbers, features_of
from kblrn_pyg.rules.columns import check_same_names
from kblrn_pyg.rules.constants import ConstantRuleSet


def entity_features(
    data: HeteroData, facts: Adjacency, intervals: Intervals | None = None
) -> Features:
    r"""Lists the features of all entities.

    Args:
        data (HeteroData): The knowledge base.
        facts (Adjacency): Its facts.
        intervals (Intervals, optional): The intervals that are features of the
            entities whose numbers lie in them. (default: :obj:`None`, none)
    """
    if intervals is None:
        return features_of(facts)
    check_same_names("attributes", intervals.attributes, data.attribute_names)
    x = data["entity"].x.detach().double().numpy()
    return features_of(facts, Numbers(intervals.ptr, *intervals.holders(x)))


def find_intervals(
    data: HeteroData, bins: int, given: ConstantRuleSet | None = None
) -> Intervals | None:
    r"""Returns the intervals of given rules, or else those of the data.

    Args:
        data (HeteroData): The knowledge base.
        bins (int): The maximum number of bins of an attribute, 0 for no intervals.
        given (ConstantRuleSet, optional): The rules. (default: :obj:`None`)
    """
    if given is not None:
        return given.intervals
    return quantile_intervals(data, bins) if bins else None
