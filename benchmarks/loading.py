"""Speed of loading, as ratios to what others take for the same files in the same run.

    KBLRN_DATA=... python benchmarks/loading.py

1. From the raw files of FB15k-237 to a saved HeteroData of every split, beside
   PyG's own FB15k_237.process on the same files.
2. N-Triples import, beside pyoxigraph's bare parser on the same file, which is
   FB15k-237 with its numbers, written as N-Triples.
3. Large files of triples that are made up, read by kernels and row by row; this
   part needs no data: --part large.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyoxigraph
from torch_geometric.datasets import FB15k_237

from kblrn_pyg.data import delimited, read_kb, read_ntriples, read_triples, save_kb
from kblrn_pyg.datasets import FB15k237

warnings.filterwarnings("ignore", category=DeprecationWarning)

PARTS = ["pyg", "ntriples", "large"]


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def medians(repeats: int, *runs: Callable[[], object]) -> list[float]:
    """Times the runs in turns, so that a noisy minute hits all of them."""
    times = [[seconds(run) for run in runs] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*times)]


def compare_with_pyg(source: Path, work: Path, repeats: int) -> None:
    shutil.copytree(source / "FB15k-237", work / "pyg" / "raw")

    def pyg() -> None:
        FB15k_237(str(work / "pyg"), force_reload=True)

    def same_files() -> None:
        raw = work / "pyg" / "raw"
        kbs, _ = read_kb(raw / "train.txt", raw / "valid.txt", raw / "test.txt")
        for split, data in kbs.items():
            save_kb(data, work / "ours" / f"{split}.pt")

    def whole_dataset() -> None:
        FB15k237(str(work / "whole"), force_reload=True)

    theirs, ours, whole = medians(repeats, pyg, same_files, whole_dataset)
    report("PyG FB15k_237.process", theirs)
    report("read_kb + save_kb, the same files", ours, f"{theirs / ours:.1f} x faster")
    report("FB15k237, with numbers and labels", whole, f"{theirs / whole:.1f} x faster")


def report(what: str, time: float, remark: str = "") -> None:
    print(f"{what:36}{time:6.2f} s  {remark}")


def write_ntriples(source: Path, path: Path) -> None:
    double = "http://www.w3.org/2001/XMLSchema#double"
    base = "http://rdf.freebase.com"
    with open(path, "w", encoding="utf-8") as file:
        for line in read_lines(source / "FB15k-237/train.txt"):
            names = (f"<{base}{name}>" for name in line.split())
            file.write(" ".join(names) + " .\n")
        for line in read_lines(source / "mmkb/FB15K_NumericalTriples.txt"):
            entity, attribute, value = line.split()
            file.write(f'<{base}{entity}> {attribute} "{value}"^^<{double}> .\n')


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def compare_with_pyoxigraph(source: Path, work: Path, repeats: int) -> None:
    path = work / "kb.nt"
    write_ntriples(source, path)

    def bare(lenient: bool) -> None:
        for _ in pyoxigraph.parse(
            path=path, format=pyoxigraph.RdfFormat.N_TRIPLES, lenient=lenient
        ):
            pass

    strict, lenient, ours = medians(
        repeats,
        lambda: bare(False),
        lambda: bare(True),
        lambda: read_ntriples(path),
    )
    report("pyoxigraph's bare parser", strict)
    report("  the same without checking IRIs", lenient)
    ratios = f"{strict / ours:.2f} of the parser's speed, {lenient / ours:.2f} without"
    report("read_ntriples", ours, ratios)


def write_large(path: Path, num_rows: int, num_entities: int) -> None:
    """Writes triples with skewed degrees, and identifiers as those of Freebase."""
    rng = np.random.default_rng(0)
    mark = "," if path.suffix == ".csv" else "\t"
    relations = [f"/domain{i % 40}/type{i % 90}/property{i}" for i in range(800)]
    with open(path, "w", encoding="utf-8") as file:
        for start in range(0, num_rows, 1 << 18):
            size = min(1 << 18, num_rows - start)
            ends = (rng.random((size, 2)) ** 2 * num_entities).astype(np.int64)
            rels = (rng.random(size) ** 3 * len(relations)).astype(np.int64)
            file.writelines(
                f"/m/{h:07x}{mark}{relations[r]}{mark}/m/{t:07x}\n"
                for (h, t), r in zip(ends.tolist(), rels.tolist())
            )


def compare_readers(work: Path, repeats: int, num_rows: int) -> None:
    for num_entities in (15_000, 150_000, 4_600_000):
        for kind in ("tsv", "csv"):
            path = work / f"large.{kind}"
            write_large(path, num_rows, num_entities)
            compare_readers_of(path, repeats, f"{kind}, {num_entities:,} entities")


def compare_readers_of(path: Path, repeats: int, what: str) -> None:
    def row_by_row() -> None:
        with patch.object(delimited, "LARGE_BYTES", sys.maxsize):
            read_triples(path)

    size = path.stat().st_size / 1e6
    slow, fast = medians(repeats, row_by_row, lambda: read_triples(path))
    report(f"{what}, row by row", slow, f"{size / slow:.0f} MB/s of {size:.0f} MB")
    remark = f"{size / fast:.0f} MB/s, {slow / fast:.1f} x faster"
    report("  the same by kernels", fast, remark)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=2_000_000, help="of a large file")
    parser.add_argument(
        "--part", choices=PARTS, nargs="+", default=PARTS, help="(default: all)"
    )
    options = parser.parse_args()
    if options.part != ["large"] and "KBLRN_DATA" not in os.environ:
        print(
            "loading: set KBLRN_DATA to the directory of the raw data", file=sys.stderr
        )
        return 2
    source = Path(os.environ.get("KBLRN_DATA", ""))
    with tempfile.TemporaryDirectory() as work:
        if "pyg" in options.part:
            compare_with_pyg(source, Path(work), options.repeats)
        if "ntriples" in options.part:
            compare_with_pyoxigraph(source, Path(work), options.repeats)
        if "large" in options.part:
            compare_readers(Path(work), options.repeats, options.rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
