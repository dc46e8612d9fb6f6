"""The folder of a run."""

import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.training.checkpoint import Weights, load_checkpoint, write_whole

logger = logging.getLogger(__name__)


class Run:
    r"""A folder that holds all there is to know about a training.

    * :obj:`settings.json`: what was asked for;
    * :obj:`log.jsonl`: a line of JSON for each validation;
    * :obj:`checkpoint.pt`: the state to continue from, and the best weights;
    * :obj:`tensorboard/`: the log once more, if wanted.

    Args:
        path (str): The folder, made when something is written to it.
        tensorboard (bool, optional): Whether to write for TensorBoard, too,
            which has to be installed. (default: :obj:`False`)
    """

    def __init__(self, path: PathLike, tensorboard: bool = False) -> None:
        self.path = Path(path)
        self.tensorboard = tensorboard
        self._writer: Any = None

    @property
    def checkpoint_path(self) -> Path:
        """The file of the checkpoint."""
        return self.path / "checkpoint.pt"

    @property
    def log_path(self) -> Path:
        """The file of the log."""
        return self.path / "log.jsonl"

    @property
    def settings_path(self) -> Path:
        """The file of the settings."""
        return self.path / "settings.json"

    def write_json(self, name: str, content: Mapping[str, Any]) -> Path:
        r"""Writes a file of JSON, whole or not at all.

        Args:
            name (str): The name of the file.
            content (dict): What to write.
        """
        self.make_folder()
        text = json.dumps(dict(content), indent=2, ensure_ascii=False)
        write_whole(self.path / name, f"{text}\n".encode())
        return self.path / name

    def write_settings(self, settings: Mapping[str, Any]) -> None:
        r"""Writes the settings.

        Args:
            settings (dict): Plain values by name.
        """
        self.write_json(self.settings_path.name, settings)

    def read_settings(self) -> dict[str, Any]:
        """Reads the settings."""
        try:
            settings = json.loads(self.settings_path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError("no such file, no run", self.settings_path) from None
        except ValueError as error:
            raise DataError(f"is no JSON ({error})", self.settings_path) from None
        if not isinstance(settings, dict):
            raise DataError("must hold a JSON object", self.settings_path)
        return settings

    def start_log(self, lines: Iterable[Mapping[str, Any]] = ()) -> None:
        r"""Makes the log hold these lines and no others.

        A run that is continued starts with the lines of its checkpoint. What a
        killed process wrote after it, perhaps half a line, is gone.

        Args:
            lines (iterable, optional): The lines. (default: :obj:`()`)
        """
        self.make_folder()
        lines = list(lines)
        write_whole(self.log_path, "".join(map(_json_line, lines)).encode())
        if self.tensorboard:
            last = max((int(line["epoch"]) for line in lines), default=0)
            self._writer = _summary_writer(self.path / "tensorboard", last + 1)

    def log(self, line: Mapping[str, Any]) -> None:
        r"""Adds a line to the log.

        Args:
            line (dict): Numbers by name, and the :obj:`epoch`.
        """
        with open(self.log_path, "a", encoding="utf-8") as file:
            file.write(_json_line(line))
        if self._writer is not None:
            for name, value in _numbers(line):
                self._writer.add_scalar(name, value, line["epoch"])
            self._writer.flush()

    def read_log(self) -> list[dict[str, Any]]:
        """Reads the log."""
        text = self.log_path.read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def best_weights(self, fingerprint: str | None = None) -> Weights:
        r"""Loads the weights of the best validation, or the last ones.

        Args:
            fingerprint (str, optional): The fingerprint that the model must
                have. (default: :obj:`None`, any)
        """
        return load_checkpoint(self.checkpoint_path, fingerprint).best_or_last

    def make_folder(self) -> None:
        """Makes the folder unless there is one."""
        self.path.mkdir(parents=True, exist_ok=True)

    def close(self) -> None:
        """Ends what TensorBoard reads."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({str(self.path)!r})"


def _json_line(line: Mapping[str, Any]) -> str:
    return json.dumps(dict(line)) + "\n"


def _numbers(line: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, float]]:
    for name, value in line.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and name != "epoch":
            yield prefix + name, value


def _summary_writer(path: Path, first_epoch: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        logger.warning("tensorboard is not installed, only log.jsonl is written")
        return None
    return SummaryWriter(str(path), purge_step=first_epoch)
