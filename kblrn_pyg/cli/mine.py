"""Mine the rules of a data set, with paths or with constants, and show the best."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kblrn_pyg.cli.left_out import says_what_is_left_out
from kblrn_pyg.cli.options import (
    add_dataset,
    add_settings,
    given_settings,
    is_first_process,
    option_name,
    shows_progress,
)
from kblrn_pyg.data import DataError
from kblrn_pyg.datasets.names import check_name
from kblrn_pyg.rules.settings import PAPER, ConstantSettings, MineSettings
from kblrn_pyg.table import format_table

if TYPE_CHECKING:
    from kblrn_pyg.data import Names
    from kblrn_pyg.rules import ConstantRuleSet, RuleSet

_FORMATS = {".tsv": "amie", ".txt": "anyburl", ".kale": "kale"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument(
        "--preset",
        choices=["paper"],
        help="the rules that the paper used as features: "
        + ", ".join(f"{key} {value}" for key, value in PAPER.items())
        + "; other options take precedence",
    )
    add_settings(parser, MineSettings)
    parser.add_argument(
        "--constants",
        action="store_true",
        help="mine rules r(x, c) ⇐ a(x, d) with constants c and d instead of paths, by "
        f"default with a support of at least {ConstantSettings.min_support}",
    )
    add_settings(parser, ConstantSettings, without=MineSettings)
    parser.add_argument("--relation", help="show only the rules of this relation")
    parser.add_argument(
        "--top",
        type=int,
        default=20,
        help="the number of rules to show (default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        help="the file to write: .tsv for the format of AMIE, .txt for AnyBURL, "
        ".kale for KALE, .pt for RuleSet.load",
    )


def run(options: argparse.Namespace) -> None:
    suffix = Path(options.out or "").suffix
    if options.out and suffix not in (*_FORMATS, ".pt"):
        endings = ", ".join((*_FORMATS, ".pt"))
        raise DataError(f"{options.out!r} has no known ending, expected {endings}")
    check_name(options.dataset)
    given = _given(options)
    # Only now, as torch takes seconds to import.
    from kblrn_pyg.data import Vocabulary
    from kblrn_pyg.datasets import load_dataset
    from kblrn_pyg.rules import mine_constants, mine_rules, write_rules

    data = load_dataset(options.dataset, options.root)["train"]
    names = Vocabulary.of(data)
    relation = names.relations.resolve(options.relation) if options.relation else None
    if options.constants and not is_first_process():
        return  # the first one does all of this work
    if options.constants:
        with says_what_is_left_out():
            rules = mine_constants(data, **given, progress=shows_progress()).as_rules()
    else:
        preset = PAPER if options.preset == "paper" else {}
        rules = mine_rules(data, **preset | given, progress=shows_progress())
    if not is_first_process():
        return
    shown = rules if relation is None else rules.filter(relations=[relation])
    if rules.constants is not None and shown.constants is not None:
        print(_constants_summary(rules.constants))
        print()
        print(_best_constants(shown.constants, options.top, names.entities))
    else:
        print(_summary(rules))
        print()
        print(_best(shown, options.top))
    if options.out:
        if suffix == ".pt":
            rules.save(options.out)
        else:
            write_rules(rules, options.out, _FORMATS[suffix])
        print(f"\nsaved {options.out}")


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the settings that were given, and refuses those without effect."""
    settings: tuple[type, type] = (MineSettings, ConstantSettings)
    used, other = settings[::-1] if options.constants else settings
    given = given_settings(options, used)
    how = "with" if options.constants else "without"
    unused = [name for name in given_settings(options, other) if name not in given]
    unused += ["preset"] if options.preset and options.constants else []
    for name in unused:
        raise DataError(f"{option_name(name)} has no effect {how} --constants")
    used(**given)  # which refuses wrong ones
    if options.constants and Path(options.out or "").suffix == ".kale":
        raise DataError(f"{options.out!r}: the format of KALE has no constants")
    if given.get("bins") and Path(options.out or "").suffix in _FORMATS:
        raise DataError(
            f"{options.out!r}: rules about numbers have no words in this format, save "
            "them as .pt"
        )
    return given


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


def _constants_summary(rules: "ConstantRuleSet") -> str:
    has_body = rules.body_code >= 0
    is_number = rules.body_code >= 2 * len(rules.relations)
    has_entity = (rules.body_entity >= 0) & ~is_number
    row = [
        len(rules),
        int(has_entity.sum()),
        int((has_body & ~has_entity & ~is_number).sum()),
        int((~has_body).sum()),
        int(((rules.ptr[1:] - rules.ptr[:-1]) > 0).sum()),
    ]
    header = ["rules", "a(x, d)", "a(x, ·)", "no body", "relations with rules"]
    if rules.intervals is not None:
        row.insert(3, int(is_number.sum()))
        header.insert(3, "numbers")
    return format_table(header, [row])


def _best_constants(rules: "ConstantRuleSet", number: int, names: "Names") -> str:
    from kblrn_pyg.rules.text import constant_atoms

    # Rules of a handful of examples are sure but useless: confidences are shrunk.
    best = rules.select(rules.best(number))
    confidence, pca_confidence = best.confidence, best.pca_confidence
    rows = [
        [
            *constant_atoms(best, i, names.unique),
            int(best.support[i]),
            f"{confidence[i]:.4g}",
            f"{pca_confidence[i]:.4g}",
        ]
        for i in best.best(number).tolist()  # in the order of all relations
    ]
    header = ["head", "body", "support", "confidence", "PCA confidence"]
    return format_table(header, rows)
