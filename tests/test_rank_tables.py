"""Tables of ranks: selecting, saving, and telling."""

import json

import numpy as np
import pytest

from kblrn_pyg.data import DataError
from kblrn_pyg.evaluation import (
    Metrics,
    RankTable,
    Report,
    to_json,
    to_markdown,
)


@pytest.fixture
def table():
    return RankTable(
        relations=["born|in", "/people/spouse", "unused"],
        relation=[0, 1, 1, 0, 1, 1],
        side=[0, 0, 0, 1, 1, 1],
        head=[5, 6, 7, 5, 6, 7],
        tail=[1, 2, 3, 1, 2, 3],
        rank=[1, 2.5, 1, 4, 100, 7],
        num_candidates=[1000] * 6,
        num_answers=[1, 1, 2, 1, 3, 1],
    )


def test_select(table):
    assert table.select(relations=["spouse"]).rank.tolist() == [2.5, 1, 100, 7]
    assert table.select(relations=[0], side="head").rank.tolist() == [1]
    assert table.select().rank.tolist() == table.rank.tolist()
    assert table.metrics(table.rank < 3) == Metrics.of([1, 2.5, 1], [1000] * 3)
    assert len(table.select(relations=["unused"])) == 0


@pytest.mark.parametrize("empty", [False, True])
def test_save_and_load(table, tmp_path, empty):
    if empty:
        table = table.select(relations=[])
    path = tmp_path / "results" / "ranks.npz"
    table.save(path)
    table.save(path)  # replaces
    assert [file.name for file in path.parent.iterdir()] == ["ranks.npz"]
    loaded = RankTable.load(path)
    assert loaded.relations == table.relations
    for name, column in table.to_dict().items():
        again = loaded.to_dict()[name]
        assert np.array_equal(again, column), name
        assert np.asarray(again).dtype == np.asarray(column).dtype, name
    assert to_json(loaded) == to_json(table)


def test_failed_save_leaves_the_old_file(table, tmp_path, monkeypatch):
    path = tmp_path / "ranks.npz"
    table.save(path)

    def fail(file, **columns):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(KeyboardInterrupt):
        table.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["ranks.npz"]
    assert RankTable.load(path).rank.tolist() == table.rank.tolist()


def test_files_that_are_no_tables(table, tmp_path):
    path = tmp_path / "ranks.npz"
    with pytest.raises(DataError, match=r"ranks\.npz: no such file"):
        RankTable.load(path)
    table.save(path)
    whole = path.read_bytes()
    for content in (b"", b"words", whole[:100], whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(
            DataError, match=r"ranks\.npz: is damaged or not a rank table"
        ):
            RankTable.load(path)
    np.save(tmp_path / "array.npy", np.zeros(3))
    with pytest.raises(DataError, match=r"array\.npy: is damaged or not a rank table"):
        RankTable.load(tmp_path / "array.npy")
    np.savez(path, rank=np.ones(3))
    with pytest.raises(
        DataError, match=r"ranks\.npz: not a rank table: expected .*side"
    ):
        RankTable.load(path)
    np.savez(path, **(table.to_dict() | {"rank": np.ones(3)}))
    with pytest.raises(DataError, match=r"ranks\.npz: 'rank' must have 6 entries"):
        RankTable.load(path)


def test_damaged_files_are_refused_or_harmless(table, tmp_path):
    path = tmp_path / "ranks.npz"
    table.save(path)
    whole, num_refused = path.read_bytes(), 0
    for i in range(0, len(whole), 2):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 255]) + whole[i + 1 :])
        try:
            assert to_json(RankTable.load(path)) == to_json(table)
        except DataError:
            num_refused += 1
    assert num_refused > len(whole) / 4


def test_report(table):
    report = Report.of(table)
    assert report.overall == table.metrics()
    assert report.by_side == {
        "head": Metrics.of([1, 2.5, 1], [1000] * 3),
        "tail": Metrics.of([4, 100, 7], [1000] * 3),
    }
    assert report.by_answers == {
        "one": Metrics.of([1, 2.5, 4, 7], [1000] * 4),
        "many": Metrics.of([1, 100], [1000] * 2),
    }
    assert list(report.by_relation.items()) == [
        ("/people/spouse", Metrics.of([2.5, 1, 100, 7], [1000] * 4)),
        ("born|in", Metrics.of([1, 4], [1000] * 2)),
    ]


def test_json_is_plain(table):
    content = to_json(table)
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content["by_relation"]["born|in"]["mr"] == 2.5
    assert list(content) == ["overall", "by_side", "by_answers", "by_relation"]
    empty = to_json(table.select(relations=[]))
    assert json.loads(json.dumps(empty, allow_nan=False)) == empty
    assert empty["overall"]["mrr"] is None
    assert empty["by_side"] == empty["by_relation"] == {}


def test_markdown(table):
    text = to_markdown(table)
    lines = text.splitlines()
    cells = {line.split(" | ")[0].strip("| "): line for line in lines}
    assert "born\\|in" in cells
    assert list(cells) == [
        "queries",
        *[lines[1].strip("| "), "all", "(?, r, t)", "(h, r, ?)", "ONE", "MANY"],
        *["", "relation", lines[9].strip("| "), "/people/spouse", "born\\|in"],
    ]
    spouse = [cell.strip() for cell in cells["/people/spouse"].strip("|").split("|")]
    assert spouse[1:] == [
        "4",
        "27.6",
        "0.3882",
        "0.2500",
        "0.5000",
        "0.5000",
        "0.7500",
        "0.0552",
    ]
    assert all(len(line) == len(lines[0]) for line in lines[:7])
    assert "/people/spouse" not in to_markdown(table, max_relations=0)
    short = to_markdown(table, max_relations=1)
    assert "born" not in short
    assert "1 more relations are not listed" in short
    assert "| all     |     0 |  - |" in to_markdown(table.select(relations=[]))
