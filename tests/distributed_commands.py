"""An interrupted training and commands for ``torchrun``; see test_distributed.py.

torchrun ... distributed_commands.py FOLDER
"""

import os
import signal
import sys
from pathlib import Path

import pytest
import torch
from trainable import same

from kblrn_pyg import KBLRN
from kblrn_pyg.cli.main import main
from kblrn_pyg.datasets import Families
from kblrn_pyg.shard import process_rank
from kblrn_pyg.training import Interrupted, Run, fit, load_checkpoint, set_threads
from kblrn_pyg.training.process import join_processes

SETTINGS = {"batch_size": 4096, "lr": 0.05, "epochs": 1}


def commands(folder):
    """Commands about the run in a folder, which also get files to write."""
    return [
        ["data", "Families"],
        ["mine", "Families", "--top", "5", "--out", str(folder / "rules.tsv")],
        ["complete", str(folder / "run"), "--k", "5"],
        ["complete", str(folder / "run"), "--out", str(folder / "missing.csv")],
        [
            *("evaluate", str(folder / "run"), "--dataset", "Families"),
            *("--json", str(folder / "metrics.json")),
        ],
    ]


def interrupted_training(folder):
    train, run = Families()[0], Run(folder / "run")
    torch.manual_seed(0)
    model = KBLRN.from_data(train, "ln", 8, num_negatives=None)
    number, loss = 0, model.loss

    def interrupted(*args, **kwargs):
        nonlocal number
        number += 1
        if number == 3 and process_rank() == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return loss(*args, **kwargs)

    model.loss = interrupted
    with pytest.raises(Interrupted):
        fit(model, train, run=run, **SETTINGS)
    assert number == 3
    checkpoint = load_checkpoint(run.checkpoint_path)
    assert model.shard is None
    assert same(dict(model.state_dict()), dict(checkpoint.model))
    assert fit(model, train, run=run, **SETTINGS).epochs_done == 1


def run_commands(folder):
    written = set()

    def note_writing(event, args):
        if event == "open" and str(args[0]).startswith(str(folder)):
            written.update([args[0]] if args[2] & (os.O_WRONLY | os.O_RDWR) else [])

    sys.addaudithook(note_writing)
    for words in commands(folder):
        assert main(words) == 0
    assert bool(written) == (process_rank() == 0)


if __name__ == "__main__":
    set_threads(1)
    join_processes()
    interrupted_training(Path(sys.argv[1]))
    run_commands(Path(sys.argv[1]))
