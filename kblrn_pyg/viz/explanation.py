"""Draw an explanation of the score that the model of a run gives to a triple."""

import argparse

from matplotlib.figure import Figure

from kblrn_pyg.plotting import plot_explanation
from kblrn_pyg.runs import load_model
from kblrn_pyg.viz.figure_parser import FigureParser


def draw(options: argparse.Namespace) -> Figure:
    model = load_model(options.run)
    return plot_explanation(model.explain(options.head, options.relation, options.tail))


def main() -> None:
    """Draws what the options ask for."""
    parser = FigureParser(__doc__)
    parser.add_model()
    parser.add_argument("head", help="the head, by name or identifier")
    parser.add_argument("relation", help="the relation, by name or its end")
    parser.add_argument("tail", help="the tail, by name or identifier")
    parser.run(draw)


if __name__ == "__main__":
    main()
