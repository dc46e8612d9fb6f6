"""Attacks on what reads texts: triples, numbers, rules and settings."""

import contextlib
import gzip
import io
import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from attack.ids import small_kb
from hypothesis import strategies as st

from kblrn_pyg.cli.main import main
from kblrn_pyg.data import DataError, Names, read_kb
from kblrn_pyg.data.dates import decimal_year
from kblrn_pyg.datasets import write_local_kb
from kblrn_pyg.rules import read_rules, write_rules

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
