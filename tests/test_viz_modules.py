"""Scripts in the package, letters of any script, and files in upper case."""

import json
import logging
import runpy
import sys
from pathlib import Path

import pytest
from matplotlib import font_manager, pyplot
from scripts import REPOSITORY, run

import kblrn_pyg.viz
from kblrn_pyg.data import make_kb
from kblrn_pyg.plotting import fonts, plot_fragment, show_or_save
from kblrn_pyg.training.run import Run

SCRIPTS = sorted(path.stem for path in (REPOSITORY / "viz").glob("*.py"))


def test_every_script_is_a_module():
    modules = {path.stem for path in Path(kblrn_pyg.viz.__file__).parent.glob("*.py")}
    assert modules - {"__init__", "figure_parser"} == set(SCRIPTS)
    assert len(SCRIPTS) >= 6


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_and_modules_have_the_same_options(name, monkeypatch, capsys):
    script = run("python", f"viz/{name}.py", "--help")
    assert script.code == 0
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
    monkeypatch.delitem(sys.modules, f"kblrn_pyg.viz.{name}", raising=False)
    with pytest.raises(SystemExit):
        runpy.run_module(f"kblrn_pyg.viz.{name}", run_name="__main__")
    assert capsys.readouterr().out == script.out


def write_log(folder, mrr):
    run_folder = Run(folder)
    run_folder.lock()
    line = {"epoch": 1, "loss": 2.0, "seconds": 1.0, "val": {"mrr": mrr}}
    run_folder.log_path.write_text(json.dumps(line) + "\n")
    run_folder.close()
    return str(folder)


def test_runs_are_drawn_together(tmp_path):
    runs = [write_log(tmp_path / name, 0.1) for name in ("first", "second", "third")]
    out = tmp_path / "both.svg"
    words = ["--run", runs[0], "--run", runs[1], runs[2], "--out", out]
    done = run("python", "viz/training.py", *words)
    assert done.code == 0, done.err
    pyplot.rcParams["svg.fonttype"] = "none"
    try:
        run("python", "viz/training.py", *words)
    finally:
        pyplot.rcParams["svg.fonttype"] = "path"
    for name in ("first", "second", "third"):
        assert name in out.read_text()


def test_endings_in_upper_case(tmp_path):
    out = tmp_path / "x.PNG"
    words = ["--relation", "spouse", "--out", out]
    done = run("python", "viz/rbf_hist.py", *words)
    assert done.code == 0, done.err
    assert out.read_bytes().startswith(b"\x89PNG")


# --- letters ---------------------------------------------------------------------


def kb_of(name):
    triples = [[0], [0], [1]]
    import torch

    return make_kb([name, "Ben"], ["spouse"], tuple(map(torch.tensor, triples)))


def test_letters_that_no_font_has_are_noted_once(tmp_path, caplog, recwarn):
    installed = fonts.fallback_fonts()
    if any("CJK" in name for name in installed):
        pytest.skip("there is a font for them")
    figure = plot_fragment(kb_of("東京 Zürich"), "東京 Zürich")
    assert fonts.missing_letters(figure) == "京東"
    with caplog.at_level(logging.WARNING):
        show_or_save(figure, str(tmp_path / "a.png"))
    notes = [one.getMessage() for one in caplog.records]
    assert len(notes) == 1
    assert "no installed font has the letters 京東" in notes[0]
    assert not [one for one in recwarn if "Glyph" in str(one.message)]


def test_other_fonts_are_asked_for_letters(monkeypatch):
    """With a font of Matplotlib in the place of one for other scripts."""
    paths = {
        name: font_manager.findfont(name) for name in ("DejaVu Sans", "STIXGeneral")
    }
    usual, other = (
        set(font_manager.get_font(path).get_charmap()) for path in paths.values()
    )
    letter = chr(max(code for code in other - usual if chr(code).isalpha()))
    monkeypatch.setattr(fonts, "FALLBACKS", ())
    assert fonts.missing_letters(plot_fragment(kb_of(letter), letter)) == letter
    monkeypatch.setattr(fonts, "FALLBACKS", ("No Such Font", "STIXGeneral"))
    assert fonts.fallback_fonts() == ["STIXGeneral"]
    assert fonts.missing_letters(plot_fragment(kb_of(letter), letter)) == ""
    assert "STIXGeneral" not in pyplot.rcParams["font.family"]


# --- names and folders -------------------------------------------------------------


def test_names_that_begin_with_a_dash():
    for words in (["-x", "r", "?"], ["a", "r", "-x"]):
        done = run("kblrn", "predict", "run", *words)
        assert done.code == 2
        assert "names that begin with '-' follow '--'" in done.err
    done = run("kblrn", "predict", "no-such-run", "--k", "3", "--", "-x", "r", "?")
    assert "no-such-run: no such file or folder" in done.err
    assert "names that" not in run("kblrn", "train", "Families", "--magic").err


def test_a_failed_start_leaves_nothing_behind(tmp_path):
    (tmp_path / "old").mkdir()
    for path in (tmp_path / "runs" / "deep" / "run", tmp_path / "old" / "run"):
        with pytest.raises(ValueError, match="mistake"), Run(path).started():
            raise ValueError("mistake")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert not any((tmp_path / "old").iterdir())
