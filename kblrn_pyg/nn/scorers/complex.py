"""ComplEx and RotatE: embeddings of complex numbers, their two halves side by side."""

from typing import Any

import torch
from torch import Tensor

from kblrn_pyg.nn.products import dot_products
from kblrn_pyg.nn.scorers.scorer import Scorer, distances, rows_of, sum_of_powers
from kblrn_pyg.nn.softmax import Factors

# Far below the square of any entry that matters.
_TINY = 1e-30


class _ComplexScorer(Scorer):
    """What scorers of complex numbers share."""

    is_plain = True

    def table(self, encoded: Any, index: Tensor | None = None) -> Tensor:
        parts = self.kge.node_emb, self.kge.node_emb_im
        return torch.cat([rows_of(part, index) for part in parts], dim=-1)

    def tail_query(self, head: Tensor, rel_type: Tensor) -> Tensor:
        (re, im), (rel_re, rel_im) = head.chunk(2, dim=-1), self.relation(rel_type)
        return torch.cat([rel_re * re - rel_im * im, rel_re * im + rel_im * re], dim=-1)

    def head_query(self, rel_type: Tensor, tail: Tensor) -> Tensor:
        # Turning back by the relation: it is a rotation, or enters conjugated.
        (re, im), (rel_re, rel_im) = tail.chunk(2, dim=-1), self.relation(rel_type)
        return torch.cat([rel_re * re + rel_im * im, rel_re * im - rel_im * re], dim=-1)

    def norm(self, power: int, head: Tensor, rel_type: Tensor, tail: Tensor) -> Tensor:
        ends = (self._lengths(*rows.chunk(2, dim=-1)) for rows in (head, tail))
        return sum_of_powers(power, *ends, self.relation_factor(rel_type))

    def relation(self, rel_type: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the real and the imaginary parts of relations."""
        return self.kge.rel_emb(rel_type), self.kge.rel_emb_im(rel_type)

    def relation_factor(self, rel_type: Tensor) -> Tensor:
        """Returns what penalties look at."""
        return self._lengths(*self.relation(rel_type))

    def _lengths(self, re: Tensor, im: Tensor) -> Tensor:
        # Faster than complex numbers are; what is added keeps gradients finite.
        return (re * re + im * im + _TINY).sqrt()


class ComplExScorer(_ComplexScorer):
    r"""Scores as :class:`torch_geometric.nn.kge.ComplEx` does:

    .. math::
        d(h, r, t) = \textrm{Re}(\langle \mathbf{e}_h, \mathbf{w}_r,
        \overline{\mathbf{e}_t} \rangle)

    Args:
        kge (torch_geometric.nn.kge.ComplEx): The model.
    """

    metric = "dot"

    def relation_factors(self, head: Tensor, tail: Tensor) -> Factors | None:
        (re, im), (tail_re, tail_im) = head.chunk(2, dim=-1), tail.chunk(2, dim=-1)
        products = re * tail_re + im * tail_im, re * tail_im - im * tail_re
        tables = self.kge.rel_emb.weight, self.kge.rel_emb_im.weight
        return Factors(torch.cat(products, dim=-1), tables)

    def compare(self, query: Tensor, rows: Tensor) -> Tensor:
        return dot_products(query, rows)


class RotatEScorer(_ComplexScorer):
    r"""Scores as :class:`torch_geometric.nn.kge.RotatE` does:

    .. math::
        d(h, r, t) = \gamma - \| \mathbf{e}_h \circ \mathbf{w}_r - \mathbf{e}_t \|_2

    Args:
        kge (torch_geometric.nn.kge.RotatE): The model.
    """

    def compare(self, query: Tensor, rows: Tensor) -> Tensor:
        return self.kge.margin - distances(query, rows, 2.0)

    def relation(self, rel_type: Tensor) -> tuple[Tensor, Tensor]:
        angle = self.kge.rel_emb(rel_type)
        return torch.cos(angle), torch.sin(angle)

    def relation_factor(self, rel_type: Tensor) -> Tensor:
        return self.kge.rel_emb(rel_type)
