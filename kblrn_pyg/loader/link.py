"""PyG's own link-prediction loaders on knowledge bases."""

from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.data.storage import AttrType, NodeStorage
from torch_geometric.sampler import (
    BaseSampler,
    EdgeSamplerInput,
    HeteroSamplerOutput,
    NegativeSampling,
)


class KBSampler(BaseSampler):
    r"""Allows :class:`torch_geometric.loader.LinkLoader` to sample triples of one
    relation of a knowledge base, without pyg-lib or torch-sparse. A batch contains
    the entities of its triples and no neighbours, because the experts of KBLRN use
    the whole graph themselves.

    Args:
        data (HeteroData): The knowledge base.
    """

    def __init__(self, data: HeteroData) -> None:
        self.num_nodes = int(data["entity"].num_nodes)
        _keep_names_whole(data["entity"])

    def sample_from_edges(
        self, inputs: EdgeSamplerInput, neg_sampling: NegativeSampling | None = None
    ) -> HeteroSamplerOutput:
        r"""Takes the seed edges as they are and draws uniform negatives.

        Args:
            inputs (EdgeSamplerInput): The seed edges.
            neg_sampling (NegativeSampling, optional): The negatives to draw.
                (default: :obj:`None`)
        """
        src, dst, size = inputs.row, inputs.col, inputs.row.numel()
        src_neg = dst_neg = src.new_empty(0)
        if neg_sampling is not None:
            amount = round(neg_sampling.amount * size)
            dst_neg = torch.randint(self.num_nodes, (amount,))
            if neg_sampling.is_binary():
                src_neg = src[torch.randint(size, (amount,))]
        node, local = torch.unique(
            torch.cat([src, dst, src_neg, dst_neg]), return_inverse=True
        )
        parts = local.split([size, size, src_neg.numel(), dst_neg.numel()])
        return HeteroSamplerOutput(
            node={"entity": node},
            row={},
            col={},
            edge={},
            batch=None,
            metadata=self._metadata(inputs, neg_sampling, parts),
        )

    def _metadata(
        self,
        inputs: EdgeSamplerInput,
        neg_sampling: NegativeSampling | None,
        parts: tuple[Tensor, ...],
    ) -> tuple:
        src, dst, src_neg, dst_neg = parts
        if neg_sampling is not None and neg_sampling.is_triplet():
            if dst_neg.numel() > src.numel():
                dst_neg = dst_neg.view(src.numel(), -1)
            return inputs.input_id, src, dst, dst_neg, None
        label = inputs.label
        if neg_sampling is not None:
            # PyG adds one to labels that begin with zero: that of what it drew.
            positive = torch.ones(src.numel()) if label is None else (label > 0).float()
            label = torch.cat([positive, torch.zeros(dst_neg.numel())])
        index = torch.stack([torch.cat([src, src_neg]), torch.cat([dst, dst_neg])])
        return inputs.input_id, index, label, None

    def sample_from_nodes(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Not supported: there is nothing to sample around nodes."""
        raise NotImplementedError("a KBSampler samples from edges")

    @property
    def edge_permutation(self) -> None:
        """Edges are not reordered."""
        return None


def _keep_names_whole(entity: NodeStorage) -> None:
    """Tells PyG not to cut lists of names, which its loaders cannot do."""
    for key in ("name", "identifier"):
        if key in entity:
            entity.is_node_attr(key)  # fills the cache that is corrected here
            entity._cached_attr[AttrType.NODE].discard(key)
            entity._cached_attr[AttrType.OTHER].add(key)


class LabelledTriples(NamedTuple):
    r"""The triples of a link loader's batch, with global ids.

    Args:
        head_index (torch.Tensor): The head indices.
        rel_type (torch.Tensor): The relation types.
        tail_index (torch.Tensor): The tail indices.
        negative_index (torch.Tensor, optional): Other tails for each triple.
        label (torch.Tensor, optional): Whether each triple is true.
    """

    head_index: Tensor
    rel_type: Tensor
    tail_index: Tensor
    negative_index: Tensor | None
    label: Tensor | None


def batch_triples(batch: HeteroData) -> LabelledTriples:
    r"""Reads the triples off a batch of PyG's :class:`LinkLoader` or
    :class:`LinkNeighborLoader`.

    Args:
        batch (HeteroData): The batch.
    """
    relation = next(
        (i for i, key in enumerate(batch.edge_types) if "input_id" in batch[key]), None
    )
    if relation is None:
        raise ValueError("'batch' must come from a LinkLoader (no 'input_id' found)")
    store, entity = batch[batch.edge_types[relation]], batch["entity"]
    ids = entity.n_id
    if "src_index" in entity:
        head, tail = ids[entity.src_index], ids[entity.dst_pos_index]
        negative, label = ids[entity.dst_neg_index], None
        if negative.dim() == 1:
            negative = negative.view(head.numel(), -1)
    else:
        head, tail = ids[store.edge_label_index]
        negative, label = None, store.get("edge_label")
    rel_type = torch.full_like(head, relation)
    return LabelledTriples(head, rel_type, tail, negative, label)
