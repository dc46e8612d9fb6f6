"""Which queries to show."""

import numpy as np

from kblrn_pyg.evaluation import RankTable

# Up to this rank, an answer is nearly right.
NEAR = 10


def choose_rows(table: RankTable, number: int, seed: int = 0) -> list[int]:
    r"""Chooses rows of a rank table to show: right ones, then wrong ones.

    If possible, a third of them have rank 1, a third a rank up to 10, and a
    third a worse one. Each is drawn from the relation that has been drawn least.
    No triple is drawn twice, and self-loops only if there is nothing else.

    Args:
        table (RankTable): The ranks.
        number (int): The number of rows.
        seed (int, optional): The seed. (default: :obj:`0`)
    """
    kind = kinds(table)
    order = np.random.default_rng(seed).permutation(len(table))
    is_loop = table.head == table.tail
    if not is_loop.all():
        order = order[~is_loop[order]]
    drawn = np.zeros(len(table.relations), np.int64)
    chosen: list[int] = []
    while len(chosen) < number and len(order):
        for wanted in range(3):
            rows = order[kind[order] == wanted]
            if len(rows) == 0 or len(chosen) == number:
                continue
            row = int(rows[np.argmin(drawn[table.relation[rows]])])
            drawn[table.relation[row]] += 1
            chosen.append(row)
            same = (table.head == table.head[row]) & (table.tail == table.tail[row])
            same &= table.relation == table.relation[row]
            order = order[~same[order]]
    return sorted(chosen, key=lambda row: kind[row])


def kinds(table: RankTable) -> np.ndarray:
    r"""Returns 0 for rows with rank 1, 1 for near ones and 2 for the others.

    Args:
        table (RankTable): The ranks.
    """
    return (table.rank > 1).astype(np.int64) + (table.rank > NEAR)
