"""KBLRN: a product of experts over a knowledge base."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data import KnownFacts, Vocabulary, as_kb
from kblrn_pyg.data.digest import names_digest
from kblrn_pyg.data.queries import SIDES, check_side
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.data.sources import Source
from kblrn_pyg.frames import html_table
from kblrn_pyg.nn import model_file
from kblrn_pyg.nn.build import build_experts
from kblrn_pyg.nn.calibration import Calibration
from kblrn_pyg.nn.expert import Expert
from kblrn_pyg.nn.latent import LatentExpert
from kblrn_pyg.nn.losses import batch_loss, loss_of
from kblrn_pyg.nn.product_of_experts import ProductOfExperts
from kblrn_pyg.nn.scorers import AnyScorer
from kblrn_pyg.nn.settings import ModelSettings
from kblrn_pyg.rules import RuleSet

if TYPE_CHECKING:
    from kblrn_pyg.explain import Reasons
    from kblrn_pyg.predict import Predictions, Several


class KBLRN(ProductOfExperts):
    r"""KBLRN from the `"KBLRN: End-to-End Learning of Knowledge Base
    Representations with Latent, Relational, and Numerical Features"
    <https://arxiv.org/abs/1709.04676>`_ paper.

    The probability of a triple is a product of experts, so their logarithms, the
    scores, are added. In the paper, there is one expert of each kind for every
    relation:

    .. math::
        p(h, r, t) \propto f_{(r, L)}(h, r, t) \cdot f_{(r, R)}(h, r, t) \cdot
        f_{(r, N)}(h, r, t)

    Here, they may be any :class:`Expert` objects. The model has the interface of
    :class:`torch_geometric.nn.kge.KGEModel`; :meth:`from_data` creates a model for
    a knowledge base.

    Args:
        num_nodes (int): The number of entities.
        num_relations (int): The number of relations.
        experts (dict): The experts by name.
        num_negatives (int, optional): The number of entities to sample for each
            triple and side of the loss. If :obj:`None`, the loss is exact, over
            all entities. (default: :obj:`500`)
        negatives (str, optional): :obj:`"triple"` draws them for each triple,
            :obj:`"shared"` once for a batch. (default: :obj:`"triple"`)
    """

    def __init__(
        self,
        num_nodes: int,
        num_relations: int,
        experts: Mapping[str, Expert],
        num_negatives: int | None = 500,
        negatives: str = "triple",
    ) -> None:
        super().__init__(num_nodes, num_relations, experts)
        if num_negatives is not None and not (
            hasattr(num_negatives, "__index__") and num_negatives > 0
        ):
            raise ValueError(f"'num_negatives' must be positive (got {num_negatives})")
        if negatives not in ("triple", "shared"):
            raise ValueError(
                f"'negatives' must be triple or shared (got {negatives!r})"
            )
        self.num_negatives, self.negatives = num_negatives, negatives
        self.settings: ModelSettings | None = None
        self.kb: HeteroData | None = None  # whose names answers and reasons use
        self.known: tuple[HeteroData, ...] = ()  # facts that are known besides it
        self._vocabulary: tuple[HeteroData, Vocabulary] | None = None
        self.calibration: Calibration | None = None  # of its scores
        self._facts: tuple[HeteroData, tuple[HeteroData, ...], KnownFacts] | None = None

    @classmethod
    def from_data(
        cls,
        data: HeteroData | Data,
        experts: str | Sequence[str | Expert] = "lrn",
        hidden_channels: int = ModelSettings.hidden_channels,
        scorer: AnyScorer | Sequence[AnyScorer] = "distmult",
        rules: RuleSet | None = None,
        **settings: Any,
    ) -> "KBLRN":
        r"""Creates a model for a knowledge base.

        Args:
            data (HeteroData or Data): The knowledge base; a
                :class:`~torch_geometric.data.HeteroData` with several node
                types, or PyG's homogeneous :obj:`Data(edge_index, edge_type)`.
            experts (str or sequence, optional): Which experts: the letters
                :obj:`l` (embeddings), :obj:`r` (paths), :obj:`n` (numbers),
                :obj:`e` (the best evidence) and :obj:`o` (loops), as in
                :obj:`"lrn"`, or a sequence of letters and :class:`Expert`
                objects. (default: :obj:`"lrn"`)
            hidden_channels (int, optional): The embedding size.
                (default: :obj:`100`)
            scorer (optional): See :class:`LatentExpert`.
                (default: :obj:`"distmult"`)
            rules (RuleSet, optional): The rules of the relational expert, of a rule
                penalty, and of the evidence expert. The latter counts rules with
                constants itself if the rule set has none. (default: :obj:`None`,
                the rules that :meth:`mine_rules` finds)
            **settings (optional): The other fields of :class:`ModelSettings`,
                such as :obj:`num_negatives`, :obj:`dropout` or
                :obj:`threshold`.

        Example:
            >>> from kblrn_pyg.datasets import Families
            >>> KBLRN.from_data(Families()[0], experts="lrn", hidden_channels=32)
            KBLRN(2232, num_relations=12, experts='lrn', hidden_channels=32)
        """
        names = {field.name for field in fields(ModelSettings)} - {"experts"}
        unknown = sorted(set(settings) - names)
        if unknown:
            raise ValueError(
                f"settings must be among {', '.join(sorted(names))} (got "
                f"{', '.join(unknown)})"
            )
        kb = as_kb(data)
        given = {"hidden_channels": hidden_channels, **settings}
        built, chosen = build_experts(kb, experts, scorer, rules, given)
        sizes = kb["entity"].num_nodes, len(kb.edge_types)
        model = cls(*sizes, built, chosen.num_negatives, chosen.negatives)
        model.kb, model.settings = kb, chosen
        return model

    @property
    def config(self) -> dict[str, Any]:
        """The settings as plain values by name."""
        return {} if self.settings is None else asdict(self.settings)

    @property
    def is_exact(self) -> bool:
        """Whether the loss is over all entities."""
        return self.num_negatives is None

    @property
    def vocabulary(self) -> Vocabulary:
        """The names of the knowledge base."""
        kb = self.require_kb()
        if self._vocabulary is None or self._vocabulary[0] is not kb:
            self._vocabulary = kb, Vocabulary.of(kb)
        return self._vocabulary[1]

    @property
    def known_facts(self) -> KnownFacts:
        """The facts of the knowledge base and of :obj:`known`."""
        kb, known = self.require_kb(), self.known
        if (
            self._facts is None
            or self._facts[0] is not kb
            or self._facts[1] is not known
        ):
            self._facts = kb, known, KnownFacts(kb, known)
        return self._facts[2]

    def require_kb(self) -> HeteroData:
        """Returns the knowledge base, without which there are no names."""
        if self.kb is None:
            raise ValueError(
                "'model' must know its knowledge base: make it by 'KBLRN.from_data', "
                "or set 'model.kb'"
            )
        return self.kb

    def without(self, name: str) -> "KBLRN":
        r"""Returns a model of the other experts, which share their weights.

        The result differs from training without the expert: during training, the
        others have learned to rely on it.

        Args:
            name (str): The name of the expert that is left out.
        """
        if name not in self.experts:
            raise ValueError(
                f"'name' must be one of {', '.join(self.experts)} (got {name!r})"
            )
        others = {key: one for key, one in self.experts.items() if key != name}
        model = KBLRN(
            self.num_nodes,
            self.num_relations,
            others,  # type: ignore[arg-type]
            self.num_negatives,
            self.negatives,
        )
        model.kb, model.known = self.kb, self.known
        return model.train(self.training)

    def take_experts(self, other: "KBLRN") -> None:
        r"""Copies the weights of the experts that both models have.

        This is a good initialisation: embeddings that are trained together with
        rules from the first step do not learn what rules can do, while embeddings
        that are trained alone do.

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
        if names_digest(self.kb) != names_digest(other.kb):
            raise ValueError("'other' must be of the same knowledge base")
        shared = [name for name in self.experts if name in other.experts]
        if not shared:
            raise ValueError(
                f"'other' must have one of the experts {self.instance} (got "
                f"{other.instance})"
            )
        pairs = {name: (self.experts[name], other.experts[name]) for name in shared}
        for name, (mine, theirs) in pairs.items():
            if mine.fingerprint() != theirs.fingerprint():  # type: ignore[operator]
                raise ValueError(
                    "'other' must be of the same knowledge base and settings (its "
                    f"{name} expert is different)"
                )
        for mine, theirs in pairs.values():
            mine.load_state_dict(theirs.state_dict())

    def loss(
        self,
        head_index: Tensor | HeteroData,
        rel_type: Tensor | None = None,
        tail_index: Tensor | None = None,
        side: str | None = None,
    ) -> Tensor:
        r"""Returns the cross-entropy of triples against other entities.

        The loss is the mean over both sides, or that of one side. It is over
        sampled entities or over all, depending on :obj:`num_negatives`. A fact is
        never counted as evidence for itself.

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
        triples: Any = (head_index, rel_type, tail_index)
        self._ids.check_triples(*triples)
        if len(head_index) == 0:
            raise ValueError("'head_index' must have at least one entry (got none)")
        if side is not None:
            check_side(side)
        sides = SIDES[::-1] if side is None else (side,)
        with self.encoded(None) if self.is_exact else nullcontext():
            # First, so that their gradients are added to those of the loss.
            penalties = [expert.penalty(*triples) for expert in self._experts()]
            return loss_of(self)(self, triples, sides) + sum(penalties)

    def predict_tails(
        self,
        head: "int | str | Several",
        relation: "int | str | Several",
        k: int = 10,
        novel: bool = False,
        known: Iterable[HeteroData] = (),
    ) -> "Predictions | list[Predictions]":
        """Answers :math:`(h, r, ?)`; see :meth:`kblrn_pyg.predict.predict_tails`."""
        from kblrn_pyg.predict import predict_tails  # which imports this module

        return predict_tails(self, head, relation, k, novel, known)

    def predict_heads(
        self,
        relation: "int | str | Several",
        tail: "int | str | Several",
        k: int = 10,
        novel: bool = False,
        known: Iterable[HeteroData] = (),
    ) -> "Predictions | list[Predictions]":
        """Answers :math:`(?, r, t)`; see :meth:`kblrn_pyg.predict.predict_heads`."""
        from kblrn_pyg.predict import predict_heads  # which imports this module

        return predict_heads(self, relation, tail, k, novel, known)

    def explain(
        self,
        head: int | str,
        relation: int | str,
        tail: int | str,
        max_middles: int | None = 5,
        known: Iterable[HeteroData] = (),
    ) -> "Reasons":
        """Explains a score, exactly; see :meth:`kblrn_pyg.explain.explain`."""
        from kblrn_pyg.explain import explain  # which imports this module

        return explain(self, head, relation, tail, max_middles, known)

    def update(
        self,
        triples: Source | None = None,
        numbers: Source | None = None,
        retracted: Source | None = None,
        fold_in: bool = True,
        decimal: str = ".",
    ) -> "KBLRN":
        """Returns a model with added or retracted facts, without training; see
        :meth:`kblrn_pyg.training.update_model`."""
        from kblrn_pyg.training import update_model  # which imports this module

        given = triples, numbers, retracted
        return update_model(self, *given, fold_in, decimal=decimal)

    def save(self, path: PathLike, known: Iterable[HeteroData] = ()) -> None:
        r"""Saves everything that is needed to predict, explain and draw elsewhere.

        The file contains the weights, the settings and rules of the experts, the
        names, and the knowledge base. It is written whole or not at all.

        Args:
            path (str): The file to write.
            known (iterable, optional): Splits whose facts are known, too; see
                :meth:`predict_tails`. (default: :obj:`()`)
        """
        model_file.save_model(self, path, known)

    @classmethod
    def load(cls, path: PathLike, experts: Iterable[type[Module]] = ()) -> "KBLRN":
        r"""Loads a model that :meth:`save` wrote, in evaluation mode.

        No code in the file is run, and damaged files are refused.

        Args:
            path (str): The file.
            experts (iterable, optional): The classes of experts, scorers and
                embedding models that are user-defined. (default: :obj:`()`)
        """
        return model_file.load_model(cls, path, experts)

    def fingerprint(self) -> str:
        """Returns a digest of the names and rules that the weights belong to."""
        digest = hashlib.sha256(names_digest(self.kb))
        digest.update(f"{self.num_nodes} {self.num_relations}".encode())
        for name, expert in self.experts.items():
            digest.update(name.encode() + expert.fingerprint())  # type: ignore[operator]
        return digest.hexdigest()

    def __repr__(self) -> str:
        parts = f"{self.num_nodes}, num_relations={self.num_relations}"
        parts += f", experts={self.instance!r}"
        for expert in self._experts():
            if isinstance(expert, LatentExpert):
                parts += f", hidden_channels={expert.hidden_channels}"
        return f"{self.__class__.__name__}({parts})"

    def _repr_html_(self) -> str:
        rows = [
            [name, one.extra_repr(), sum(p.numel() for p in one.parameters())]
            for name, one in self.experts.items()
        ]
        sizes = f"{self.num_nodes:,} entities, {self.num_relations:,} relations"
        sure = "calibrated" if self.calibration is not None else "not calibrated"
        caption = f"{self.__class__.__name__}: {sizes}, {sure}"
        return html_table(["expert", "what it has", "parameters"], rows, caption)
