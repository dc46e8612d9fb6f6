"""Speed and memory from 15,000 to 4.6 million entities, in one run, without data.

    python benchmarks/scale.py [--sizes 15000 150000] [--only l lrn]
        [--batches 40] [--beside-busy]

Knowledge bases are made by ``scale_generator.py``: skewed degrees, hubs, rules and
numbers; the largest one is of the size of Wikidata5M. Every part of every size is
measured in a process of its own:

* import: from CSV files to a data set;
* mine: the rules, with their supports;
* l, lrn: training by 1,024 negatives that a batch of 1,024 triples shares, in
  turns with its matrix products alone;
* exact l, exact lrn: the same with the loss over all entities, up to 200,000;
* evaluate: filtered ranks of 1,000 triples by lrn, both sides;
* whole: a tenth of an epoch of lrn, its file, going on from it, a prediction and
  an explanation;
* confidences: the rules once more, with confidences, up to a million entities.

The last lines compare: training with its matrix products, lrn with l, large with
small, and memory with 12 GB. With ``--beside-busy``, every other round of training
is beside a process that takes one core.
"""

import argparse
import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NamedTuple

from scale_parts import PARTS, Case, Figures, generate_files, measure, parts_for

SIZES = (15_000, 150_000, 1_000_000, 4_600_000)
LARGE = 200_000  # more entities than this may take longer
MEMORY = 12 * 1024  # in MB
# Parts that one needs to go from files to answers.
WAY = ("import", "mine", "lrn", "evaluate", "whole")

# By size and part.
Results = dict[int, dict[str, Figures]]

_TRAINING = (
    "{speed:>10,.0f} triples a second, a batch {batch:,.1f} ms, its products "
    "{products:,.1f} ms, preparing {prepare:,.1f} s"
)
_MINING = "{seconds:>10,.1f} s, {rules:,.0f} rules"
LINES = {
    "import": "{seconds:>10,.1f} s, {speed:,.0f} MB a second",
    "mine": _MINING,
    "l": _TRAINING,
    "lrn": _TRAINING,
    "exact l": _TRAINING,
    "exact lrn": _TRAINING,
    "evaluate": "{seconds:>10,.1f} s, {triples:,.0f} triples",
    "whole": "{train:>10,.1f} s a tenth of an epoch, building {build:,.1f} s, resuming "
    "{resume:,.1f} s, loading {load:,.1f} s ({file:,.0f} MB), a prediction "
    "{predict:,.2f} s, an explanation {explain:,.2f} s",
    "confidences": _MINING,
}


class Ratio(NamedTuple):
    r"""Something that must not be too large.

    Args:
        text (str): What it is.
        value (float): How large it is.
        most (float): How large it may be.
    """

    text: str
    value: float
    most: float

    def __str__(self) -> str:
        missed = ", missed" if self.value > self.most else ""
        return f"{self.text:60}{self.value:8.2f} (at most {self.most:g}{missed})"


def in_own_process(function: Callable[..., Figures], *arguments: Any) -> Figures | None:
    """Runs a function where nothing else takes memory; none if the process died."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            return pool.submit(function, *arguments).result()
        except BrokenProcessPool:
            return None


def run_size(
    num_entities: int, folder: Path, options: argparse.Namespace
) -> dict[str, Figures]:
    """Makes a knowledge base, and measures and prints part after part."""
    made = in_own_process(generate_files, num_entities, folder)
    if made is None:
        print(f"{num_entities:,} entities: not made, the process died", flush=True)
        return {}
    print(
        f"{num_entities:,} entities, {made['triples']:,.0f} triples, "
        f"{made['relations']:,.0f} relations (made in {made['seconds']:.1f} s)",
        flush=True,
    )
    case = Case(folder, options.batches, options.beside_busy)
    found = {}
    for part in parts_for(num_entities):
        # Without an import there is nothing to measure.
        if part not in (*options.only, "import"):
            continue
        figures = in_own_process(measure, part, case)
        print(f"  {part:12}{line_of(part, figures)}", flush=True)
        if figures is not None:
            found[part] = figures
    return found


def line_of(part: str, figures: Figures | None) -> str:
    """Returns the figures of a part as text."""
    if figures is None:
        return "the process died (was there enough memory?)"
    text = LINES[part].format_map(figures)
    if "beside" in figures:
        text += f", beside a busy process {figures['beside']:,.1f} ms"
    memory = f"resident {figures['resident']:,.0f} MB, peak {figures['peak']:,.0f} MB"
    return f"{text}; {memory}"


def ratios(results: Results) -> Iterator[Ratio]:
    """Returns what can be said of what was measured."""
    for size, found in results.items():
        where = f"{size:,} entities"
        if size <= LARGE and "l" in found:
            yield over_products("l", found, where, 2.5)
        for experts in ("l", "lrn"):
            yield from growth(experts, size, results)
        if {"l", "lrn"} <= set(found):
            value = found["l"]["speed"] / found["lrn"]["speed"]
            yield Ratio(f"lrn / l, {where}", value, 3)
        for part, figures in found.items():
            if "beside" in figures:
                value = figures["beside"] / figures["batch"]
                yield Ratio(
                    f"{part} beside a busy process / alone, {where}", value, 2.5
                )
        for part, most in (("exact l", 1.5), ("exact lrn", 2)):
            if part in found:
                yield over_products(part, found, where, most)
        peak = max((found[part]["peak"] for part in WAY if part in found), default=0)
        yield Ratio(f"peak memory in GB, {where}", peak / 1024, MEMORY / 1024)


def over_products(
    part: str, found: dict[str, Figures], where: str, most: float
) -> Ratio:
    value = found[part]["batch"] / found[part]["products"]
    return Ratio(f"{part} / its matrix products, {where}", value, most)


def growth(part: str, size: int, results: Results) -> Iterator[Ratio]:
    """Compares the time of a triple with that at the smallest size."""
    least = min(results)
    if size > least and part in results[size] and part in results[least]:
        value = results[least][part]["speed"] / results[size][part]["speed"]
        text = f"{part}, a triple at {size:,} / at {least:,} entities"
        yield Ratio(text, value, 1.5 if size <= LARGE else 2.5)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=SIZES, help="numbers of entities"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=[*PARTS, "exact"],
        default=[*PARTS],
        metavar="PART",
        help=f"parts to measure, of {', '.join(PARTS)} (default: all)",
    )
    parser.add_argument(
        "--batches", type=int, default=40, help="batches in a round of training"
    )
    parser.add_argument(
        "--beside-busy",
        action="store_true",
        help="train beside a process that takes one core, too",
    )
    options = parser.parse_args(words)
    if "exact" in options.only:
        options.only += ["exact l", "exact lrn"]
    results: Results = {}
    for size in sorted(options.sizes):
        with tempfile.TemporaryDirectory() as folder:
            results[size] = run_size(size, Path(folder), options)
    for ratio in ratios(results):
        print(ratio)
    return 0


if __name__ == "__main__":
    sys.exit(main())
