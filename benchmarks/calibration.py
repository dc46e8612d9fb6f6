"""The expected calibration error of a trained model, beside that of its softmax.

    KBLRN_DATA=... python benchmarks/calibration.py RUN [RUN ...] --dataset FB15k-237
    python benchmarks/calibration.py --dataset Families

Fitted on validation triples and as many false ones, measured on test triples and as
many false ones; see ``docs/probabilities.md``. The softmax is the better one of the
two sides, as ``kblrn complete`` prints it, and is taken of some of the triples.
The experts of several runs, which have learned apart, are put together, each scaled
by its ``--factor``. Without a run, a small model is trained first.
"""

import argparse
import sys
import time

import numpy as np
import torch

from kblrn_pyg import KBLRN
from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.evaluation import (
    LabelledTriples,
    Reliability,
    calibrate,
    evaluating,
    labelled_triples,
    reliability_of,
)
from kblrn_pyg.runs import load_model
from kblrn_pyg.table import format_table
from kblrn_pyg.training import fit, seed_all

AT_ONCE = 128


def softmax(model: KBLRN, triples: LabelledTriples) -> np.ndarray:
    """The better probability of each triple, as a tail and as a head."""
    head, rel, tail = (torch.from_numpy(column) for column in triples[:3])
    best = torch.zeros(len(head))
    with evaluating(model):
        for side, answer in zip(SIDES, (head, tail)):
            queries = Queries.of_triples(head, rel, tail, side)
            for begin in range(0, len(head), AT_ONCE):
                part = slice(begin, begin + AT_ONCE)
                scores = model.score_all(queries[part]).float().log_softmax(dim=1)
                own = scores.gather(1, answer[part, None]).squeeze(1).exp()
                best[part] = torch.maximum(best[part], own)
    return best.clamp(max=1).numpy()


def small_model(splits: dict) -> KBLRN:
    """A model of the demo."""
    seed_all(0)
    model = KBLRN.from_data(splits["train"], "lrn", 32, num_negatives=None, dropout=0.3)
    fit(model, splits["train"], epochs=8, lr=0.02, progress=True)
    return model


def together(options: argparse.Namespace) -> KBLRN:
    """The experts of all runs, scaled."""
    models = [load_model(path) for path in options.run]
    experts = {name: one for model in models for name, one in model.experts.items()}
    first = models[0]
    model = KBLRN(first.num_nodes, first.num_relations, experts)
    model.kb = first.kb
    for name, factor in (pair.split("=") for pair in options.factor):
        model.experts[name].scale(float(factor))
    return model.eval()


def some(triples: LabelledTriples, number: int) -> LabelledTriples:
    chosen = np.random.default_rng(0).permutation(len(triples.head))[:number]
    return LabelledTriples(*(column[chosen] for column in triples))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", nargs="*", help="runs, or model files")
    parser.add_argument(
        "--factor",
        action="append",
        default=[],
        metavar="EXPERT=X",
        help="what to multiply the scores of an expert by (repeatable)",
    )
    parser.add_argument("--dataset", default="Families")
    parser.add_argument("--root", help="where data sets are kept")
    parser.add_argument(
        "--softmax-triples", type=int, default=4000, help="(default: 4000)"
    )
    options = parser.parse_args()
    splits = load_dataset(options.dataset, options.root)
    model = together(options) if options.run else small_model(splits)
    val, test, rows = splits["val"], splits["test"], []
    for negatives in ("observed", "all"):
        start = time.perf_counter()
        model.calibration = calibrate(model, val, [test], negatives=negatives)
        seconds = time.perf_counter() - start
        found = reliability_of(model, test, [val])
        triples = labelled_triples(model, test, [val], 1.0, negatives, 1)
        triples = some(triples, options.softmax_triples)
        today = Reliability.of(softmax(model, triples), triples.is_true)
        own = f"{model.calibration.num_own} of {len(model.calibration)}"
        figures = f"{today.error:.4f}", f"{found.error:.4f}"
        rows.append(
            [negatives, int(found.count.sum()), *figures, own, f"{seconds:.1f}"]
        )
        if negatives == "observed":
            shown = str(found)
    header = ["false triples", "test triples", "ECE softmax", "ECE calibrated"]
    header += ["relations with own numbers", "seconds to fit"]
    print(f"{options.dataset}, {model}")
    print(format_table(header, rows, markdown=True))
    print(f"\nobserved:\n{shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
