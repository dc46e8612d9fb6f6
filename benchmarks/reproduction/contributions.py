"""The relational features that contribute most to the answers."""

from typing import Any

import numpy as np

from kblrn_pyg import KBLRN
from kblrn_pyg.evaluation import RankTable
from kblrn_pyg.nn import RelationalExpert
from kblrn_pyg.rules import body_text


def heaviest_rules(
    model: KBLRN, table: RankTable, number: int = 40
) -> list[dict[str, Any]]:
    r"""Returns the rules that add most to the scores of true triples.

    A rule adds its weight to the score of every triple that its body holds for.

    Args:
        model (KBLRN): The model, with a relational expert.
        table (RankTable): The triples, each from both sides.
        number (int, optional): The maximum number of rules.
            (default: :obj:`40`)
    """
    experts = model.experts.values()
    expert = next(one for one in experts if isinstance(one, RelationalExpert))
    features = expert.features
    once = table.side == table.side[0] if len(table) else slice(0)
    found = features.pairs(table.head[once], table.relation[once], table.tail[once])
    times = np.bincount(found.rule, minlength=len(features.rules))
    weight = expert.weight.detach().cpu().double().numpy()
    order = np.argsort(-times * weight, kind="stable")[:number]
    return [
        {
            "relation": features.rules.relations[features.rules.head[i]],
            "body": body_text(features.rules, i),
            "weight": float(weight[i]),
            "triples": int(times[i]),
        }
        for i in order.tolist()
        if times[i] * weight[i] > 0
    ]
