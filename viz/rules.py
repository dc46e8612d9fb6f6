"""The heaviest rules of a relation in a trained model, with their measures."""

from kblrn_pyg.explain import heaviest_rules
from kblrn_pyg.plotting import (
    FigureParser,
    check_output,
    plot_rules,
    positive,
    show_or_save,
)
from kblrn_pyg.runs import load_model


def main() -> None:
    parser = FigureParser(__doc__)
    parser.add_argument(
        "--run", required=True, help="the folder of a run, or a model file"
    )
    parser.add_argument("--relation", required=True, help="the relation, by name")
    parser.add_argument(
        "--top", type=positive, default=15, help="at most how many rules (default: 15)"
    )
    parser.add_argument("--text", action="store_true", help="print a table, too")
    options = parser.parse_args()
    with parser.mistakes():
        if options.out or not options.text:
            check_output(options.out)
        model = load_model(options.run)
        kb = model.require_kb()
        found = heaviest_rules(model, kb, options.relation, options.top)
        if options.text:
            print(found.to_text())
        if options.out or not options.text:
            show_or_save(plot_rules(found), options.out)
    if options.out:
        print(f"saved {options.out}")


if __name__ == "__main__":
    main()
