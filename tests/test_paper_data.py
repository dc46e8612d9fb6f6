"""The six data sets of the paper, from their raw files."""

import os
from pathlib import Path

import pytest
import torch
from torch_geometric.datasets import FB15k_237

from kblrn_pyg.data import Vocabulary, flat_triples, kb_statistics, numerical_features

pytestmark = pytest.mark.data

# The paper's Table 1: entities, relations, train, valid, test.
TABLE_1 = {
    "FB15k": (14951, 1345, 483142, 50000, 59071),
    "FB15k-num": (14951, 1345, 483142, 5156, 6012),
    "FB15k-237": (14541, 237, 272115, 17535, 20466),
    "FB15k-237-num": (14541, 237, 272115, 1058, 1215),
    "WN18": (40943, 18, 141442, 5000, 5000),
    "FB122": (9738, 122, 91638, 9595, 11243),
}


@pytest.mark.parametrize("name", TABLE_1)
def test_table_1(paper_data, name):
    counts = kb_statistics(paper_data(name))
    found = (counts.num_entities, counts.num_relations)
    found += tuple(counts.num_triples[split] for split in ("train", "val", "test"))
    assert found == TABLE_1[name]


def test_numbers_of_fb15k(paper_data):
    counts = kb_statistics(paper_data("FB15k"))
    assert counts.num_attributes == 116
    assert counts.num_values == 29395
    assert counts.num_entities_with_numbers == 12493


@pytest.mark.parametrize(
    ("name", "in_training", "in_test"),
    [("FB15k-num", 141, 105), ("FB15k-237-num", 38, 33)],
)
def test_numerical_relations(paper_data, name, in_training, in_test):
    kbs = paper_data(name)
    qualifying = numerical_features(kbs["train"]).relations
    assert qualifying.numel() == in_training
    asked = flat_triples(kbs["test"], "edge_label_index")[1].unique()
    assert asked.numel() == in_test
    assert torch.isin(asked, qualifying).all()


def test_ids_agree_with_pyg(paper_data, tmp_path):
    (tmp_path / "raw").mkdir()
    for name in ("train.txt", "valid.txt", "test.txt"):
        source = Path(os.environ["KBLRN_DATA"], "FB15k-237", name).resolve()
        (tmp_path / "raw" / name).symlink_to(source)
    for split in ("train", "val", "test"):
        theirs = FB15k_237(str(tmp_path), split)[0]
        head, rel, tail = flat_triples(
            paper_data("FB15k-237")[split], "edge_label_index"
        )
        order = theirs.edge_type.argsort(stable=True)
        assert torch.equal(theirs.edge_index[:, order], torch.stack([head, tail]))
        assert torch.equal(theirs.edge_type[order], rel)


@pytest.mark.parametrize("name", ["WN18", "FB122"])
def test_parts_of_the_test_set_are_the_published_ones(paper_data, name):
    """The published parts are exactly what the rules can and cannot infer."""
    kbs = paper_data(name)
    names = Vocabulary.of(kbs["train"])
    for split, file in (("test-I", "testI.txt"), ("test-II", "testII.txt")):
        published = Path(os.environ["KBLRN_DATA"], name, file).read_text(
            encoding="utf-8"
        )
        expected = {tuple(line.split("\t")) for line in published.splitlines()}
        ids = zip(
            *(index.tolist() for index in flat_triples(kbs[split], "edge_label_index"))
        )
        entity, relation = names.entities.identifiers, names.relations.identifiers
        assert {(entity[h], relation[r], entity[t]) for h, r, t in ids} == expected


@pytest.mark.parametrize(("name", "number"), [("WN18", 14), ("FB122", 47)])
def test_rules_come_along(paper_data, name, number):
    assert len(paper_data(name)["test"].rule_lines) == number


def test_names_to_read(paper_data):
    names = Vocabulary.of(paper_data("FB15k")["train"])
    assert names.entities[names.entities.resolve("/m/010016")] == "Denton"
    assert names.relations.resolve("/people/person/children") >= 0
    assert names.attributes.resolve("date_of_birth") >= 0
