"""Names of others: no formulas, no commands to a terminal, no books in messages."""

import csv
import io
import json
import re
import sys
from pathlib import Path

import pytest
import torch

from kblrn_pyg.cli import options
from kblrn_pyg.cli.main import main
from kblrn_pyg.data import DataError, Names, make_kb, validate_kb
from kblrn_pyg.datasets import write_local_kb
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.predict import predict_tails
from kblrn_pyg.printable import PrintableStream, printable, shortened
from kblrn_pyg.report.html import element
from kblrn_pyg.table import format_table

HOSTILE = ['=cmd|"/c calc"!A1', "+1", "-2", "@sum", "\tx", "a\x1b[2J\x1b]0;t\x07", "ü"]
RELATION = "\x1b[31mred"


def hostile_model():
    triples = tuple(torch.tensor([[0, 1, 2], [0, 0, 0], [1, 2, 3]]))
    kb = make_kb(HOSTILE, [RELATION], triples)
    torch.manual_seed(0)
    return KBLRN.from_data(kb, "l", 4)


def test_cells_are_no_formulas():
    found = predict_tails(hostile_model(), 0, 0, k=7)
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    for row, one in zip(rows, found):
        for key in ("head", "relation", "tail"):
            assert row[key][0] not in "=+-@\t"
            assert row[key].removeprefix("'") == getattr(one, key)
        assert float(row["score"]) == pytest.approx(one.score)  # which may be negative
    assert {row["tail"] for row in rows} >= {"'-2", "'+1", "ü"}


def test_tables_have_no_commands():
    text = str(predict_tails(hostile_model(), 0, 0, k=7))
    assert "\x1b" not in text
    assert r"\x1b[2J" in text
    assert len(text.splitlines()) == 8
    assert format_table(["a"], [["x\ny"]]).splitlines() == ["a", r"x\ny"]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_terminals_get_no_commands_and_files_get_names_as_they_are(
    tmp_path, monkeypatch
):
    hostile_model().save(tmp_path / "model.pt")
    words = [str(tmp_path / "model.pt"), "ü", RELATION, "?", "--format", "csv"]
    for kind, has_commands in ((Terminal, False), (io.StringIO, True)):
        out = kind()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            assert main(["predict", *words]) == 0
        assert ("\x1b" in out.getvalue()) == has_commands
        assert out.getvalue().count("\n") == 8


def test_errors_have_no_commands(tmp_path, capsys):
    assert main(["predict", str(tmp_path / "\x1b[2J"), "a", "b", "?"]) == 2
    with pytest.raises(SystemExit):
        main(["predict", "a", "b", "c", "d", "--\x1b[2J"])
    error = capsys.readouterr().err
    assert "\x1b" not in error
    assert "\n" not in str(DataError("a\nb\rc\x9b\u2028\u202e"))


def test_long_names_are_not_echoed(capsys, tmp_path):
    hostile_model().save(tmp_path / "model.pt")
    for name in ("x" * 20_000, "\x1b" * 20_000):
        with pytest.raises(DataError, match="unknown entity") as caught:
            Names("entity", ["a"]).resolve(name)
        assert len(str(caught.value)) < 1200
        assert main(["predict", str(tmp_path / "model.pt"), name, RELATION, "?"]) == 2
        assert len(capsys.readouterr().err) < 2500
    assert len(str(DataError("x" * 10**6))) < 2200


def test_texts():
    assert printable("a\tb\n", keep="\n\t") == "a\tb\n"
    assert printable("Zoë 𝄞 ∧") == "Zoë 𝄞 ∧"
    assert shortened("a" * 10, 4) == "aa ... (6 characters) ... aa"
    assert shortened("abc", 4) == "abc"
    out = io.StringIO()
    PrintableStream(out).write("\x1b[0m")
    assert out.getvalue() == r"\x1b[0m"


def test_notes_have_no_commands(tmp_path, capfd, monkeypatch):
    """Those of a recipe, and of the first row of a file."""
    named = "\x1b[2J" * 3
    stage = '{"experts": "l", "model": {"hidden_channels": 4, "num_negatives": 3}, '
    stage += '"training": {"epochs": 1}}'
    text = f'{{"name": {json.dumps(named)}, "why": "\\u009b", "stages": [{stage}]}}'
    (tmp_path / "recipe.json").write_text(text)
    kbs = dict.fromkeys(("train", "val", "test"), hostile_model().kb)
    write_local_kb(tmp_path / "kb", kbs)
    words = ["--recipe", str(tmp_path / "recipe.json"), "--out", str(tmp_path / "run")]
    assert main(["train", str(tmp_path / "kb"), *words]) == 0
    error = capfd.readouterr().err
    assert "recipe \\x1b[2J" in error
    assert not {"\x1b", "\x9b"} & set(error)


def test_all_notes_go_one_way():
    """What commands print beside their output passes through one function."""
    folder = Path(options.__file__).parent
    found = [
        path.name
        for path in sorted(folder.glob("*.py"))
        for _ in re.finditer(r"file=(sys\.stderr|errors)", path.read_text())
    ]
    assert found == ["main.py"] * 3 + ["options.py"]


@pytest.mark.parametrize("place", ["names", "identifiers", "relation", "attribute"])
def test_names_that_no_file_can_hold_are_refused(place):
    """Half of a pair of UTF-16, which Python has as a text of its own."""
    given = {"names": ["a", "b"], "identifiers": ["a", "b"], "relation": ["r"]}
    given |= {"attribute": ["x"]}
    given[place][0] = "a\ud800"
    triples = tuple(torch.tensor([[0], [0], [1]]))
    kb = make_kb(
        given["names"],
        given["relation"],
        triples,
        torch.zeros(2, 1, dtype=torch.double),
        given["attribute"],
        given["identifiers"],
    )
    with pytest.raises(DataError, match="must be Unicode, without surrogates"):
        validate_kb(kb)


def test_ends_of_lines_do_not_end_rows():
    r"""Python quotes \n, and \r only where lines end with it: a cell began behind."""
    names = ["a\r=1", "b\n=1", "c\r\n@x", 'd"\r"', "\r=2"]
    triples = tuple(torch.tensor([[0, 1, 2], [0, 0, 0], [1, 2, 3]]))
    model = KBLRN.from_data(make_kb(names, ["r\r+"], triples), "l", 4)
    text = predict_tails(model, 0, 0, k=5).to_csv()
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert len(rows) == 6
    assert {row[2].removeprefix("'") for row in rows[1:]} == set(names)
    assert not any(cell[:1] in tuple("=+@\t\r") for row in rows for cell in row[:3])


def test_reports_have_no_control_characters():
    made = element("p", "\x1b[2J\0\u202e<b>", title="\x9b\n")
    assert made == '<p title="\\x9b\n">\\x1b[2J\\x00\\u202e&lt;b&gt;</p>'
