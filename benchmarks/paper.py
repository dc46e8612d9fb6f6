"""Reproduces the tables of the paper: trains what is missing and prints the rest.

    KBLRN_DATA=... python benchmarks/paper.py --table benchmarks --dataset FB15k-237

Every training has a folder with a checkpoint: a killed campaign continues where it
was, and two processes can share one. Figures are taken from the records in
``benchmarks/results``, one for each training and data set, which only this script
writes. ``--print`` trains nothing, ``--report`` writes RESULTS.md and the table of
the README from all records.
"""

import argparse
import sys
import time
from pathlib import Path

from reproduction.job import Job
from reproduction.layout import table_text
from reproduction.records import Places, read_records
from reproduction.report import write_report
from reproduction.sizes import STATISTICS, record_statistics
from reproduction.tables import TABLES, jobs_of
from reproduction.train import is_done, run_job

from kblrn_pyg.data import DataError
from kblrn_pyg.datasets import DATASETS
from kblrn_pyg.nn import INSTANCES, SCORERS
from kblrn_pyg.training import set_threads
from kblrn_pyg.training.benchmark_recipes import RECIPES

HERE = Path(__file__).resolve().parent


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    tables = [STATISTICS, *TABLES]
    parser.add_argument(
        "--table",
        action="append",
        choices=[*tables, "all"],
        help="a table; may be given more than once (default: all)",
    )
    parser.add_argument(
        "--dataset", action="append", choices=DATASETS, help="only this data set"
    )
    parser.add_argument(
        "--instances", nargs="+", choices=INSTANCES, help="only these instances"
    )
    parser.add_argument("--row", action="append", help="only this row of a table")
    parser.add_argument(
        "--recipe",
        choices=RECIPES,
        default="paper",
        help="as in section 5 of the paper (default), or a modern one",
    )
    parser.add_argument(
        "--scorer", action="append", choices=SCORERS, help="only this latent scorer"
    )
    parser.add_argument("--size", type=int, action="append", help="only this size")
    parser.add_argument("--seed", type=int, action="append", help="only this seed")
    parser.add_argument("--root", help="where data sets are kept")
    parser.add_argument(
        "--runs", default=HERE / "runs", type=Path, help="the folder of trainings"
    )
    parser.add_argument(
        "--results", default=HERE / "results", type=Path, help="the folder of records"
    )
    parser.add_argument("--threads", type=int, help="the number of threads")
    parser.add_argument(
        "--short", action="store_true", help="two epochs each, as a test"
    )
    parser.add_argument("--print", action="store_true", help="train nothing")
    parser.add_argument(
        "--report",
        nargs="?",
        const=HERE.parent,
        type=Path,
        metavar="DIR",
        help="write benchmarks/RESULTS.md and the README's table in DIR and stop",
    )
    options = parser.parse_args()
    if not options.table or "all" in options.table:
        options.table = tables
    return options


def missing_jobs(options: argparse.Namespace, places: Places) -> list[Job]:
    recipe = RECIPES[options.recipe]
    if options.short:
        recipe = recipe.shortened()
    names = {
        row.name
        for name in options.table
        if name in TABLES
        for row in TABLES[name].rows
    }
    if unknown := set(options.row or ()) - names:
        raise DataError(f"no table asked for has a row {', '.join(sorted(unknown))}")
    found = [
        job
        for name in options.table
        if name != STATISTICS
        for job in jobs_of(
            TABLES[name].shortened() if options.short else TABLES[name],
            recipe,
            options.dataset,
            options.instances,
            options.seed,
            options.row,
        )
        if not options.size or job.hidden_channels in (0, *options.size)
        if not options.scorer or job.scorer in options.scorer
    ]
    # Tables share trainings.
    distinct = {job.name: job for job in found}
    return [job for job in distinct.values() if not is_done(job, places)]


def run_missing(options: argparse.Namespace, places: Places) -> None:
    jobs = missing_jobs(options, places)
    start = time.perf_counter()
    for number, job in enumerate(jobs, 1):
        minutes = (time.perf_counter() - start) / 60
        print(f"[{number}/{len(jobs)}, {minutes:.0f} min] {job.name}", flush=True)
        if not run_job(job, places, progress=sys.stderr.isatty()):
            print(f"{job.name}: another process is training it")


def main() -> int:
    options = parse()
    places = Places(options.root, options.runs, options.results)
    set_threads(options.threads)
    try:
        if options.report:
            write_report(options.report, places.results)
            return 0
        if STATISTICS in options.table:
            record_statistics(options.dataset, places)
        if not options.print:
            run_missing(options, places)
    except KeyboardInterrupt:
        print("paper: interrupted, the same command continues", file=sys.stderr)
        return 130
    except (DataError, OSError) as error:
        print(f"paper: {error}", file=sys.stderr)
        return 2
    for name in options.table:
        print(table_text(name, read_records(places.results), options.dataset))
    return 0


if __name__ == "__main__":
    sys.exit(main())
