"""Draw the neighbourhood of an entity, with names and numbers (Figure 1)."""

import argparse

from matplotlib.figure import Figure

from kblrn_pyg.plotting import plot_fragment
from kblrn_pyg.viz.figure_parser import FigureParser, load_source, positive


def draw(options: argparse.Namespace) -> Figure:
    data, _ = load_source(options)
    return plot_fragment(data, options.entity, options.hops, options.max_nodes)


def main() -> None:
    """Draws what the options ask for."""
    parser = FigureParser(__doc__)
    parser.add_argument(
        "--entity", required=True, help="the entity in the middle, by name"
    )
    parser.add_source("its knowledge base")
    parser.add_argument(
        "--hops",
        type=positive,
        default=1,
        help="the maximum distance to draw (default: 1)",
    )
    parser.add_argument(
        "--max-nodes",
        type=positive,
        default=12,
        help="the maximum number of other entities to draw (default: 12)",
    )
    parser.run(draw)


if __name__ == "__main__":
    main()
