"""KBLRN: knowledge base completion from latent, relational and numerical features."""

from typing import TYPE_CHECKING

from kblrn_pyg.lazy import lazy_imports

if TYPE_CHECKING:
    from kblrn_pyg.nn import KBLRN
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__version__ = "0.2.0"

__all__ = ["KBLRN", "__version__"]
