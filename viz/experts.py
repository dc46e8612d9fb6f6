"""What each expert of a trained model contributes to its answers."""

import sys

from kblrn_pyg.data import DataError
from kblrn_pyg.plotting import (
    FigureParser,
    contributions,
    plot_contributions,
    positive,
    show_or_save,
)
from kblrn_pyg.runs import load_run, other_answers


def main() -> None:
    parser = FigureParser(__doc__)
    parser.add_run()
    parser.add_argument("--split", default="test", help="(default: test)")
    parser.add_argument(
        "--relation", action="append", help="only this relation (repeatable)"
    )
    parser.add_argument(
        "--top", type=positive, default=12, help="how many relations (default: 12)"
    )
    parser.add_argument(
        "--numerical",
        action="store_true",
        help="only relations with numerical features",
    )
    options = parser.parse()
    with parser.mistakes():
        progress = sys.stderr.isatty()
        model, splits, _ = load_run(options.run, options.root, progress)
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
            options.numerical,
            progress,
        )
        show_or_save(plot_contributions(splits["train"], found), options.out)
    if options.out:
        print(f"saved {options.out}")


if __name__ == "__main__":
    main()
