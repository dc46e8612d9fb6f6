"""Penalties: terms that a latent expert adds to the loss."""

from kblrn_pyg.nn.penalties.asr import ASRPenalty
from kblrn_pyg.nn.penalties.kale import KALEPenalty
from kblrn_pyg.nn.penalties.penalty import RulePenalty

# The rule penalties that have a name.
PENALTIES: dict[str, type[RulePenalty]] = {"kale": KALEPenalty, "asr": ASRPenalty}

__all__ = ["PENALTIES", "ASRPenalty", "KALEPenalty", "RulePenalty"]
