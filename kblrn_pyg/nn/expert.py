"""The base class of experts."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import Parameter

from kblrn_pyg.data.queries import Queries
from kblrn_pyg.data.update import KBUpdate
from kblrn_pyg.nn.arguments import Rebuildable
from kblrn_pyg.nn.part import Part
from kblrn_pyg.nn.rebuild import depends_on, rebuilt, take_weights
from kblrn_pyg.nn.softmax import Factors

# How many candidates 'add_to' scores at once.
_CANDIDATES_AT_ONCE = 1 << 20


def factor_of(factor: float | Tensor, relation: Tensor) -> float | Tensor:
    r"""Returns what to multiply parameters with; see :meth:`Expert.scale`.

    Args:
        factor (float or torch.Tensor): The factor, or one for each relation.
        relation (torch.Tensor): The relation of each parameter.
    """
    if isinstance(factor, Tensor):
        return factor.to(relation.device)[relation]
    return factor


class Expert(Rebuildable):
    r"""The base class of experts.

    The score of a model is the sum of the scores of its experts. Only
    :meth:`forward` is required; everything else has a default that is derived from
    it, and can be overridden by something faster or more informative. Pass your own
    expert next to letters; it is then trained, evaluated, explained, reported,
    saved and loaded like the others:

    .. code-block:: python

        class Popularity(Expert):
            def __init__(self, num_nodes, num_relations):
                super().__init__()
                self.weight = Parameter(torch.zeros(num_relations, num_nodes))

            def forward(self, head_index, rel_type, tail_index):
                return self.weight[rel_type, tail_index]

        popularity = Popularity(data["entity"].num_nodes, len(data.edge_types))
        model = KBLRN.from_data(data, experts=["l", "r", popularity])

    The model file stores the arguments of the constructor; see :class:`Rebuildable`
    for the supported types.
    """

    # Whether the expert shares its work among the threads of
    # 'kblrn_pyg.kernels.threads' alone, so that torch's would only be in their way.
    uses_own_threads = False

    # Whether the gradient may need the scores that 'add_to' returns, as it was.
    needs_scores = True

    # Whether a triple has two scores, one as an answer to each of its queries.
    has_two_scores = False

    @property
    def name(self) -> str:
        """The name of the expert, by default that of its class."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()

    def forward(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        r"""Returns the score of each triple.

        Args:
            head_index (torch.Tensor): The head indices.
            rel_type (torch.Tensor): The relation types.
            tail_index (torch.Tensor): The tail indices.
        """
        raise NotImplementedError

    def score_candidates(self, queries: Queries, candidates: Tensor) -> Tensor:
        r"""Returns the scores of some candidates of each query.

        Args:
            queries (Queries): The queries.
            candidates (torch.Tensor): A row of entities for each query.
        """
        triples = (index.flatten() for index in queries.triples(candidates))
        return self(*triples).view(candidates.shape)

    def score_answers(self, queries: Queries, answer: Tensor) -> Tensor:
        r"""Returns the score of one answer to each query.

        Args:
            queries (Queries): The queries.
            answer (torch.Tensor): An entity for each query.
        """
        return self.score_candidates(queries, answer[:, None]).squeeze(1)

    def score_all(
        self, queries: Queries, num_nodes: int, entities: Tensor | None = None
    ) -> Tensor:
        r"""Returns the score of every entity as an answer to each query.

        Args:
            queries (Queries): The queries.
            num_nodes (int): The number of entities.
            entities (torch.Tensor, optional): Distinct entities to score.
                (default: :obj:`None`, all)
        """
        parameter = next(self.parameters(), None)
        dtype = torch.get_default_dtype() if parameter is None else parameter.dtype
        width = num_nodes if entities is None else entities.numel()
        shape, device = (len(queries), width), queries.entity.device
        scores = torch.zeros(shape, dtype=dtype, device=device)
        return self.add_to(scores, queries, entities)

    def add_to(
        self, scores: Tensor, queries: Queries, entities: Tensor | None = None
    ) -> Tensor:
        r"""Adds the scores of all entities to rows of scores, possibly in place.

        Args:
            scores (torch.Tensor): A row for each query.
            queries (Queries): The queries.
            entities (torch.Tensor, optional): The entities that columns of scores
                belong to, without duplicates. (default: :obj:`None`, all)
        """
        num_rows, width = scores.shape
        step = max(1, _CANDIDATES_AT_ONCE // max(num_rows, 1))
        if entities is None:
            entities = torch.arange(width, device=scores.device)
        found = [
            self.score_candidates(queries, some.expand(num_rows, -1))
            for some in entities.split(step)
        ]
        return scores + torch.cat(found, dim=1).to(scores.dtype)

    def factors(
        self, queries: Queries, entities: Tensor | None = None
    ) -> Factors | None:
        r"""Returns vectors of queries and of entities whose dot products are the
        scores, for experts that support this: losses then do not need to hold all
        scores at once.

        Args:
            queries (Queries): The queries.
            entities (torch.Tensor, optional): Distinct entities to score.
                (default: :obj:`None`, all)
        """
        return None

    def own_evidence(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        r"""Returns what each fact adds to its own score, which losses leave out.

        Args:
            head_index (torch.Tensor): The head indices.
            rel_type (torch.Tensor): The relation types.
            tail_index (torch.Tensor): The tail indices.
        """
        return torch.zeros(head_index.shape, device=head_index.device)

    def penalty(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor | float:
        r"""Returns a term that is added to the loss of a batch of triples.

        Args:
            head_index (torch.Tensor): The head indices.
            rel_type (torch.Tensor): The relation types.
            tail_index (torch.Tensor): The tail indices.
        """
        return 0.0

    @property
    def can_be_scaled(self) -> bool:
        """Whether :meth:`scale` is supported."""
        return type(self).scale is not Expert.scale

    def scale(self, factor: float | Tensor) -> None:
        r"""Multiplies all scores by a factor, by changing the parameters.

        Args:
            factor (float or torch.Tensor): The factor, or one for each relation;
                they are not negative.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot be scaled")

    def parts(self, head: int, rel: int, tail: int, side: str = "tail") -> list[Part]:
        r"""Returns the reasons whose contributions add up to the score of a triple.

        Args:
            head (int): The head.
            rel (int): The relation.
            tail (int): The tail.
            side (str, optional): The side whose query the triple answers; it
                matters to experts whose two scores of a triple differ.
                (default: :obj:`"tail"`)
        """
        parameter = next(self.parameters(), torch.empty(0))
        index = torch.tensor([[head], [rel], [tail]], device=parameter.device)
        queries = Queries.of_triples(index[0], index[1], index[2], side)
        answer = index[0] if side == "head" else index[2]
        score = self.score_candidates(queries, answer[:, None])
        return [Part(float(score), (type(self).__name__,))]

    def speaks_of(self, rel: int) -> bool:
        r"""Returns whether the scores of a relation's triples can differ from zero.

        Args:
            rel (int): The relation.
        """
        return True

    def with_facts(self, update: KBUpdate) -> "Expert":
        r"""Returns the same expert of an updated knowledge base, with its weights.

        By default, it is created again from the arguments of its constructor, where
        the updated knowledge base replaces the former one, and the new number of
        entities replaces :obj:`num_nodes`.

        Args:
            update (KBUpdate): The update of the knowledge base.
        """
        if update.num_new and not depends_on(self, update):
            raise ValueError(
                f"{type(self).__name__} cannot take new entities: give it the "
                "knowledge base or 'num_nodes', or write 'with_facts'"
            )
        expert = rebuilt(self, update)
        take_weights(expert, self, update)
        return expert

    def entity_tables(self) -> list[Parameter]:
        """Returns the weights that have a row for each entity, which an update learns
        for new entities."""
        return []

    @contextmanager
    def with_sparse_gradients(self) -> Iterator[None]:
        """Makes gradients of :meth:`entity_tables` row-sparse within the context,
        if that is possible."""
        yield

    def fingerprint(self) -> bytes:
        """Returns a digest of what the weights refer to; weights with equal digests
        are interchangeable."""
        shapes = {name: tuple(v.shape) for name, v in self.state_dict().items()}
        return f"{type(self).__name__} {shapes}".encode()

    def reset_parameters(self) -> None:
        """Resets the parameters of all modules that can do so."""
        for module in self.children():
            reset = getattr(module, "reset_parameters", None)
            if reset is not None:
                reset()

    @contextmanager
    def encoded(self, entities: Sequence[Tensor] | None = ()) -> Iterator[None]:
        r"""Caches, within the context, what all queries of a step share.

        Args:
            entities (sequence, optional): The tensors of entities that the step
                is going to look up, :obj:`None` if it scores all entities.
                (default: :obj:`()`, they are not known)
        """
        yield
