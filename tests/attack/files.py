"""Attacks by files: a bit that differs, and content that nobody has written."""

import hashlib
import io
import tempfile
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from attack.ids import NUM_NODES, NUM_RELATIONS, small_kb, small_model, small_rules
from hypothesis import strategies as st
from torch import Tensor

from kblrn_pyg.data import DataError, load_kb, save_kb
from kblrn_pyg.data.store import load_splits, load_tensors, save_splits, save_tensors
from kblrn_pyg.evaluation import RankTable, evaluate
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.nn.calibration import Calibration
from kblrn_pyg.predict import score_triples
from kblrn_pyg.rules import PathFeatures, RuleSet, mine_constants
from kblrn_pyg.training import Run, fit
from kblrn_pyg.training.checkpoint import load_checkpoint

SPLITS = ("train", "val", "test")
LOADERS: dict[str, Any] = {
    "kb": load_kb,
    "splits.kb": load_splits,
    "rules.pt": RuleSet.load,
    "constants.pt": RuleSet.load,
    "model.pt": KBLRN.load,
    "calibrated.pt": KBLRN.load,
    "checkpoint.pt": load_checkpoint,
    "ranks.npz": RankTable.load,
}
# Those that are made of tensors and plain values, and have a first line.
KINDS = {
    "kb": "knowledge base",
    "splits.kb": "data set",
    "rules.pt": "rules",
    "constants.pt": "rules",
    "model.pt": "model",
    "calibrated.pt": "model",
    "checkpoint.pt": "checkpoint",
}


@cache
def folder() -> Path:
    """Makes a file of each kind."""
    made = Path(tempfile.mkdtemp(prefix="kblrn_attack_"))
    save_kb(small_kb(), made / "kb")
    save_splits(dict.fromkeys(SPLITS, small_kb()), made / "splits.kb")
    small_rules().save(made / "rules.pt")
    model = deepcopy(small_model("lrne", "sampled"))
    fit(model, small_kb(), small_kb(), epochs=1, validate_every=1, run=Run(made))
    constants = mine_constants(small_kb(), min_support=1, bins=2)
    small_rules().with_constants(constants).save(made / "constants.pt")
    _calibrated().save(made / "calibrated.pt")
    evaluate(model, small_kb()).save(made / "ranks.npz")
    return made


def _calibrated() -> KBLRN:
    """A model of the experts that the other file has not, with probabilities."""
    rules = small_rules().with_constants(mine_constants(small_kb(), min_support=1))
    made = {"hidden_channels": 4, "threshold": 0.1, "num_negatives": 3}
    made |= {"numerical": "layer", "evidence_kinds": True, "scorer": "complex"}
    model = KBLRN.from_data(small_kb(), "lne", rules=rules, reciprocal=True, **made)
    columns = torch.ones(3), torch.zeros(3), torch.ones(3, dtype=torch.long)
    model.calibration = Calibration(*columns)
    return model


@cache
def content(name: str) -> bytes:
    return (folder() / name).read_bytes()


def attack_bits(data: st.DataObject) -> str:
    """Changes one bit, which must always be found."""
    name = data.draw(st.sampled_from(tuple(LOADERS)))
    raw = bytearray(content(name))
    in_first_line = st.integers(0, 8 * 100)
    bit = data.draw(st.integers(0, 8 * len(raw) - 1) | in_first_line)
    raw[bit // 8] ^= 1 << bit % 8
    path = folder() / f"damaged_{name}"
    path.write_bytes(raw)
    try:
        LOADERS[name](path)
    except DataError as error:
        assert "is damaged" in str(error)
        return f"refused {name}"
    raise AssertionError(f"bit {bit} of {name} was not found")


def attack_lengths(data: st.DataObject) -> str:
    """Cuts files short, and adds to them."""
    name = data.draw(st.sampled_from(tuple(LOADERS)))
    raw = content(name)
    if data.draw(st.booleans()):
        raw = raw[: data.draw(st.integers(0, len(raw) - 1))]
    else:
        raw += data.draw(st.binary(min_size=1, max_size=100))
    path = folder() / f"cut_{name}"
    path.write_bytes(raw)
    try:
        LOADERS[name](path)
    except DataError:
        return f"refused {name}"
    raise AssertionError(f"{name} was loaded")


def _odd_values(value: Any) -> "st.SearchStrategy[Any]":
    """Draws something else than a value of a file, often much like it."""
    others = [None, True, -1, 0, 10**9, 2**62, -(2**40), 0.5, float("nan"), "x", [], {}]
    odd = st.sampled_from(others)
    if not isinstance(value, Tensor) or value.is_sparse:  # which changes do not take
        return odd
    changes = [
        lambda t: t[:0],
        lambda t: t[:-1] if t.dim() else t,
        lambda t: torch.cat([t, t]) if t.dim() else t,
        lambda t: t[None],
        lambda t: t.double(),
        lambda t: t.int(),
        lambda t: t.flip(0) if t.dim() else t,
        lambda t: t.to_sparse() if t.dim() else t,
        lambda t: torch.full_like(t, 99),
        lambda t: -torch.ones_like(t) if t.dtype != torch.bool else ~t,
        torch.zeros_like,
        lambda t: t.expand(2, *t.shape),
        lambda t: t.clone().fill_(2**40) if t.dtype == torch.long else t,
    ]
    changed = st.sampled_from(changes).map(lambda change: change(value))
    one = st.sampled_from([-2, -1, NUM_NODES, 2 * NUM_RELATIONS, 2**40])
    return odd | changed | changed | one.map(lambda new: _with_one(value, new))


def _with_one(values: Tensor, new: int) -> Tensor:
    if values.numel() == 0 or values.dtype != torch.long:
        return values
    out = values.clone()
    out.view(-1)[out.numel() // 2] = new
    return out


def _changed(data: st.DataObject, value: Any, depth: int = 0) -> Any:
    """Changes one thing somewhere in content."""
    inner = isinstance(value, dict | list) and len(value) > 0
    if not inner or (depth > 0 and data.draw(st.integers(0, 5)) == 0):
        return data.draw(_odd_values(value))
    if isinstance(value, list):
        place = data.draw(st.integers(0, len(value) - 1))
        if data.draw(st.integers(0, 3)) == 0:
            return value[:place] + value[place + 1 :]
        new = _changed(data, value[place], depth + 1)
        return [*value[:place], new, *value[place + 1 :]]
    key = data.draw(st.sampled_from(list(value)))
    out = dict(value)
    kind = data.draw(st.integers(0, 6))
    if kind == 0:
        del out[key]
    elif kind == 1:
        out[data.draw(st.sampled_from(["x", "new", "head", "kb"]))] = out[key]
    else:
        out[key] = _changed(data, value[key], depth + 1)
    return out


@cache
def _stored(name: str) -> dict[str, Any]:
    return load_tensors(folder() / name, KINDS[name])


def attack_contents(data: st.DataObject) -> str:
    """Writes files with right checksums and wrong content, and uses what is loaded."""
    name = data.draw(st.sampled_from(tuple(KINDS)))
    path = folder() / f"odd_{name}"
    odd = _changed(data, _stored(name))
    if data.draw(st.integers(0, 3)) == 0:
        odd = _changed(data, odd)
    try:
        save_tensors(odd, path, KINDS[name])
    except (AttributeError, RuntimeError, TypeError):
        return "not written"
    try:
        found = LOADERS[name](path)
    except DataError as error:
        assert "\n" not in str(error)
        return f"refused {name}"
    _USES[name](found, path)
    return f"used {name}"


def _use_kb(kb: Any, path: Path) -> None:
    KBLRN.from_data(kb, "n").score_tails(torch.tensor([0]), torch.tensor([0]))


def _use_splits(kbs: Any, path: Path) -> None:
    for kb in kbs.values():
        _use_kb(kb, path)


def _use_rules(rules: RuleSet, path: Path) -> None:
    str(rules)
    try:
        features = PathFeatures(small_kb(), rules)
    except DataError:  # of other relations
        return
    every = np.arange(NUM_NODES)
    for relation in range(NUM_RELATIONS):
        asked = np.full(NUM_NODES, relation)
        features.tails(every, asked)
        features.heads(asked, every)
    features.remember()


def _use_model(model: KBLRN, path: Path) -> None:
    every = torch.arange(model.num_nodes)
    for relation in range(model.num_relations):
        asked = torch.full_like(every, relation)
        with torch.no_grad():
            model.score_tails(every, asked)
            model.score_heads(asked, every)
    if (model.num_negatives or 1) < 10**6:  # more take more memory than there is
        model.train()
        some = torch.zeros(3, dtype=torch.long)
        model.loss(some, some, some).backward()
    model.predict_tails(0, 0)
    score_triples(model, [("e0", "a", "e1")])
    model.explain(0, 0, 0)


def _use_checkpoint(checkpoint: Any, path: Path) -> None:
    """Continues a training from the checkpoint."""
    where = folder() / "continued"
    where.mkdir(exist_ok=True)
    (where / "checkpoint.pt").write_bytes(path.read_bytes())
    model = deepcopy(small_model("lrne", "sampled"))
    try:
        fit(model, small_kb(), small_kb(), epochs=1, validate_every=1, run=Run(where))
    except DataError as error:
        assert "\n" not in str(error)


_USES = {
    "kb": _use_kb,
    "splits.kb": _use_splits,
    "rules.pt": _use_rules,
    "constants.pt": _use_rules,
    "model.pt": _use_model,
    "calibrated.pt": _use_model,
    "checkpoint.pt": _use_checkpoint,
}


def attack_pickles(data: st.DataObject) -> str:
    """Puts anything behind a right checksum, where tensors are expected."""
    name = data.draw(st.sampled_from(tuple(KINDS)))
    buffer = io.BytesIO()
    torch.save(small_rules().to_dict(), buffer)
    raw = bytearray(buffer.getvalue())
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place : place + data.draw(st.integers(0, 3))] = data.draw(
            st.binary(max_size=3)
        )
    raw = raw or bytearray(data.draw(st.binary(max_size=50)))
    begin = f"kblrn_pyg {KINDS[name]} 2".encode()
    digest = hashlib.sha256(begin + raw).hexdigest()
    path = folder() / f"pickled_{name}"
    path.write_bytes(begin + f" sha256:{digest}\n".encode() + raw)
    try:
        LOADERS[name](path)
    except DataError as error:
        assert "\n" not in str(error)
        return f"refused {name}"
    return f"loaded {name}"
