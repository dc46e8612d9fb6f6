"""Mine the path rules of a data set and show the best of them."""

import argparse
import inspect
from pathlib import Path
from typing import Any

from kblrn_pyg.cli.options import shows_progress
from kblrn_pyg.data import DataError, Vocabulary
from kblrn_pyg.datasets import DATASETS, load_dataset
from kblrn_pyg.rules import PAPER, RuleSet, body_text, mine_rules, write_rules
from kblrn_pyg.table import format_table

# The arguments of 'mine_rules' that are options here.
_OPTIONS = {
    "max_hops": "the largest number of steps of a path",
    "min_head_coverage": "the least fraction of a relation's facts that a rule covers",
    "min_support": "the least number of facts that a rule covers",
    "min_confidence": "the least fraction of a body's pairs that are facts",
    "min_pca_confidence": "the same, of the pairs whose head has known tails",
    "max_rules_per_relation": "keep at most this many, those with the largest support",
    "parallel": "mine bodies a(h, t) ∧ b(h, t), too",
}

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
        + "; other options take precedence",
    )
    known = inspect.signature(mine_rules).parameters
    for name, text in _OPTIONS.items():
        _add_option(parser, name, text, known[name].default)
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


def _add_option(
    parser: argparse.ArgumentParser, name: str, text: str, default: Any
) -> None:
    """Adds an option that is None unless given, so that a preset can set it."""
    flag = f"--{name.replace('_', '-')}"
    if default is False:
        parser.add_argument(flag, action="store_true", default=None, help=text)
        return
    kind, shown = (int, "all") if default is None else (type(default), default)
    parser.add_argument(flag, type=kind, help=f"{text} (default: {shown})")


def run(options: argparse.Namespace) -> None:
    suffix = Path(options.out or "").suffix
    if options.out and suffix not in (*_FORMATS, ".pt"):
        endings = ", ".join((*_FORMATS, ".pt"))
        raise DataError(f"{options.out!r} has no known ending, expected {endings}")
    data = load_dataset(options.dataset, options.root)["train"]
    names = Vocabulary.of(data).relations
    relation = names.resolve(options.relation) if options.relation else None
    given = {name: getattr(options, name) for name in _OPTIONS}
    settings: dict[str, Any] = PAPER if options.preset == "paper" else {}
    settings = settings | {k: value for k, value in given.items() if value is not None}
    rules = mine_rules(data, **settings, progress=shows_progress())
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


def _summary(rules: RuleSet) -> str:
    row = [
        len(rules),
        int((rules.num_steps == 1).sum()),
        int((~rules.parallel & (rules.num_steps == 2)).sum()),
        int(rules.parallel.sum()),
        len(set(rules.head.tolist())),
    ]
    header = ["rules", "one hop", "two hops", "parallel", "relations with rules"]
    return format_table(header, [row])


def _best(rules: RuleSet, number: int) -> str:
    # Over all relations, unlike 'RuleSet.sort'. Rules of a handful of facts are
    # sure but useless: rank by both.
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
