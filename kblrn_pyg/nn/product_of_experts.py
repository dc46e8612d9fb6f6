"""A product of experts, whose scores are added."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module, ModuleDict, Parameter
from torch_geometric.data import HeteroData

from kblrn_pyg.data.ids import IdRanges
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.kernels.ranking import rank_answers
from kblrn_pyg.loader import QueryLoader, TripleLoader, batch_triples
from kblrn_pyg.nn.build import instance_of
from kblrn_pyg.nn.expert import Expert
from kblrn_pyg.nn.features import at_least_single
from kblrn_pyg.nn.latent import LatentExpert
from kblrn_pyg.shard import Shard

# How many scores 'test' holds at once.
_TEST_SCORES = 1 << 24


class ProductOfExperts(Module):
    r"""A product of experts, whose logarithms, the scores, are added:

    .. math::
        \log p(h, r, t) = \sum_i \log f_i(h, r, t) + \textrm{const}

    It has the interface of :class:`torch_geometric.nn.kge.KGEModel`, except for the
    loss, and has no names; see :class:`KBLRN`.

    Args:
        num_nodes (int): The number of entities.
        num_relations (int): The number of relations.
        experts (dict): The experts by name.
    """

    def __init__(
        self, num_nodes: int, num_relations: int, experts: Mapping[str, Expert]
    ) -> None:
        super().__init__()
        if not experts:
            raise ValueError("'experts' must name at least one expert (got none)")
        self.num_nodes, self.num_relations = num_nodes, num_relations
        self.experts = ModuleDict(dict(experts))
        self.shard: Shard | None = None  # the entities of this process, if not all
        self._own_entities: Tensor | None = None

    @property
    def instance(self) -> str:
        """The letters of the experts, and the names of those without a letter."""
        return instance_of(self.experts)

    @property
    def uses_own_threads(self) -> bool:
        """Whether training should leave all cores to the threads of the kernels."""
        return all(expert.uses_own_threads for expert in self._experts())

    def reset_parameters(self) -> None:
        """Resets all learnable parameters of the module."""
        for expert in self._experts():
            expert.reset_parameters()

    def split_entities(self, shard: Shard) -> set[str]:
        r"""Keeps the rows of the entities of this process only.

        Losses and evaluation then need all processes.

        Args:
            shard (Shard): The entities of this process.

        Returns:
            The names of the parameters that are split.
        """
        self.shard = shard
        device = next(self.parameters()).device
        self._own_entities = torch.arange(shard.low, shard.high, device=device)
        split = [
            id(table)
            for expert in self._experts()
            if isinstance(expert, LatentExpert)
            for table in expert.split_entities(shard, self._own_entities)
        ]
        return {name for name, one in self.named_parameters() if id(one) in split}

    def join_entities(self) -> None:
        """Reverses :meth:`split_entities`; every process gets all rows."""
        for expert in self._experts():
            if isinstance(expert, LatentExpert):
                expert.join_entities()
        self.shard = self._own_entities = None

    def own_entities(self) -> Tensor | None:
        """Returns the entities of this process, always the same tensor."""
        return self._own_entities

    def feature_parameters(self) -> list[Parameter]:
        """Returns the parameters of all experts except embeddings."""
        others = [one for one in self._experts() if not isinstance(one, LatentExpert)]
        return [parameter for one in others for parameter in one.parameters()]

    def forward(
        self,
        head_index: Tensor | HeteroData,
        rel_type: Tensor | None = None,
        tail_index: Tensor | None = None,
    ) -> Tensor:
        r"""Returns the score of each triple.

        With reciprocal relations, it is that of the tail; see
        :meth:`score_candidates` for both sides.

        Args:
            head_index (torch.Tensor): The head indices, or a batch of PyG's
                :class:`LinkLoader`.
            rel_type (torch.Tensor): The relation types.
            tail_index (torch.Tensor): The tail indices.
        """
        if isinstance(head_index, HeteroData):
            triples = batch_triples(head_index)
            return self(triples.head_index, triples.rel_type, triples.tail_index)
        triple: Any = (head_index, rel_type, tail_index)
        self._ids.check_triples(*triple)
        parts = [expert(*triple) for expert in self._experts()]
        return sum(parts[1:], start=parts[0])

    def score_candidates(self, queries: Queries, candidates: Tensor) -> Tensor:
        r"""Returns the scores of some candidates of each query.

        Args:
            queries (Queries): The queries.
            candidates (torch.Tensor): A row of entities for each query.
        """
        self._ids.check_queries(queries, candidates=candidates)
        parts = [one.score_candidates(queries, candidates) for one in self._experts()]
        return sum(parts[1:], start=parts[0])

    def score_answers(self, queries: Queries, answer: Tensor) -> Tensor:
        r"""Returns the score of one answer to each query.

        Args:
            queries (Queries): The queries.
            answer (torch.Tensor): An entity for each query.
        """
        self._ids.check_queries(queries, answer=answer)
        parts = [one.score_answers(queries, answer) for one in self._experts()]
        return sum(parts[1:], start=parts[0])

    def score_experts(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> dict[str, Tensor]:
        r"""Returns the score of each triple by each expert.

        Where the two queries that a triple answers give different scores, as with
        reciprocal relations, it is their mean.

        Args:
            head_index (torch.Tensor): The head indices.
            rel_type (torch.Tensor): The relation types.
            tail_index (torch.Tensor): The tail indices.
        """
        triples = head_index, rel_type, tail_index
        self._ids.check_triples(*triples)
        tails = Queries.of_triples(*triples, "tail"), tail_index
        heads = Queries.of_triples(*triples, "head"), head_index
        found = {}
        for name, expert in self.experts.items():
            score = expert.score_answers
            found[name] = score(*tails)  # type: ignore[operator]
            if expert.has_two_scores:
                found[name] = (found[name] + score(*heads)) / 2  # type: ignore[operator]
        return found

    def score_all(self, queries: Queries, entities: Tensor | None = None) -> Tensor:
        r"""Returns the score of every entity as an answer to each query.

        Args:
            queries (Queries): The queries.
            entities (torch.Tensor, optional): Distinct entities to score.
                (default: :obj:`None`, all)
        """
        self._ids.check_queries(queries)
        if entities is not None and entities is not self._own_entities:
            self._ids.check_entities(entities)
        first, *others = self._experts()
        scores = first.score_all(queries, self.num_nodes, entities)
        for expert in others:
            scores = expert.add_to(scores, queries, entities)
        return scores

    def score_tails(self, head_index: Tensor, rel_type: Tensor) -> Tensor:
        r"""Returns the score of every tail of the queries :obj:`(h, r, ?)`.

        Args:
            head_index (torch.Tensor): The head indices.
            rel_type (torch.Tensor): The relation types.
        """
        return self.score_all(Queries(head_index, rel_type, "tail"))

    def score_heads(self, rel_type: Tensor, tail_index: Tensor) -> Tensor:
        r"""Returns the score of every head of the queries :obj:`(?, r, t)`.

        Args:
            rel_type (torch.Tensor): The relation types.
            tail_index (torch.Tensor): The tail indices.
        """
        return self.score_all(Queries(tail_index, rel_type, "head"))

    def own_evidence(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        r"""Returns what each fact adds to its own score.

        It is zero for triples that are not known facts. The loss leaves it out, so
        training fits the score of a fact without it.

        Args:
            head_index (torch.Tensor): The head indices.
            rel_type (torch.Tensor): The relation types.
            tail_index (torch.Tensor): The tail indices.
        """
        triples = head_index, rel_type, tail_index
        self._ids.check_triples(*triples)
        parts = [expert.own_evidence(*triples) for expert in self._experts()]
        return sum(parts[1:], start=parts[0])

    @contextmanager
    def encoded(self, entities: Sequence[Tensor] | None = ()) -> Iterator[None]:
        r"""Caches, within the context, what experts compute once for all queries.

        Args:
            entities (sequence, optional): The tensors of entities that are going
                to be looked up, :obj:`None` if all entities are scored.
                (default: :obj:`()`, they are not known)
        """
        with ExitStack() as stack:
            for expert in self._experts():
                stack.enter_context(expert.encoded(entities))
            yield

    def loader(
        self,
        head_index: Tensor,
        rel_type: Tensor,
        tail_index: Tensor,
        by_query: bool = False,
        **kwargs: Any,
    ) -> TripleLoader | QueryLoader:
        r"""Returns a mini-batch loader of triples of all relations.

        Args:
            head_index (torch.Tensor): The head indices.
            rel_type (torch.Tensor): The relation types.
            tail_index (torch.Tensor): The tail indices.
            by_query (bool, optional): If set to :obj:`True`, batches are of
                distinct queries of one side with all of their answers, which
                the exact loss scores once each. (default: :obj:`False`)
            **kwargs (optional): Additional arguments of
                :class:`torch.utils.data.DataLoader`, such as
                :obj:`batch_size`, :obj:`shuffle`, :obj:`generator` or
                :obj:`num_workers`.
        """
        IdRanges(self.num_nodes, self.num_relations).check_triples(
            head_index, rel_type, tail_index
        )
        kind = QueryLoader if by_query else TripleLoader
        return kind(head_index, rel_type, tail_index, **kwargs)

    @torch.no_grad()
    def test(
        self,
        head_index: Tensor,
        rel_type: Tensor,
        tail_index: Tensor,
        batch_size: int,
        k: int = 10,
        log: bool = True,
    ) -> tuple[float, float, float]:
        r"""Evaluates the model quality by computing Mean Rank, MRR and
        Hits@:math:`k` across all possible tail entities.

        These are the numbers of :meth:`torch_geometric.nn.kge.KGEModel.test`: tails
        only, other true tails are *not* filtered out, and the mean rank counts from
        zero. They differ in that ties are worth half a rank, and in speed, as all
        tails of a query are scored at once. For numbers to compare with the
        literature, use :meth:`kblrn_pyg.evaluation.evaluate`.

        Args:
            head_index (torch.Tensor): The head indices.
            rel_type (torch.Tensor): The relation type.
            tail_index (torch.Tensor): The tail indices.
            batch_size (int): Kept for compatibility: as many queries are
                scored at once as fit into 64 MB.
            k (int, optional): The :math:`k` in Hits @ :math:`k`.
                (default: :obj:`10`)
            log (bool, optional): Kept for compatibility.
                (default: :obj:`True`)
        """
        self._ids.check_triples(head_index, rel_type, tail_index)
        if len(head_index) == 0:
            raise ValueError("'head_index' must have at least one entry (got none)")
        rows = max(1, _TEST_SCORES // self.num_nodes)
        triples = (i.split(rows) for i in (head_index, rel_type, tail_index))
        ranks = []
        for head, rel, tail in zip(*triples):
            scores = at_least_single(self.score_tails(head, rel)).cpu().numpy()
            place, none = np.arange(len(tail)), np.zeros(len(tail) + 1, np.int64)
            found = rank_answers(scores, place, tail.cpu().numpy(), none, none[:0])
            ranks.append(found.rank - 1)
        rank = np.concatenate(ranks)
        hits = (rank < k).mean()
        return float(rank.mean()), float((1 / (rank + 1)).mean()), float(hits)

    @property
    def _ids(self) -> IdRanges:
        """The valid ids, which are checked on input, once for all experts."""
        parameter = next(self.parameters(), None)
        device = None if parameter is None else parameter.device
        return IdRanges(self.num_nodes, self.num_relations, device)

    def _experts(self) -> list[Any]:
        return list(self.experts.values())
