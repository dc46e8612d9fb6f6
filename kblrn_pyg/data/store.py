"""Knowledge bases and tables on disk."""

import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import HeteroData

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.rows import PathLike


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
    return HeteroData.from_dict(load_tensors(path))


def save_tensors(content: dict[str, Any], path: PathLike) -> None:
    r"""Saves tensors and plain values; the file appears whole or not at all.

    Args:
        content (dict): What to save.
        path (str): The file to write.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            torch.save(content, file)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


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
    except (RuntimeError, EOFError, OSError) as error:
        reason = str(error).split("\n")[0]
        raise DataError(f"is damaged ({reason}), delete it", path) from None
