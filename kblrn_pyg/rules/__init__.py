"""Path bodies that predict relations: mining them, files, and where they hold."""

from kblrn_pyg.rules.features import PairFeatures, PathFeatures, QueryFeatures
from kblrn_pyg.rules.files import read_rules, write_rules
from kblrn_pyg.rules.find import RuleSettings, find_rules, provided_rules
from kblrn_pyg.rules.mine import PAPER, MineRules, mine_rules
from kblrn_pyg.rules.ruleset import RuleSet
from kblrn_pyg.rules.semantics import Semantics
from kblrn_pyg.rules.text import body_text, rule_text

__all__ = [
    "PAPER",
    "MineRules",
    "PairFeatures",
    "PathFeatures",
    "QueryFeatures",
    "RuleSet",
    "RuleSettings",
    "Semantics",
    "body_text",
    "find_rules",
    "mine_rules",
    "provided_rules",
    "read_rules",
    "rule_text",
    "write_rules",
]
