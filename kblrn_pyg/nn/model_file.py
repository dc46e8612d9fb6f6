"""Self-contained model files, which need no data set and contain no code."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch_geometric
from torch import Tensor
from torch.nn import Module
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric.data import HeteroData
from torch_geometric.nn.kge import KGEModel

import kblrn_pyg
from kblrn_pyg.data import (
    DataError,
    LayerFeatures,
    NumericalFeatures,
    PairAttribute,
    as_kb,
    ask,
)
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.data.store import MALFORMED, load_tensors, save_tensors
from kblrn_pyg.data.triples import first_occurrences
from kblrn_pyg.data.validate import validate_kb
from kblrn_pyg.nn import scorers
from kblrn_pyg.nn.arguments import Rebuildable
from kblrn_pyg.nn.calibration import Calibration
from kblrn_pyg.nn.evidence import EvidenceExpert
from kblrn_pyg.nn.expert import Expert
from kblrn_pyg.nn.latent import LatentExpert
from kblrn_pyg.nn.layer import LayerExpert
from kblrn_pyg.nn.loops import LoopExpert
from kblrn_pyg.nn.node import NodeExpert
from kblrn_pyg.nn.numerical import NumericalExpert
from kblrn_pyg.nn.penalties import PENALTIES
from kblrn_pyg.nn.rebuild import kge_arguments
from kblrn_pyg.nn.relational import RelationalExpert
from kblrn_pyg.nn.settings import ModelSettings
from kblrn_pyg.rules import RuleSet
from kblrn_pyg.settings import check_types

if TYPE_CHECKING:
    from kblrn_pyg.nn.kblrn import KBLRN

_KIND = "model"
_RANDOM = (torch.ops.aten.uniform_.default, torch.ops.aten.normal_.default)
_PLAIN = (bool, int, float, str, type(None), Tensor)
# What a file holds, and the types that weights may have.
_PARTS = {
    "sizes",
    "negatives",
    "settings",
    "experts",
    "dtype",
    "weights",
    "kb",
    "known",
}
_DTYPES = {
    str(one).removeprefix("torch."): one
    for one in (torch.float16, torch.bfloat16, torch.float32, torch.float64)
}
# Marks what stands for an object; no dictionary of a user has this key.
_OBJECT = "kblrn_pyg object"

_CLASSES: tuple[type[Module], ...] = (
    LatentExpert,
    RelationalExpert,
    NumericalExpert,
    LayerExpert,
    EvidenceExpert,
    LoopExpert,
    NodeExpert,
    *scorers.SCORERS.values(),
    scorers.Scorer,
    scorers.DistMultScorer,
    scorers.ComplExScorer,
    scorers.RotatEScorer,
    scorers.TransEScorer,
    scorers.UnitTransEScorer,
    scorers.RESCALScorer,
    scorers.TransHScorer,
    scorers.TransRScorer,
    scorers.TuckERScorer,
    scorers.ConvEScorer,
    scorers.PyKEENModel,
    scorers.PyKEENScorer,
    scorers.ReciprocalScorer,
    scorers.RGCNScorer,
    *PENALTIES.values(),
)

# Objects that a file keeps field by field.
_RECORDS: dict[str, Any] = {
    "numerical features": NumericalFeatures,
    "layer features": LayerFeatures,
    "pair attribute": PairAttribute,
}


def save_model(
    model: "KBLRN", path: PathLike, known: Iterable[HeteroData] = ()
) -> None:
    """Saves a model; see :meth:`KBLRN.save`."""
    kb = model.require_kb()
    writer = _Writer(kb)
    save_tensors(
        {
            "versions": versions(),
            "sizes": [model.num_nodes, model.num_relations],
            "negatives": [model.num_negatives, model.negatives],
            "settings": model.config,
            "experts": {name: writer.encode(one) for name, one in _experts(model)},
            "dtype": str(next(model.parameters()).dtype).removeprefix("torch."),
            "weights": model.state_dict(),
            "kb": _content(kb),
            "known": _known_triples(kb, [*model.known, *known]),
            "calibration": None
            if model.calibration is None
            else model.calibration.to_dict(),
        },
        path,
        _KIND,
    )


def load_model(
    cls: type["KBLRN"], path: PathLike, experts: Iterable[type[Module]] = ()
) -> "KBLRN":
    """Loads a model; see :meth:`KBLRN.load`."""
    content = load_tensors(path, _KIND)
    try:
        return _build(cls, content, experts)
    except DataError as error:
        raise DataError(str(error), path) from None
    except MALFORMED as error:
        raise DataError(f"cannot be loaded: {error}", path) from error


def _build(
    cls: type["KBLRN"], content: dict[str, Any], experts: Iterable[type[Module]]
) -> "KBLRN":
    """Creates a model from the content of a file."""
    if unknown := sorted(_PARTS - set(content)):
        raise DataError(f"is not a whole model, it lacks {', '.join(unknown)}")
    kb = HeteroData.from_dict(content["kb"])
    validate_kb(kb)
    sizes = [kb["entity"].num_nodes, len(kb.edge_types)]
    if content["sizes"] != sizes:
        raise DataError(f"is of {content['sizes']} entities and relations, not {sizes}")
    reader = _Reader(kb, {one.__name__: one for one in (*_CLASSES, *experts)})
    with _WithoutRandomWeights():
        built = {
            name: _expert(reader.decode(one), name)
            for name, one in content.pop("experts").items()
        }
    num_negatives, negatives = content["negatives"]
    model = cls(sizes[0], sizes[1], built, num_negatives, negatives)
    model.to(_DTYPES[content["dtype"]])
    _take_weights(model, content.pop("weights"))
    if content["settings"]:
        check_types(ModelSettings, content["settings"])
        model.settings = ModelSettings(**content["settings"])
    model.kb = kb
    if content.get("calibration") is not None:
        model.calibration = Calibration.from_dict(content["calibration"], sizes[1])
    if content["known"].numel():
        head, rel, tail = content["known"]
        model.known = (ask(kb, (head, rel, tail)),)
    return model.eval()


def _expert(made: Any, name: str) -> Expert:
    if not isinstance(made, Expert):
        raise DataError(f"{name!r} is not an expert")
    return made


class _WithoutRandomWeights(TorchDispatchMode):
    """Skips the random initialisation of parameters. Those of the file replace
    them, and memory that is never written takes no space.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func in _RANDOM and args[0].requires_grad:
            return args[0]
        return func(*args, **(kwargs or {}))


def _take_weights(model: Module, weights: Mapping[str, Tensor]) -> None:
    """Sets the weights of a model to tensors, without copies if possible."""
    places = [id(one) for _, one in model.named_parameters(remove_duplicate=False)]
    own = model.state_dict()
    is_same = all(
        name in own and own[name].dtype == one.dtype for name, one in weights.items()
    )
    # One parameter at two places would become two.
    is_once = len(set(places)) == len(places)
    model.load_state_dict(weights, assign=is_same and is_once)


def versions() -> dict[str, str]:
    """Returns the versions of all packages that results depend on."""
    return {
        "kblrn_pyg": kblrn_pyg.__version__,
        "torch": str(torch.__version__),
        "torch_geometric": torch_geometric.__version__,
        "numpy": np.__version__,
    }


def _experts(model: "KBLRN") -> Iterable[tuple[str, Any]]:
    return model.experts.items()


def _content(kb: HeteroData) -> dict[str, Any]:
    """Returns the data of a knowledge base, without attributes that users
    attached."""
    entity = kb["entity"]
    wanted = ("num_nodes", "name", "identifier", "x", "type")
    content: dict[str, Any] = {
        "_global_store": {
            key: kb[key]
            for key in ("attribute_names", "derived", "type_names", "typed_relations")
            if key in kb
        },
        "entity": {key: entity[key] for key in wanted if key in entity},
    }
    content["entity"]["x"] = entity.x.detach()
    for edge_type in kb.edge_types:
        edges = kb[edge_type].edge_index
        content[edge_type] = {"edge_index": edges, "edge_label_index": edges}
    return content


def _known_triples(kb: HeteroData, splits: Iterable[HeteroData]) -> Tensor:
    """Returns the distinct triples of splits that the knowledge base lacks."""
    splits = [as_kb(split, len(kb.edge_types)) for split in splits]
    found = [torch.empty(3, 0, dtype=torch.long)]
    for rel, edge_type in enumerate(kb.edge_types):
        own = kb[edge_type].edge_index
        others = [
            split[split.edge_types[rel]][key]
            for split in splits
            for key in ("edge_index", "edge_label_index")
        ]
        # Splits of one data set have the same training graph.
        others = [one for one in others if one is not own and not torch.equal(one, own)]
        if any(one.numel() for one in others):
            head, tail = _new_pairs(own, torch.cat(others, dim=1))
            found.append(torch.stack([head, torch.full_like(head, rel), tail]))
    return torch.cat(found, dim=1)


def _new_pairs(own: Tensor, others: Tensor) -> Tensor:
    """Returns the distinct columns of others that are not among one's own."""
    head, tail = torch.cat([own, others], dim=1).numpy()
    first = first_occurrences(head, tail)
    return others[:, first[first >= own.size(1)] - own.size(1)]


class _Writer:
    """Converts experts to plain values."""

    def __init__(self, kb: HeteroData) -> None:
        self.kb = kb

    def encode(self, value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, np.ndarray):
            return torch.from_numpy(value)
        if isinstance(value, list | tuple):
            return [self.encode(one) for one in value]
        if isinstance(value, dict):
            return {str(key): self.encode(one) for key, one in value.items()}
        if isinstance(value, HeteroData):
            if value is not self.kb:
                raise ValueError(
                    "experts must be made of the knowledge base of their model (got "
                    "another HeteroData)"
                )
            return {_OBJECT: "kb"}
        if isinstance(value, RuleSet):
            return {_OBJECT: "rules", "content": value.to_dict()}
        for kind, record in _RECORDS.items():
            if isinstance(value, record):
                names = [field.name for field in fields(value)]
                content = {name: self.encode(getattr(value, name)) for name in names}
                return {_OBJECT: kind, "content": content}
        if isinstance(value, KGEModel):
            arguments: Any = (), kge_arguments(value)
        elif isinstance(value, Rebuildable):
            arguments = value.arguments
        else:
            raise ValueError(
                "the arguments of experts must be plain values, tensors, scorers, "
                f"rules or the knowledge base to be saved (got {value!r})"
            )
        args, kwargs = (self.encode(one) for one in arguments)
        name = type(value).__name__
        return {_OBJECT: "module", "class": name, "args": args, "kwargs": kwargs}


class _Reader:
    """Creates experts from plain values."""

    def __init__(self, kb: HeteroData, classes: dict[str, type[Module]]) -> None:
        self.kb, self.classes = kb, classes

    def decode(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.decode(one) for one in value]
        if not isinstance(value, dict):
            return value
        if record := _RECORDS.get(value.get(_OBJECT, "")):
            return record(**self.decode(value["content"]))
        kinds: dict[str | None, Callable[[], Any]] = {
            None: lambda: {key: self.decode(one) for key, one in value.items()},
            "kb": lambda: self.kb,
            "rules": lambda: RuleSet.from_dict(value["content"]),
            "module": lambda: self._module(value),
        }
        return kinds[value.get(_OBJECT)]()

    def _module(self, value: dict[str, Any]) -> Module:
        name = value["class"]
        if name not in self.classes:
            raise DataError(
                f"needs the class {name}, give it: KBLRN.load(path, experts=[{name}])"
            )
        args, kwargs = self.decode(value["args"]), self.decode(value["kwargs"])
        return self.classes[name](*args, **kwargs)
