"""A training for ``torchrun``; see test_distributed.py.

torchrun ... distributed_training.py FOLDER KIND EPOCHS [BATCH_TO_DIE_AT]
"""

import os
import signal
import sys
from pathlib import Path

import torch

from kblrn_pyg import KBLRN
from kblrn_pyg.datasets import Families
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.predict import complete
from kblrn_pyg.rules import mine_rules
from kblrn_pyg.shard import process_rank
from kblrn_pyg.training import Run, fit, set_threads
from kblrn_pyg.training.process import join_processes

KINDS = {
    "exact": {"num_negatives": None, "n3": 0.01, "dropout": 0.2},
    "complex": {
        "num_negatives": None,
        "scorer": "complex",
        "n3": 0.01,
        "dura": 0.02,
        "relation_prediction": 0.5,
        "reciprocal": True,
    },
    "shared": {"num_negatives": 200, "negatives": "shared", "sparse": True},
    "triple": {"num_negatives": 20},
}
SIZE = 12


def main(folder, kind, epochs, die_at=None):
    set_threads(1)
    join_processes()
    train, val = (Families(split=name)[0] for name in ("train", "val"))
    rules = mine_rules(train, confidences=False)
    torch.manual_seed(0)
    model = KBLRN.from_data(train, "lrn", SIZE, rules=rules, **KINDS[kind])
    number, loss = 0, model.loss

    def dies(*args, **kwargs):
        nonlocal number
        number += 1
        is_first_time = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
        if number == die_at and is_first_time and process_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return loss(*args, **kwargs)

    model.loss = dies
    settings = {"optimizer": "adagrad"} if kind == "shared" else {}
    settings |= {"batch_size": 1024, "lr": 0.05, "epochs": epochs, "validate_every": 1}
    result = fit(model, train, val, run=Run(folder / "run"), **settings)
    ranks = evaluate(model, val).rank
    missing = complete(model, k=20)
    if process_rank() == 0:
        content = {
            "losses": [line["loss"] for line in result.history],
            "mrr": [line["val"]["mrr"] for line in result.history],
            "ranks": torch.from_numpy(ranks),
            "rules": rules.to_dict(),
            "missing": [(one.head, one.relation, one.tail) for one in missing],
            "weights": model.state_dict(),
        }
        torch.save(content, folder / "result.pt")


if __name__ == "__main__":
    folder, kind, epochs, *die_at = sys.argv[1:]
    main(Path(folder), kind, int(epochs), *map(int, die_at))
