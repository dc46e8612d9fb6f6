"""Rules, with paths or with constants: mining, files, and where they hold."""

from typing import TYPE_CHECKING

from kblrn_pyg.lazy import lazy_imports

if TYPE_CHECKING:
    from kblrn_pyg.rules.constant_miner import mine_constants
    from kblrn_pyg.rules.constants import ConstantRuleSet
    from kblrn_pyg.rules.evidence import EvidenceFeatures
    from kblrn_pyg.rules.features import PathFeatures
    from kblrn_pyg.rules.files import read_rules, write_rules
    from kblrn_pyg.rules.find import find_rules, provided_rules
    from kblrn_pyg.rules.found import PairFeatures, QueryFeatures
    from kblrn_pyg.rules.grounding import Groundings, ground_rules
    from kblrn_pyg.rules.mine import MineRules, mine_rules
    from kblrn_pyg.rules.ruleset import RuleSet
    from kblrn_pyg.rules.semantics import Semantics
    from kblrn_pyg.rules.settings import (
        PAPER,
        ConstantSettings,
        MineSettings,
        RuleSettings,
    )
    from kblrn_pyg.rules.text import body_text, constant_rule_text, rule_text
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = [
    "PAPER",
    "ConstantRuleSet",
    "ConstantSettings",
    "EvidenceFeatures",
    "Groundings",
    "MineRules",
    "MineSettings",
    "PairFeatures",
    "PathFeatures",
    "QueryFeatures",
    "RuleSet",
    "RuleSettings",
    "Semantics",
    "body_text",
    "constant_rule_text",
    "find_rules",
    "ground_rules",
    "mine_constants",
    "mine_rules",
    "provided_rules",
    "read_rules",
    "rule_text",
    "write_rules",
]
