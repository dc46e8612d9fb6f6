"""From your own CSV files to an explained prediction.

    python examples/tutorial.py [FOLDER]

FOLDER must hold ``facts.csv`` (head, relation, tail) and ``numbers.csv`` (entity,
attribute, value). Without a folder, the files of the embedded data set are written
to ``out/tutorial`` first, so that the script runs as it stands.
"""

import csv
import sys
from pathlib import Path

import torch

from kblrn_pyg import KBLRN
from kblrn_pyg.data import Vocabulary, flat_triples, read_kb
from kblrn_pyg.datasets import Families
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.plotting import plot_explanation, show_or_save
from kblrn_pyg.predict import complete
from kblrn_pyg.rules import mine_rules
from kblrn_pyg.training import fit


def write_example(folder: Path) -> None:
    """Writes the embedded data set as two CSV files, as you might have them."""
    folder.mkdir(parents=True, exist_ok=True)
    data = Families(split="train")[0]
    names = Vocabulary.of(data)
    with open(folder / "facts.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        for h, r, t in zip(*(index.tolist() for index in flat_triples(data))):
            writer.writerow([names.entities[h], names.relations[r], names.entities[t]])
    with open(folder / "numbers.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        x = data["entity"].x
        for entity, attribute in (~x.isnan()).nonzero().tolist():
            value = x[entity, attribute].item()
            writer.writerow(
                [names.entities[entity], names.attributes[attribute], value]
            )


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/tutorial")
    if len(sys.argv) == 1:
        write_example(folder)

    print("1. Read the files. Five percent of the facts are kept for validation, and")
    print("   five for the test; an unknown number stays unknown.\n")
    kbs, report = read_kb(
        folder / "facts.csv", numerical=folder / "numbers.csv", holdout=0.05
    )
    print(f"{kbs['train']}\n{report}\n")

    print("2. Mine the paths that say something about a relation.\n")
    rules = mine_rules(kbs["train"])
    print(rules.filter(min_pca_confidence=0.5).sort("support"), "\n")

    print("3. Train the three experts together.\n")
    torch.manual_seed(0)
    model = KBLRN.from_data(
        kbs["train"],
        experts="lrn",
        hidden_channels=32,
        rules=rules,
        num_negatives=None,
        dropout=0.3,
    )
    fit(
        model,
        kbs["train"],
        kbs["val"],
        filter_with=[kbs["test"]],
        epochs=4,
        lr=0.02,
        validate_every=2,
        progress=sys.stderr.isatty(),
    )
    table = evaluate(model, kbs["test"], filter_with=[kbs["val"]])
    print(f"{table.metrics()}\n")

    print("4. Save the model. The file needs nothing else, on any machine: 'kblrn")
    print("   predict FILE ...' and 'kblrn explain FILE ...' take it, too.\n")
    model.save(folder / "model.pt", known=[kbs["val"], kbs["test"]])
    model = KBLRN.load(folder / "model.pt")
    print(f"{model}\n")

    print("5. Ask for facts that the knowledge base lacks.\n")
    missing = complete(model, k=5)
    print(f"{missing}\n")

    print("6. Ask why. The parts sum to the score.\n")
    # Where relations have one answer at most, there may be nothing to propose.
    held_out = flat_triples(kbs["test"], "edge_label_index")
    asked = tuple(int(index[0]) for index in held_out)
    if len(missing):
        best = missing[0]
        asked = best.head_id, best.relation_id, best.tail_id
    reasons = model.explain(*asked)
    print(reasons)
    show_or_save(plot_explanation(reasons), str(folder / "why.png"))
    print(f"\nsaved {folder / 'why.png'}")


if __name__ == "__main__":
    main()
