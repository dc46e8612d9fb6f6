import gzip

import numpy as np
import pytest

from kblrn_pyg.data import DataError, read_kb, read_triples, read_values
from kblrn_pyg.data import rows as rows_module

TRIPLES = [("Ada", "spouse", "Ben"), ("Ben", "knows", "Cy"), ("Ada", "knows", "Cy")]


def names_of(triples):
    return [
        (triples.entities[h], triples.relations[r], triples.entities[t])
        for h, r, t in zip(triples.head, triples.rel, triples.tail)
    ]


def write(path, content):
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "Ada\tspouse\tBen\nBen\tknows\tCy\nAda\tknows\tCy\n"),
        ("a.txt", "Ada\tspouse\tBen\nBen\tknows\tCy\nAda\tknows\tCy"),
        ("a.tsv", "Ada\tspouse\tBen\r\nBen\tknows\tCy\r\n\r\nAda\tknows\tCy\r\n"),
        ("a.tsv", "\ufeffAda\tspouse\tBen\nBen\tknows\tCy\nAda\tknows\tCy\n"),
        ("a.tsv.gz", "Ada\tspouse\tBen\nBen\tknows\tCy\nAda\tknows\tCy\n"),
        (
            "a.tsv",
            "head\trelation\ttail\nAda\tspouse\tBen\nBen\tknows\tCy\nAda\tknows\tCy",
        ),
        ("a.csv", "Ada,spouse,Ben\nBen,knows,Cy\nAda,knows,Cy\n"),
        (
            "a.csv",
            'Head, Relation, Tail\n"Ada", spouse, "Ben"\nBen,knows,Cy\nAda,knows,Cy',
        ),
        ("a.csv.gz", "\ufeffAda,spouse,Ben\r\nBen,knows,Cy\r\n\r\nAda,knows,Cy\r\n"),
    ],
)
def test_files_of_every_kind_give_the_same_triples(tmp_path, name, content):
    assert names_of(read_triples(write(tmp_path / name, content))) == TRIPLES


def test_tuples_and_frames_give_the_same_triples():
    pd = pytest.importorskip("pandas")
    named = pd.DataFrame(TRIPLES, columns=["head", "relation", "tail"])
    named["weight"] = 1.0
    unnamed = pd.DataFrame(TRIPLES)
    for source in (
        TRIPLES,
        iter(TRIPLES),
        named[["tail", "head", "relation"]],
        unnamed,
    ):
        assert names_of(read_triples(source)) == TRIPLES
    with pytest.raises(DataError, match=r"columns a, b, expected head, relation, tail"):
        read_triples(pd.DataFrame({"a": ["x"], "b": ["y"]}))


def test_quoted_fields_may_hold_commas_quotes_and_newlines(tmp_path):
    path = write(tmp_path / "a.csv", '"Doe, ""Jo""",knows,"two\nlines"\nx,y,\n')
    with pytest.raises(DataError, match=r"a\.csv:3: the tail is empty"):
        read_triples(path)
    path = write(tmp_path / "b.csv", '"Doe, ""Jo""",knows,"two\nlines"\nx,y,z\n')
    assert read_triples(path).entities == ['Doe, "Jo"', "two\nlines", "x", "z"]


def test_ids_count_names_by_appearance():
    triples = read_triples([("b", "r", "a"), ("c", "q", "b"), ("a", "r", "d")])
    assert triples.entities == ["b", "a", "c", "d"]
    assert triples.relations == ["r", "q"]
    np.testing.assert_array_equal(triples.head, [0, 2, 1])
    assert triples.head.dtype == np.int64


def test_duplicates_are_dropped_and_counted():
    triples = read_triples([*TRIPLES, TRIPLES[1], TRIPLES[0], ("Ben", "spouse", "Ada")])
    assert triples.num_duplicates == 2
    assert names_of(triples) == [*TRIPLES, ("Ben", "spouse", "Ada")]


def test_blocks_change_nothing(tmp_path, monkeypatch):
    lines = [f"e{i % 7}\tr{i % 3}\te{i}" for i in range(200)]
    tsv = write(tmp_path / "a.tsv", "\n".join(lines))
    csv = write(tmp_path / "a.csv", "\n".join(lines).replace("\t", ","))
    whole = read_triples(tsv)
    monkeypatch.setattr(rows_module, "BLOCK_BYTES", 64)
    for parts in (read_triples(tsv), read_triples(csv)):
        assert names_of(parts) == names_of(whole)
        assert parts.entities == whole.entities
    write(tsv, "\n".join([*lines, "only one column"]))
    with pytest.raises(DataError, match=r"a\.tsv:201: 1 column"):
        read_triples(tsv)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.tsv",
            "a\tb\tc\nd\te\n",
            r"a\.tsv:2: 2 columns, expected 3: head, relation",
        ),
        ("a.tsv", "a\tb\tc\n\nd\te\tf\tg\n", r"a\.tsv:3: 4 columns"),
        ("a.tsv", "a b c\n", r"a\.tsv:1: 1 column,"),
        ("a.tsv", "a\tb\tc\nd\t\tf\n", r"a\.tsv:2: the relation is empty"),
        ("a.tsv", "a\tb\tc\nd\te\t \n", r"a\.tsv:2: the tail is empty"),
        ("a.tsv", b"a\tb\tc\n\xff\xfe\te\tf\n", r"a\.tsv:2: byte 0xff at column 1"),
        ("a.tsv", b"a\tb\tc\nd\te\t\xc3", r"a\.tsv:2: byte 0xc3 at column 5"),
        ("a.tsv", "", r"a\.tsv:1: the file is empty, expected 3"),
        ("a.tsv", "\n\n", r"a\.tsv:1: the file is empty"),
        ("a.tsv", "head\trelation\ttail\n", r"a\.tsv:1: the file is empty"),
        ("a.csv", "a,b\n", r"a\.csv:1: 2 columns"),
        ("a.csv", 'a,b,c\n"d,e,f\n', r"a\.csv:2: broken CSV"),
        ("a.csv", b"a,b,c\nd,e,\x80\n", r"a\.csv:2: byte 0x80"),
        ("a.csv", "", r"a\.csv:1: the file is empty"),
    ],
)
def test_bad_files_get_one_line(tmp_path, name, content, message):
    with pytest.raises(DataError, match=message) as caught:
        read_triples(write(tmp_path / name, content))
    assert "\n" not in str(caught.value)
    assert caught.value.line is not None


def test_files_that_are_not_there_or_broken(tmp_path):
    with pytest.raises(DataError, match=r"none\.tsv: no such file"):
        read_triples(tmp_path / "none.tsv")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        read_triples(tmp_path)
    path = write(tmp_path / "a.tsv.gz", "a\tb\tc\n" * 1000)
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(DataError, match=r"a\.tsv\.gz:1: broken gzip data"):
        read_triples(path)
    (tmp_path / "b.tsv.gz").write_text("a\tb\tc\n")
    with pytest.raises(DataError, match=r"b\.tsv\.gz:1: broken gzip data"):
        read_triples(tmp_path / "b.tsv.gz")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "b", "c"), ("a", "b")], r"row:2: got \('a', 'b'\), expected 3"),
        ([("a", "b", None)], "row:1: the tail is empty"),
        ([("a", float("nan"), "c")], "row:1: the relation is empty"),
        (["abc"], "row:1: got 'abc'"),
        ([], "there are no rows"),
    ],
)
def test_bad_tuples_get_one_line(rows, message):
    with pytest.raises(DataError, match=message):
        read_triples(rows)


def test_values(tmp_path):
    text = "entity,attribute,value\nAda,born,1950\nBen,born,1e3\nAda,height, 1.5\n"
    values = read_values(write(tmp_path / "v.csv", text))
    assert values.entities == ["Ada", "Ben"]
    assert values.attributes == ["born", "height"]
    np.testing.assert_array_equal(values.value, [1950, 1000, 1.5])


@pytest.mark.parametrize("value", ["x", "inf", "-Infinity", "1_000", "1,5", "1/2"])
def test_values_that_are_no_finite_numbers(tmp_path, value):
    path = write(tmp_path / "v.tsv", f"Ada\tborn\t1950\nBen\tborn\t{value}\n")
    with pytest.raises(DataError, match=r"v\.tsv:2: the value"):
        read_values(path)


def test_repeated_values_are_averaged_or_refused(tmp_path):
    path = write(
        tmp_path / "v.tsv",
        "Ada\tborn\t1950\nBen\tborn\t1\nAda\tborn\t1953\nAda\tborn\t1\n",
    )
    values = read_values(path)
    found = {
        (values.entities[e], values.attributes[a]): v
        for e, a, v in zip(values.entity, values.attribute, values.value)
    }
    assert found == {("Ada", "born"): (1950 + 1953 + 1) / 3, ("Ben", "born"): 1}
    assert values.num_averaged == 2
    with pytest.raises(
        DataError, match=r"v\.tsv:3: a second value of 'born' for 'Ada'"
    ):
        read_values(path, strict=True)


def test_report_of_a_whole_knowledge_base():
    kbs, report = read_kb(
        train=[*TRIPLES, TRIPLES[0]],
        valid=[("Ada", "spouse", "Zoe"), TRIPLES[1]],
        test=[("Cy", "likes", "Ada")],
        numerical=[("Ada", "born", 1), ("Ben", "born", 2), ("Xi", "born", 3)]
        + [("Ada", "rare", 1)],
        min_entities=2,
    )
    assert report.num_triples == {"train": 3, "val": 2, "test": 1}
    assert report.num_duplicates == {"train": 1, "val": 0, "test": 0}
    assert report.num_unseen == {"val": 1, "test": 1}
    assert report.num_in_training == {"val": 1, "test": 0}
    assert report.num_foreign_values == 1
    assert report.rare_attributes == ["rare"]
    assert len(report.lines()) == 6
    assert kbs["test"]["entity"].name == ["Ada", "Ben", "Cy", "Zoe"]
    assert kbs["test"].attribute_names == ["born"]


def test_holdout_keeps_everything_known():
    rng = np.random.default_rng(0)
    rows = [(f"e{a}", f"r{b}", f"e{c}") for a, b, c in rng.integers(0, 12, (400, 3))]
    kbs, report = read_kb(rows, holdout=0.1, seed=3)
    assert report.num_unseen == {"val": 0, "test": 0}
    assert report.num_in_training == {"val": 0, "test": 0}
    assert report.num_triples["val"] == report.num_triples["test"]
    assert sum(report.num_triples.values()) == len(set(rows))
    again, _ = read_kb(rows, holdout=0.1, seed=3)
    other, _ = read_kb(rows, holdout=0.1, seed=4)
    edge_types = kbs["val"].edge_types

    def asked(found):
        return [found["val"][e].edge_label_index.tolist() for e in edge_types]

    assert asked(kbs) == asked(again) != asked(other)
    with pytest.raises(DataError, match="0 of 3 triples can be held out"):
        read_kb([("a", "r", "b"), ("c", "q", "d"), ("e", "p", "f")], holdout=0.3)
    for fraction in (0, 0.5, 5):  # by the name that it was given by
        with pytest.raises(DataError, match=r"'holdout' must lie between 0 and 0.5"):
            read_kb([("a", "r", "b")], holdout=fraction)


def test_columns_are_found_by_their_names(tmp_path):
    """A networkx edge list has the relation last; by place it would be a tail."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(TRIPLES, columns=["source", "relation", "target"])
    turned = frame[["source", "target", "relation"]]
    letters = pd.DataFrame(TRIPLES, columns=["h", "r", "t"])[["t", "r", "h"]]
    file = tmp_path / "a.csv"
    turned.to_csv(file, index=False)
    shuffled = [
        dict(zip(("tail", "head", "relation"), (t, h, r))) for h, r, t in TRIPLES
    ]
    for source in (turned, letters, file, shuffled, frame.to_dict("records")):
        assert names_of(read_triples(source)) == TRIPLES
    write(file, "source,target,relation\nAda,,spouse\n")
    with pytest.raises(DataError, match=r"a\.csv:2: the tail is empty"):
        read_triples(file)


def test_columns_of_other_names_are_refused():
    pd = pytest.importorskip("pandas")
    other = pd.DataFrame({"who": ["Ada"], "how": ["tall"], "much": [80]})
    with pytest.raises(DataError, match="columns who, how, much, expected"):
        read_values(other)
    with pytest.raises(DataError, match=r"row:1: got \{'a': 1\}, expected 3"):
        read_triples([{"a": 1}])


def test_letters_in_another_order_are_no_header(tmp_path):
    path = write(tmp_path / "a.csv", "t,h,r\nh,r,t\n")
    assert names_of(read_triples(path)) == [("t", "h", "r"), ("h", "r", "t")]


def test_arrays_and_tensors_are_rows_of_numbers():
    torch = pytest.importorskip("torch")
    array, tensor = np.array([[0, 1, 2]]), torch.tensor([[0, 1, 2]])
    for rows in (array, tensor, list(array), list(tensor)):
        assert names_of(read_triples(rows)) == [("0", "1", "2")]
    with pytest.raises(DataError, match="row:1: got 1, expected 3"):
        read_triples([1, 2])


def test_what_pandas_calls_missing_is_no_name():
    pd = pytest.importorskip("pandas")
    columns = ["head", "relation", "tail"]
    text = pd.DataFrame([["Ada", "s", "Ben"], [None, "s", "Cy"]], columns=columns)
    dates = pd.DataFrame([["Ada", "s", pd.NaT]], columns=columns)
    for frame, name in ((text.astype("string"), "head"), (dates, "tail")):
        with pytest.raises(DataError, match=f"the {name} is empty"):
            read_triples(frame)
    with pytest.raises(DataError, match="the tail is empty"):
        read_triples([("Ada", "s", np.float32("nan"))])


def test_spaces_around_fields_of_csv_do_not_count(tmp_path):
    path = write(tmp_path / "A.CSV", 'Ada , spouse , Ben\n"Ben ",spouse,Ada\n')
    triples = read_triples(path)
    assert triples.entities == ["Ada", "Ben"]
    assert triples.relations == ["spouse"]


def test_values_of_several_sources_are_averaged_once(tmp_path):
    pytest.importorskip("pyoxigraph")
    born = '<x:a> <x:born> "{}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    fact = "<x:a> <x:knows> <x:b> .\n"
    train = write(tmp_path / "a.NT", fact + born.format(1950) + born.format(1960))
    numbers = [("x:a", "x:born", 1960)]
    kbs, report = read_kb(train, numerical=numbers, min_entities=1)
    assert kbs["train"]["entity"].x[0].tolist() == pytest.approx([1956.0 + 2 / 3])
    assert report.num_averaged == 2
    with pytest.raises(DataError, match="several values of 'x:born' for 'x:a'"):
        read_kb(train, min_entities=1, strict=True)
    once = write(tmp_path / "b.nt", fact + born.format(1950))
    assert read_kb(once, min_entities=1, strict=True)
    with pytest.raises(DataError, match="several values of 'x:born' for 'x:a'"):
        read_kb(once, numerical=numbers, min_entities=1, strict=True)


# --- headers ---------------------------------------------------------------------

MORE = [("Cy", "likes", "Di"), ("Di", "likes", "Eve"), ("Eve", "likes", "Ada")]
ROWS = [*TRIPLES, *MORE]


def as_csv(path, rows):
    return write(path, "".join(",".join(row) + "\n" for row in rows))


def test_an_unknown_header_is_refused(tmp_path):
    path = as_csv(tmp_path / "a.csv", [("from", "rel", "to"), *ROWS])
    with pytest.raises(DataError, match=r"a\.csv:1: the names from, rel, to do") as at:
        read_triples(path)
    for way_out in ("header=True", "header=False", "columns=(...)", "--header"):
        assert way_out in str(at.value)
    for way_out in ("--no-header", "--columns head,relation,tail"):
        assert way_out in str(at.value)
    assert names_of(read_triples(path, header=True)) == ROWS
    assert names_of(read_triples(path, header=False)) == [("from", "rel", "to"), *ROWS]
    kbs, _ = read_kb(path, header=True)
    assert kbs["train"]["entity"].num_nodes == 5


def test_a_header_is_noticed_in_large_files(tmp_path, monkeypatch):
    path = as_csv(tmp_path / "a.csv", [("from", "rel", "to"), *ROWS * 3])
    again = as_csv(tmp_path / "b.csv", [("from", "rel", "to"), *ROWS, ("to", "r", "x")])
    monkeypatch.setattr(rows_module, "BLOCK_BYTES", 64)  # one row for each block
    with pytest.raises(DataError, match=r"a\.csv:1: the names from, rel, to"):
        read_triples(path)
    assert len(read_triples(again)) == 8  # a name of an entity, on the other side


@pytest.mark.parametrize(
    "rows",
    [
        [("from", "rel", "to"), *ROWS[:4]],  # too few to tell
        [("Ada", "rel", "to"), *ROWS],
        [("from", "likes", "to"), *ROWS],
        [("from", "rel", "Eve"), *ROWS],
        [("from", "rel", "to"), *ROWS, ("Ada", "likes", "from")],  # on the other side
        [("head", "relation", "tail"), ("x", "y", "z"), *ROWS],  # a header is there
    ],
)
def test_first_rows_that_are_facts(tmp_path, rows):
    found = names_of(read_triples(as_csv(tmp_path / "a.csv", rows)))
    assert found == [row for row in rows if row[0] != "head"]


def test_tuples_and_frames_have_no_header():
    pd = pytest.importorskip("pandas")
    rows = [("from", "rel", "to"), *ROWS]
    for source in (rows, pd.DataFrame(rows)):
        assert names_of(read_triples(source)) == rows


def test_small_splits_share_names_with_training(tmp_path):
    """Their first row may well be the only one with its names."""
    train = [("a", "r", "b"), ("b", "q", "a"), *[(f"e{i}", "p", "a") for i in range(9)]]
    valid = [("a", "r", "b"), *[(f"e{i}", "p", f"e{i + 1}") for i in range(8)]]
    path = as_csv(tmp_path / "valid.csv", valid)
    assert read_kb(train, path)[1].num_triples == {"train": 11, "val": 9}
    with pytest.raises(DataError, match=r"valid\.csv:1: the names a, r, b"):
        read_triples(path)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_columns_are_read_by_the_names_of_the_user(tmp_path, name):
    mark = "," if name == "a.csv" else "\t"
    rows = [("to", "since", "From", "rel"), *[(t, "1999", h, r) for h, r, t in ROWS]]
    path = write(tmp_path / name, "".join(mark.join(row) + "\n" for row in rows))
    columns = ("from", "rel", "to")
    assert names_of(read_triples(path, columns=columns)) == ROWS
    assert len(read_kb(path, columns=columns)[0]["train"].edge_types) == 3
    with pytest.raises(
        DataError, match=r":1: the columns are to, since, From, rel, ex"
    ):
        read_triples(path, columns=("from", "rel", "whom"))
    with pytest.raises(ValueError, match=r"'columns' must be 3 names \(got \['a'\]\)"):
        read_triples(path, columns=["a"])
    with pytest.raises(ValueError, match="'columns' must not be given for files"):
        read_triples(path, header=False, columns=columns)
    write(path, path.read_text() + mark.join(("a", "b", "c")) + "\n")
    with pytest.raises(DataError, match=r":8: 3 columns, expected 4 as in the first"):
        read_triples(path, columns=columns)


def test_columns_of_frames_and_dictionaries():
    pd = pytest.importorskip("pandas")
    columns = ["from", "rel", "to"]
    frame = pd.DataFrame(ROWS, columns=columns)[["to", "from", "rel"]]
    for source in (frame, frame.to_dict("records"), ROWS):
        assert names_of(read_triples(source, columns=columns)) == ROWS
    with pytest.raises(DataError, match="columns to, from, rel, expected a, b, c"):
        read_triples(frame, columns=["a", "b", "c"])


@pytest.mark.parametrize("first", ["entity,attribute,value", "value,entity,attribute"])
def test_only_numbers_have_a_header(tmp_path, first):
    """No option says it for triples alone, so that a known header is still one."""
    triples = as_csv(tmp_path / "t.csv", [("from", "rel", "to"), *ROWS])
    row = "Ada,tall,180" if first.startswith("entity") else "180,Ada,tall"
    path = write(tmp_path / "v.csv", f"{first}\n{row}\n")
    kbs, _ = read_kb(triples, numerical=path, header=False, min_entities=1)
    assert kbs["train"].attribute_names == ["tall"]
    assert "from" in kbs["train"]["entity"].name
    write(path, f"who,how,much\n{row}\n")
    with pytest.raises(DataError, match=r"v\.csv:1: the value 'much' is not a finite"):
        read_kb(triples, numerical=path, header=False, min_entities=1)
    columns = ["who", "how", "much"] if row[0] == "A" else ["how", "much", "who"]
    kbs, _ = read_kb(
        triples,
        numerical=path,
        header=False,
        numerical_columns=columns,
        min_entities=1,
    )
    assert kbs["train"].attribute_names == ["tall"]


def test_one_column_by_a_given_separator(tmp_path):
    path = as_csv(tmp_path / "a.csv", ROWS)
    with pytest.raises(DataError, match=r"a\.csv:1: one column when split at ';', ex"):
        read_triples(path, separator=";")


def test_headers_of_numbers(tmp_path):
    path = write(tmp_path / "v.csv", "who,how,much\nAda,tall,180\nBen,tall,170\n")
    with pytest.raises(DataError, match=r"v\.csv:1: the value 'much' is not a finite"):
        read_values(path)
    columns = ("who", "how", "much")
    for found in (read_values(path, header=True), read_values(path, columns=columns)):
        assert found.value.tolist() == [180, 170]
    found = read_kb(TRIPLES, numerical=path, numerical_columns=columns, min_entities=1)
    assert found[0]["train"].attribute_names == ["tall"]
    write(path, "Ada,tall,180\nBen,tall,170\n")
    with pytest.raises(
        DataError, match=r"v\.csv:1: the value 180 is a number, expected a header"
    ):
        read_values(path, header=True)
