"""Why the model of a run scores a triple as it does, as a picture."""

from kblrn_pyg.plotting import FigureParser, plot_explanation, show_or_save
from kblrn_pyg.runs import load_model


def main() -> None:
    parser = FigureParser(__doc__)
    parser.add_argument(
        "--run", required=True, help="the folder of a run, or a model file"
    )
    parser.add_argument("head", help="the head, by name or identifier")
    parser.add_argument("relation", help="the relation, by name or its end")
    parser.add_argument("tail", help="the tail, by name or identifier")
    options = parser.parse()
    with parser.mistakes():
        model = load_model(options.run)
        reasons = model.explain(options.head, options.relation, options.tail)
        show_or_save(plot_explanation(reasons), options.out)
    if options.out:
        print(f"saved {options.out}")


if __name__ == "__main__":
    main()
