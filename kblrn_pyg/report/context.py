"""What the sections of a report are made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch_geometric.data import HeteroData

from kblrn_pyg.data import Vocabulary
from kblrn_pyg.data.words import short_names
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.runs import Splits, other_answers


@dataclass(frozen=True)
class Context:
    r"""The model that a report is about, and how much to show of it.

    Args:
        model (KBLRN): The model.
        splits (dict): The splits of its data set.
        relations (sequence): All relations, the one with the most test triples
            first.
        short (dict): A short name for the identifier of each relation.
        max_relations (int): At most how many relations a section about an
            expert shows.
        progress (bool): Whether to show progress bars.
    """

    model: KBLRN
    splits: Splits
    relations: Sequence[int]
    short: Mapping[str, str]
    max_relations: int
    progress: bool

    @classmethod
    def of(
        cls, model: KBLRN, splits: Splits, max_relations: int, progress: bool = False
    ) -> "Context":
        r"""Counts the test triples, and shortens the names.

        Args:
            model (KBLRN): The model.
            splits (dict): The splits of its data set.
            max_relations (int): See above.
            progress (bool, optional): See above. (default: :obj:`False`)
        """
        train, test = splits["train"], splits["test"]
        counts = [
            (-test[kind].edge_label_index.size(1), -train[kind].edge_index.size(1))
            for kind in train.edge_types
        ]
        relations = sorted(range(len(counts)), key=counts.__getitem__)
        names = Vocabulary.of(train).relations.identifiers
        short = dict(zip(names, short_names(names)))
        return cls(model, splits, relations, short, max_relations, progress)

    @property
    def train(self) -> HeteroData:
        """The knowledge base."""
        return self.splits["train"]

    @property
    def known(self) -> list[HeteroData]:
        """The other splits, whose answers are known, too."""
        return other_answers(self.splits, "train")
