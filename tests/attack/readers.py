"""Attacks on what reads texts: triples, numbers, rules and settings."""

import contextlib
import gzip
import io
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from attack.ids import small_kb, small_model
from hypothesis import strategies as st

from kblrn_pyg.cli.main import main
from kblrn_pyg.data import DataError, NamedValues, Names, read_kb, read_values
from kblrn_pyg.data.dates import decimal_year
from kblrn_pyg.data.parquet import write_parquet
from kblrn_pyg.datasets import write_local_kb
from kblrn_pyg.recipes import read_recipe, write_recipe
from kblrn_pyg.recipes.trials import open_study
from kblrn_pyg.rules import read_rules, write_rules
from kblrn_pyg.training import apply_update, read_update

_XSD = "http://www.w3.org/2001/XMLSchema#"
SEEDS = {
    "a.tsv": "Ada\tspouse\tBen\nBen\tknows\tÇy\r\nAda\tknows\tCy\n",
    "a.csv": 'head,relation,tail\n"Ada, B.",spouse,Ben\nBen,knows,"C""y"\n',
    "a.nt": f'<x:a> <x:r> <x:b> .\n<x:a> <x:n> "1999-01-01"^^<{_XSD}date> .\n'
    f'<x:b> <x:n> "7"^^<{_XSD}gYear> .\n_:c <x:r> <x:a> . # end\n',
    "b.csv": 'Ada;spouse;Ben\n"Ben";knows;Cy\n',
    "a.ttl": f"@prefix x: <x:> .\nx:a x:r x:b ; x:n 7 .\nx:b x:n '7'^^<{_XSD}gYear> .\n",
    "a.rdf": "<?xml version='1.0'?>\n<!DOCTYPE r [<!ENTITY n 'x:'>]>\n<rdf:RDF "
    "xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:x='x:'>\n"
    "<rdf:Description rdf:about='&n;a'><x:r rdf:resource='x:b'/><x:n>7</x:n>"
    "</rdf:Description></rdf:RDF>\n",
}
NUMBERS = {
    "v.tsv": "Ada\tborn\t1950\nBen\tborn\t-1e3\nAda\theight\t1.75\n",
    "w.csv": "entity;born;height;town\nAda;1950-05-01;1,7;Rome\nBen;;NaN;\n",
}
LABELS = "id,name\nAda,Ada L.\nBen,\n"
RULES = {
    "amie": "?a  a  ?c  ?c  b  ?b   => ?a  r  ?b\t0.5\t0.5\t0.5\t1\t2\t2\n",
    "anyburl": "10\t5\t0.5\tr(X,Y) <= a(X,A), b(A,Y)\n",
    "kale": "a(x,y)&&b(y,z)==>r(x,z)\n",
}
_PIECES = [*'\t\n\r,"<>.\\^@#_:()=&?X', "\0", "\ufeff", "\u2028", "nan", "1e999"]
_PIECES += ["9" * 400, "-", "1e300", "0x1", "=>", "<=", "==>", "# semantics: ", "^^<"]
_PIECES += ["\x1b[2J", "\ud800", "é", f"<{_XSD}gYear>", "?a", "true"]


def _mutated(data: st.DataObject, text: str) -> bytes:
    """Changes a text at some places; parts of it may not be text at all."""
    out = text
    for _ in range(data.draw(st.integers(0, 5))):
        begin = data.draw(st.integers(0, len(out)))
        end = begin + data.draw(st.sampled_from([0, 0, 1, 2, 8]))
        piece = st.sampled_from(_PIECES) | st.text(max_size=4)
        out = out[:begin] + data.draw(piece) + out[end:]
    raw = out.encode(errors="surrogatepass")
    if data.draw(st.integers(0, 9)) == 0:
        place = data.draw(st.integers(0, len(raw)))
        raw = raw[:place] + data.draw(st.binary(max_size=3)) + raw[place + 1 :]
    return raw


@cache
def folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="kblrn_attack_"))


def _written(data: st.DataObject, name: str, raw: bytes) -> Path:
    if data.draw(st.integers(0, 4)) == 0:
        name, raw = f"{name}.gz", gzip.compress(raw)
        if data.draw(st.booleans()):
            raw = raw[: data.draw(st.integers(0, len(raw)))]
    path = folder() / name
    path.write_bytes(raw)
    return path


def _read(read: Any) -> str:
    try:
        read()
    except DataError as error:
        assert "\n" not in str(error)
        assert "\x1b" not in str(error)
        assert len(str(error)) < 4000
        return "refused"
    return "read"


def attack_triples(data: st.DataObject) -> str:
    """Reads triples and numbers."""
    name = data.draw(st.sampled_from(tuple(SEEDS)))
    path = _written(data, name, _mutated(data, SEEDS[name]))
    options = data.draw(
        st.sampled_from([{}, {}, {"header": True}, {"strict": True}, {"holdout": 0.3}])
    )
    return _read(lambda: read_kb(path, **options))


def attack_numbers(data: st.DataObject) -> str:
    """Reads numbers of entities."""
    name = data.draw(st.sampled_from(tuple(NUMBERS)))
    path = _written(data, name, _mutated(data, NUMBERS[name]))
    options: dict[str, Any] = {"min_entities": 1, "strict": data.draw(st.booleans())}
    options |= data.draw(
        st.sampled_from([{}, {}, {"wide": True}, {"wide": False}, {"decimal": ","}])
    )
    if data.draw(st.booleans()):
        options["labels"] = _written(data, "l.csv", _mutated(data, LABELS))
    return _read(lambda: read_kb([("Ada", "r", "Ben")], numerical=path, **options))


def attack_rules(data: st.DataObject) -> str:
    """Reads rules; what was read can be written and read again."""
    form = data.draw(st.sampled_from(tuple(RULES)))
    path = _written(data, "r.txt", _mutated(data, RULES[form] * 2))
    given, strict = data.draw(st.sampled_from([None, *RULES])), data.draw(st.booleans())
    names = ["a", "b", "r"]

    def read() -> None:
        rules, _ = read_rules(path, names, given, strict)
        write_rules(rules, folder() / "again.tsv")
        str(rules)

    return _read(read)


def attack_names(data: st.DataObject) -> str:
    """Looks for names, and for dates."""
    text = data.draw(
        st.text(max_size=30) | st.sampled_from(_PIECES).map(lambda p: p * 99)
    )
    decimal_year(
        data.draw(st.from_regex(r"-?[0-9]{1,30}(-[0-9]{2}){0,3}", fullmatch=True))
    )
    names = Names(
        "entity", ["/m/1", "/m/2", "Zoë", "a.b"], ["Paris", "Paris", "Zoë", "x"]
    )
    return _read(lambda: names.resolve(text))


@cache
def _parquet() -> bytes:
    columns = {"head": ["Ada", "Ben", "Ada"], "relation": ["r", "r", "s"]}
    columns["tail"] = ["Ben", "Cy", "Cy"]
    write_parquet(folder() / "whole.parquet", columns)
    return (folder() / "whole.parquet").read_bytes()


def attack_parquet(data: st.DataObject) -> str:
    """Reads Parquet files with other bytes; pyarrow must not crash, either."""
    raw = bytearray(_parquet())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(raw)))
        end = place + data.draw(st.sampled_from([0, 1, 1, 4]))
        raw[place:end] = data.draw(st.binary(max_size=4))
    path = folder() / "a.parquet"
    path.write_bytes(raw)
    return _read(lambda: read_kb(path))


@cache
def _parquet_values() -> tuple[bytes, NamedValues]:
    path = folder() / "values.parquet"
    columns = {"entity": ["Ada", "Ben"], "attribute": ["born", "height"]}
    write_parquet(path, columns | {"value": np.array([1950.0, 1.75])})
    return path.read_bytes(), read_values(path)


def attack_parquet_bits(data: st.DataObject) -> str:
    """Changes one bit of a Parquet file, which is refused or changes nothing.

    Its pages have checksums, and its descriptions have none.
    """
    raw, expected = _parquet_values()
    bit = data.draw(st.integers(0, 8 * len(raw) - 1))
    changed = bytearray(raw)
    changed[bit // 8] ^= 1 << bit % 8
    path = folder() / "bits.parquet"
    path.write_bytes(changed)

    def read() -> None:
        found = read_values(path)
        assert str(vars(found)) == str(vars(expected)), f"bit {bit} changed {found}"

    return _read(read)


def attack_folders(data: st.DataObject) -> str:
    """Reads folders of files with any names and contents."""
    place = Path(tempfile.mkdtemp(dir=folder()))
    stems = ["train", "valid", "test", "numbers", "labels", "train-00001-of-2", ".x"]
    for _ in range(data.draw(st.integers(0, 4))):
        ending = data.draw(st.sampled_from(["tsv", "csv", "txt", "nt", "tsv.gz", "x"]))
        raw = _mutated(data, data.draw(st.sampled_from([*SEEDS.values(), LABELS, ""])))
        name = f"{data.draw(st.sampled_from(stems))}.{ending}"
        (place / name).write_bytes(gzip.compress(raw) if "gz" in ending else raw)
    if data.draw(st.integers(0, 5)) == 0 and not (place / "test.csv").exists():
        (place / "test.csv").mkdir()
    try:
        return _read(lambda: read_kb(place))
    finally:
        shutil.rmtree(place)


def attack_updates(data: st.DataObject) -> str:
    """Adds facts and numbers of files to a model, or takes facts away."""
    model = small_model("lrne", "sampled")
    facts = "e0\ta\te1\nnew\tb\te2\ne3\tc\tnew\n"
    numbers = "e0\tborn\t1950\nnew\theight\t-1\n"
    sources: list[Path | None] = []
    for name, text in (("u.tsv", facts), ("n.tsv", numbers), ("g.tsv", facts[:8])):
        is_there = data.draw(st.booleans())
        written = _written(data, name, _mutated(data, text)) if is_there else None
        sources.append(written)
    if not any(sources):
        return "nothing"

    def update() -> None:
        read = read_update(model, *sources)
        if read.num_new < 50:
            apply_update(model, read, fold_in=False).predict_tails(0, 0)

    return _read(update)


RECIPE: dict[str, Any] = {
    "name": "own",
    "why": "so",
    "most_validated": 50,
    "rules": {"min_head_coverage": 0.1},
    "factors": {"latent": 1.0, "relational": {"*": 0.5, "a": 1}},
    "stages": [
        {
            "experts": "lr",
            "model": {"hidden_channels": 4, "num_negatives": "all", "dropout": 0.1},
            "training": {"epochs": 2, "lr": 0.1, "batch_size": 4},
        },
        {"experts": "n", "model": {"numerical": "layer"}, "training": {}},
    ],
}


def _edited(data: st.DataObject, value: Any) -> Any:
    """Changes one value somewhere in plain values."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 4)):
        key = data.draw(st.sampled_from(sorted(value)))
        if data.draw(st.integers(0, 6)) == 0:
            return {k: v for k, v in value.items() if k != key}
        if data.draw(st.integers(0, 6)) == 0:
            return value | {data.draw(st.sampled_from(["x", "seed", "lr"])): value[key]}
        return value | {key: _edited(data, value[key])}
    if isinstance(value, list) and value and data.draw(st.integers(0, 4)):
        place = data.draw(st.integers(0, len(value) - 1))
        return [*value[:place], _edited(data, value[place]), *value[place + 1 :]]
    return data.draw(st.sampled_from(_VALUES))


def attack_recipes(data: st.DataObject) -> str:
    """Reads recipes with other values, or texts that are none; writes them again."""
    path = folder() / "recipe.json"
    if data.draw(st.integers(0, 3)):
        edited = RECIPE
        for _ in range(data.draw(st.integers(1, 2))):
            edited = _edited(data, edited)
        path.write_text(json.dumps(edited))
    else:
        path = path.with_suffix(data.draw(st.sampled_from([".json", ".toml"])))
        path.write_bytes(_mutated(data, json.dumps(RECIPE)))

    def read() -> None:
        recipe = read_recipe(path)
        write_recipe(recipe, folder() / "again.json")
        assert read_recipe(folder() / "again.json") == recipe

    return _read(read)


def attack_trials(data: st.DataObject) -> str:
    """Opens the trials of a search in files with other bytes."""
    raw = bytearray(_trials())
    if data.draw(st.integers(0, 4)) == 0:
        raw = raw[: data.draw(st.integers(0, len(raw)))]
    for _ in range(data.draw(st.integers(0, 30))):
        raw = raw or bytearray(1)
        bit = data.draw(st.integers(0, 8 * len(raw) - 1))
        raw[bit // 8] ^= 1 << bit % 8
    path = folder() / "trials.db"
    path.write_bytes(raw)
    return _read(lambda: open_study(path, "l"))


@cache
def _trials() -> bytes:
    path = folder() / "whole.db"
    study = open_study(path, "l")
    study.optimize(lambda one: one.suggest_float("lr", 0.1, 1, log=True), n_trials=3)
    return path.read_bytes()


@cache
def trained() -> Path:
    made = Path(tempfile.mkdtemp(prefix="kblrn_attack_"))
    write_local_kb(made / "kb", dict.fromkeys(("train", "val", "test"), small_kb()))
    words = "--experts l --hidden-channels 4 --num-negatives 5 --epochs 1".split()
    assert (
        _command(["train", str(made / "kb"), *words, "--out", str(made / "run")]) == 0
    )
    return made


def _command(words: list[str]) -> int:
    """Runs a command, whose errors must be a line each."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = main(words)
    assert code in (0, 2)
    assert "Traceback" not in errors.getvalue()
    if code == 2:
        assert errors.getvalue().splitlines()[-1].startswith("kblrn ")
    return code


_VALUES = [
    None,
    True,
    -1,
    0,
    1,
    10**30,
    0.5,
    float("nan"),
    "x",
    "",
    [],
    {},
    ["l"],
    {"a": 1},
]


def attack_settings(data: st.DataObject) -> str:
    """Edits the settings of a run that is then continued."""
    path = trained() / "run" / "settings.json"
    before = path.read_text()
    settings = json.loads(before)
    for _ in range(data.draw(st.integers(1, 2))):
        group = data.draw(st.sampled_from(list(settings)))
        value = data.draw(st.sampled_from(_VALUES))
        if isinstance(settings[group], dict) and data.draw(st.integers(0, 5)):
            name = data.draw(st.sampled_from([*settings[group], "new"]))
            if name == "num_negatives" and value == 10**30:
                value = 3  # more memory than there is, which takes its time
            settings[group][name] = value
        else:
            settings[group] = value
    path.write_text(json.dumps(settings))
    run = str(path.parent)
    try:
        code = _command(["train", str(trained() / "kb"), "--out", run, "--resume"])
    finally:
        path.write_text(before)
    return "refused" if code else "continued"
