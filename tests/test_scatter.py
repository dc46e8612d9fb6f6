"""Segment sums are the same with torch-scatter and without."""

import pytest
import torch
from torch_geometric.utils import segment

pytestmark = pytest.mark.scatter

torch_scatter = pytest.importorskip("torch_scatter")


def test_segment_sums_agree():
    generator = torch.Generator().manual_seed(0)
    src = torch.rand(100, 3, generator=generator, dtype=torch.double)
    ptr = torch.tensor([0, 0, 7, 50, 50, 100])
    expected = torch.stack([src[a:b].sum(0) for a, b in zip(ptr[:-1], ptr[1:])])
    torch.testing.assert_close(torch_scatter.segment_csr(src, ptr), expected)
    torch.testing.assert_close(segment(src, ptr), expected)
