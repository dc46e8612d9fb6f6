"""A small knowledge base with hostile names, and models of it that need no training."""

import numpy as np
import torch

from kblrn_pyg import KBLRN
from kblrn_pyg.data import make_kb

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    'O\'Hara "Q" &amp;',
    "=1+1",
    "a,b\nc",
    "id:3",
    "‮txet",
    "x" * 3000,
    "../../etc/passwd",
    "日本 50 %?&#",
]
RELATIONS = ["parent_of", "/people/person/lives_in", "<b>likes</b>", "knows & trusts"]


def make_data(seed=0):
    """36 entities, four relations, facts that rules can explain, and numbers."""
    rng = np.random.default_rng(seed)
    names = [*HOSTILE, *(f"Person {i}" for i in range(24)), "Twin", "Twin"]
    identifiers = [*names[:-2], "twin/1", "twin/2"]
    triples = set()
    for head in range(len(names)):
        for rel in range(len(RELATIONS)):
            for step in (1, 5, 11):
                if rng.random() < 0.45:
                    triples.add((head, rel, (head + step * (rel + 1)) % len(names)))
    known = torch.tensor(sorted(triples)).t()
    x = torch.tensor(rng.normal(50, 20, (len(names), 2)).round(1))
    x[::7, 0] = torch.nan
    attributes = ["birth <i>year", "height"]
    return make_kb(names, RELATIONS, tuple(known), x, attributes, identifiers)


def make_model(experts="lrne", data=None, **settings):
    """Weights are drawn, so that every expert has something to say."""
    torch.manual_seed(0)
    settings = {"hidden_channels": 4, "threshold": 0.5, **settings}
    model = KBLRN.from_data(make_data() if data is None else data, experts, **settings)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return model.eval()
