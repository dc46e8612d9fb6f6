"""Draw the rules of a relation with the largest weights, with their measures."""

import argparse

from matplotlib.figure import Figure

from kblrn_pyg.explain import heaviest_rules
from kblrn_pyg.plotting import plot_rules
from kblrn_pyg.runs import load_model
from kblrn_pyg.viz.figure_parser import FigureParser, positive


def draw(options: argparse.Namespace) -> Figure | None:
    model = load_model(options.run)
    found = heaviest_rules(model, model.require_kb(), options.relation, options.top)
    if options.text:
        print(found.to_text())
    return plot_rules(found) if options.out or not options.text else None


def main() -> None:
    """Draws what the options ask for."""
    parser = FigureParser(__doc__)
    parser.add_model()
    parser.add_argument("--relation", required=True, help="the relation, by name")
    parser.add_argument(
        "--top", type=positive, default=15, help="maximum number of rules (default: 15)"
    )
    parser.add_argument("--text", action="store_true", help="also print a table")
    parser.run(draw)


if __name__ == "__main__":
    main()
