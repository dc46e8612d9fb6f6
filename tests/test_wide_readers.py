"""What people have: wide tables, dates, other separators, labels, folders, RDF."""

import gzip
import io
import sys

import numpy as np
import pytest
from test_readers import ROWS, TRIPLES, names_of, write

from kblrn_pyg.cli.main import main
from kblrn_pyg.data import (
    DataError,
    HeaderError,
    read_kb,
    read_labels,
    read_rdf,
    read_triples,
    read_values,
)
from kblrn_pyg.data import delimited as delimited_module
from kblrn_pyg.data.cells import read_cell
from kblrn_pyg.datasets import load_dataset

MARKS = {"semicolon": ";", "bar": "|", "comma": ",", "tab": "\t"}


def found_values(values):
    return {
        (values.entities[e], values.attributes[a]): v
        for e, a, v in zip(values.entity, values.attribute, values.value)
    }


# --- wide tables -----------------------------------------------------------------

WIDE = [
    ["entity", "birth_year", "height", "town"],
    ["Ada", "1950", "1.5", "Rome"],
    ["Ben", "", "1.75", "Oslo"],
    ["Cy", "1961-07-02", "NaN", ""],
]
WIDE_VALUES = {
    ("Ada", "birth_year"): 1950,
    ("Ada", "height"): 1.5,
    ("Ben", "height"): 1.75,
    ("Cy", "birth_year"): 1961.5,
}


def wide_text(mark, rows=WIDE):
    return "".join(mark.join(row) + "\n" for row in rows)


@pytest.mark.parametrize("mark", MARKS.values(), ids=MARKS)
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt.gz"])
def test_wide_tables_of_any_separator(tmp_path, name, mark):
    values = read_values(write(tmp_path / name, wide_text(mark)))
    assert found_values(values) == WIDE_VALUES
    assert values.notes.num_unknown == 2
    assert values.notes.wide_columns == ("birth_year", "height", "town")
    assert values.notes.text_columns == ("town",)


def test_wide_frames_and_parquet(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "birth_year": [1950.0, float("nan"), 1961.5],
            "entity": ["Ada", "Ben", "Cy"],
            "height": [1.5, 1.75, None],
            "town": ["Rome", "Oslo", None],
        }
    )
    assert found_values(read_values(frame)) == WIDE_VALUES
    path = tmp_path / "a.parquet"
    pytest.importorskip("pyarrow")
    frame.to_parquet(path)
    assert found_values(read_values(path)) == WIDE_VALUES
    frame["birth_year"] = pd.to_datetime(["1950-07-02", None, "1961-07-02"])
    frame.to_parquet(path)
    for source in (frame, path):
        found = found_values(read_values(source))
        assert found["Ada", "birth_year"] == pytest.approx(1950.5, abs=2e-3)
        assert ("Ben", "birth_year") not in found


def test_an_index_that_pandas_wrote_is_not_a_number(tmp_path):
    rows = [["", "entity", "height"], ["0", "Ada", "1.5"], ["1", "Ben", "1.75"]]
    path = write(tmp_path / "a.csv", wide_text(",", rows))
    assert read_values(path, wide=True).attributes == ["height"]


def test_three_columns_are_wide_if_the_second_has_numbers(tmp_path):
    path = tmp_path / "a.csv"
    write(path, "who,birth_year,height\nAda,1950,1.5\nBen,,1.75\n")
    assert found_values(read_values(path)) == {
        ("Ada", "birth_year"): 1950,
        ("Ada", "height"): 1.5,
        ("Ben", "height"): 1.75,
    }
    write(path, "entity,attribute,value\nAda,2048,1.5\n")
    assert read_values(path).attributes == ["2048"]
    write(path, "who,how,much\nAda,tall,1.5\nBen,tall,1.75\n")
    with pytest.raises(HeaderError, match=r"a\.csv:\d: the "):
        read_values(path, wide=None)
    write(path, "who,how,much\nAda,2048,1.5\n")
    assert read_values(path).attributes == ["how", "much"]
    columns = ("who", "how", "much")
    assert read_values(path, wide=False, columns=columns).attributes == ["2048"]


def test_columns_of_a_wide_table(tmp_path):
    path = write(tmp_path / "a.csv", wide_text(","))
    found = read_values(path, wide=True, columns=("Entity", "height"))
    assert found.attributes == ["height"]
    with pytest.raises(DataError, match=r"a\.csv:1: the columns are .*, expected age"):
        read_values(path, wide=True, columns=("entity", "age"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*WIDE, ["Di", "1900", "tall", ""]], r"a\.csv:5: the height 'tall' is not"),
        ([*WIDE, ["Di", "1900", "inf", ""]], r"a\.csv:5: the height 'inf' is not"),
        ([*WIDE, ["", "1900", "1", ""]], r"a\.csv:5: the entity is empty"),
        ([*WIDE, ["Di", "1900"]], r"a\.csv:5: 2 columns, expected 4: entity"),
        ([["a", "b", "b"], ["x", "1", "2"]], r"a\.csv:1: several columns are called"),
    ],
)
def test_bad_wide_tables_get_one_line(tmp_path, rows, message):
    path = write(tmp_path / "a.csv", wide_text(",", rows))
    with pytest.raises(DataError, match=message):
        read_values(path)


def test_wide_tables_in_a_knowledge_base(tmp_path):
    path = write(tmp_path / "a.csv", wide_text(";"))
    kbs, report = read_kb(TRIPLES, numerical=path, min_entities=1)
    assert kbs["train"].attribute_names == ["birth_year", "height"]
    assert report.rare_attributes == []
    lines = report.lines()
    assert "2 numbers are unknown, as their cells say" in lines
    assert "columns without numbers left out: town" in lines
    assert any(line.endswith("birth_year, height, town") for line in lines)


# --- cells -----------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["", " ", "NaN", "nan", "NA", "N/A", "null", "None"])
def test_unknown_numbers(tmp_path, cell):
    path = write(tmp_path / "v.tsv", f"Ada\tborn\t1950\nBen\tborn\t{cell}\n")
    values = read_values(path)
    assert found_values(values) == {("Ada", "born"): 1950}
    assert values.notes.num_unknown == 1
    assert read_values([("Ada", "born", 1), ("Ben", "born", None)]).value.tolist() == [
        1
    ]


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("1961", 1961),
        ("1961-07-02", 1961.5),
        ("1961-07-02T12:00:00Z", 1961.5),
        ("1961-07-02 12:00:00", 1961.5),
        ("+1961-00-00T00:00:00Z", 1961),
        ("-0044-03-15", -44 + 74.5 / 366),
    ],
)
def test_dates(cell, value):
    assert read_cell(cell) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("cell", ["04.08.1961", "8/4/1961", "1961-13-01", "1_000"])
def test_what_is_neither_number_nor_date(cell):
    assert read_cell(cell) is None


def test_decimal_commas(tmp_path):
    path = write(tmp_path / "v.csv", "Ada;height;1,5\nBen;height;1,75\n")
    assert read_values(path, decimal=",").value.tolist() == [1.5, 1.75]
    with pytest.raises(DataError, match=r"v\.csv:1: the value '1,5' is not a finite"):
        read_values(path)


@pytest.mark.parametrize("rows", ["Ada;1,66\nBen;1,7\n", "Ada;1\nBen;1,66\n"])
def test_decimal_commas_are_not_left_out_as_text(tmp_path, rows):
    path = write(
        tmp_path / "w.csv", "entity;height;year\n" + rows.replace("\n", ";1\n")
    )
    with pytest.raises(DataError, match=r"w\.csv:\d: the height '1,66' .*--decimal ,"):
        read_values(path, wide=True)
    assert read_values(path, decimal=",").notes.text_columns == ()
    assert len(read_values(path, wide=True, columns=("entity", "year"))) == 2


# --- separators ------------------------------------------------------------------


@pytest.mark.parametrize("mark", MARKS.values(), ids=MARKS)
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a.csv.gz"])
@pytest.mark.parametrize("is_large", [False, True])
def test_separators_are_found(tmp_path, monkeypatch, name, mark, is_large):
    if is_large:
        monkeypatch.setattr(delimited_module, "LARGE_BYTES", 1)
    path = write(tmp_path / name, "".join(mark.join(row) + "\n" for row in ROWS))
    assert names_of(read_triples(path)) == ROWS
    if mark != "\t" or ".csv" in name:
        quoted = "".join(mark.join(f'"{one}"' for one in row) + "\n" for row in ROWS)
        assert names_of(read_triples(write(path, quoted))) == ROWS


def test_the_usual_separator_comes_first(tmp_path):
    path = write(tmp_path / "a.csv", "a;b,r;s,c;d\nx,y,z\n")
    assert read_triples(path).entities == ["a;b", "c;d", "x", "z"]
    assert read_triples(write(path, "a;b;c,d\n")).entities == ["a", "c,d"]


def test_separators_that_are_given(tmp_path):
    path = write(tmp_path / "a.txt", "Ada spouse Ben\nBen knows Cy\nAda knows Cy\n")
    assert names_of(read_triples(path, separator=" ")) == TRIPLES
    assert len(read_kb(path, separator=" ")[0]["train"].edge_types) == 2
    with pytest.raises(DataError, match=r"a\.txt:1: 1 column"):
        read_triples(path)
    with pytest.raises(ValueError, match="'separator' must be one character"):
        read_triples(path, separator="::")


@pytest.mark.parametrize("is_large", [False, True])
def test_further_columns_beside_well_known_ones(tmp_path, monkeypatch, is_large):
    if is_large:
        monkeypatch.setattr(delimited_module, "LARGE_BYTES", 1)
    rows = [("id", "tail", "relation", "head"), *[("7", t, r, h) for h, r, t in ROWS]]
    path = write(tmp_path / "a.csv", "".join(",".join(row) + "\n" for row in rows))
    assert names_of(read_triples(path)) == ROWS
    with pytest.raises(HeaderError, match=r"a\.csv:1: 4 columns \(id, tail, rel"):
        read_triples(path, header=False)
    write(path, path.read_text().replace("head", "who"))
    with pytest.raises(HeaderError, match="--columns") as caught:
        read_triples(path)
    assert caught.value.row == ["id", "tail", "relation", "who"]
    for header in (False, True):
        with pytest.raises(HeaderError):
            read_triples(path, header=header)


# --- names and labels --------------------------------------------------------------


def test_names_are_kept_as_written(tmp_path):
    names = ["NA", "null", "-x", "01", "Zürich ", "東京", "geo:a", "/b", "=1+1"]
    path = tmp_path / "a.tsv"
    write(path, "".join(f"{name}\tdbo:in/of\tTRUE\n" for name in names))
    numbers = [(name, "dbo:height", 1) for name in names]
    kbs, _ = read_kb(path, numerical=numbers, min_entities=1)
    data = kbs["train"]
    assert sorted(data["entity"].name) == sorted([*names, "TRUE"])
    assert data.edge_types[0][1] == "dbo:in/of"
    assert data.attribute_names == ["dbo:height"]


def test_labels(tmp_path):
    path = write(tmp_path / "l.tsv", "id\tname\nAda\tAda Lovelace\nknows\tkent\nq\tw\n")
    kbs, report = read_kb(TRIPLES, labels=path)
    data = kbs["train"]
    assert data["entity"].name == ["Ada Lovelace", "Ben", "Cy"]
    assert data["entity"].identifier == ["Ada", "Ben", "Cy"]
    assert [relation for _, relation, _ in data.edge_types] == ["spouse", "kent"]
    assert (report.num_labels, report.num_foreign_labels) == (2, 1)
    with pytest.raises(DataError, match="labels of no identifier of the triples"):
        read_kb(TRIPLES, labels=[("x", "y")])


def test_label_files(tmp_path):
    path = write(tmp_path / "l.csv", "Ada,Ada L.\nAda,other\nBen,\n")
    assert read_labels(path) == {"Ada": "Ada L."}
    write(path, "n,id,de\n1,Ada,Ada L.\n")
    assert read_labels(path, columns=("id", "de")) == {"Ada": "Ada L."}
    kbs, _ = read_kb(TRIPLES, labels=path, label_columns=("id", "de"))
    assert kbs["train"]["entity"].name[0] == "Ada L."


# --- folders and other libraries ---------------------------------------------------


def as_tsv(rows):
    return "".join("\t".join(row) + "\n" for row in rows)


def counts(report):
    return report.num_triples


@pytest.mark.parametrize(
    "names",
    [
        ("train.txt", "valid.txt", "test.txt"),
        ("train.tsv.gz", "dev.tsv", "test.tsv"),
        ("training.csv", "validation.csv", "testing.csv"),
    ],
)
def test_a_folder_of_splits(tmp_path, names):
    parts = [ROWS[:4], ROWS[4:5], ROWS[5:]]
    for name, rows in zip(names, parts):
        write(tmp_path / name, as_tsv(rows))
    write(tmp_path / "README.md", "not data")
    write(tmp_path / "numbers.csv", wide_text(","))
    write(tmp_path / "labels.csv", "Ada,Ada L.\n")
    kbs, report = read_kb(tmp_path, min_entities=1)
    assert counts(report) == {"train": 4, "val": 1, "test": 1}
    assert kbs["val"].attribute_names == ["birth_year", "height"]
    assert kbs["test"]["entity"].name[0] == "Ada L."
    with pytest.raises(DataError, match="'train' has all splits"):
        read_kb(tmp_path, valid=ROWS)
    with pytest.raises(DataError, match="'holdout' must not be given beside"):
        read_kb(tmp_path, holdout=0.1)


def test_folders_that_are_none(tmp_path):
    write(tmp_path / "train2id.txt", "1\n0 0 0\n")
    with pytest.raises(DataError, match="has no training triples, expected train"):
        read_kb(tmp_path)
    write(tmp_path / "train.tsv", as_tsv(ROWS))
    write(tmp_path / "train.txt", as_tsv(ROWS))
    with pytest.raises(DataError, match=r"several files of the train split: train\.t"):
        read_kb(tmp_path)


def test_a_folder_as_hugging_face_has_it(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    (tmp_path / "data").mkdir()
    frame = pd.DataFrame(ROWS, columns=["head", "relation", "tail"])
    for name, part in (
        ("train-00001-of-00002", frame[2:4]),
        ("train-00000-of-00002", frame[:3]),
        ("validation-00000-of-00001", frame[4:5]),
        ("test-00000-of-00001", frame[5:]),
    ):
        part.to_parquet(tmp_path / "data" / f"{name}.parquet")
    kbs, report = read_kb(tmp_path)
    assert counts(report) == {"train": 4, "val": 1, "test": 1}
    assert report.num_duplicates["train"] == 1
    assert kbs["train"]["entity"].name[:2] == ["Ada", "Ben"]


def test_parts_are_in_the_order_of_their_numbers(tmp_path):
    for name, rows in (("train-10", ROWS[3:]), ("train-2", ROWS[:3])):
        write(tmp_path / f"{name}.tsv", as_tsv(rows))
    expected = read_kb(ROWS)[0]["train"]
    found = read_kb(tmp_path)[0]["train"]
    assert found["entity"].name == expected["entity"].name
    assert found.edge_types == expected.edge_types


def test_splits_in_one_object():
    pd = pytest.importorskip("pandas")
    records = [dict(zip(("head", "relation", "tail"), row)) for row in ROWS]
    frame = pd.DataFrame(ROWS, columns=["head", "relation", "tail"])
    for splits in (
        {"train": records[:4], "validation": records[4:5], "test": records[5:]},
        {"test": frame[5:], "val": frame[4:5], "train": frame[:4]},
    ):
        kbs, report = read_kb(splits)
        assert counts(report) == {"train": 4, "val": 1, "test": 1}
        assert list(kbs) == ["train", "val", "test"]
    with pytest.raises(DataError, match="the split 'extra' is unknown"):
        read_kb({"train": ROWS, "extra": ROWS})
    with pytest.raises(DataError, match="the training split is missing"):
        read_kb({"test": ROWS})


def test_triples_of_pykeen():
    triples = pytest.importorskip("pykeen.triples")
    factory = triples.TriplesFactory.from_labeled_triples(np.array(ROWS))
    assert sorted(names_of(read_triples(factory))) == sorted(ROWS)

    class Dataset:
        training = testing = factory
        validation = None

    assert counts(read_kb(Dataset())[1]) == {"train": 6, "test": 6}


# --- RDF -------------------------------------------------------------------------

TURTLE = """@prefix x: <x:> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
x:ada x:spouse x:ben ; x:born 1950 ; x:died "2001-07-02"^^xsd:date ; x:name "Ada" .
x:ben x:knows x:cy .
"""
RDF_XML = """<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [ <!ENTITY xsd "http://www.w3.org/2001/XMLSchema#"> ]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="x:">
 <rdf:Description rdf:about="x:ada">
  <x:spouse rdf:resource="x:ben"/>
  <x:born rdf:datatype="&xsd;integer">1950</x:born>
  <x:died rdf:datatype="&xsd;date">2001-07-02</x:died>
  <x:name>Ada</x:name>
 </rdf:Description>
 <rdf:Description rdf:about="x:ben"><x:knows rdf:resource="x:cy"/></rdf:Description>
</rdf:RDF>
"""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.ttl", TURTLE),
        ("a.TTL.gz", TURTLE),
        ("a.rdf", RDF_XML),
        ("a.owl", RDF_XML),
        ("a.nq", "<x:ada> <x:spouse> <x:ben> <x:g> .\n<x:ben> <x:knows> <x:cy> .\n"),
    ],
)
def test_rdf(tmp_path, name, content):
    pytest.importorskip("pyoxigraph")
    path = tmp_path / name
    path.write_bytes(
        gzip.compress(content.encode()) if name.endswith(".gz") else content.encode()
    )
    found = read_rdf(path)
    assert names_of(found.triples) == [
        ("x:ada", "x:spouse", "x:ben"),
        ("x:ben", "x:knows", "x:cy"),
    ]
    if not name.endswith(".nq"):
        values = {("x:ada", "x:born"): 1950.0, ("x:ada", "x:died"): 2001.5}
        assert found_values(found.values) == pytest.approx(values)
        assert found.num_other_literals == 1
        kbs, _ = read_kb(path, min_entities=1)
        assert kbs["train"].attribute_names == ["born", "died"]


def test_labels_of_rdf(tmp_path):
    pytest.importorskip("pyoxigraph")
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    names = [("ada", '"Ada"@de'), ("ada", '"Ada L."@en-GB'), ("ben", '"Бен"@ru')]
    names += [("cy", '"Cy"'), ("cy", '"other"'), ("spouse", '"married to"@en')]
    lines = [f"<x:{name}> {label} {text} .\n" for name, text in names]
    path = write(tmp_path / "l.nt", "".join(lines))
    found = {"x:ada": "Ada L.", "x:ben": "Бен", "x:cy": "Cy", "x:spouse": "married to"}
    assert read_labels(path) == found
    facts = write(tmp_path / "a.ttl", TURTLE)
    with pytest.raises(DataError, match=r"a\.ttl: has no labels, expected rdfs:label"):
        read_labels(facts)
    kbs, report = read_kb(facts, labels=path)
    assert kbs["train"]["entity"].name == ["Ada L.", "Бен", "Cy"]
    assert report.num_labels == 4


def test_broken_rdf(tmp_path):
    pytest.importorskip("pyoxigraph")
    path = write(tmp_path / "a.ttl", TURTLE + "y:a x:b x:c .\n")
    with pytest.raises(DataError, match=r"a\.ttl:5: .*expected Turtle"):
        read_rdf(path)
    path = write(tmp_path / "a.rdf", RDF_XML.replace("</x:name>", "</x:born>"))
    with pytest.raises(DataError, match=r"a\.rdf: .*expected RDF/XML"):
        read_rdf(path)


@pytest.mark.parametrize("num_before", [0, (1 << 20) - 40, 1 << 20, (1 << 20) + 40])
@pytest.mark.parametrize(
    "entity",
    ['<!ENTITY b "&a;&a;">', '<!ENTITY % b "x">', '<!entity b "' + "x" * 2000 + '">'],
)
def test_entities_that_grow_are_refused(tmp_path, entity, num_before):
    pytest.importorskip("pyoxigraph")
    content = RDF_XML.replace("<!DOCTYPE", f"<!--{' ' * num_before}-->\n<!DOCTYPE")
    path = write(tmp_path / "a.rdf", content.replace("<!ENTITY", entity + "<!ENTITY"))
    with pytest.raises(DataError, match=r"a\.rdf:3: an entity with entities"):
        read_rdf(path)
    path = write(tmp_path / "b.rdf", content)
    assert len(read_rdf(path).triples) == 2


def test_triples_about_triples_are_skipped(tmp_path):
    pytest.importorskip("pyoxigraph")
    path = write(tmp_path / "a.ttl", TURTLE + "x:a x:b <<( x:a x:b x:c )>> .\n")
    found = read_rdf(path)
    assert len(found.triples) == 2
    assert found.num_other_literals == 2


# --- the command -----------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def facts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [("von", "typ", "nach"), *ROWS]
    write(tmp_path / "facts.csv", "".join(";".join(row) + "\n" for row in rows))
    write(tmp_path / "numbers.csv", "wer;was;wert\nAda;born;1950\nBen;born;1948\n")
    return ["import", "--train", "facts.csv", "--out", "kb"]


def answering(monkeypatch, *answers):
    monkeypatch.setattr(sys, "stdin", Terminal("".join(f"{a}\n" for a in answers)))
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


def test_import_asks_about_headers(facts, monkeypatch):
    err = answering(monkeypatch, "", "n", "nach", "x", "typ", "von", "y", "y")
    numbers = ["--numerical", "numbers.csv", "--min-entities", "1"]
    assert main([*facts, *numbers]) == 0, err.getvalue()
    assert "facts.csv begins with: von, typ, nach" in err.getvalue()
    assert "expected one of von, typ, nach" in err.getvalue()
    data = load_dataset("kb")["train"]
    assert data["entity"].name[:2] == ["Ben", "Ada"]  # heads and tails are exchanged
    assert data.attribute_names == ["born"]


def test_import_is_told_that_there_is_no_header(facts, monkeypatch):
    err = answering(monkeypatch, "n")
    assert main(facts) == 0, err.getvalue()
    assert "von" in load_dataset("kb")["train"]["entity"].name


def test_import_does_not_ask_without_a_terminal(facts, capsys):
    assert main(facts) == 2
    error = capsys.readouterr().err
    assert "--columns head,relation,tail" in error
    assert main([*facts, "--columns", "von,typ,nach"]) == 0


def test_import_by_options(facts, tmp_path, capsys):
    write(tmp_path / "a.txt", as_tsv(ROWS).replace("\t", " "))
    write(tmp_path / "w.csv", "wer;age;height\nAda;3;1,5\nBen;2;-\n")
    write(tmp_path / "l.txt", "Ada Ada_L.\n")
    words = "import --train a.txt --sep space --labels l.txt --out kb"
    assert main(words.split()) == 0
    words = "import --train facts.csv --columns von,typ,nach --out kb2 --wide "
    words += "--numerical w.csv --numerical-columns wer,height --decimal , "
    assert main([*words.split(), "--min-entities", "1"]) == 0
    out = capsys.readouterr().out
    assert "1 identifiers have labels" in out
    assert load_dataset("kb")["train"]["entity"].name[0] == "Ada_L."
    assert load_dataset("kb2")["train"].attribute_names == ["height"]
    with pytest.raises(SystemExit):
        main([*facts, "--sep", "ab"])


def test_import_without_splits(facts, capsys):
    assert main([*facts, "--columns", "von,typ,nach"]) == 0
    out = capsys.readouterr().out
    for text in ("training neither stops early", "no test triples", "--holdout 0.05"):
        assert text in out
    splits = load_dataset("kb")
    assert list(splits) == ["train", "val", "test"]
    for split in ("val", "test"):
        assert sum(s.edge_label_index.size(1) for s in splits[split].edge_stores) == 0
    train = ["train", "kb", "--experts", "l", "--epochs", "1", "--hidden-channels", "4"]
    assert main([*train, "--out", "run"]) == 0
    assert "nothing was held out to test on" in capsys.readouterr().out
    assert main(["evaluate", "run"]) == 2
    assert "the test split has no triples" in capsys.readouterr().err
    assert main(["report", "run"]) == 0
    assert main(["control", "kb", "--experts", "n", "--epochs", "1"]) == 2
    assert "split has no triples" in capsys.readouterr().err
