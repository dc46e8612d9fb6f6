"""Histograms of head minus tail with their radial basis functions (Figure 3)."""

import sys

from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.plotting import FigureParser, plot_differences, positive, show_or_save
from kblrn_pyg.runs import load_run


def main() -> None:
    parser = FigureParser(__doc__)
    parser.add_argument(
        "--relation",
        action="append",
        required=True,
        help="a relation by name; may be given more than once",
    )
    parser.add_source("the data set of a run, and the weights that it learned")
    parser.add_argument("--bins", type=positive, help="number of bars")
    options = parser.parse()
    with parser.mistakes():
        model = None
        if options.run:
            progress = sys.stderr.isatty()
            model, splits, _ = load_run(options.run, options.root, progress)
        else:
            splits = load_dataset(options.dataset, options.root)
        figure = plot_differences(
            splits["train"], options.relation, num_bins=options.bins, model=model
        )
        show_or_save(figure, options.out)
    if options.out:
        print(f"saved {options.out}")


if __name__ == "__main__":
    main()
