"""Rewrites the files of the data set *Families*."""

import argparse
from pathlib import Path

from kblrn_pyg.datasets.families.generator import generate


def main(argv: list[str] | None = None) -> None:
    """Writes all files into a directory and prints one line for each."""
    parser = argparse.ArgumentParser(
        prog="python -m kblrn_pyg.datasets.families", description=__doc__
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(__file__).parent,
        help="the directory to write to (default: beside the module)",
    )
    parser.add_argument("--seed", type=int, default=0, help="(default: 0)")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    for name, text in generate(args.seed).items():
        path = args.out / name
        # Bytes, because a text file would get other line ends on Windows.
        path.write_bytes(text.encode("utf-8"))
        print(f"{path}: {text.count(chr(10)):,} lines")


if __name__ == "__main__":
    main()
