"""Tables of many names, and the kernels behind them."""

import random

import numpy as np
import pytest

from kblrn_pyg.data import build_kb, read_triples
from kblrn_pyg.data.table import NameTable
from kblrn_pyg.data.triples import Index
from kblrn_pyg.kernels import fields as kernels

NAMES = ["", "a", "b", "ab", "Ç", "𝄞", "\ud800", "\0", "\n", "12345678", "x12345678"]
NAMES += ["y12345678", "yx12345678", "a" * 300, "b" + "a" * 299]


def test_ids_are_those_of_an_index():
    rng = random.Random(0)
    table, index = NameTable(), Index()
    for size in (0, 1, 10, 3000, 20_000):
        names = [rng.choice(NAMES) + str(rng.randrange(9)) for _ in range(size // 2)]
        names += [f"e{rng.randrange(2 * size)}" for _ in range(size - size // 2)]
        rng.shuffle(names)
        assert table.find(names).tolist() == index.find(names).tolist()
        assert table.ids(names).tolist() == index.ids(names).tolist()
        assert table.find(names).tolist() == index.find(names).tolist()
        assert table == index.tolist()
        assert len(table) == len(index)
    assert table.find(["new", names[0]])[0] == -1
    assert table.ids(names).dtype == table.find(names).dtype == np.int64


def test_a_table_is_a_sequence():
    table = NameTable()
    assert list(table) == []
    assert table.ids(NAMES).tolist() == list(range(len(NAMES)))
    assert [table[i] for i in range(len(NAMES))] == NAMES == table.tolist()
    assert (table[-1], table[2:4]) == (NAMES[-1], NAMES[2:4])
    assert "ab" in table
    assert "abc" not in table
    assert 7 not in table
    assert table == NAMES
    assert table != NAMES[1:]
    assert (table == 7) is False
    with pytest.raises(IndexError):
        table[len(NAMES)]
    assert repr(table) == f"NameTable({len(NAMES)})"


def test_names_of_all_letters():
    table, names = NameTable(), ["".join(map(chr, range(200))), "a"]
    table.ids(names)
    assert table.tolist() == names


def test_copies_do_not_see_what_others_add():
    table = NameTable()
    table.ids(["a", "b"])
    twin, other = table.copy(), NameTable()
    assert other.ids(table).tolist() == [0, 1]
    assert twin.ids(["b", "c"]).tolist() == [1, 2]
    assert table.ids(["d", "b"]).tolist() == [2, 1]
    assert other.find(["c", "d"]).tolist() == [-1, -1]
    assert (list(table), list(twin), list(other)) == (
        ["a", "b", "d"],
        ["a", "b", "c"],
        ["a", "b"],
    )
    assert other.ids(twin).tolist() == [0, 1, 2]
    assert other.find(table).tolist() == [0, 1, -1]


def test_equal_hashes_are_not_equal_names():
    """Whatever the hash says, names are compared letter by letter."""
    names = ["a12345678", "b12345678", "x", "y", "b12345678", "12345678", "a12345678"]
    text = np.frombuffer("".join(names).encode(), np.uint8)
    end = np.cumsum([len(name) for name in names])
    begin = end - [len(name) for name in names]
    digest, ending = np.zeros((2, 1, len(names)), np.uint64)
    fields = kernels.Fields(begin[None], end[None], digest, ending)
    kernels.digest_fields(text, fields)
    assert len(set(digest[0].tolist())) == 5
    digest[:] = 7
    table = NameTable()
    for _ in range(2):
        ids = table.number(text, fields, [0])
        assert ids.tolist() == [[0, 1, 2, 3, 1, 4, 0]]
    assert list(table) == ["a12345678", "b12345678", "x", "y", "12345678"]


def test_tables_and_lists_of_names_make_the_same_knowledge_base(tmp_path):
    first = [("a", "r", "b"), ("b", "q", "c")]
    second = [("d", "r", "a"), ("c", "s", "b")]
    splits = {"train": read_triples(first), "val": read_triples(second)}
    wanted, report = build_kb(splits)
    for split in ("train", "val"):
        triples = splits[split]
        table = NameTable()
        table.ids(list(triples.entities))
        tables = {
            **splits,
            split: type(triples)(**{**vars(triples), "entities": table}),
        }
        found, other = build_kb(tables)
        assert found["val"]["entity"].name == wanted["val"]["entity"].name
        assert isinstance(found["val"]["entity"].name, list)
        assert str(found["val"]) == str(wanted["val"])
        assert other == report
        assert len(table) == len(triples.entities)  # nothing was added
