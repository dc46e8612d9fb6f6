"""Finds the rules for a model: mined, read, or provided with the data."""

from typing import Any

from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data import DataError, Vocabulary, as_kb
from kblrn_pyg.data.names import relation_names
from kblrn_pyg.rules.files import read_rules
from kblrn_pyg.rules.mine import mine_rules
from kblrn_pyg.rules.ruleset import RuleSet
from kblrn_pyg.rules.settings import PAPER, RuleSettings


def find_rules(
    data: HeteroData | Data,
    settings: RuleSettings,
    progress: bool = False,
    confidences: bool = False,
) -> RuleSet:
    r"""Returns the rules that the settings specify.

    Args:
        data (HeteroData or Data): The knowledge base.
        settings (RuleSettings): The source of the rules.
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
        confidences (bool, optional): Whether to measure the confidences of mined
            rules even if the preset does not need them. (default: :obj:`False`)
    """
    if settings.rules == "provided":
        return provided_rules(as_kb(data))
    if settings.rules is not None:
        names = Vocabulary.of(as_kb(data))
        entities = names.entities.identifiers
        return read_rules(
            settings.rules, relation_names(as_kb(data)), entities=entities
        )[0]
    chosen: dict[str, Any] = PAPER if settings.preset else {"confidences": confidences}
    chosen = chosen | {"min_head_coverage": settings.min_head_coverage}
    return mine_rules(data, **chosen, progress=progress)


def provided_rules(data: HeteroData) -> RuleSet:
    r"""Returns the rules that come with a data set, as with WN18 and FB122.

    Args:
        data (HeteroData): The knowledge base.
    """
    lines = data.get("rule_lines")
    if lines is None:
        raise DataError("the data set comes without rules, expected WN18 or FB122")
    return read_rules(lines, relation_names(data), "kale")[0]
