"""Modules that store their constructor arguments, so that files can hold them."""

from typing import Any

from torch.nn import Module


class Rebuildable(Module):
    r"""A module that keeps the arguments of its constructor.

    A model file stores them, too, and the module is created again from them. They
    must be plain values, tensors, scorers, rules, or the knowledge base of the
    model.
    """

    arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        module = super().__new__(cls)
        # Not by 'setattr', which a module allows only once it is initialised.
        module.__dict__["arguments"] = (args, kwargs)
        return module
