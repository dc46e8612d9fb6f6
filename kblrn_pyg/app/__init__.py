"""A page in the browser and a JSON interface to query a trained model."""

from kblrn_pyg.app.api import create_app
from kblrn_pyg.app.engine import Engine
from kblrn_pyg.app.server import serve

__all__ = ["Engine", "create_app", "serve"]
