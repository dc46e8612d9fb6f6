"""Draw histograms of head minus tail with their radial basis functions (Figure 3), or
with the layers that a run learned."""

import argparse

from matplotlib.figure import Figure

from kblrn_pyg.plotting import plot_differences
from kblrn_pyg.viz.figure_parser import FigureParser, load_source, positive


def draw(options: argparse.Namespace) -> Figure:
    data, model = load_source(options)
    return plot_differences(
        data,
        options.relation,
        num_bins=options.bins,
        model=model,
        attribute=options.attribute,
        log=options.log,
    )


def main() -> None:
    """Draws what the options ask for."""
    parser = FigureParser(__doc__)
    parser.add_argument(
        "--relation",
        action="append",
        required=True,
        help="a relation by name (repeatable)",
    )
    parser.add_source("its knowledge base and learned weights")
    parser.add_argument("--attribute", help="an attribute by name (default: all)")
    parser.add_argument(
        "--log", action="store_true", help="draw differences on a logarithmic axis"
    )
    parser.add_argument("--bins", type=positive, help="the number of bars")
    parser.run(draw)


if __name__ == "__main__":
    main()
