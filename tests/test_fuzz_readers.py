"""A few thousand broken files: read, or refused by the readers' own error."""

import gzip
import random

import pytest

from kblrn_pyg.data import DataError, read_kb

SEEDS = {
    "tsv": "Ada\tspouse\tBen\nBen\tknows\tÇy\r\nAda\tknows\tCy\n",
    "csv": 'head,relation,tail\n"Ada, B.",spouse,Ben\nBen,knows,"C""y"\n',
    "nt": '<x:a> <x:r> <x:b> .\n<x:a> <x:n> "1999-01-01"^^'
    "<http://www.w3.org/2001/XMLSchema#date> .\n_:c <x:r> <x:a> . # end\n",
}
VALUES = "Ada\tborn\t1950\nBen\tborn\t-1e3\nAda\theight\t1.75\n"
ROUNDS = 1200
PIECES = [
    b"\t",
    b"\n",
    b"\r",
    b",",
    b'"',
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"<",
    b">",
]
PIECES += [
    "\u2028".encode(),
    b" ",
    b".",
    b"@en",
    b"^^",
    b"nan",
    b"1e999",
    b"_:",
    b"\\u12",
]


def mutate(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randint(0, len(out))
        kind = rng.randrange(5)
        if kind == 0:
            del out[at : at + rng.randint(1, 8)]
        elif kind == 1:
            out[at:at] = rng.choice(PIECES)
        elif kind == 2 and out:
            out[at % len(out)] = rng.randrange(256)
        elif kind == 3:
            out[at:at] = out[: rng.randint(0, 20)]
        else:
            del out[at:]
    return bytes(out)


def check(read):
    try:
        read()
    except DataError as error:
        assert "\n" not in str(error)
        assert error.line is not None
        return "refused"
    return "read"


@pytest.mark.parametrize("kind", [*SEEDS, "tsv.gz", "nt.gz"])
def test_mutated_triples(tmp_path, kind):
    if kind.startswith("nt"):
        pytest.importorskip("pyoxigraph")
    rng = random.Random(kind)
    path = tmp_path / f"a.{kind}"
    seed = SEEDS[kind.removesuffix(".gz")].encode()
    outcomes = []
    for i in range(ROUNDS):
        data = mutate(seed, rng)
        if kind.endswith(".gz"):
            # Half of them are broken inside the archive, half outside.
            data = gzip.compress(data) if i % 2 else mutate(gzip.compress(seed), rng)
        path.write_bytes(data)
        outcomes.append(check(lambda: read_kb(path)))
    assert {"read", "refused"} == set(outcomes)


def test_mutated_values(tmp_path):
    rng = random.Random(0)
    path = tmp_path / "v.tsv"
    outcomes = []
    for _ in range(ROUNDS):
        path.write_bytes(mutate(VALUES.encode(), rng))
        outcomes.append(
            check(lambda: read_kb([("Ada", "spouse", "Ben")], numerical=path))
        )
    assert {"read", "refused"} == set(outcomes)
