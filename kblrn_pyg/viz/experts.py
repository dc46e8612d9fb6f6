"""Draw what each expert of a trained model contributes to its answers."""

import argparse
import sys

from matplotlib.figure import Figure

from kblrn_pyg.data import DataError
from kblrn_pyg.explain import contributions
from kblrn_pyg.plotting import plot_contributions
from kblrn_pyg.runs import load_run, other_answers
from kblrn_pyg.viz.figure_parser import FigureParser, positive


def draw(options: argparse.Namespace) -> Figure:
    model, splits, _ = load_run(options.run, options.root, options.dataset)
    if options.split not in splits:
        raise DataError(
            f"unknown split {options.split!r}, expected one of {', '.join(splits)}"
        )
    found = contributions(
        model,
        splits[options.split],
        other_answers(splits, options.split),
        options.relation,
        options.top,
        options.expert,
        progress=sys.stderr.isatty(),
    )
    return plot_contributions(splits["train"], found)


def main() -> None:
    """Draws what the options ask for."""
    parser = FigureParser(__doc__)
    parser.add_run()
    parser.add_argument("--split", default="test", help="(default: test)")
    parser.add_argument(
        "--relation", action="append", help="only this relation (repeatable)"
    )
    parser.add_argument(
        "--top",
        type=positive,
        default=12,
        help="the maximum number of relations (default: 12)",
    )
    parser.add_argument(
        "--expert", metavar="NAME", help="only relations that this expert scores"
    )
    parser.run(draw)


if __name__ == "__main__":
    main()
