"""The machinery of the data sets, on files made up here."""

import hashlib

import pytest
import torch
from torch_geometric.transforms import ToDevice

from kblrn_pyg.data import DataError, flat_triples, read_kb
from kblrn_pyg.data.store import save_splits
from kblrn_pyg.datasets import Families, LocalKB, load_dataset, write_local_kb
from kblrn_pyg.datasets.base import Counts, KBDataset
from kblrn_pyg.datasets.files import RawFile
from kblrn_pyg.datasets.names import splits_path

TEXTS = {
    "train.txt": "a\tr\tb\nb\tr\tc\n",
    "valid.txt": "a\tr\tc\n",
    "test.txt": "c\tr\ta\n",
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The public home of a small data set, and a class that knows it."""
    monkeypatch.delenv("KBLRN_DATA", raising=False)
    directory = tmp_path / "home"
    directory.mkdir()
    for name, text in TEXTS.items():
        (directory / name).write_text(text)

    class Small(KBDataset):
        counts = Counts(3, 1, 2, 1, 1)
        files = tuple(
            RawFile(
                f"Small/{name}",
                (directory / name).as_uri(),
                hashlib.sha256(text.encode()).hexdigest(),
            )
            for name, text in TEXTS.items()
        )

        def build(self, paths):
            kbs, _ = read_kb(paths["train.txt"], paths["valid.txt"], paths["test.txt"])
            return kbs

    return directory, Small


def test_download_process_and_load(home, tmp_path):
    directory, small = home
    for split, asked in (("train", 2), ("val", 1), ("test", 1)):
        data = small(tmp_path / "root", split)[0]
        assert flat_triples(data, "edge_label_index")[0].numel() == asked
        assert flat_triples(data)[0].numel() == 2
    assert sorted(p.name for p in (tmp_path / "root" / "raw").iterdir()) == sorted(
        TEXTS
    )
    for path in [*directory.iterdir(), *(tmp_path / "root" / "raw").iterdir()]:
        path.unlink()
    assert repr(small(tmp_path / "root", "val")) == "Small('val')"
    with pytest.raises(ValueError, match=r"'split' must be one of .* \(got 'valid'\)"):
        small(tmp_path / "root", "valid")


def test_data_directory_comes_first(home, tmp_path, monkeypatch):
    directory, small = home
    (tmp_path / "data").mkdir()
    directory.rename(tmp_path / "data" / "Small")
    monkeypatch.setenv("KBLRN_DATA", str(tmp_path / "data"))
    assert len(small(tmp_path / "root")) == 1
    assert not (tmp_path / "root" / "raw").exists()


def test_wrong_checksum_leaves_nothing_and_says_what_to_do(home, tmp_path):
    directory, small = home
    (directory / "valid.txt").write_text("a\tr\td\n")
    with pytest.raises(DataError) as caught:
        small(tmp_path / "root")
    message = str(caught.value)
    assert "valid.txt has the sha256" in message
    assert small.files[1].sha256 in message
    assert "try again" in message
    assert [p.name for p in (tmp_path / "root" / "raw").iterdir()] == ["train.txt"]


def test_missing_file_names_the_way_out(home, tmp_path):
    directory, small = home
    (directory / "test.txt").unlink()
    with pytest.raises(
        DataError, match=r"cannot download .* \$KBLRN_DATA/Small/test.txt"
    ):
        small(tmp_path / "root")
    assert "test.txt" not in {p.name for p in (tmp_path / "root" / "raw").iterdir()}


def test_interrupted_download_leaves_nothing(home, tmp_path, monkeypatch):
    _, small = home

    def interrupt(self, path, advice=""):
        raise KeyboardInterrupt

    monkeypatch.setattr(RawFile, "verify", interrupt)
    with pytest.raises(KeyboardInterrupt):
        small(tmp_path / "root")
    assert list((tmp_path / "root" / "raw").iterdir()) == []


def test_raw_file_that_changed_is_refused(home, tmp_path):
    _, small = home
    small(tmp_path / "root")
    (tmp_path / "root" / "raw" / "train.txt").write_text("a\tr\tb\n")
    small(tmp_path / "root")  # processed already
    with pytest.raises(DataError, match=r"train.txt has the sha256"):
        small(tmp_path / "root", force_reload=True)


def test_files_of_older_versions_are_made_again(home, tmp_path):
    _, small = home
    wanted = small(tmp_path / "root", "val")[0]
    processed = tmp_path / "root" / "processed"
    (processed / "splits.kb").rename(processed / "train.kb")
    found = small(tmp_path / "root", "val")[0]
    assert found.to_dict().keys() == wanted.to_dict().keys()
    assert (processed / "splits.kb").exists()


def test_wrong_counts_are_refused(home, tmp_path, monkeypatch):
    _, small = home
    monkeypatch.setattr(small, "counts", Counts(3, 1, 2, 1, 7))
    with pytest.raises(DataError, match="Small has 1 test, expected 7"):
        small(tmp_path / "root")
    assert not list((tmp_path / "root" / "processed").glob("*.kb"))


def test_transforms_are_applied(home, tmp_path):
    _, small = home
    calls = []

    def mark(data):
        calls.append(1)
        data.mark = len(calls)
        return data

    first = small(tmp_path / "root", "test", pre_transform=mark)
    assert len(calls) == 3
    assert first[0].mark == 3
    again = small(tmp_path / "root", "test", transform=ToDevice("cpu"))
    assert again[0].mark == 3


def test_embedded_data_set(tmp_path):
    for split in ("train", "val", "test"):
        data = Families(split=split)[0]
        names = set(data["entity"].name)
        assert len(names) == data["entity"].num_nodes
    assert {"birth_year", "latitude", "longitude", "population", "height"} <= set(
        data.attribute_names
    )
    assert repr(Families(split="val")) == "Families('val')"
    marked = Families(pre_transform=lambda data: setattr(data, "mark", 1) or data)
    assert marked[0].mark == 1
    with pytest.raises(ValueError, match="'split' must be one of"):
        Families(split="valid")


def test_local_knowledge_base(tmp_path):
    kbs, report = read_kb([("a", "r", "b")], [("b", "r", "a")], [("a", "r", "a")])
    root = tmp_path / "mine"
    write_local_kb(root, kbs, report)
    loaded = load_dataset(str(root))
    assert loaded.keys() == kbs.keys()
    assert torch.equal(
        flat_triples(loaded["val"], "edge_label_index")[0],
        flat_triples(kbs["val"], "edge_label_index")[0],
    )
    with pytest.raises(DataError, match="already exists"):
        write_local_kb(root, kbs)
    (root / "processed" / "splits.kb").unlink()
    with pytest.raises(DataError, match="the data set is missing, import it anew"):
        load_dataset(str(root))
    (root / "processed" / "train.kb").touch()
    with pytest.raises(DataError, match="data set was imported by an older version"):
        load_dataset(str(root))
    with pytest.raises(DataError, match="no such directory"):
        LocalKB(tmp_path / "none")
    with pytest.raises(ValueError, match="'split' must be one of"):
        LocalKB(root, "valid")


def test_splits_that_are_missing_ask_nothing(tmp_path):
    kbs, _ = read_kb([("a", "r", "b")])
    write_local_kb(tmp_path / "mine", kbs)
    assert LocalKB(tmp_path / "mine")[0]["entity"].name == ["a", "b"]
    splits = load_dataset(str(tmp_path / "mine"))
    asked = [
        splits[split]["entity", "r", "entity"].edge_label_index for split in splits
    ]
    assert [index.size(1) for index in asked] == [1, 0, 0]
    save_splits(kbs, splits_path(tmp_path / "mine"))  # by another version
    with pytest.raises(DataError, match="the val split is missing, import it anew"):
        load_dataset(str(tmp_path / "mine"))


def test_splits_share_all_but_their_questions(tmp_path):
    rows = [(f"e{i}", f"r{i % 3}", f"e{i + 1}") for i in range(200)]
    kbs, _ = read_kb(rows[4:], rows[:2], rows[2:4], [("e7", "n", 1.5)], 1)
    write_local_kb(tmp_path / "mine", kbs)
    loaded = load_dataset(str(tmp_path / "mine"))
    train = loaded["train"]
    for split, kb in loaded.items():
        assert kb["entity"].name is train["entity"].name
        assert kb["entity"].x is train["entity"].x
        for edge_type in kb.edge_types:
            assert kb[edge_type].edge_index is train[edge_type].edge_index
            asked = kb[edge_type].edge_label_index
            assert torch.equal(asked, kbs[split][edge_type].edge_label_index)
    assert train["entity"].name == kbs["train"]["entity"].name


def test_local_knowledge_base_is_never_half_written(tmp_path):
    kbs, _ = read_kb([("a", "r", "b")], [("b", "r", "a")])
    kbs["val"]["entity"].num_nodes = 7
    with pytest.raises(DataError, match="not a knowledge base: "):
        write_local_kb(tmp_path / "mine", kbs)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_with_the_name_of_a_data_set(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kbs, _ = read_kb([("a", "r", "b")], [("b", "r", "a")], [("a", "r", "a")])
    write_local_kb("families", kbs)
    with pytest.raises(DataError, match=r"'\./families' for the directory"):
        load_dataset("families")
    assert load_dataset("./families")["train"]["entity"].num_nodes == 2
    (tmp_path / "Families" / "raw").mkdir(parents=True)  # no imported data set
    assert load_dataset("Families")["train"]["entity"].num_nodes == 2232


def test_unknown_data_set():
    with pytest.raises(
        DataError, match="unknown data set 'FB16k', expected one of Fam"
    ):
        load_dataset("FB16k")
