"""Loss and validation of one run or several by epoch."""

from kblrn_pyg.plotting import FigureParser, plot_training, show_or_save
from kblrn_pyg.training.history import read_histories


def main() -> None:
    parser = FigureParser(__doc__)
    parser.add_argument(
        "--run", nargs="+", required=True, help="folders that 'kblrn train' wrote"
    )
    options = parser.parse()
    with parser.mistakes():
        show_or_save(plot_training(read_histories(options.run)), options.out)
    if options.out:
        print(f"saved {options.out}")


if __name__ == "__main__":
    main()
