"""The experts and the model."""

from typing import TYPE_CHECKING

from kblrn_pyg.lazy import lazy_imports

if TYPE_CHECKING:
    from kblrn_pyg.nn.evidence import EvidenceExpert
    from kblrn_pyg.nn.expert import Expert
    from kblrn_pyg.nn.kblrn import KBLRN
    from kblrn_pyg.nn.latent import LatentExpert
    from kblrn_pyg.nn.layer import LayerExpert
    from kblrn_pyg.nn.loops import LoopExpert
    from kblrn_pyg.nn.node import NodeExpert
    from kblrn_pyg.nn.numerical import NumericalExpert
    from kblrn_pyg.nn.part import Part, Ref
    from kblrn_pyg.nn.penalties import ASRPenalty, KALEPenalty, RulePenalty
    from kblrn_pyg.nn.relational import RelationalExpert
    from kblrn_pyg.nn.scorers import (
        RESCAL,
        SCORERS,
        ConvE,
        DistMultScorer,
        FreeTransE,
        PyKEENModel,
        ReciprocalScorer,
        RGCNScorer,
        Scorer,
        TransH,
        TransR,
        TuckER,
    )
    from kblrn_pyg.nn.settings import INSTANCES, ModelSettings
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = [
    "INSTANCES",
    "KBLRN",
    "RESCAL",
    "SCORERS",
    "ASRPenalty",
    "ConvE",
    "DistMultScorer",
    "EvidenceExpert",
    "Expert",
    "FreeTransE",
    "KALEPenalty",
    "LatentExpert",
    "LayerExpert",
    "LoopExpert",
    "ModelSettings",
    "NodeExpert",
    "NumericalExpert",
    "Part",
    "PyKEENModel",
    "RGCNScorer",
    "ReciprocalScorer",
    "Ref",
    "RelationalExpert",
    "RulePenalty",
    "Scorer",
    "TransH",
    "TransR",
    "TuckER",
]
