"""The way PyG's own example trains its knowledge graph models works for KBLRN."""

import os
from pathlib import Path

import pytest
import torch
from torch_geometric.datasets import FB15k_237

from kblrn_pyg import KBLRN

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    if not os.path.isdir(os.environ.get("KBLRN_DATA", "")):
        pytest.skip("KBLRN_DATA does not name the directory of the raw data")
    root = tmp_path_factory.mktemp("pyg")
    (root / "raw").mkdir()
    for name in ("train.txt", "valid.txt", "test.txt"):
        source = Path(os.environ["KBLRN_DATA"], "FB15k-237", name).resolve()
        (root / "raw" / name).symlink_to(source)
    return [FB15k_237(str(root), split)[0] for split in ("train", "val")]


def test_train_and_test_as_pyg_does(graphs):
    train, val = graphs
    torch.manual_seed(0)
    model = KBLRN.from_data(train, hidden_channels=50)
    loader = model.loader(
        head_index=train.edge_index[0],
        rel_type=train.edge_type,
        tail_index=train.edge_index[1],
        batch_size=1000,
        shuffle=True,
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    model.train()
    for head_index, rel_type, tail_index in loader:
        optimizer.zero_grad()
        loss = model.loss(head_index, rel_type, tail_index)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        if len(losses) == 30:
            break
    assert losses[-1] < 0.8 * losses[0]
    model.eval()
    part = slice(0, 500)
    rank, mrr, hits = model.test(
        head_index=val.edge_index[0][part],
        rel_type=val.edge_type[part],
        tail_index=val.edge_index[1][part],
        batch_size=20000,
        k=10,
    )
    assert rank < model.num_nodes / 4
    assert 0 < mrr < 1
    assert hits > 0.1
