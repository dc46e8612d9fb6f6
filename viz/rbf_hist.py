"""Histograms of head minus tail with their radial basis functions (Figure 3)."""

from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.plotting import FigureParser, plot_differences, positive, show_or_save
from kblrn_pyg.runs import load_model


def main() -> None:
    parser = FigureParser(__doc__)
    parser.add_argument(
        "--relation",
        action="append",
        required=True,
        help="a relation by name; may be given more than once",
    )
    parser.add_source("its knowledge base and learned weights")
    parser.add_argument("--bins", type=positive, help="number of bars")
    options = parser.parse()
    with parser.mistakes():
        model = None
        if options.run:
            model = load_model(options.run)
            data = model.require_kb()
        else:
            data = load_dataset(options.dataset, options.root)["train"]
        figure = plot_differences(
            data, options.relation, num_bins=options.bins, model=model
        )
        show_or_save(figure, options.out)
    if options.out:
        print(f"saved {options.out}")


if __name__ == "__main__":
    main()
