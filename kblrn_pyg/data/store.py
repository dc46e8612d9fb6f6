"""Knowledge bases and tables on disk."""

import pickle
from typing import Any

import torch
from torch_geometric.data import HeteroData

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.data.whole import whole_file


def save_kb(data: HeteroData, path: PathLike) -> None:
    r"""Saves a knowledge base; the file appears whole or not at all.

    Args:
        data (HeteroData): The knowledge base.
        path (str): The file to write.
    """
    save_tensors(data.to_dict(), path)


def load_kb(path: PathLike) -> HeteroData:
    r"""Loads a knowledge base that :meth:`save_kb` wrote, without running code.

    Args:
        path (str): The file.
    """
    content = load_tensors(path)
    if not isinstance(content, dict) or "entity" not in content:
        raise DataError("no knowledge base that 'save_kb' wrote", path)
    return HeteroData.from_dict(content)


def save_tensors(content: dict[str, Any], path: PathLike) -> None:
    r"""Saves tensors and plain values; the file appears whole or not at all.

    Args:
        content (dict): What to save.
        path (str): The file to write.
    """
    with whole_file(path) as file:
        torch.save(content, file)


def load_tensors(path: PathLike) -> dict[str, Any]:
    r"""Loads what :meth:`save_tensors` wrote, without running code.

    Args:
        path (str): The file.
    """
    try:
        return torch.load(path, weights_only=True)
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except pickle.UnpicklingError:
        raise DataError(
            "holds Python objects, expected only tensors, numbers, strings, lists "
            "and dictionaries (what did a 'pre_transform' attach?)",
            path,
        ) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path) from None
    except Exception as error:  # what is broken decides who complains
        reason = str(error).split("\n")[0] or type(error).__name__
        raise DataError(
            f"is damaged, or no file of this library ({reason})", path
        ) from None
