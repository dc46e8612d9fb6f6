"""The data that the sections of a report are created from."""

from dataclasses import dataclass
from functools import cached_property

from torch_geometric.data import HeteroData

from kblrn_pyg.data import Vocabulary
from kblrn_pyg.data.words import short_names
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.runs import Splits, other_answers


@dataclass(frozen=True)
class Context:
    r"""The model of a report, and the amount of detail to show.

    Args:
        model (KBLRN): The model.
        splits (dict): The splits of its data set.
        max_relations (int): The maximum number of relations that a section about an
            expert shows.
        progress (bool, optional): Whether to show progress bars.
            (default: :obj:`False`)
    """

    model: KBLRN
    splits: Splits
    max_relations: int
    progress: bool = False

    @cached_property
    def relations(self) -> list[int]:
        """All relations, those with the most test triples first."""
        train, test = self.train, self.splits["test"]
        counts = [
            (-test[kind].edge_label_index.size(1), -train[kind].edge_index.size(1))
            for kind in train.edge_types
        ]
        return sorted(range(len(counts)), key=counts.__getitem__)

    @cached_property
    def short(self) -> dict[str, str]:
        """A short name for the identifier of each relation."""
        names = Vocabulary.of(self.train).relations.identifiers
        return dict(zip(names, short_names(names)))

    @property
    def train(self) -> HeteroData:
        """The knowledge base."""
        return self.splits["train"]

    @property
    def known(self) -> list[HeteroData]:
        """The other splits, whose answers are known, too."""
        return other_answers(self.splits, "train")
