"""The heaviest rules of a relation in a trained model, with their measures."""

import sys

from kblrn_pyg.plotting import (
    FigureParser,
    check_output,
    heaviest_rules,
    plot_rules,
    positive,
    show_or_save,
)
from kblrn_pyg.runs import load_run


def main() -> None:
    parser = FigureParser(__doc__)
    parser.add_run()
    parser.add_argument("--relation", required=True, help="the relation, by name")
    parser.add_argument(
        "--top", type=positive, default=15, help="how many rules (default: 15)"
    )
    parser.add_argument("--text", action="store_true", help="print a table, too")
    options = parser.parse_args()
    with parser.mistakes():
        if options.out or not options.text:
            check_output(options.out)
        progress = sys.stderr.isatty()
        model, splits, _ = load_run(options.run, options.root, progress)
        found = heaviest_rules(model, splits["train"], options.relation, options.top)
        if options.text:
            print(found.to_text())
        if options.out or not options.text:
            show_or_save(plot_rules(found), options.out)
    if options.out:
        print(f"saved {options.out}")


if __name__ == "__main__":
    main()
