"""A user's own knowledge base, as the import command leaves it."""

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from torch_geometric.data import HeteroData, InMemoryDataset

from kblrn_pyg.data import DataError, load_kb, save_kb, validate_kb
from kblrn_pyg.data.build import BuildReport
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.data.whole import write_text
from kblrn_pyg.datasets.base import Transform
from kblrn_pyg.datasets.names import split_path


class LocalKB(InMemoryDataset):
    r"""A knowledge base that a user brought, saved by :meth:`write_local_kb`.

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
        super().__init__(str(root), transform)
        if not Path(root).is_dir():
            raise DataError("no such directory, expected an imported data set", root)
        path = split_path(root, split)
        if not path.exists():
            is_old = path.with_name(f"{split}_data.pt").exists()
            reason = "was imported by an older version" if is_old else "is missing"
            raise DataError(f"the {split} split {reason}, import it anew", path)
        self.split = split
        self._data = load_kb(path)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.root!r}, {self.split!r})"


def write_local_kb(
    root: PathLike,
    kbs: Mapping[str, HeteroData],
    report: BuildReport | None = None,
) -> None:
    r"""Saves a knowledge base as a data set; it appears whole or not at all.

    Args:
        root (str): The directory to make; it must not exist, or be empty.
        kbs (dict): The knowledge base of each split.
        report (BuildReport, optional): What was noticed while reading, kept
            as :obj:`import.json`. (default: :obj:`None`)
    """
    root = Path(root)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise DataError("already exists, expected a new or empty directory", root)
    root.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=root.parent, prefix=f".{root.name}."))
    try:
        for split, data in kbs.items():
            validate_kb(data)
            save_kb(data, split_path(temporary, split))
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
