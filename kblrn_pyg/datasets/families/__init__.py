"""The small data set that is included in the library."""

from pathlib import Path

from torch_geometric.data import InMemoryDataset

from kblrn_pyg.data import read_kb
from kblrn_pyg.datasets.base import Transform, check_counts
from kblrn_pyg.datasets.names import COUNTS

_HERE = Path(__file__).parent


class Families(InMemoryDataset):
    r"""An invented country of families, small enough for experiments that take
    seconds.

    It is made by a seeded generator (:obj:`benchmarks/families_generator.py`
    rewrites its files byte for byte) so that each expert is useful: it has rules
    with paths of two hops, groups that only embeddings can find, and relations
    whose answers depend on differences of numbers. It has 2,232 entities (people,
    towns, regions, guilds and more), 12 relations, 15,092 training, 1,659
    validation and 1,659 test triples, 5 attributes.

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
    # How the names of the files of triples end.
    _endings: tuple[str, ...] = ("",)

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
            self._triples("train"),
            self._triples("valid"),
            self._triples("test"),
            _HERE / "numerical.tsv",
        )
        check_counts(kbs, self.counts, type(self).__name__)
        self.split = split
        self.kbs = kbs  # of all splits
        self._data = kbs[split] if pre_transform is None else pre_transform(kbs[split])

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.split!r})"

    def _triples(self, name: str) -> Path | list[tuple[str, ...]]:
        """Returns the triples of a split, or the file of all of them."""
        paths = [_HERE / f"{name}{ending}.tsv" for ending in self._endings]
        if len(paths) == 1:
            return paths[0]
        lines = [line for path in paths for line in path.read_text("utf-8").split("\n")]
        return [tuple(line.split("\t")) for line in lines if line]


class FamiliesNum(Families):
    r"""The people and towns of :class:`Families`, with four additional relations,
    for which one difference of numbers is not enough:

    * :obj:`taught` has two peaks, at 12 and at 44 years;
    * :obj:`dances_with` connects people of the same height; in three of ten pairs,
      the heights of both are unknown;
    * :obj:`wears` leads to a size, which depends on the height of the head;
    * :obj:`trades_with` connects towns about 120 kilometres apart.

    2,237 entities, 16 relations, 18,376 training, 2,020 validation and 2,020 test
    triples, 5 attributes.

    Args:
        root (str, optional): Not used, see :class:`Families`.
            (default: :obj:`None`)
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
            (default: :obj:`"train"`)
        transform (callable, optional): A transform applied before every
            access. (default: :obj:`None`)
        pre_transform (callable, optional): A transform applied once.
            (default: :obj:`None`)
    """

    counts = COUNTS["Families-num"]
    _endings = ("", "_num")
