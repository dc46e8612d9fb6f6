"""Table 1: the sizes of the data sets, and their numbers of relational features."""

from collections.abc import Sequence
from typing import Any

from kblrn_pyg.data import flat_triples, numerical_features
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.rules import PAPER, mine_rules
from reproduction.amie import lost_by_amie
from reproduction.records import Places, versions, write_record

STATISTICS = "statistics"
_DATASETS = ("FB15k", "FB15k-num", "FB15k-237", "FB15k-237-num", "WN18", "FB122")


def record_statistics(datasets: Sequence[str] | None, places: Places) -> None:
    r"""Counts what is not yet counted.

    Args:
        datasets (sequence, optional): Only these. (default: :obj:`None`, all)
        places (Places): Where data sets and records are.
    """
    for name in datasets or _DATASETS:
        path = places.results / f"{STATISTICS}_{name}.json"
        if not path.exists():
            write_record(path, {STATISTICS: _count(name, places.root)})


def _count(name: str, root: str | None) -> dict[str, Any]:
    splits = load_dataset(name, root)
    train = splits["train"]
    counts: dict[str, Any] = {
        "dataset": name,
        "entities": train["entity"].num_nodes,
        "relations": len(train.edge_types),
        "versions": versions(),
    }
    for split in ("train", "val", "test"):
        triples = flat_triples(splits[split], "edge_label_index")
        counts[split] = triples[0].numel()
    if "x" in train["entity"]:
        has_numbers = numerical_features(train).ptr.diff() > 0
        asked = flat_triples(splits["test"], "edge_label_index")[1].unique()
        counts["relations_with_numbers"] = int(has_numbers.sum())
        counts["relations_with_numbers_in_test"] = int(has_numbers[asked].sum())
    if train.get("rule_lines") is not None:
        counts["rules"] = {"provided": len(train.rule_lines)}
    else:
        rules = mine_rules(train, **PAPER)
        counts["rules"] = {
            "as in the paper": len(rules),
            "of these, AMIE may lose": int(lost_by_amie(train, rules).sum()),
            "paths without a confidence threshold": len(
                mine_rules(train, confidences=False)
            ),
        }
    return counts
