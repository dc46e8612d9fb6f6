"""Histograms of head minus tail with their radial basis functions (Figure 3)."""

import argparse
import sys

from kblrn_pyg.data import DataError
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.plotting import plot_differences, show_or_save


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--relation",
        action="append",
        required=True,
        help="a relation by name; may be given more than once",
    )
    parser.add_argument(
        "--dataset",
        default="Families",
        help="a data set by name, or the directory of an imported one "
        "(default: Families)",
    )
    parser.add_argument("--root", help="where data sets are kept")
    parser.add_argument("--bins", type=int, help="number of bars")
    parser.add_argument("--out", help="the .png, .svg or .pdf file to write")
    options = parser.parse_args()
    try:
        data = load_dataset(options.dataset, options.root)["train"]
        figure = plot_differences(data, options.relation, num_bins=options.bins)
        show_or_save(figure, options.out)
    except (DataError, OSError) as error:
        print(f"rbf_hist: {error}", file=sys.stderr)
        return 2
    if options.out:
        print(f"saved {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
