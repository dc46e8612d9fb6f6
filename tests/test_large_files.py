"""Files read by kernels, or by pyarrow, beside the same files read row by row."""

import csv
import gzip
import os
import random
import sys
from itertools import chain

import numpy as np
import pytest

from kblrn_pyg.data import DataError, delimited, read_kb, read_triples, read_values
from kblrn_pyg.data.header import TRIPLES, VALUES, Columns
from kblrn_pyg.data.triples import first_occurrences

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = "a\tr\tb\nb\tr\tc\nc\tq\ta\n"
NUMBERS = "a\tn\t1\nb\tn\t2.5\na\tm\t-3e2\n"


@pytest.fixture(autouse=True)
def any_file_is_large(monkeypatch):
    monkeypatch.setattr(delimited, "LARGE_BYTES", 0)


def write(path, content):
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def row_by_row(monkeypatch, read):
    with monkeypatch.context() as patch:
        patch.setattr(delimited, "LARGE_BYTES", sys.maxsize)
        return outcome(read)


def outcome(read):
    try:
        found = vars(read())
    except ValueError as error:
        return type(error), str(error)
    return {k: v.tolist() if hasattr(v, "tolist") else v for k, v in found.items()}


def is_large(path, names=TRIPLES, **options):
    return delimited.read_large(path, Columns(names, **options)) is not None


# --- equal to what is read row by row --------------------------------------------

NAMES = ["a", "b", "Ada B.", "Ç", "𝄞", "NA", "null", "1", "", "a" * 30, "h", "r", "t"]
ODD_NAMES = [" a", "b ", "x,y", 'x"y', '"', "\u2028", "\x85", " ", "\xa0", "head"]
NUMERALS = ["1", "-2.5", "1e3", "+4", ".5", "6.", " 7", "8 ", "00"]
ODD_NUMERALS = [
    "0x9",
    "nan",
    "inf",
    "1e999",
    "1e-999",
    "1_0",
    "",
    "١",
    "+-1",
    "1,5",
    "1e",
]
PIECES = [b"\t", b"\n", b"\r", b"\r\n", b",", b'"', b'""', b'","', b"\x00", b"\xff"]
PIECES += [b"\xef\xbb\xbf", b" ", b"\xc2\x85", b"\xed\xa0\x80", b"x", b"1", b"\n\n"]


def random_name(rng, oddness):
    return rng.choice(ODD_NAMES if rng.random() < oddness else NAMES)


def random_field(rng, is_csv, name):
    if is_csv and (rng.random() < 0.2 or "," in name):
        return '"' + name.replace('"', '""') + '"'
    return name


def random_file(rng, is_csv, has_values):
    oddness = rng.choice([0, 0, 0.05])
    mark, end = "," if is_csv else "\t", rng.choice(["\n", "\n", "\r\n"])
    wide = rng.random() < 0.15
    rows = []
    if rng.random() < 0.3:
        header = list(VALUES if has_values else TRIPLES)
        rng.shuffle(header)
        header = rng.choice([header, ["from", "rel", "to"]])
        rows.append(header + ["since"] * wide)
    for _ in range(rng.randint(0, 14)):
        row = [random_name(rng, oddness) or "x" for _ in range(3)]
        if has_values:
            row[2] = rng.choice(ODD_NUMERALS if rng.random() < oddness else NUMERALS)
        rows.append(row + ["1999"] * wide)
    lines = [mark.join(random_field(rng, is_csv, name) for name in row) for row in rows]
    text = end.join(lines) + rng.choice([end, end, ""])
    data = bytearray(rng.choice(["", "", "\ufeff"]).encode() + text.encode())
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        at = rng.randint(0, len(data))
        data[at : at + rng.randint(0, 2)] = rng.choice(PIECES)
    return bytes(data)


@pytest.mark.parametrize("has_values", [False, True])
@pytest.mark.parametrize("kind", ["tsv", "csv", "csv.gz"])
def test_random_files_give_equal_results_or_equal_errors(
    tmp_path, monkeypatch, kind, has_values
):
    rng = random.Random(f"{kind}{has_values}")
    path = tmp_path / f"a.{kind}"
    names = VALUES if has_values else TRIPLES
    num_large = num_errors = 0
    for _ in range(800):
        content = random_file(rng, kind != "tsv", has_values)
        write(path, content)
        options = {"header": rng.choice([None, None, False, True])}
        if rng.random() < 0.2:
            options["columns"] = rng.choice([names, ("from", "rel", "to")])
        given = {"header": options["header"], "given": options.get("columns")}
        if has_values:
            options["strict"] = rng.random() < 0.3
        monkeypatch.setattr(delimited, "READ_BYTES", rng.choice([64, 200, 1 << 20]))

        def read(options=options):
            return (read_values if has_values else read_triples)(path, **options)

        found = outcome(read)
        assert found == row_by_row(monkeypatch, read), (content, options)
        num_large += is_large(path, names, **given)
        num_errors += not isinstance(found, dict)
    assert num_large > 50
    assert num_errors > 50


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.tsv.gz"])
def test_ids_count_names_by_appearance_across_blocks(tmp_path, monkeypatch, name):
    rng = np.random.default_rng(0)
    mark = "," if name == "a.csv" else "\t"
    ids = (rng.random((3000, 3)) ** 3 * [400, 20, 400]).astype(int)
    rows = [(f"e{h}", f"r{r}", f"e{t}") for h, r, t in ids]
    path = write(tmp_path / name, "".join(f"{mark.join(row)}\n" for row in rows))
    monkeypatch.setattr(delimited, "READ_BYTES", 5000)
    assert is_large(path)
    found = read_triples(path)
    assert found.entities == list(
        dict.fromkeys(chain.from_iterable((h, t) for h, _, t in rows))
    )
    assert found.relations == list(dict.fromkeys(r for _, r, _ in rows))
    distinct = list(dict.fromkeys(rows))
    assert found.num_duplicates == len(rows) - len(distinct) > 0
    names = zip(
        (found.entities[i] for i in found.head),
        (found.relations[i] for i in found.rel),
        (found.entities[i] for i in found.tail),
    )
    assert list(names) == distinct
    assert found.head.dtype == found.rel.dtype == found.tail.dtype == np.int64


# --- what kernels read, and what they do not -------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", ROWS),
        ("a.tsv", ROWS.rstrip()),
        ("a.tsv", ROWS.replace("\n", "\r\n")),
        ("a.tsv", "\ufeff" + ROWS),
        ("a.tsv", "relation\ttail\thead\n" + ROWS),
        ("a.tsv", ROWS.replace("b", '"b')),  # quotes are letters
        ("a.tsv", ROWS.replace("b", " b ")),  # spaces as well
        ("a.csv", '"a","r","b, c"\r\n"b, c","r","Ç"\r\n'),
        ("a.csv", 'a,r,"b"\n"b",r,c'),
        ("a.txt.gz", ROWS),
    ],
)
def test_usual_files_are_read_by_kernels(tmp_path, monkeypatch, name, content):
    path = write(tmp_path / name, content)
    assert is_large(path)
    found = outcome(lambda: read_triples(path))
    assert found == row_by_row(monkeypatch, lambda: read_triples(path))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", ROWS + "\n" + ROWS),
        ("a.tsv", ROWS + "a\tr\n"),
        ("a.tsv", ROWS + "a\t \tb\n"),
        ("a.tsv", ROWS + "a\r\tr\tb\n"),
        ("a.tsv", ROWS + "a\tr\tb\0\n"),
        ("a.tsv", ROWS.encode() + b"a\tr\t\xff\n"),
        ("a.tsv", "\ufeff\ufeff" + ROWS),
        ("a.tsv", ""),
        ("a.tsv", "head\trelation\ttail\n"),
        ("a.tsv", "from\trel\tto\n" + ROWS * 2),  # a header?
        ("a.csv", "a, r,b\nb,r,c\n"),
        ("a.csv", 'a,r,"b\nc"\n'),
        ("a.csv", 'a,r,"b"c\n'),
        ("a.csv", 'a,r,"b""c"\n'),
        ("a.csv", 'a,r,b"c\n'),
        ("a.csv", '"a,"b",c",d"\n'),
        ("a.csv", '",a"b,r,"c"\n'),
        ("a.csv", 'a,r,"b'),
        ("a.csv", "a,r,b" + "c" * csv.field_size_limit()),
    ],
)
def test_unusual_files_are_read_row_by_row(tmp_path, monkeypatch, name, content):
    path = write(tmp_path / name, content)
    assert not is_large(path)
    found = outcome(lambda: read_triples(path))
    assert found == row_by_row(monkeypatch, lambda: read_triples(path))


def test_further_columns_may_be_anything_that_can_be_split(tmp_path, monkeypatch):
    columns = ("from", "rel", "to")
    path = write(tmp_path / "a.csv", "to,x,from,rel\nb,,a,r\nc, y ,b,r\n")
    assert is_large(path, given=columns)
    found = outcome(lambda: read_triples(path, columns=columns))
    assert found["entities"] == ["a", "b", "c"]
    write(path, 'to,x,from,rel\n"b","y, z",a,"r"\nc,Ç,b,r\n')
    assert is_large(path, given=columns)
    assert read_triples(path, columns=columns).entities == ["a", "b", "c"]
    for further in (b'"y"z', b"\xff", b"y" * 200_000):
        write(path, b"to,x,from,rel\nb," + further + b",a,r\n")
        assert not is_large(path, given=columns)


def test_a_mark_that_begins_a_later_block_belongs_to_its_name(tmp_path, monkeypatch):
    lines = [f"e{i:04}\tr\te{i + 1:04}\n" for i in range(9)]
    path = write(tmp_path / "a.tsv", "".join(lines[:4]) + "\ufeff" + "".join(lines[4:]))
    monkeypatch.setattr(delimited, "READ_BYTES", len("".join(lines[:4])))
    assert "\ufeffe0004" in read_triples(path).entities


def test_numbers_are_those_of_python(tmp_path, monkeypatch):
    rng = random.Random(0)
    texts = [
        repr(rng.uniform(-1, 1) * 10 ** rng.randint(-310, 300)) for _ in range(500)
    ]
    texts += ["5e-324", "1.7976931348623157e308", "9007199254740993", "-0", "+1", " 2"]
    rows = (f"e{i}\tn\t{text}\n" for i, text in enumerate(texts))
    path = write(tmp_path / "v.tsv", "".join(rows))
    assert is_large(path, VALUES)
    assert list(map(repr, read_values(path).value.tolist())) == [
        repr(float(text)) for text in texts
    ]


def test_a_repeated_value_is_told_with_its_line(tmp_path):
    path = write(tmp_path / "v.tsv", "entity\tattribute\tvalue\n" + NUMBERS * 2)
    assert is_large(path, VALUES)
    with pytest.raises(DataError, match=r"v\.tsv:5: a second .* is in line 2\)"):
        read_values(path, strict=True)
    assert read_values(path).num_averaged == 3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_are_not_read_twice(tmp_path):
    os.mkfifo(tmp_path / "a.tsv")
    assert not is_large(tmp_path / "a.tsv")  # would wait for a writer


def test_small_files_do_without_kernels(tmp_path, monkeypatch):
    path = write(tmp_path / "a.tsv", ROWS)
    monkeypatch.setattr(delimited, "LARGE_BYTES", len(ROWS) + 1)
    assert not is_large(path)


def test_everything_but_parquet_works_without_pyarrow(tmp_path, monkeypatch):
    path = write(tmp_path / "a.tsv", ROWS)
    found = outcome(lambda: read_triples(path))
    pq.write_table(pa.table({"head": ["a"]}), tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert is_large(path)
    assert outcome(lambda: read_triples(path)) == found
    with pytest.raises(ImportError, match=r"pip install 'kblrn_pyg\[arrow\]'"):
        read_triples(tmp_path / "a.parquet")


# --- Parquet ---------------------------------------------------------------------


def write_parquet(path, **columns):
    pq.write_table(pa.table(columns), path, row_group_size=2)
    return path


@pytest.mark.parametrize(
    "as_type", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
def test_parquet_gives_the_same_triples(tmp_path, as_type):
    rows = [line.split("\t") for line in ROWS.splitlines()]
    head, relation, tail = (pa.array(names).cast(as_type) for names in zip(*rows))
    columns = {"Tail": tail, "weight": pa.array([1.0] * 3), "head": head}
    path = write_parquet(tmp_path / "a.parquet", **columns, relation=relation)
    found = outcome(lambda: read_triples(path))
    assert found == outcome(lambda: read_triples(rows))
    given = outcome(lambda: read_triples(path, columns=("tail", "relation", "head")))
    assert given == outcome(lambda: read_triples([row[::-1] for row in rows]))
    kbs, _ = read_kb(path)
    assert kbs["train"]["entity"].name == found["entities"]


def test_parquet_of_integers_and_numbers(tmp_path):
    path = write_parquet(
        tmp_path / "a.parquet", head=[2, 1], relation=["r", "r"], tail=[1, 3]
    )
    assert read_triples(path).entities == ["2", "1", "3"]
    names = {"entity": ["a", "b", "a"], "attribute": ["n", "n", "n"]}
    for values in ([1, 2, 3], [1.5, 2.0, 3.0]):
        write_parquet(path, **names, value=values)
        assert read_values(path, average=False).value.tolist() == values
    with pytest.raises(DataError, match=r"a\.parquet:3: a second value of 'n' for 'a'"):
        read_values(path, strict=True)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"tail": ["a", None, "b"]}, r"a\.parquet:2: the tail is empty"),
        ({"tail": ["a", "b", " "]}, r"a\.parquet:3: the tail is empty"),
        ({"relation": ["", "b", "a"]}, r"a\.parquet:1: the relation is empty"),
        ({"tail": [1.5, 2.5, 3.5]}, "the type of the tail is double, expected strings"),
        ({"tail": [["a"]] * 3}, "the type of the tail is list"),
    ],
)
def test_bad_triples_in_parquet(tmp_path, columns, message):
    usual = {name: ["a", "b", "c"] for name in TRIPLES}
    path = write_parquet(tmp_path / "a.parquet", **{**usual, **columns})
    with pytest.raises(DataError, match=message):
        read_triples(path)


def test_names_in_parquet_that_are_not_utf8(tmp_path):
    """What pyarrow raises about the names of cells and of columns is not its own."""
    path = tmp_path / "a.parquet"
    write_parquet(path, head=["some name"], relation=["r"], tail=["b"])
    raw = path.read_bytes()
    offsets, content = (pa.py_buffer(one) for one in (b"\0\0\0\0\2\0\0\0", b"\xff\xfe"))
    cell = pa.Array.from_buffers(pa.string(), 1, [None, offsets, content])
    columns = {"head": cell, "relation": ["r"], "tail": ["b"]}
    for write in (
        lambda: path.write_bytes(raw.replace(b"relation", b"\xe4elation")),
        lambda: pq.write_table(pa.table(columns), path),
    ):
        write()
        with pytest.raises(DataError, match=r"a\.parquet:1: broken Parquet: .*utf-8"):
            read_triples(path)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 2.0, float("inf")], r"a\.parquet:3: the value is not a finite number"),
        (["1", "2", "3"], "the type of the value is string, expected numbers"),
    ],
)
def test_bad_values_in_parquet(tmp_path, values, message):
    names = {"entity": ["a", "b", "c"], "attribute": ["n", "n", "n"]}
    path = write_parquet(tmp_path / "a.parquet", **names, value=values)
    with pytest.raises(DataError, match=message):
        read_values(path)


def test_files_that_are_no_triples_in_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    with pytest.raises(DataError, match=r"a\.parquet: no such file"):
        read_triples(path)
    write(path, ROWS)
    with pytest.raises(DataError, match=r"a\.parquet:1: broken Parquet: ") as caught:
        read_triples(path)
    assert "\n" not in str(caught.value)
    write_parquet(path, a=["x"], b=["y"], c=["z"])
    with pytest.raises(DataError, match="the columns are a, b, c, expected head, rel"):
        read_triples(path)
    assert read_triples(path, columns=("a", "b", "c")).relations == ["y"]
    write_parquet(path, **{name: pa.array([], pa.string()) for name in TRIPLES})
    with pytest.raises(DataError, match=r"a\.parquet:1: the file is empty"):
        read_triples(path)


# --- repeated rows ---------------------------------------------------------------


@pytest.mark.parametrize("scale", [1, 10**17])  # the larger fills more than 64 bits
def test_first_occurrences(scale):
    rng = np.random.default_rng(0)
    for size in (0, 1, 50, 300):
        major, minor = rng.integers(0, 8, size) * scale, rng.integers(0, 5, size) * 100
        first = {}
        for place, pair in enumerate(zip(major.tolist(), minor.tolist())):
            first.setdefault(pair, place)
        assert first_occurrences(major, minor).tolist() == list(first.values())
        distinct = np.arange(size)
        assert first_occurrences(distinct * scale // 300, distinct).tolist() == list(
            range(size)
        )


def test_splits_and_numbers_share_the_names_of_large_files(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    sources = {}
    for split, size in (("train", 500), ("valid", 40), ("test", 40)):
        rows = rng.integers(0, [30, 2, 30], (size, 3)) + [split == "test", 0, 0]
        text = "".join(f"e{h}\tr{r}\te{t}\n" for h, r, t in rows.tolist())
        sources[split] = write(tmp_path / f"{split}.tsv", text)
    numbers = "".join(f"e{i}\tn{i % 2}\t{i / 7}\n" for i in range(20, 50))
    sources["numerical"] = write(tmp_path / "n.tsv", numbers + "e20\tn0\t3\n")

    def read():
        kbs, report = read_kb(**sources)
        assert kbs["train"]["entity"].name is kbs["val"]["entity"].name
        train = kbs["train"].to_dict(), kbs["test"].to_dict()
        return str(train), report

    found = read()
    assert found[1].num_foreign_values > 0
    assert found[1].num_averaged == 1
    assert found[1].num_in_training["val"] > 0
    monkeypatch.setattr(delimited, "LARGE_BYTES", sys.maxsize)
    assert read() == found
