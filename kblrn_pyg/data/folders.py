"""Finds the splits of a knowledge base in a folder or in an object."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.sources import Source

# What the splits are called, by our names.
_SPLITS = {
    "train": ("train", "training"),
    "val": ("valid", "val", "validation", "dev", "validating"),
    "test": ("test", "testing"),
}
_NUMBERS = ("numbers", "numerical", "numeric", "attributes", "literals")
_LABELS = ("labels", "names", "entity2text", "entity2label")
_ENDINGS = {
    *(".tsv", ".txt", ".csv", ".parquet"),
    *(".nt", ".nq", ".ttl", ".rdf", ".owl", ".xml"),
}
# As Hugging Face numbers the files of a split.
_PART = re.compile(r"[-_.](\d+)([-_]of[-_]\d+)?")


@dataclass
class Splits:
    r"""The sources of a knowledge base.

    Args:
        triples (dict): The sources of each split, in order.
        numbers (list): The sources of numbers.
        labels (list): The sources of labels.
    """

    triples: dict[str, list[Source]] = field(default_factory=dict)
    numbers: list[Source] = field(default_factory=list)
    labels: list[Source] = field(default_factory=list)


def splits_of(source: Any) -> Splits | None:
    r"""Returns the splits of a source, or :obj:`None` if it does not have several.

    Args:
        source: A folder with files :obj:`train`, :obj:`valid` and :obj:`test`, with
            any ending and in one or several pieces, and optionally :obj:`numbers`
            and :obj:`labels`; a dictionary of splits, such as a :obj:`DatasetDict`
            of Hugging Face; or a :obj:`Dataset` of PyKEEN.
    """
    if isinstance(source, (str, os.PathLike)):
        return _in_folder(Path(source)) if Path(source).is_dir() else None
    if isinstance(source, Mapping):
        return _in_mapping(source)
    if hasattr(source, "training") and hasattr(source, "testing"):
        names = ("training", "validation", "testing")
        found = {name: getattr(source, name, None) for name in names}
        return _in_mapping({k: one for k, one in found.items() if one is not None})
    return None


def _in_mapping(sources: Mapping[Any, Any]) -> Splits:
    splits = Splits()
    for name, one in sources.items():
        split = _split_called(str(name))
        if split is None:
            raise DataError(
                f"the split {name!r} is unknown, expected train, valid and test"
            )
        splits.triples.setdefault(split, []).append(one)
    if "train" not in splits.triples:
        raise DataError("the training split is missing, expected 'train'")
    return splits


def _in_folder(folder: Path) -> Splits:
    splits = Splits()
    # Hugging Face has the files in a folder of their own.
    paths = [*folder.iterdir(), *(folder / "data").glob("*")]
    for path in sorted(paths, key=_in_order):
        stem, is_data = _stem(path)
        if not is_data or not path.is_file():
            continue
        split = _split_called(stem)
        if split is not None:
            splits.triples.setdefault(split, []).append(path)
        elif stem in _NUMBERS:
            splits.numbers.append(path)
        elif stem in _LABELS:
            splits.labels.append(path)
    if "train" not in splits.triples:
        raise DataError(
            "has no training triples, expected train.tsv, train.txt, train.csv, "
            "train.parquet, train.nt or train.ttl, and valid and test beside it",
            folder,
        )
    for split, found in splits.triples.items():
        is_part = [_PART.search(Path(str(one)).name) is not None for one in found]
        if len(found) > 1 and not all(is_part):
            names = ", ".join(Path(str(one)).name for one in found)
            message = f"has several files of the {split} split: {names}, expected one"
            raise DataError(message, folder)
    return splits


def _stem(path: Path) -> tuple[str, bool]:
    """Returns the name of a file without its part and ending, and whether it may
    hold data."""
    name = Path(path.name.lower().removesuffix(".gz"))
    return _PART.sub("", name.stem), name.suffix in _ENDINGS


def _in_order(path: Path) -> tuple[str, int, str]:
    part = _PART.search(path.name)
    return _stem(path)[0], int(part[1]) if part else -1, path.name


def _split_called(name: str) -> str | None:
    name = name.strip().lower()
    return next((split for split, names in _SPLITS.items() if name in names), None)
