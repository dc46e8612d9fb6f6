"""The surroundings of an entity, with names and numbers (Figure 1)."""

from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.plotting import FigureParser, plot_fragment, positive, show_or_save
from kblrn_pyg.runs import load_splits


def main() -> None:
    parser = FigureParser(__doc__)
    parser.add_argument(
        "--entity", required=True, help="the entity in the middle, by name"
    )
    parser.add_source("its data set")
    parser.add_argument(
        "--hops", type=positive, default=1, help="how far to go (default: 1)"
    )
    parser.add_argument(
        "--max-nodes",
        type=positive,
        default=12,
        help="how many other entities to draw (default: 12)",
    )
    options = parser.parse()
    with parser.mistakes():
        if options.run:
            splits, _ = load_splits(options.run, options.root)
        else:
            splits = load_dataset(options.dataset, options.root)
        figure = plot_fragment(
            splits["train"], options.entity, options.hops, options.max_nodes
        )
        show_or_save(figure, options.out)
    if options.out:
        print(f"saved {options.out}")


if __name__ == "__main__":
    main()
