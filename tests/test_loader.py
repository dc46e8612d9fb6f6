import pytest
import torch
from torch_geometric import typing
from torch_geometric.data import HeteroData
from torch_geometric.loader import LinkLoader, LinkNeighborLoader
from torch_geometric.sampler import NegativeSampling

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples, unify_types
from kblrn_pyg.datasets import Families
from kblrn_pyg.loader import KBSampler, QueryLoader, TripleLoader, batch_triples


@pytest.fixture(scope="module")
def data():
    return Families()[0]


def rows(*columns):
    return sorted(zip(*(column.tolist() for column in columns)))


def generator(seed):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_triple_loader(data, num_workers):
    triples = flat_triples(data)
    loader = TripleLoader(
        *triples,
        batch_size=512,
        shuffle=True,
        generator=generator(0),
        num_workers=num_workers,
    )
    batches = list(loader)
    assert len(batches) == len(loader) == -(-len(triples[0]) // 512)
    assert rows(*(torch.cat(column) for column in zip(*batches))) == rows(*triples)
    assert len(batches[0][1].unique()) > 5
    again = next(
        iter(
            TripleLoader(*triples, batch_size=512, shuffle=True, generator=generator(0))
        )
    )
    other = next(
        iter(
            TripleLoader(*triples, batch_size=512, shuffle=True, generator=generator(1))
        )
    )
    assert torch.equal(again[0], batches[0][0])
    assert not torch.equal(other[0], batches[0][0])


def test_query_loader_of_nothing():
    assert list(QueryLoader(*torch.empty(3, 0, dtype=torch.long))) == []


def test_query_loader(data):
    head, rel, tail = triples = flat_triples(data)
    loader = QueryLoader(*triples, batch_size=100, generator=generator(0))
    seen = {"head": [], "tail": []}
    for h, r, t, side in loader:
        entity = t if side == "head" else h
        queries = torch.unique(torch.stack([r, entity]), dim=1)
        assert queries.size(1) <= 100
        # All answers of a query are in its batch.
        for relation, known in queries.t()[:3].tolist():
            asked = tail if side == "head" else head
            assert ((r == relation) & (entity == known)).sum() == (
                (rel == relation) & (asked == known)
            ).sum()
        seen[side].append((h, r, t))
    for found in seen.values():
        assert rows(*(torch.cat(column) for column in zip(*found))) == rows(*triples)
    first = next(iter(QueryLoader(*triples, batch_size=100, generator=generator(0))))
    other = next(iter(QueryLoader(*triples, batch_size=100, generator=generator(1))))
    assert torch.equal(
        first[0],
        next(iter(QueryLoader(*triples, batch_size=100, generator=generator(0))))[0],
    )
    assert rows(*first[:3]) != rows(*other[:3])


def link_loader(data, relation, neg_sampling):
    edge_type = ("entity", relation, "entity")
    return LinkLoader(
        data,
        KBSampler(data),
        edge_label_index=(edge_type, data[edge_type].edge_label_index),
        neg_sampling=neg_sampling,
        batch_size=256,
        shuffle=True,
    )


def link_neighbor_loader(data, relation, neg_sampling):
    edge_type = ("entity", relation, "entity")
    return LinkNeighborLoader(
        data,
        num_neighbors=[3, 2],
        edge_label_index=(edge_type, data[edge_type].edge_label_index),
        neg_sampling=neg_sampling,
        batch_size=256,
        shuffle=True,
    )


LOADERS = [
    link_loader,
    pytest.param(
        link_neighbor_loader,
        marks=pytest.mark.skipif(
            not (typing.WITH_PYG_LIB or typing.WITH_TORCH_SPARSE),
            reason="needs pyg-lib or torch-sparse",
        ),
    ),
]


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    "neg_sampling", ["triplet", "binary", NegativeSampling("triplet", 5), None]
)
def test_stock_link_loader(data, loader, neg_sampling):
    relation = [name for _, name, _ in data.edge_types].index("spouse")
    edges = data["entity", "spouse", "entity"].edge_index
    model = KBLRN.from_data(data, hidden_channels=8)
    positive = []
    for batch in loader(data, "spouse", neg_sampling):
        triples = batch_triples(batch)
        assert (triples.rel_type == relation).all()
        is_true = slice(None) if triples.label is None else triples.label > 0
        positive.append((triples.head_index[is_true], triples.tail_index[is_true]))
        scores = model(batch)
        assert scores.shape == triples.head_index.shape
        model.loss(batch).backward()
        assert all(
            p.grad is None or p.grad.isfinite().all() for p in model.parameters()
        )
    assert rows(*(torch.cat(column) for column in zip(*positive))) == rows(*edges)
    if isinstance(neg_sampling, NegativeSampling):
        assert triples.negative_index.size(1) == 5


def test_labels_that_begin_with_zero_are_of_true_edges(data):
    edge_type = ("entity", "spouse", "entity")
    edges = data[edge_type].edge_index[:, :6]
    loader = LinkLoader(
        data,
        KBSampler(data),
        edge_label_index=(edge_type, edges),
        edge_label=torch.tensor([0, 1, 0, 1, 0, 1]),
        neg_sampling="binary",
        batch_size=6,
    )
    (batch,) = loader
    assert batch_triples(batch).label.tolist() == [1] * 6 + [0] * 6


def test_an_epoch_through_stock_link_loaders_learns(data):
    torch.manual_seed(0)
    model = KBLRN.from_data(data, "lr", hidden_channels=16)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

    def epoch(train):
        total = 0.0
        for relation in ("spouse", "parent_of", "lives_in"):
            for batch in link_loader(data, relation, NegativeSampling("triplet", 10)):
                loss = model.loss(batch)
                if train:
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                total += float(loss.detach())
        return total

    before = epoch(train=False)
    epoch(train=True)
    assert epoch(train=False) < 0.9 * before


@pytest.mark.parametrize("edge_label", [None, torch.ones(600)])
def test_true_triples_alone_are_learned_against_sampled_ones(data, edge_label):
    edge_type = ("entity", "spouse", "entity")
    loader = LinkLoader(
        data,
        KBSampler(data),
        edge_label_index=(edge_type, data[edge_type].edge_index[:, :600]),
        edge_label=edge_label,
        batch_size=600,
    )
    (batch,) = loader
    model = KBLRN.from_data(data, "l", hidden_channels=8)
    losses = []
    for arguments in ((batch,), batch_triples(batch)[:3]):
        torch.manual_seed(1)
        losses.append(float(model.loss(*arguments)))
    assert losses[0] == losses[1] > 1  # as many nats as one in 501 entities has


def test_batches_of_other_loaders_are_refused(data):
    with pytest.raises(ValueError, match="'batch' must come from a LinkLoader"):
        batch_triples(data)


@pytest.mark.parametrize("num_edges", [2, 3, 4])
def test_link_loader_of_several_node_types(num_edges):
    """PyG takes lists of a store for attributes of as many edges."""
    typed = HeteroData()
    typed["user"].num_nodes, typed["item"].num_nodes = 5, 5
    some = torch.arange(num_edges)
    typed["user", "knows", "user"].edge_index = torch.stack([some, some])
    typed["user", "likes", "item"].edge_index = torch.tensor([[0, 1, 2], [2, 1, 0]])
    data = unify_types(typed)
    likes = "entity", "likes", "entity"
    index = likes, data[likes].edge_index
    loader = LinkLoader(data, KBSampler(data), edge_label_index=index, batch_size=2)
    triples = [batch_triples(batch) for batch in loader]
    assert [one.tail_index.tolist() for one in triples] == [[7, 6], [5]]


def test_query_loader_of_narrow_ids():
    head = torch.tensor([0, 0, 2**20 - 1], dtype=torch.int32)
    rel = torch.tensor([0, 4096, 0], dtype=torch.int32)
    loader = QueryLoader(head, rel, head, batch_size=1, shuffle=False)
    assert all(len(batch[0]) == 1 for batch in loader)
    assert len(loader) == 6
    with pytest.raises(ValueError, match="'batch_size' must be positive"):
        QueryLoader(head, rel, head, batch_size=0)
