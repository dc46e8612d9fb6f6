"""Results of trainings: a JSON file for each data set that one is judged on."""

import json
import os
import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import torch
import torch_geometric

import kblrn_pyg
from kblrn_pyg.data.whole import write_text

Record = dict[str, Any]

# Defaults of what older records lack.
_UNSAID = {
    "negatives": "triple",
    "max_hops": 2,
    "infers": False,
    "threshold": 0.9,
    "ignore_unknown": False,
}


@dataclass(frozen=True)
class Places:
    r"""Where things are kept.

    Args:
        root (str, optional): Where data sets are.
        runs (Path): Where the folders of trainings are.
        results (Path): Where the records are.
    """

    root: str | None
    runs: Path
    results: Path


def record_path(results: Path, job_name: str, dataset: str) -> Path:
    r"""Returns the file of a record.

    Args:
        results (Path): The folder of all records.
        job_name (str): The name of the training.
        dataset (str): The data set it is judged on.
    """
    return results / f"{job_name}_on_{dataset}.json"


def write_record(path: Path, record: Record) -> None:
    r"""Writes a record; it appears whole or not at all.

    Args:
        path (Path): The file.
        record (dict): The record.
    """
    text = json.dumps(_rounded(record), indent=1, ensure_ascii=False, sort_keys=True)
    write_text(path, text + "\n")


def read_records(results: Path) -> list[Record]:
    r"""Reads all records of a folder.

    Args:
        results (Path): The folder.
    """
    return [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(results.glob("*.json"))
    ]


def matching(records: Iterable[Record], **wanted: Any) -> list[Record]:
    r"""Returns the records whose training had certain properties.

    Args:
        records (iterable): Records.
        **wanted: Names and values of the properties.
    """
    return [
        record
        for record in records
        if all(
            record["job"].get(name, _UNSAID.get(name)) == value
            for name, value in wanted.items()
        )
    ]


def versions() -> dict[str, str]:
    """Returns the versions of what the figures depend on."""
    return {
        "kblrn_pyg": kblrn_pyg.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "torch_geometric": torch_geometric.__version__,
        "numba": numba.__version__,
    }


def machine() -> dict[str, Any]:
    """Returns the hardware that the figures were made on."""
    return {"processor": _processor(), "cores": os.cpu_count()}


def reset_peak_memory() -> None:
    """Resets the peak, where the system can."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_memory_mb() -> float | None:
    """Returns the largest resident size since the last reset, where known."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    found = re.search(r"VmHWM:\s*(\d+) kB", status)
    return int(found.group(1)) / 1024 if found else None


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    found = re.search(r"model name\s*:\s*(.*)", text)
    return found.group(1) if found else platform.processor()


def _rounded(value: Any) -> Any:
    """Six digits are enough, and keep files small."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return value
