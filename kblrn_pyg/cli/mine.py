"""Mine the path rules of a data set and show the best of them."""

import argparse
from pathlib import Path
from typing import Any

from kblrn_pyg.cli.table import format_table
from kblrn_pyg.data import DataError, Vocabulary
from kblrn_pyg.datasets import DATASETS, load_dataset
from kblrn_pyg.rules import PAPER, RuleSet, body_text, mine_rules, write_rules

# Arguments of 'mine_rules' that are options here.
_SETTINGS = (
    "max_hops",
    "min_head_coverage",
    "min_support",
    "min_confidence",
    "min_pca_confidence",
    "max_rules_per_relation",
    "parallel",
)

_FORMATS = {".tsv": "amie", ".txt": "anyburl", ".kale": "kale"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "dataset",
        help=f"one of {', '.join(DATASETS)}, or the directory of an imported data set",
    )
    parser.add_argument("--root", help="where data sets are kept")
    parser.add_argument(
        "--preset",
        choices=["paper"],
        help="the rules that the paper used as features: "
        + ", ".join(f"{key} {value}" for key, value in PAPER.items())
        + "; other options beat it",
    )
    parser.add_argument(
        "--max-hops", type=int, choices=[1, 2], help="the longest path (default: 2)"
    )
    _add_least(parser, "head_coverage", float, 0.01, "the part of facts it explains")
    _add_least(parser, "support", int, 1, "the number of facts it explains")
    _add_least(parser, "confidence", float, 0.0, "the part of its pairs that are facts")
    _add_least(
        parser,
        "pca_confidence",
        float,
        0.0,
        "the same, of pairs whose head has known tails",
    )
    parser.add_argument(
        "--max-rules-per-relation",
        type=int,
        help="keep those with the most support (default: all)",
    )
    parser.add_argument(
        "--parallel",
        action="store_true",
        default=None,
        help="look for a(h, t) ∧ b(h, t), too",
    )
    parser.add_argument("--relation", help="show the rules of one relation")
    parser.add_argument(
        "--top", type=int, default=20, help="how many to show (default: %(default)s)"
    )
    parser.add_argument(
        "--out",
        help="the file to write: .tsv as AMIE, .txt as AnyBURL, .kale as KALE write "
        "rules, .pt for RuleSet.load",
    )


def _add_least(
    parser: argparse.ArgumentParser, name: str, kind: type, least: float, text: str
) -> None:
    """Adds a lower bound of what a rule needs."""
    parser.add_argument(
        f"--min-{name.replace('_', '-')}",
        type=kind,
        help=f"the least {name.replace('_', ' ')} of a rule: {text} (default: {least})",
    )


def run(options: argparse.Namespace) -> None:
    if options.out and Path(options.out).suffix not in (*_FORMATS, ".pt"):
        endings = ", ".join((*_FORMATS, ".pt"))
        raise DataError(f"{options.out!r} has no known ending, expected {endings}")
    data = load_dataset(options.dataset, options.root)["train"]
    names = Vocabulary.of(data).relations
    relation = names.resolve(options.relation) if options.relation else None
    given = {name: getattr(options, name) for name in _SETTINGS}
    settings: dict[str, Any] = PAPER if options.preset == "paper" else {}
    settings = settings | {k: value for k, value in given.items() if value is not None}
    rules = mine_rules(data, **settings, progress=True)
    shown = rules if relation is None else rules.filter(relations=[relation])
    print(_summary(rules))
    print()
    print(_best(shown, options.top))
    if options.out:
        _save(rules, options.out)
        print(f"\nsaved {options.out}")


def _summary(rules: RuleSet) -> str:
    is_path = ~rules.parallel
    row = [
        len(rules),
        int((is_path & (rules.num_steps == 1)).sum()),
        int((is_path & (rules.num_steps == 2)).sum()),
        int(rules.parallel.sum()),
        len(set(rules.head.tolist())),
    ]
    header = ["rules", "one hop", "two hops", "parallel", "relations with rules"]
    return format_table(header, [row])


def _best(rules: RuleSet, number: int) -> str:
    # Rules of a handful of facts are sure but useless: rank by both.
    worth = rules.head_coverage * rules.pca_confidence
    rows = [
        [
            rules.relations[rules.head[i]],
            body_text(rules, i),
            int(rules.support[i]),
            float(rules.head_coverage[i]),
            float(rules.confidence[i]),
            float(rules.pca_confidence[i]),
        ]
        for i in (-worth).argsort(kind="stable")[:number].tolist()
    ]
    header = ["head", "body", "support", "coverage", "confidence", "PCA confidence"]
    return format_table(header, rows)


def _save(rules: RuleSet, out: str) -> None:
    if out.endswith(".pt"):
        rules.save(out)
    else:
        write_rules(rules, out, _FORMATS[Path(out).suffix])
