"""Mine the path rules of a data set and show the best of them."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from kblrn_pyg.cli.options import (
    add_settings,
    given_settings,
    is_first_process,
    shows_progress,
)
from kblrn_pyg.data import DataError
from kblrn_pyg.datasets.names import COUNTS, check_name
from kblrn_pyg.rules.settings import PAPER, MineSettings
from kblrn_pyg.table import format_table

if TYPE_CHECKING:
    from kblrn_pyg.rules import RuleSet

_FORMATS = {".tsv": "amie", ".txt": "anyburl", ".kale": "kale"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "dataset",
        help=f"one of {', '.join(COUNTS)}, or the directory of an imported data set",
    )
    parser.add_argument("--root", help="where data sets are kept")
    parser.add_argument(
        "--preset",
        choices=["paper"],
        help="the rules that the paper used as features: "
        + ", ".join(f"{key} {value}" for key, value in PAPER.items())
        + "; other options take precedence",
    )
    add_settings(parser, MineSettings)
    parser.add_argument("--relation", help="show the rules of one relation")
    parser.add_argument(
        "--top",
        type=int,
        default=20,
        help="the number of rules to show (default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        help="the file to write: .tsv in the format of AMIE, .txt of AnyBURL, .kale "
        "of KALE, .pt for RuleSet.load",
    )


def run(options: argparse.Namespace) -> None:
    suffix = Path(options.out or "").suffix
    if options.out and suffix not in (*_FORMATS, ".pt"):
        endings = ", ".join((*_FORMATS, ".pt"))
        raise DataError(f"{options.out!r} has no known ending, expected {endings}")
    check_name(options.dataset)
    given = given_settings(options, MineSettings)
    MineSettings(**given)  # which refuses wrong ones
    # Only now, as torch takes seconds to import.
    from kblrn_pyg.data import Vocabulary
    from kblrn_pyg.datasets import load_dataset
    from kblrn_pyg.rules import mine_rules, write_rules

    data = load_dataset(options.dataset, options.root)["train"]
    names = Vocabulary.of(data).relations
    relation = names.resolve(options.relation) if options.relation else None
    preset = PAPER if options.preset == "paper" else {}
    rules = mine_rules(data, **preset | given, progress=shows_progress())
    if not is_first_process():
        return
    shown = rules if relation is None else rules.filter(relations=[relation])
    print(_summary(rules))
    print()
    print(_best(shown, options.top))
    if options.out:
        if suffix == ".pt":
            rules.save(options.out)
        else:
            write_rules(rules, options.out, _FORMATS[suffix])
        print(f"\nsaved {options.out}")


def _summary(rules: "RuleSet") -> str:
    row = [
        len(rules),
        int((rules.num_steps == 1).sum()),
        int((~rules.parallel & (rules.num_steps == 2)).sum()),
        int(rules.parallel.sum()),
        len(set(rules.head.tolist())),
    ]
    header = ["rules", "one hop", "two hops", "parallel", "relations with rules"]
    return format_table(header, [row])


def _best(rules: "RuleSet", number: int) -> str:
    from kblrn_pyg.rules import body_text
    from kblrn_pyg.rules.text import about

    # Over all relations, unlike 'RuleSet.sort'. Rules of a handful of facts are
    # sure but useless: rank by both.
    worth = rules.head_coverage * rules.pca_confidence
    rows = [
        [
            rules.relations[rules.head[i]],
            body_text(rules, i),
            int(rules.support[i]),
            float(rules.head_coverage[i]),
            f"{about(rules, i)}{rules.confidence[i]:.4g}",
            f"{about(rules, i)}{rules.pca_confidence[i]:.4g}",
        ]
        for i in (-worth).argsort(kind="stable")[:number].tolist()
    ]
    header = ["head", "body", "support", "coverage", "confidence", "PCA confidence"]
    return format_table(header, rows)
