"""KBLRN: the product of latent, relational and numerical experts."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module, Parameter
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn.kge import KGEModel

from kblrn_pyg.data import as_kb, numerical_features
from kblrn_pyg.loader import QueryLoader, TripleLoader, batch_triples
from kblrn_pyg.nn.latent import LatentExpert
from kblrn_pyg.nn.numerical import NumericalExpert
from kblrn_pyg.nn.objective import batch_loss, exact_loss, sampled_loss
from kblrn_pyg.nn.relational import RelationalExpert
from kblrn_pyg.nn.scorers import scorer_name
from kblrn_pyg.nn.transfer import take_experts
from kblrn_pyg.rules import PathFeatures, RuleSet, mine_rules

if TYPE_CHECKING:
    from kblrn_pyg.explain import Reasons
    from kblrn_pyg.predict import Predictions, Several

# How many scores 'test' holds at once.
_TEST_SCORES = 1 << 24

INSTANCES = ("l", "r", "n", "lr", "ln", "rn", "lrn")


class KBLRN(Module):
    r"""KBLRN from the `"KBLRN: End-to-End Learning of Knowledge Base
    Representations with Latent, Relational, and Numerical Features"
    <https://arxiv.org/abs/1709.04676>`_ paper.

    The probability of a triple is a product of experts, one of each kind for
    every relation, so that their logarithms, the scores, add up:

    .. math::
        p(h, r, t) \propto f_{(r, L)}(h, r, t) \cdot f_{(r, R)}(h, r, t) \cdot
        f_{(r, N)}(h, r, t)

    The model keeps the contract of
    :class:`torch_geometric.nn.kge.KGEModel`; :meth:`from_data` is the short way
    from a knowledge base to a model.

    Args:
        num_nodes (int): The number of entities.
        num_relations (int): The number of relations.
        latent (LatentExpert, optional): The latent expert.
            (default: :obj:`None`)
        relational (RelationalExpert, optional): The relational expert.
            (default: :obj:`None`)
        numerical (NumericalExpert, optional): The numerical expert.
            (default: :obj:`None`)
        num_negatives (int, optional): How many entities to sample for each
            triple and side of the loss. If :obj:`None`, the loss is exact, over
            all entities. (default: :obj:`500`)
        negatives (str, optional): :obj:`"triple"` draws them for each triple,
            :obj:`"shared"` once for a batch. (default: :obj:`"triple"`)
    """

    def __init__(
        self,
        num_nodes: int,
        num_relations: int,
        latent: LatentExpert | None = None,
        relational: RelationalExpert | None = None,
        numerical: NumericalExpert | None = None,
        num_negatives: int | None = 500,
        negatives: str = "triple",
    ) -> None:
        super().__init__()
        if latent is None and relational is None and numerical is None:
            raise ValueError("a model must have at least one expert")
        if negatives not in ("triple", "shared"):
            raise ValueError(
                f"'negatives' must be triple or shared (got {negatives!r})"
            )
        if num_negatives is not None and num_negatives < 1:
            raise ValueError(f"'num_negatives' must be positive (got {num_negatives})")
        self.num_nodes, self.num_relations = num_nodes, num_relations
        self.latent, self.relational, self.numerical = latent, relational, numerical
        self.num_negatives, self.negatives = num_negatives, negatives
        self.config: dict[str, Any] = {}
        self.kb: HeteroData | None = None  # whose names answers and reasons use
        self._names_digest = ""

    @classmethod
    def from_data(
        cls,
        data: HeteroData | Data,
        experts: str = "lrn",
        hidden_channels: int = 100,
        scorer: str | KGEModel | Sequence[str | KGEModel] = "distmult",
        rules: RuleSet | None = None,
        numerical: str = "rbf",
        learn_rbf: bool = False,
        threshold: float = 0.9,
        num_negatives: int | None = 500,
        negatives: str = "triple",
        dropout: float = 0.0,
        n3: float = 0.0,
        l2: float = 0.0,
        entity_dropout: float = 0.0,
        latent_dropout: float = 0.0,
    ) -> "KBLRN":
        r"""Makes a model for a knowledge base.

        Args:
            data (HeteroData or Data): The knowledge base; a
                :class:`~torch_geometric.data.HeteroData` with several node
                types, or PyG's homogeneous :obj:`Data(edge_index, edge_type)`.
            experts (str, optional): Which experts: :obj:`"l"`, :obj:`"r"`,
                :obj:`"n"`, :obj:`"lr"`, :obj:`"ln"`, :obj:`"rn"` or
                :obj:`"lrn"`. (default: :obj:`"lrn"`)
            hidden_channels (int, optional): The embedding size.
                (default: :obj:`100`)
            scorer (optional): See :class:`LatentExpert`.
                (default: :obj:`"distmult"`)
            rules (RuleSet, optional): The rules of the relational expert.
                (default: :obj:`None`, what :meth:`mine_rules` finds)
            numerical (str, optional): :obj:`"rbf"` or :obj:`"sign"`.
                (default: :obj:`"rbf"`)
            learn_rbf (bool, optional): See :class:`NumericalExpert`.
                (default: :obj:`False`)
            threshold (float, optional): See
                :meth:`~kblrn_pyg.data.numerical_features`.
                (default: :obj:`0.9`)
            num_negatives (int, optional): See :class:`KBLRN`.
                (default: :obj:`500`)
            negatives (str, optional): See :class:`KBLRN`.
                (default: :obj:`"triple"`)
            dropout (float, optional): See :class:`LatentExpert`.
                (default: :obj:`0.0`)
            n3 (float, optional): See :class:`LatentExpert`.
                (default: :obj:`0.0`)
            l2 (float, optional): See :class:`LatentExpert`.
                (default: :obj:`0.0`)
            entity_dropout (float, optional): See :class:`LatentExpert`.
                (default: :obj:`0.0`)
            latent_dropout (float, optional): See :class:`LatentExpert`;
                without other experts it means nothing. (default: :obj:`0.0`)

        Example:
            >>> from kblrn_pyg.datasets import Families
            >>> KBLRN.from_data(Families()[0], experts="lrn", hidden_channels=32)
            KBLRN(2232, num_relations=12, experts='lrn', hidden_channels=32)
        """
        if experts not in INSTANCES:
            known = ", ".join(INSTANCES)
            raise ValueError(f"'experts' must be one of {known} (got {experts!r})")
        data = as_kb(data)
        num_nodes, num_relations = data["entity"].num_nodes, len(data.edge_types)
        latent = relational = numbers = None
        if "l" in experts:
            latent = LatentExpert(
                num_nodes,
                num_relations,
                hidden_channels,
                scorer,
                dropout,
                n3,
                l2,
                entity_dropout,
                latent_dropout if len(experts) > 1 else 0.0,
            )
        if "r" in experts:
            rules = mine_rules(data, confidences=False) if rules is None else rules
            relational = RelationalExpert(PathFeatures(data, rules))
        if "n" in experts:
            features = numerical_features(data, threshold)
            numbers = NumericalExpert(features, data["entity"].x, numerical, learn_rbf)
        model = cls(
            num_nodes,
            num_relations,
            latent,
            relational,
            numbers,
            num_negatives,
            negatives,
        )
        model.kb = data
        scorers = [scorer] if isinstance(scorer, str | KGEModel) else scorer
        model.config = {
            "experts": experts,
            "hidden_channels": hidden_channels,
            "scorer": [scorer_name(one) for one in scorers],
            "numerical": numerical,
            "learn_rbf": learn_rbf,
            "threshold": threshold,
            "num_negatives": num_negatives,
            "negatives": negatives,
            "dropout": dropout,
            "n3": n3,
            "l2": l2,
            "entity_dropout": entity_dropout,
            "latent_dropout": latent_dropout,
        }
        entity = data["entity"]
        names = [*entity.get("identifier", entity.name), *map(str, data.edge_types)]
        model._names_digest = hashlib.sha256("\n".join(names).encode()).hexdigest()
        return model

    @property
    def experts(self) -> str:
        """The letters of the experts that the model has."""
        has = (self.latent, self.relational, self.numerical)
        return "".join(letter for letter, one in zip("lrn", has) if one is not None)

    @property
    def is_exact(self) -> bool:
        """Whether the loss is over all entities."""
        return self.num_negatives is None

    def reset_parameters(self) -> None:
        """Resets all learnable parameters of the module."""
        for expert in (self.latent, self.relational, self.numerical):
            if expert is not None:
                expert.reset_parameters()

    def take_experts(self, other: "KBLRN") -> None:
        r"""Takes over the weights of the experts that another model has, too.

        A good beginning: embeddings that learn beside rules from the first
        step leave to them what rules can do, and embeddings that have learned
        alone do not.

        .. code-block:: python

            alone = KBLRN.from_data(data, "l", 100)
            fit(alone, data)
            model = KBLRN.from_data(data, "lrn", 100)
            model.take_experts(alone)
            fit(model, data, epochs=5, lr=0.0005, feature_lr=0.005)

        Args:
            other (KBLRN): A model of the same knowledge base, with the same
                scorer and size, rules and numbers, as far as it has them.
        """
        if self._names_digest != other._names_digest:
            raise ValueError("'other' must be of the same knowledge base")
        take_experts(self, other)

    def feature_parameters(self) -> list[Parameter]:
        """Returns the parameters of the relational and the numerical expert."""
        experts = (self.relational, self.numerical)
        return [p for one in experts if one is not None for p in one.parameters()]

    def forward(
        self,
        head_index: Tensor | HeteroData,
        rel_type: Tensor | None = None,
        tail_index: Tensor | None = None,
    ) -> Tensor:
        r"""Returns the score of each triple.

        Args:
            head_index (torch.Tensor): The head indices, or a batch of PyG's
                :class:`LinkLoader`.
            rel_type (torch.Tensor): The relation types.
            tail_index (torch.Tensor): The tail indices.
        """
        if isinstance(head_index, HeteroData):
            triples = batch_triples(head_index)
            return self(triples.head_index, triples.rel_type, triples.tail_index)
        assert rel_type is not None
        assert tail_index is not None
        parts = [
            expert(head_index, rel_type, tail_index)
            for expert in (self.latent, self.relational, self.numerical)
            if expert is not None
        ]
        return sum(parts[1:], start=parts[0])

    def score_tails(self, head_index: Tensor, rel_type: Tensor) -> Tensor:
        r"""Returns the score of every tail of the queries :obj:`(h, r, ?)`.

        Args:
            head_index (torch.Tensor): The head indices.
            rel_type (torch.Tensor): The relation types.
        """
        scores = None
        if self.latent is not None:
            scores = self.latent.score_tails(head_index, rel_type)
        return self._add_features(scores, False, head_index, rel_type)

    def score_heads(self, rel_type: Tensor, tail_index: Tensor) -> Tensor:
        r"""Returns the score of every head of the queries :obj:`(?, r, t)`.

        Args:
            rel_type (torch.Tensor): The relation types.
            tail_index (torch.Tensor): The tail indices.
        """
        scores = None
        if self.latent is not None:
            scores = self.latent.score_heads(rel_type, tail_index)
        return self._add_features(scores, True, tail_index, rel_type)

    def _add_features(
        self, scores: Tensor | None, from_tail: bool, entity: Tensor, rel_type: Tensor
    ) -> Tensor:
        if scores is None:
            some = next(self.parameters())
            scores = some.new_zeros(entity.numel(), self.num_nodes)
        for expert in (self.relational, self.numerical):
            if expert is not None:
                scores = expert.add_to(scores, from_tail, entity, rel_type)
        return scores

    def own_evidence(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        r"""Returns the part of each score that a fact gives itself.

        It is zero for all that is no known fact. The loss leaves it out, so that
        the score of a fact without it is what was learned.

        Args:
            head_index (torch.Tensor): The head indices.
            rel_type (torch.Tensor): The relation types.
            tail_index (torch.Tensor): The tail indices.
        """
        if self.relational is None:
            return next(self.parameters()).new_zeros(head_index.shape)
        return self.relational.own_evidence(head_index, rel_type, tail_index)

    def loss(
        self,
        head_index: Tensor | HeteroData,
        rel_type: Tensor | None = None,
        tail_index: Tensor | None = None,
        side: str | None = None,
    ) -> Tensor:
        r"""Returns the cross-entropy of triples against other entities.

        The mean over the two sides, or that of one side; over sampled
        entities, or over all, as :obj:`num_negatives` says. A fact is never
        counted as evidence for itself.

        Args:
            head_index (torch.Tensor): The head indices, or a batch of PyG's
                :class:`LinkLoader`.
            rel_type (torch.Tensor): The relation types.
            tail_index (torch.Tensor): The tail indices.
            side (str, optional): :obj:`"tail"` asks for tails, :obj:`"head"`
                for heads. (default: :obj:`None`, both)
        """
        if isinstance(head_index, HeteroData):
            return batch_loss(self, head_index)
        assert rel_type is not None
        assert tail_index is not None
        if side not in (None, "tail", "head"):
            raise ValueError(f"'side' must be tail, head or None (got {side!r})")
        one_side = exact_loss if self.is_exact else sampled_loss
        sides = ("tail", "head") if side is None else (side,)
        losses = [
            one_side(self, head_index, rel_type, tail_index, which == "head")
            for which in sides
        ]
        loss = torch.stack(losses).mean()
        if self.latent is not None:
            loss = loss + self.latent.penalty(head_index, rel_type, tail_index)
        return loss

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

        These are the numbers of
        :meth:`torch_geometric.nn.kge.KGEModel.test`: tails only, other true
        tails are *not* filtered out, and the mean rank counts from zero. They
        differ in that ties are worth half a rank, and in speed, as all tails
        of a query are scored at once. For numbers to compare with the
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
        rows = max(1, _TEST_SCORES // self.num_nodes)
        ranks = []
        for head, rel, tail in zip(
            head_index.split(rows), rel_type.split(rows), tail_index.split(rows)
        ):
            scores = self.score_tails(head, rel)
            own = scores.gather(1, tail[:, None])
            better = (scores > own).sum(dim=1)
            ties = (scores == own).sum(dim=1) - 1
            ranks.append(better + ties / 2)
        rank = torch.cat(ranks).double()
        hits = (rank < k).double().mean()
        return float(rank.mean()), float((1 / (rank + 1)).mean()), float(hits)

    def predict_tails(
        self,
        head: "int | str | Several",
        relation: "int | str | Several",
        k: int = 10,
        novel: bool = False,
        known: Iterable[HeteroData] = (),
    ) -> "Predictions | list[Predictions]":
        r"""Returns the most probable tails of :math:`(h, r, ?)`.

        Args:
            head (int or str or list): See
                :meth:`kblrn_pyg.predict.predict_tails`.
            relation (int or str or list): See
                :meth:`kblrn_pyg.predict.predict_tails`.
            k (int, optional): How many tails. (default: :obj:`10`)
            novel (bool, optional): If set to :obj:`True`, known facts are left
                out. (default: :obj:`False`)
            known (iterable, optional): See
                :meth:`kblrn_pyg.predict.predict_tails`. (default: :obj:`()`)
        """
        # That room comes after this one: the model only has the door to it.
        from kblrn_pyg.predict import predict_tails

        return predict_tails(self, head, relation, k, novel, known)

    def predict_heads(
        self,
        relation: "int | str | Several",
        tail: "int | str | Several",
        k: int = 10,
        novel: bool = False,
        known: Iterable[HeteroData] = (),
    ) -> "Predictions | list[Predictions]":
        r"""Returns the most probable heads of :math:`(?, r, t)`.

        Args:
            relation (int or str or list): See
                :meth:`kblrn_pyg.predict.predict_heads`.
            tail (int or str or list): See
                :meth:`kblrn_pyg.predict.predict_heads`.
            k (int, optional): How many heads. (default: :obj:`10`)
            novel (bool, optional): If set to :obj:`True`, known facts are left
                out. (default: :obj:`False`)
            known (iterable, optional): See
                :meth:`kblrn_pyg.predict.predict_tails`. (default: :obj:`()`)
        """
        # That room comes after this one: the model only has the door to it.
        from kblrn_pyg.predict import predict_heads

        return predict_heads(self, relation, tail, k, novel, known)

    def explain(
        self,
        head: int | str,
        relation: int | str,
        tail: int | str,
        max_middles: int | None = 5,
        known: Iterable[HeteroData] = (),
    ) -> "Reasons":
        r"""Explains the score of a triple, exactly.

        Args:
            head (int or str): See :meth:`kblrn_pyg.explain.explain`.
            relation (int or str): See :meth:`kblrn_pyg.explain.explain`.
            tail (int or str): See :meth:`kblrn_pyg.explain.explain`.
            max_middles (int, optional): See
                :meth:`kblrn_pyg.explain.explain`. (default: :obj:`5`)
            known (iterable, optional): See
                :meth:`kblrn_pyg.explain.explain`. (default: :obj:`()`)
        """
        # That room comes after this one: the model only has the door to it.
        from kblrn_pyg.explain import explain

        return explain(self, head, relation, tail, max_middles, known)

    def fingerprint(self) -> str:
        """Returns a digest of the names and rules that the weights are for."""
        digest = hashlib.sha256(self._names_digest.encode())
        digest.update(f"{self.num_nodes} {self.num_relations} {self.experts}".encode())
        if self.relational is not None:
            rules = self.relational.features.rules
            for column in (rules.head, rules.steps, rules.parallel):
                digest.update(np.ascontiguousarray(column).tobytes())
        if self.numerical is not None:
            numbers = self.numerical
            for tensor in (numbers.ptr, numbers.attribute, numbers.x):
                digest.update(tensor.cpu().numpy().tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        parts = f"{self.num_nodes}, num_relations={self.num_relations}"
        parts += f", experts={self.experts!r}"
        if self.latent is not None:
            parts += f", hidden_channels={self.latent.scorers[0].hidden_channels}"
        return f"{self.__class__.__name__}({parts})"
