"""What embeddings give sampled candidates, and the gradients of that."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from kblrn_pyg.kernels.sampling import add_visit_gradients, score_visits, sort_visits
from kblrn_pyg.kernels.threads import default_threads, run_all


class Comparison(Protocol):
    """Queries compared with their candidates, of which the first is the true one."""

    def scores(self) -> np.ndarray:
        """Returns a row of scores for each query."""

    def gradients(self, score_grad: np.ndarray) -> tuple[Tensor, Tensor]:
        """Returns the gradients of queries and table, given those of the scores."""


class NoComparison:
    r"""Nothing: there are no embeddings.

    Args:
        query (torch.Tensor): An empty row for each query.
        table (torch.Tensor): An empty row for every entity.
        candidates (torch.Tensor): The candidates of each query.
    """

    def __init__(self, query: Tensor, table: Tensor, candidates: Tensor) -> None:
        self.query, self.table, self.shape = query, table, candidates.shape

    def scores(self) -> np.ndarray:
        """See :class:`Comparison`."""
        return self.query.new_zeros(self.shape).numpy()

    def gradients(self, score_grad: np.ndarray) -> tuple[Tensor, Tensor]:
        """See :class:`Comparison`."""
        return torch.zeros_like(self.query), torch.zeros_like(self.table)


class SharedComparison:
    r"""By dot products, where queries share all candidates but the true one.

    Three matrix products do almost all of it, faster than looking up candidates
    of each query's own.

    Args:
        query (torch.Tensor): What candidates are compared with.
        table (torch.Tensor): A row for every entity.
        candidates (torch.Tensor): The candidates of each query.
    """

    def __init__(self, query: Tensor, table: Tensor, candidates: Tensor) -> None:
        self.query, self.table = query, table
        self.answer, self.shared = candidates[:, 0], candidates[0, 1:]
        self.answer_rows, self.shared_rows = table[self.answer], table[self.shared]

    def scores(self) -> np.ndarray:
        """See :class:`Comparison`."""
        size = len(self.query), 1 + len(self.shared)
        scores = self.query.new_empty(size)
        scores[:, 0] = (self.query * self.answer_rows).sum(dim=1)
        scores[:, 1:] = self.query @ self.shared_rows.t()
        return scores.numpy()

    def gradients(self, score_grad: np.ndarray) -> tuple[Tensor, Tensor]:
        """See :class:`Comparison`."""
        grad = torch.from_numpy(score_grad)
        of_answer, of_shared = grad[:, :1], grad[:, 1:]
        by_query = of_shared @ self.shared_rows + of_answer * self.answer_rows
        by_table = torch.zeros_like(self.table)
        by_table.index_add_(0, self.shared, of_shared.t() @ self.query)
        by_table.index_add_(0, self.answer, of_answer * self.query)
        return by_query, by_table


class VisitComparison:
    r"""By dot products or distances, where every query has candidates of its own.

    Args:
        query (torch.Tensor): What candidates are compared with.
        table (torch.Tensor): A row for every entity.
        candidates (torch.Tensor): The candidates of each query.
        by_distance (bool): Whether they are compared by their distance in the
            L1 norm, instead of by their dot product.
    """

    def __init__(
        self, query: Tensor, table: Tensor, candidates: Tensor, by_distance: bool
    ) -> None:
        self.query, self.table = query.numpy(), table.numpy()
        self.shape, self.by_distance = tuple(candidates.shape), by_distance
        self.visits = sort_visits(candidates.numpy(), len(table))

    def scores(self) -> np.ndarray:
        """See :class:`Comparison`."""
        scores = np.empty(self.shape, self.query.dtype)
        given = self.visits, self.query, self.table, self.by_distance
        flat = scores.reshape(-1)
        self._for_entities(lambda _, part: score_visits(*part, *given, flat))
        return scores

    def gradients(self, score_grad: np.ndarray) -> tuple[Tensor, Tensor]:
        """See :class:`Comparison`."""
        by_query = np.zeros((default_threads(), *self.query.shape), self.query.dtype)
        by_table = np.zeros_like(self.table)
        given = self.visits, self.query, self.table, self.by_distance
        flat = score_grad.reshape(-1)
        self._for_entities(
            lambda i, part: add_visit_gradients(
                *part, *given, flat, by_query[i], by_table
            )
        )
        return torch.from_numpy(by_query.sum(axis=0)), torch.from_numpy(by_table)

    def _for_entities(self, work: Callable[[int, tuple[int, int]], object]) -> None:
        """Splits the entities among threads, to about the same number of visits."""
        shares = np.linspace(0, len(self.visits.place), default_threads() + 1)
        bounds = np.searchsorted(self.visits.ptr, shares)
        bounds[-1] = len(self.table)
        parts = list(zip(bounds[:-1].tolist(), bounds[1:].tolist()))
        run = run_all(lambda i, _: work(i, parts[i]), range(len(parts)), lambda: None)
        for _ in run:
            pass
