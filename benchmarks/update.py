"""New entities by an update, beside a training from the beginning.

    KBLRN_DATA=... python benchmarks/update.py --dataset FB15k-237 [--root DIR]

A tenth of the entities, with all of their facts, is held out from a training. Then
they come with their training facts, by ``model.update`` and by training anew on
everything. Both models rank the test triples with at least one of these entities.
Models that are trained once are kept in the folder of ``--runs``. Seconds are those of
the process, so that other processes do not count.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import HeteroData

from kblrn_pyg import KBLRN
from kblrn_pyg.data import (
    ask,
    flat_triples,
    make_kb,
    read_triples,
    read_values,
    update_kb,
)
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.evaluation import Metrics, evaluate
from kblrn_pyg.table import format_table
from kblrn_pyg.training import FoldInSettings, apply_update, fit, seed_all

# Modest, so that a training takes minutes.
MODEL = {"num_negatives": 500, "negatives": "shared", "reciprocal": True, "n3": 0.01}
# How often the facts of new entities are seen; 0 leaves embeddings out.
PASSES = (1, 2, 3, 10, 0)
TRAINING = {"batch_size": 1024, "optimizer": "adagrad", "lr": 0.1}


@dataclass(frozen=True)
class HeldOut:
    """A knowledge base without some entities, and what comes with them."""

    base: HeteroData
    is_new: np.ndarray
    exists: np.ndarray  # what has neither facts nor numbers does not come
    facts: list[tuple[str, str, str]]
    numbers: list[tuple[str, str, float]]


def hold_out(train: HeteroData, fraction: float, seed: int) -> HeldOut:
    """Takes some entities out, with their facts and numbers."""
    entity, num_nodes = train["entity"], train["entity"].num_nodes
    names = entity.get("identifier", entity.name)
    relations = [relation for _, relation, _ in train.edge_types]
    chosen = np.random.default_rng(seed).permutation(num_nodes)
    is_new = np.zeros(num_nodes, bool)
    is_new[chosen[: round(fraction * num_nodes)]] = True
    place = np.cumsum(~is_new) - 1
    head, rel, tail = (index.numpy() for index in flat_triples(train))
    new = is_new[head] | is_new[tail]
    known = [place[head[~new]], rel[~new], place[tail[~new]]]
    old = np.flatnonzero(~is_new).tolist()
    base = make_kb(
        [names[i] for i in old],
        relations,
        tuple(map(torch.from_numpy, known)),
        entity.x[torch.from_numpy(~is_new)],
        train.attribute_names,
    )
    facts = [
        (names[h], relations[r], names[t])
        for h, r, t in zip(*(column[new].tolist() for column in (head, rel, tail)))
    ]
    x = entity.x.numpy()
    row, column = np.nonzero(is_new[:, None] & ~np.isnan(x))
    numbers = [
        (names[i], train.attribute_names[j], float(x[i, j]))
        for i, j in zip(row.tolist(), column.tolist())
    ]
    exists = ~is_new
    exists[np.concatenate([head[new], tail[new], row])] = True
    return HeldOut(base, is_new & exists, exists, facts, numbers)


def trained(kb: HeteroData, path: Path, options: argparse.Namespace) -> KBLRN:
    """Trains a model, or loads the one that was trained before."""
    if path.exists():
        model = KBLRN.load(path)
        seconds = float(path.with_suffix(".seconds").read_text())
    else:
        seed_all(options.seed)
        settings = MODEL | {"hidden_channels": options.hidden_channels}
        settings |= {"evidence_kinds": True} if "e" in options.experts else {}
        start = time.process_time()
        model = KBLRN.from_data(kb, options.experts, scorer="complex", **settings)
        fit(model, kb, epochs=options.epochs, progress=True, **TRAINING)
        seconds = time.process_time() - start
        path.parent.mkdir(parents=True, exist_ok=True)
        model.save(path)
        path.with_suffix(".seconds").write_text(f"{seconds}\n")
    model.seconds = seconds
    return model


def rank_new(model: KBLRN, splits: dict, held_out: HeldOut) -> Metrics:
    """Ranks the test triples with a new entity, by whatever ids a model has."""
    entity = splits["train"]["entity"]
    own = model.require_kb()["entity"]
    id_of = {name: i for i, name in enumerate(own.get("identifier", own.name))}
    names = entity.get("identifier", entity.name)
    ids = torch.tensor([id_of.get(name, -1) for name in names])
    exists, is_new = (
        torch.from_numpy(one) for one in (held_out.exists, held_out.is_new)
    )
    asked, others = [], []
    for split in ("val", "test"):
        head, rel, tail = flat_triples(splits[split], "edge_label_index")
        keep = exists[head] & exists[tail]
        is_ranked = keep & (is_new[head] | is_new[tail]) & (split == "test")
        # The others are not ranked, but they are answers.
        for rows, found in ((is_ranked, asked), (keep & ~is_ranked, others)):
            triples = ids[head[rows]], rel[rows], ids[tail[rows]]
            found.append(ask(model.require_kb(), triples))
    return evaluate(model, asked[-1], others).metrics()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", default="FB15k-237")
    parser.add_argument("--root", help="where data sets are kept")
    parser.add_argument("--runs", default="out/update", help="where models are kept")
    parser.add_argument("--experts", default="l", help="(default: l)")
    parser.add_argument("--hidden-channels", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--fraction", type=float, default=0.1, help="held out")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    splits = load_dataset(options.dataset, options.root)
    held_out = hold_out(splits["train"], options.fraction, options.seed)
    name = f"{options.dataset}_{options.experts}_d{options.hidden_channels}"
    folder = Path(options.runs) / f"{name}_{options.epochs}epochs_seed{options.seed}"
    whole = trained(splits["train"], folder / "whole.pt", options)
    base = trained(held_out.base, folder / "base.pt", options)
    print(
        f"{options.dataset}, KB{options.experts}: {int(held_out.is_new.sum()):,} new "
        f"entities with {len(held_out.facts):,} facts, "
        f"{len(held_out.numbers):,} numbers"
    )
    rows = [_row("trained on everything", whole, whole, splits, held_out, 0.0)]
    facts = read_triples(held_out.facts)  # not counted, nor is reading for training
    values = read_values(held_out.numbers) if held_out.numbers else None
    apply_update(base, update_kb(base.require_kb(), facts), True)  # compiles
    for passes in PASSES:
        start = time.process_time()
        update = update_kb(base.require_kb(), facts, values)
        settings = FoldInSettings(epochs=passes or 1, least_steps=1)
        model = apply_update(base, update, passes > 0, settings)
        seconds = time.process_time() - start
        title = f"updated, {passes} passes" if passes else "updated, not folded in"
        rows.append(_row(title, model, whole, splits, held_out, seconds))
    header = ["model", "seconds", "of training", "MRR", "hits@10", "of its MRR"]
    reference = float(rows[0][3])
    for row in rows:
        row.append(f"{float(row[3]) / reference:.1%}")
    print(format_table(header, rows, markdown=True))
    return 0


def _row(title, model, whole, splits, held_out, seconds) -> list:
    found = rank_new(model, splits, held_out)
    seconds = seconds or whole.seconds
    part = f"{seconds / whole.seconds:.2%}"
    figures = f"{found.mrr:.4f}", f"{found.hits_at_10:.4f}"
    return [title, f"{seconds:.1f}", part, *figures]


if __name__ == "__main__":
    sys.exit(main())
