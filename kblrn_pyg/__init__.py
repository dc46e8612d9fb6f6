"""KBLRN: knowledge base completion from latent, relational and numerical features."""

from typing import Any

__version__ = "0.2.0"

__all__ = ["KBLRN", "__version__"]


def __getattr__(name: str) -> Any:
    # Torch takes seconds to import: wait until someone wants a model.
    if name == "KBLRN":
        from kblrn_pyg.nn import KBLRN

        return KBLRN
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
