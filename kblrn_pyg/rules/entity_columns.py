"""The entities that a batch scores, when it does not score all of them."""

import threading

import numpy as np

from kblrn_pyg.data.ids import check_distinct, check_ids
from kblrn_pyg.kernels.entity_features import Features
from kblrn_pyg.kernels.evidence_columns import Columns, features_of_columns
from kblrn_pyg.rules.columns import Ids


class EntityColumns:
    r"""Looks up the columns of entities, and the features of the entities of columns.

    Each thread has a table of the size of the entities, of which a batch changes as
    many entries as it has columns. What is returned is therefore valid until the same
    thread asks for other columns; whoever needs it later asks again.

    Args:
        features (Features): The features of all entities.
        num_entities (int): The number of entities.
    """

    def __init__(self, features: Features, num_entities: int) -> None:
        self.features, self.num_entities = features, num_entities
        self._of_thread = threading.local()

    def column_of(self, columns: Ids | None) -> Ids:
        r"""Returns the column of each entity, -1 for none; an empty array stands for
        all entities.

        Args:
            columns (numpy.ndarray, optional): The entity of each column, without
                duplicates, or :obj:`None` for all entities.
        """
        if columns is None:
            return np.empty(0, np.int64)
        return self._looked_up(columns).column_of

    def listed(self, columns: Ids) -> Columns:
        r"""Lists the features of columns, once for the same columns.

        Args:
            columns (numpy.ndarray): The entity of each column, without duplicates.
        """
        table = self._looked_up(columns)
        if table.listed is None:
            given = self.features, table.last, table.column_of
            table.listed = features_of_columns(*given)
        return table.listed

    def _looked_up(self, columns: Ids) -> "_Table":
        check_ids({"entities": (columns, self.num_entities)})
        table = getattr(self._of_thread, "table", None)
        if table is None:
            table = self._of_thread.table = _Table(self.num_entities)
        # The array may have been changed in place since, so its content is compared.
        if not np.array_equal(table.last, columns):
            check_distinct(columns, "entities")
            table.look_up(columns)
        return table

    def __reduce__(self) -> tuple[type["EntityColumns"], tuple]:
        return type(self), (self.features, self.num_entities)  # copies have their own


class _Table:
    """The columns that a thread asked for last."""

    def __init__(self, num_entities: int) -> None:
        self.column_of = np.full(num_entities, -1)
        self.last = np.empty(0, np.int64)
        self.listed: Columns | None = None

    def look_up(self, columns: Ids) -> None:
        self.column_of[self.last] = -1
        self.column_of[columns] = np.arange(len(columns))
        self.last, self.listed = columns.copy(), None
