"""FB15k and FB15k-237, whole and restricted to triples with numerical features."""

import json

import torch
from torch_geometric.data import HeteroData

from kblrn_pyg.data import (
    ask,
    build_kb,
    flat_triples,
    numerical_features,
    read_triples,
    read_values,
)
from kblrn_pyg.datasets.base import KBDataset
from kblrn_pyg.datasets.files import RawFile, split_files
from kblrn_pyg.datasets.names import COUNTS

_VILLMOW = (
    "https://raw.githubusercontent.com/villmow/datasets_knowledge_embedding/master"
)
_MMKB = "https://raw.githubusercontent.com/mniepert/mmkb/master"

NUMBERS = RawFile(
    "mmkb/FB15K_NumericalTriples.txt",
    f"{_MMKB}/FB15K/FB15K_NumericalTriples.txt",
    "9fd4f2dfe95af2bc4caa6ce1db84641168f42be759217dfbfcf95ca79d5aa0f3",
)
LABELS = RawFile(
    "FB15k/entity2wikidata.json",
    f"{_VILLMOW}/FB15k-237/entity2wikidata.json",
    "80e74bb002fb9ca0ecd3d63879a3a51121db855d312a101917a1ffb6aed2fea9",
)


def build_splits(paths: dict[str, str]) -> dict[str, HeteroData]:
    """Builds all splits, with numbers and Freebase's labels if there are files."""
    names = {"train": "train.txt", "val": "valid.txt", "test": "test.txt"}
    splits = {split: read_triples(paths[name], False) for split, name in names.items()}
    values = labels = None
    if NUMBERS.name in paths:
        values = read_values(paths[NUMBERS.name], header=False)
    if LABELS.name in paths:
        with open(paths[LABELS.name], encoding="utf-8") as file:
            labels = {key: entry["label"] for key, entry in json.load(file).items()}
    return build_kb(splits, values, labels, min_entities=1)[0]


class FB15k(KBDataset):
    r"""FB15k from `"Translating Embeddings for Modeling Multi-Relational Data"
    <https://papers.nips.cc/paper/5071-translating-embeddings-for-modeling
    -multi-relational-data>`_, with the numerical attributes of `MMKB
    <https://github.com/mniepert/mmkb>`_: 14,951 entities, 1,345 relations,
    483,142 training, 50,000 validation and 59,071 test triples, 116
    attributes with 29,395 values of 12,493 entities.

    The paper states 12,826 entities with numbers; the published file has 12,493,
    which is also the number that its author later gave.

    Args:
        root (str): Root directory where the data set should be saved.
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
            (default: :obj:`"train"`)
        transform (callable, optional): A transform applied before every
            access. (default: :obj:`None`)
        pre_transform (callable, optional): A transform applied once to each
            split before it is saved. (default: :obj:`None`)
        force_reload (bool, optional): Whether to process the raw files again.
            (default: :obj:`False`)
    """

    counts = COUNTS["FB15k"]
    files = (
        *split_files(
            "FB15k",
            f"{_VILLMOW}/FB15K/{{}}.txt",
            train="f9cdfd2685f6483bd3a499d433919b15d62f0715c6cf18b2ca30c2aa5c47a704",
            valid="471929cde9cf74b1caa8348c2b601c8010d6b2f2a56bae49b4ebfd14c9bce855",
            test="5b60b4de325482c3368e22d0b7452d465b09a610fea0ce3768d8b1e8b5a7e42a",
        ),
        NUMBERS,
        LABELS,
    )

    def build(self, paths: dict[str, str]) -> dict[str, HeteroData]:
        return build_splits(paths)


class FB15k237(FB15k):
    r"""FB15k-237 from `"Observed versus latent features for knowledge base and
    text inference" <https://aclanthology.org/W15-4007>`_, FB15k without
    reverse relations, with the numerical attributes of `MMKB
    <https://github.com/mniepert/mmkb>`_: 14,541 entities (14,505 of them in
    training triples), 237 relations, 272,115 training, 17,535 validation and
    20,466 test triples, 115 attributes with 29,247 values of 12,402 entities.

    Ids are the same as in :class:`torch_geometric.datasets.FB15k_237`.

    Args:
        root (str): Root directory where the data set should be saved.
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
            (default: :obj:`"train"`)
        transform (callable, optional): A transform applied before every
            access. (default: :obj:`None`)
        pre_transform (callable, optional): A transform applied once to each
            split before it is saved. (default: :obj:`None`)
        force_reload (bool, optional): Whether to process the raw files again.
            (default: :obj:`False`)
    """

    counts = COUNTS["FB15k-237"]
    files = (
        *split_files(
            "FB15k-237",
            f"{_VILLMOW}/FB15k-237/{{}}.txt",
            train="61099230e4439f90885ca9767739e31e8e32f54736fa1c35952b27997bc7c08a",
            valid="749cbe9d923bac7b9354da5614ecfed2e0220256d442c3e04a6b303db1f273d9",
            test="e2e35e8e6113de220140b6f44dc71a5207b0fc6872d575e874aefe13259b655b",
        ),
        NUMBERS,
        LABELS,
    )


def keep_numerical(kbs: dict[str, HeteroData]) -> dict[str, HeteroData]:
    """Keeps the validation and test triples whose relation has a numerical feature,
    and whose entities both occur in training.
    """
    train = kbs["train"]
    head_index, _, tail_index = flat_triples(train)
    is_known = torch.zeros(train["entity"].num_nodes, dtype=torch.bool)
    is_known[torch.cat([head_index, tail_index])] = True
    is_numerical = numerical_features(train).ptr.diff() > 0
    out = {"train": train}
    for split in ("val", "test"):
        head_index, rel_type, tail_index = flat_triples(kbs[split], "edge_label_index")
        keep = is_numerical[rel_type] & is_known[head_index] & is_known[tail_index]
        kept = head_index[keep], rel_type[keep], tail_index[keep]
        out[split] = ask(kbs[split], kept)
    return out


class FB15kNum(FB15k):
    r"""FB15k-num from the KBLRN paper: :class:`FB15k` with its 483,142 training
    triples, and the 5,156 validation and 6,012 test triples whose relation
    has a numerical feature.

    The paper does not publish these splits. They are the triples whose
    relation has at least one attribute that at least 90 % of the relation's
    training triples have on both sides, and whose two entities both occur in
    training triples. That gives exactly the paper's counts. 141 relations
    qualify in training; the paper's 105 are those of them that occur in the
    test triples.

    Args:
        root (str): Root directory where the data set should be saved.
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
            (default: :obj:`"train"`)
        transform (callable, optional): A transform applied before every
            access. (default: :obj:`None`)
        pre_transform (callable, optional): A transform applied once to each
            split before it is saved. (default: :obj:`None`)
        force_reload (bool, optional): Whether to process the raw files again.
            (default: :obj:`False`)
    """

    counts = COUNTS["FB15k-num"]

    def build(self, paths: dict[str, str]) -> dict[str, HeteroData]:
        return keep_numerical(super().build(paths))


class FB15k237Num(FB15k237):
    r"""FB15k-237-num from the KBLRN paper: :class:`FB15k237` with its 272,115
    training triples, and the 1,058 validation and 1,215 test triples whose
    relation has a numerical feature.

    The definition is that of :class:`FB15kNum`. 38 relations qualify in
    training; the paper's 33 are those of them that occur in the test triples.

    Args:
        root (str): Root directory where the data set should be saved.
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
            (default: :obj:`"train"`)
        transform (callable, optional): A transform applied before every
            access. (default: :obj:`None`)
        pre_transform (callable, optional): A transform applied once to each
            split before it is saved. (default: :obj:`None`)
        force_reload (bool, optional): Whether to process the raw files again.
            (default: :obj:`False`)
    """

    counts = COUNTS["FB15k-237-num"]

    def build(self, paths: dict[str, str]) -> dict[str, HeteroData]:
        return keep_numerical(super().build(paths))
