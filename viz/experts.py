"""What each expert of a trained model contributes to its answers."""

import sys

from kblrn_pyg.data import DataError
from kblrn_pyg.explain import contributions
from kblrn_pyg.plotting import FigureParser, plot_contributions, positive, show_or_save
from kblrn_pyg.runs import load_run, other_answers


def main() -> None:
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
        help="at most how many relations (default: 12)",
    )
    parser.add_argument(
        "--expert", metavar="NAME", help="only relations that this expert speaks of"
    )
    options = parser.parse()
    with parser.mistakes():
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
        show_or_save(plot_contributions(splits["train"], found), options.out)
    if options.out:
        print(f"saved {options.out}")


if __name__ == "__main__":
    main()
