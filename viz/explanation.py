"""Why the model of a run scores a triple as it does, as a picture."""

import sys

from kblrn_pyg.plotting import FigureParser, plot_explanation, show_or_save
from kblrn_pyg.runs import load_run, other_answers


def main() -> None:
    parser = FigureParser(__doc__)
    parser.add_argument(
        "--run", required=True, help="the folder that 'kblrn train' wrote"
    )
    parser.add_argument("head", help="the head, by name or identifier")
    parser.add_argument("relation", help="the relation, by name or its end")
    parser.add_argument("tail", help="the tail, by name or identifier")
    options = parser.parse()
    with parser.mistakes():
        model, splits, _ = load_run(options.run, progress=sys.stderr.isatty())
        triple = (options.head, options.relation, options.tail)
        reasons = model.explain(*triple, known=other_answers(splits, "train"))
        show_or_save(plot_explanation(reasons), options.out)
    if options.out:
        print(f"saved {options.out}")


if __name__ == "__main__":
    main()
