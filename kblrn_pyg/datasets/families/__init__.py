"""The small data set that comes with the library."""

from pathlib import Path

from torch_geometric.data import InMemoryDataset

from kblrn_pyg.data import read_kb
from kblrn_pyg.datasets.base import Transform, check_counts
from kblrn_pyg.datasets.names import COUNTS

_HERE = Path(__file__).parent


class Families(InMemoryDataset):
    r"""An invented country of families, small enough to try things in seconds.

    It is made by a seeded generator (:obj:`benchmarks/families_generator.py`
    rewrites its files byte for byte) so that each expert has something to say:
    rules that hold by paths of two hops, groups that only embeddings find, and
    relations whose answer the differences of numbers decide: 2,232 entities
    (people, towns, regions, guilds and more), 12 relations, 15,092 training,
    1,659 validation and 1,659 test triples, 5 attributes.

    Args:
        root (str, optional): Not used, as the files come with the package and
            nothing is written. (default: :obj:`None`)
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
            (default: :obj:`"train"`)
        transform (callable, optional): A transform applied before every
            access. (default: :obj:`None`)
        pre_transform (callable, optional): A transform applied once.
            (default: :obj:`None`)

    Example:
        >>> data = Families()[0]
        >>> data["entity"].x.size(1) == len(data.attribute_names)
        True
    """

    splits = ("train", "val", "test")
    counts = COUNTS["Families"]

    def __init__(
        self,
        root: str | None = None,
        split: str = "train",
        transform: Transform | None = None,
        pre_transform: Transform | None = None,
    ) -> None:
        if split not in self.splits:
            raise ValueError(f"'split' must be one of {self.splits} (got {split!r})")
        super().__init__(root, transform, pre_transform)
        kbs, _ = read_kb(
            _HERE / "train.tsv",
            _HERE / "valid.tsv",
            _HERE / "test.tsv",
            _HERE / "numerical.tsv",
        )
        check_counts(kbs, self.counts, type(self).__name__)
        self.split = split
        self.kbs = kbs  # of all splits
        self._data = kbs[split] if pre_transform is None else pre_transform(kbs[split])

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.split!r})"
