"""List the data sets, or print the statistics of one."""

import argparse
from typing import TYPE_CHECKING

from kblrn_pyg.datasets.names import COUNTS, check_name, default_root
from kblrn_pyg.table import format_table

if TYPE_CHECKING:
    from torch_geometric.data import HeteroData

_MAX_RELATIONS = 12
_MAX_LISTED = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "dataset",
        nargs="?",
        help=f"one of {', '.join(COUNTS)}, or the directory of an imported data set",
    )
    parser.add_argument(
        "--root", help=f"the directory of data sets (default: {default_root()})"
    )


def run(options: argparse.Namespace) -> None:
    if options.dataset is None:
        print(_list_datasets())
        return
    check_name(options.dataset)
    from kblrn_pyg.datasets import load_dataset

    print(_describe(options.dataset, load_dataset(options.dataset, options.root)))


def _list_datasets() -> str:
    rows = [[name, *counts] for name, counts in COUNTS.items()]
    header = ["data set", "entities", "relations", "train", "valid", "test"]
    return format_table(header, rows)


def _describe(name: str, splits: "dict[str, HeteroData]") -> str:
    from kblrn_pyg.data import kb_statistics

    counts = kb_statistics(splits)
    header = ["data set", "entities", "relations"]
    row: list[object] = [name, counts.num_entities, counts.num_relations]
    for split, number in counts.num_triples.items():
        header.append({"val": "valid"}.get(split, split))
        row.append(number)
    more = [
        ["entities with training triples", counts.num_entities_in_training],
        ["mean degree", counts.mean_degree],
        ["largest degree", counts.max_degree],
        ["numerical attributes", counts.num_attributes],
        ["numerical values", counts.num_values],
        ["entities with numbers", counts.num_entities_with_numbers],
        ["relations with numerical features", counts.num_numerical_relations],
        ["numerical features", counts.num_numerical_features],
    ]
    parts = [format_table(header, [row]), format_table(["", ""], more).lstrip("\n")]
    if counts.num_numerical_features:
        parts.append(_numerical_table(splits["train"]))
    if counts.num_attributes:
        parts += _layer_lines(splits["train"])
    return "\n\n".join(parts)


def _layer_lines(data: "HeteroData") -> list[str]:
    """Lists the attributes that layers compare by logarithms, and those that they
    leave out."""
    from kblrn_pyg.data import pair_attributes
    from kblrn_pyg.data.derived import derived_attributes
    from kblrn_pyg.data.layers import left_out
    from kblrn_pyg.data.words import listing

    logs = [one.name for one in pair_attributes(data) if "log" in one.kind]
    useless = [f"{name} ({reason})" for name, reason in left_out(data).items()]
    derived = [
        f"{one.name} ({one.kind} of {data.attribute_names[one.a]} and "
        f"{data.attribute_names[one.b]})"
        for one in derived_attributes(data)
    ]
    lines = {
        "compared by logarithms, too": logs,
        "derived": derived,
        "attributes that are left out": useless,
    }
    return [
        f"layers of numbers, {what}: {listing(names[:_MAX_LISTED], len(names))}"
        for what, names in lines.items()
        if names
    ]


def _numerical_table(data: "HeteroData") -> str:
    from kblrn_pyg.data import Vocabulary, numerical_features

    features, names = numerical_features(data), Vocabulary.of(data)
    sizes = [store.edge_index.size(1) for store in data.edge_stores]
    relations = sorted(features.relations.tolist(), key=lambda r: -sizes[r])
    rows = [
        [
            names.relations[relation],
            names.attributes[int(features.attribute[i])],
            int(features.count[i]),
            float(features.centre[i]),
            float(features.width[i]),
        ]
        for relation in relations[:_MAX_RELATIONS]
        for i in range(*features.of(relation).indices(len(features)))
    ]
    header = ["relation", "attribute", "triples", "mean of head - tail", "deviation"]
    text = format_table(header, rows)
    left = len(relations) - _MAX_RELATIONS
    return f"{text}\n... and {left} more relations" if left > 0 else text
