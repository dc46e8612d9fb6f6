"""Can a model learn "high if the value is above 0.5"? Most that use numbers cannot.

    python benchmarks/semi_synthetic.py
    KBLRN_DATA=... python benchmarks/semi_synthetic.py --dataset FB15k-237

The test is that of Blum et al. (Numerical Literals in Link Prediction, ISWC 2024). All
entities of a data set get a value, drawn uniformly from 0 to 1, in place of their
numbers. Those of one type, people, have one fact more: ``is_a high`` if the value is
above 0.5, or else ``is_a low``. 70 % of these facts are training facts, 15 % are for
validation, and 15 % are the test. Two things are measured:

* *accuracy*: of the test entities, for how many the right one of the two classes scores
  higher; chance is 0.5. Ties count by half.
* *type*: how often the higher score of a test entity is above that of an entity of
  another type, which has a value, too, but is neither high nor low. Ties count by half.

Both are measured with the true values and with permuted ones: a model that does as well
with these does not use numbers. It sees all facts; the weights of ``is_a`` are what it
learns. ``--json`` keeps the figures.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples, make_kb
from kblrn_pyg.data.control import control_numbers
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.rules import RuleSet

# How the relations begin whose heads are people.
PEOPLE = {"Families": "lives_in", "FB15k-237": "/people/person/"}
THRESHOLD = 0.5
HELD_OUT = 0.15  # once for validation and once for the test


@dataclass(frozen=True)
class SemiSynthetic:
    r"""A knowledge base whose entities have values, and what is asked about it.

    Args:
        train (HeteroData): The knowledge base, with the training facts of ``is_a``.
        asked (dict): The entities of each split that ``is_a`` is asked for.
        others (torch.Tensor): Entities of other types, as many as those of the test.
        classes (tuple): The entities ``low`` and ``high``.
    """

    train: HeteroData
    asked: dict[str, Tensor]
    others: Tensor
    classes: tuple[int, int]

    @property
    def is_a(self) -> int:
        """The relation."""
        return len(self.train.edge_types) - 1

    def is_high(self, entities: Tensor) -> Tensor:
        """Tells which entities are high."""
        return self.train["entity"].x[entities, 0] > THRESHOLD


def make_semi_synthetic(data: HeteroData, prefix: str, seed: int = 0) -> SemiSynthetic:
    r"""Draws values, and adds the facts that follow from them.

    Args:
        data (HeteroData): The training graph of a data set.
        prefix (str): How the relations begin whose heads are of the type that is high
            or low.
        seed (int, optional): The seed. (default: :obj:`0`)
    """
    generator = torch.Generator().manual_seed(seed)
    head, rel, tail = flat_triples(data)
    relations = [relation for _, relation, _ in data.edge_types]
    is_wanted = torch.tensor([name.startswith(prefix) for name in relations])
    if not is_wanted.any():
        raise ValueError(f"'prefix' must be that of a relation (got {prefix!r})")
    size = data["entity"].num_nodes
    value = torch.rand(size, generator=generator, dtype=torch.double)
    people = torch.unique(head[is_wanted[rel]])
    people = people[torch.randperm(len(people), generator=generator)]
    held_out = int(HELD_OUT * len(people))
    sizes = [held_out, held_out, len(people) - 2 * held_out]
    asked = dict(zip(("test", "val", "train"), people.split(sizes)))
    is_other = torch.ones(size, dtype=torch.bool)
    is_other[people] = False
    others = is_other.nonzero().flatten()
    others = others[torch.randperm(len(others), generator=generator)[:held_out]]
    known = asked["train"]
    is_high = value[known] > THRESHOLD
    triples = (
        torch.cat([head, known]),
        torch.cat([rel, torch.full_like(known, len(relations))]),
        torch.cat([tail, size + is_high.long()]),
    )
    unknown = torch.full((2,), torch.nan, dtype=torch.double)
    entity = data["entity"]
    train = make_kb(
        [*entity.name, "low", "high"],
        [*relations, "is_a"],
        triples,
        torch.cat([value, unknown])[:, None],
        ["value"],
        [*entity.get("identifier", entity.name), "low", "high"],
    )
    return SemiSynthetic(train, asked, others, (size, size + 1))


def learn(
    made: SemiSynthetic, data: HeteroData, epochs: int, lr: float, **settings: Any
) -> KBLRN:
    r"""Makes an evidence expert of facts and numbers, and learns its weights.

    Args:
        made (SemiSynthetic): What there is to learn.
        data (HeteroData): The knowledge base, maybe with other values.
        epochs (int): The number of epochs.
        lr (float): The learning rate.
        **settings (optional): The settings of the model.
    """
    torch.manual_seed(0)
    no_paths = RuleSet.build([relation for _, relation, _ in data.edge_types], [], [])
    model = KBLRN.from_data(data, "e", rules=no_paths, num_negatives=None, **settings)
    head = made.asked["train"]
    tail = torch.tensor(made.classes)[made.is_high(head).long()]
    rel = torch.full_like(head, made.is_a)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(epochs):
        for batch in model.loader(head, rel, tail, batch_size=512, shuffle=True):
            optimizer.zero_grad()
            model.loss(*batch).backward()
            optimizer.step()
    return model.eval()


@torch.no_grad()
def measure(made: SemiSynthetic, model: KBLRN, split: str = "test") -> dict[str, float]:
    r"""Returns the accuracy, and how far the type is told from others.

    Args:
        made (SemiSynthetic): The knowledge base; the true values are its own.
        model (KBLRN): The model.
        split (str, optional): Which entities are asked for. (default: :obj:`"test"`)
    """

    def scores(entities: Tensor) -> Tensor:
        rel = torch.full_like(entities, made.is_a)
        found = [model(entities, rel, torch.full_like(rel, c)) for c in made.classes]
        return torch.stack(found, dim=1)

    asked, others = scores(made.asked[split]), scores(made.others)
    right = made.is_high(made.asked[split]).long()
    of_right, of_wrong = (asked.gather(1, i[:, None]) for i in (right, 1 - right))
    best = asked.max(dim=1).values[:, None], others.max(dim=1).values[None]
    return {"accuracy": _above(of_right, of_wrong), "type": _above(*best)}


def _above(one: Tensor, other: Tensor) -> float:
    """Returns how often one number is above another one; ties count by half."""
    return float(((one > other).double() + 0.5 * (one == other)).mean())


def compare(
    made: SemiSynthetic,
    permutations: int,
    epochs: int = 2,
    lr: float = 0.05,
    **settings: Any,
) -> Iterator[dict[str, Any]]:
    r"""Yields what is measured with the true values, and with permuted ones.

    Args:
        made (SemiSynthetic): The knowledge base.
        permutations (int): How often values are permuted.
        epochs (int, optional): The number of epochs. (default: :obj:`2`)
        lr (float, optional): The learning rate. (default: :obj:`0.05`)
        **settings (optional): The settings of the model.
    """
    for control, seeds in (("true", [0]), ("permuted", range(permutations))):
        for seed in seeds:
            begin = time.perf_counter()
            data = control_numbers(made.train, control, seed)
            model = learn(made, data, epochs, lr, **settings)
            seconds = round(time.perf_counter() - begin, 1)
            found = measure(made, model)
            yield {"numbers": control, "seed": seed, **found, "seconds": seconds}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dataset", choices=PEOPLE, default="Families")
    parser.add_argument("--root", help="where data sets are kept")
    parser.add_argument("--bins", type=int, default=128, help="0 is without numbers")
    parser.add_argument("--kinds", action="store_true", help="kinds of evidence add up")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0, help="of the values")
    parser.add_argument("--permutations", type=int, default=3)
    parser.add_argument("--json", type=Path, help="where to keep the figures")
    options = parser.parse_args(arguments)
    data = load_dataset(options.dataset, options.root)["train"]
    made = make_semi_synthetic(data, PEOPLE[options.dataset], options.seed)
    sizes = {split: len(entities) for split, entities in made.asked.items()}
    print(f"{options.dataset}: {sizes}, {len(made.others)} of other types", flush=True)
    settings = {"evidence_bins": options.bins, "evidence_kinds": options.kinds}
    given = options.permutations, options.epochs, options.lr
    rows = []
    for row in compare(made, *given, **settings):
        found = f"accuracy {row['accuracy']:.4f}   type {row['type']:.4f}"
        print(f"{row['numbers']:10}{found}   {row['seconds']:.1f} s", flush=True)
        rows.append(row)
    if options.json:
        keys = ("dataset", "seed", "epochs", "lr")
        content = {key: vars(options)[key] for key in keys} | settings
        content |= {"sizes": sizes, "rows": rows}
        options.json.write_text(json.dumps(content, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
