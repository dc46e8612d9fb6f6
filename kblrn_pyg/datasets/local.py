"""A user's own knowledge base, as written by the import command."""

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch_geometric.data import HeteroData, InMemoryDataset

from kblrn_pyg.data import DataError, ask, validate_kb
from kblrn_pyg.data.build import BuildReport
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.data.store import load_splits, save_splits
from kblrn_pyg.data.whole import write_text
from kblrn_pyg.datasets.base import Transform
from kblrn_pyg.datasets.names import SPLITS, splits_path


class LocalKB(InMemoryDataset):
    r"""A user's own knowledge base, saved by :meth:`write_local_kb`.

    Args:
        root (str): The directory.
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
            (default: :obj:`"train"`)
        transform (callable, optional): A transform applied before every
            access. (default: :obj:`None`)
    """

    def __init__(
        self, root: str, split: str = "train", transform: Transform | None = None
    ) -> None:
        if split not in SPLITS:
            raise ValueError(f"'split' must be one of {SPLITS} (got {split!r})")
        super().__init__(str(root), transform)
        self.split = split
        self._data = load_local_kb(root, (split,))[split]

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.root!r}, {self.split!r})"


def load_local_kb(
    root: PathLike, splits: Sequence[str] = SPLITS
) -> dict[str, HeteroData]:
    r"""Loads splits that :meth:`write_local_kb` saved, all of them at once.

    Args:
        root (str): The directory.
        splits (sequence, optional): The splits. (default: all)
    """
    if not Path(root).is_dir():
        raise DataError("no such directory, expected an imported data set", root)
    path = splits_path(root)
    if not path.exists():
        is_old = any(path.parent.glob("train*"))
        reason = "was imported by an older version" if is_old else "is missing"
        raise DataError(f"the data set {reason}, import it anew", path)
    kbs = load_splits(path)
    for split in splits:
        if split not in kbs:
            raise DataError(f"the {split} split is missing, import it anew", path)
    return {split: kbs[split] for split in splits}


def write_local_kb(
    root: PathLike,
    kbs: Mapping[str, HeteroData],
    report: BuildReport | None = None,
) -> None:
    r"""Saves a knowledge base as a data set, whole or not at all.

    Args:
        root (str): The directory to create; it must be empty or not exist.
        kbs (dict): The knowledge base of each split. Missing validation and test
            splits have no queries.
        report (BuildReport, optional): The report of reading, stored as
            :obj:`import.json`. (default: :obj:`None`)
    """
    nothing = (torch.empty(0, dtype=torch.long),) * 3
    kbs = {split: kbs.get(split) or ask(kbs["train"], nothing) for split in SPLITS}
    root = Path(root)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise DataError("already exists, expected a new or empty directory", root)
    root.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=root.parent, prefix=f".{root.name}."))
    try:
        for data in kbs.values():
            validate_kb(data)
        save_splits(kbs, splits_path(temporary))
        if report is not None:
            text = json.dumps(vars(report), indent=2, ensure_ascii=False)
            write_text(temporary / "import.json", text + "\n")
        temporary.chmod(0o755)
        if root.exists():
            root.rmdir()
        temporary.rename(root)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
