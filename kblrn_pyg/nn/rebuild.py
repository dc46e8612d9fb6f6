"""Creates the modules of an updated knowledge base from existing ones."""

import inspect
import warnings
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn.kge import KGEModel

from kblrn_pyg.data.update import KBUpdate
from kblrn_pyg.nn.arguments import Rebuildable

# What the number of entities is called in constructors.
_NUM_NODES = "num_nodes"
_PLAIN = (bool, int, float, str, type(None), Tensor, tuple, dict)


def rebuilt(module: Rebuildable | KGEModel, update: KBUpdate) -> Any:
    r"""Creates a module again, for the updated knowledge base.

    Among the arguments of its constructor, and of those of modules among them, the
    knowledge base and :obj:`num_nodes` are replaced.

    Args:
        module (Rebuildable or KGEModel): The module.
        update (KBUpdate): The update of the knowledge base.
    """
    given = _given(module)
    for name, value in given.arguments.items():
        given.arguments[name] = _replaced(name, value, update)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they came when it was made first
        return type(module)(*given.args, **given.kwargs)


def depends_on(module: Rebuildable, update: KBUpdate) -> bool:
    r"""Returns whether a module depends on the knowledge base, or on its size.

    Args:
        module (Rebuildable): The module.
        update (KBUpdate): The update of the knowledge base.
    """
    given = _given(module).arguments
    return _NUM_NODES in given or any(one is update.before for one in given.values())


def take_weights(module: Module, before: Module, update: KBUpdate) -> None:
    r"""Copies weights; those of new entities stay as they are.

    Args:
        module (Module): The module of the updated knowledge base.
        before (Module): The module of the one before.
        update (KBUpdate): The update of the knowledge base.
    """
    first = next(before.parameters(), None)
    if first is not None:
        module.to(device=first.device, dtype=first.dtype)
    old, new = before.state_dict(), module.state_dict()
    for name, weight in new.items():
        if name not in old or not _copy(old[name], weight, update):
            raise ValueError(
                f"{type(module).__name__} cannot be updated, its weight {name!r} does "
                "not fit any more: write 'with_facts'"
            )
    module.train(before.training)


def kge_arguments(kge: KGEModel) -> dict[str, Any]:
    """Returns the constructor arguments of a PyG model, which it keeps as
    attributes."""
    names = inspect.signature(type(kge).__init__).parameters
    kwargs = {name: getattr(kge, name) for name in names if hasattr(kge, name)}
    if "sparse" in names:
        kwargs["sparse"] = kge.node_emb.sparse
    return {name: one for name, one in kwargs.items() if isinstance(one, _PLAIN)}


def _given(module: Rebuildable | KGEModel) -> inspect.BoundArguments:
    """Returns the arguments of a module by their names."""
    is_kge = isinstance(module, KGEModel)
    args, kwargs = ((), kge_arguments(module)) if is_kge else module.arguments
    return inspect.signature(type(module)).bind(*args, **kwargs)


def _replaced(name: str, value: Any, update: KBUpdate) -> Any:
    if value is update.before:
        return update.kb
    if name == _NUM_NODES and value == update.num_before:
        return int(update.kb["entity"].num_nodes)
    if isinstance(value, Rebuildable | KGEModel):
        return rebuilt(value, update)
    if isinstance(value, list | tuple):
        return [_replaced("", one, update) for one in value]
    if isinstance(value, dict):
        return {key: _replaced(key, one, update) for key, one in value.items()}
    return value


@torch.no_grad()
def _copy(old: Tensor, new: Tensor, update: KBUpdate) -> bool:
    """Copies numbers, if at most the number of entities differs."""
    sizes = update.num_before, int(update.kb["entity"].num_nodes)
    if old.dim() != new.dim():
        return False
    places = []
    for before, after in zip(old.shape, new.shape):
        if before != after and (before, after) != sizes:
            return False
        places.append(slice(before))
    new[tuple(places)] = old
    return True
