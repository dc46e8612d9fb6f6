"""KBLRN: knowledge base completion from latent, relational and numerical features."""

__version__ = "0.1.0"
