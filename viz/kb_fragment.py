"""The neighbourhood of an entity, with names and numbers (Figure 1)."""

from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.plotting import FigureParser, plot_fragment, positive, show_or_save
from kblrn_pyg.runs import load_model


def main() -> None:
    parser = FigureParser(__doc__)
    parser.add_argument(
        "--entity", required=True, help="the entity in the middle, by name"
    )
    parser.add_source("its knowledge base")
    parser.add_argument(
        "--hops",
        type=positive,
        default=1,
        help="the largest distance to draw (default: 1)",
    )
    parser.add_argument(
        "--max-nodes",
        type=positive,
        default=12,
        help="at most how many other entities to draw (default: 12)",
    )
    options = parser.parse()
    with parser.mistakes():
        if options.run:
            data = load_model(options.run).require_kb()
        else:
            data = load_dataset(options.dataset, options.root)["train"]
        figure = plot_fragment(data, options.entity, options.hops, options.max_nodes)
        show_or_save(figure, options.out)
    if options.out:
        print(f"saved {options.out}")


if __name__ == "__main__":
    main()
