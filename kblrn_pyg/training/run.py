"""The folder of a run."""

import json
import logging
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.lines import read_settings_text
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.data.whole import write_text

try:
    import fcntl
except ImportError:  # on systems without such locks
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from kblrn_pyg.training.checkpoint import Weights

logger = logging.getLogger(__name__)

# What the settings of a run that are not those of a dataclass must be.
_KINDS: dict[str, tuple[type, str]] = {
    "dataset": (str, "a name or a path"),
    "root": (str, "a path"),
    "threads": (int, "a number"),
    "device": (str, "a name"),
    "all_facts": (bool, "true or false"),
    "recipe": (dict, "values by name"),
    "start": (dict, "values by name"),
}


class Run:
    r"""A folder that contains everything about a training run.

    * :obj:`settings.json`: the settings of the model and of the training;
    * :obj:`log.jsonl`: a line of JSON for each validation;
    * :obj:`checkpoint.pt`: the state to continue from, and the best weights;
    * :obj:`model.pt`: the model, usable without the data set;
    * :obj:`stages/`: a folder for each stage, if experts were trained separately;
    * :obj:`tensorboard/`: the log for TensorBoard, if enabled.

    Args:
        path (str): The folder, created when something is written to it.
        tensorboard (bool, optional): Whether to write for TensorBoard, too,
            which has to be installed. (default: :obj:`False`)
        settings (dict, optional): What :meth:`fit` writes to
            :obj:`settings.json`. (default: :obj:`None`, its own settings and
            those of the model, unless the file exists)
    """

    def __init__(
        self,
        path: PathLike,
        tensorboard: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = Path(path)
        self.tensorboard = tensorboard
        self.settings = settings
        self.settings_path = self.path / "settings.json"
        self.log_path = self.path / "log.jsonl"
        self.checkpoint_path = self.path / "checkpoint.pt"
        self.model_path = self.path / "model.pt"
        self._writer: Any = None
        self._lock: int | None = None  # the open folder, while it is ours

    def write_json(self, name: str, content: Mapping[str, Any]) -> Path:
        r"""Writes a JSON file, whole or not at all.

        Args:
            name (str): The name of the file.
            content (dict): What to write.
        """
        text = json.dumps(dict(content), indent=2, ensure_ascii=False)
        write_text(self.path / name, f"{text}\n")
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
            settings = json.loads(read_settings_text(self.settings_path))
        except DataError:
            raise
        except FileNotFoundError:
            raise DataError("no such file, not a run", self.settings_path) from None
        except NotADirectoryError:
            raise DataError(
                "is a file, expected the folder of a run", self.path
            ) from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"is not JSON ({error})", self.settings_path) from None
        if not isinstance(settings, dict):
            raise DataError("must hold a JSON object", self.settings_path)
        for name, (kind, words) in _KINDS.items():
            value = settings.get(name)
            if value is not None and type(value) is not kind:
                message = f"{name!r} must be {words} (got {value!r})"
                raise DataError(message, self.settings_path)
        if settings.get("threads") is not None and settings["threads"] < 1:
            message = f"'threads' must be positive (got {settings['threads']})"
            raise DataError(message, self.settings_path)
        return settings

    def require_model(self) -> None:
        """Refuses a path that is neither a folder with a model nor a model file."""
        if not self.path.exists():
            raise DataError("no such file or folder, expected a run", self.path)
        if self.path.is_dir() and not self.model_path.exists():
            raise DataError(f"has no {self.model_path.name}, expected a run", self.path)

    @contextmanager
    def started(self, lines: Iterable[Mapping[str, Any]] = ()) -> Iterator[None]:
        r"""Starts the log with exactly these lines.

        A run that is resumed starts with the lines of its checkpoint. Anything that
        a killed process wrote after it, possibly half a line, is dropped, and so
        are unfinished files. A new folder, and parent folders created for it, are
        removed if this function or the code in the context fails.

        Args:
            lines (iterable, optional): The lines. (default: :obj:`()`)
        """
        new, lines = _missing_folders(self.path), list(lines)
        try:
            self.lock()
            for unfinished in self.path.glob(f".*.{'[0-9a-f]' * 8}"):
                unfinished.unlink(missing_ok=True)
            write_text(self.log_path, "".join(map(_json_line, lines)))
            if self.tensorboard:
                last = max((int(line["epoch"]) for line in lines), default=0)
                self._writer = _summary_writer(self.path / "tensorboard", last + 1)
            yield
        except BaseException:
            is_ours = self._lock is not None
            self.close()
            if new and is_ours:
                shutil.rmtree(self.path, ignore_errors=True)
                for folder in new[1:]:
                    with suppress(OSError):  # others may have used it
                        folder.rmdir()
            raise

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
        try:
            lines = self.log_path.read_text(encoding="utf-8").splitlines()
            content = [json.loads(line) for line in lines]
        except (ValueError, RecursionError) as error:
            raise DataError(f"is not a log ({error})", self.log_path) from None
        if not all(isinstance(line, dict) for line in content):
            raise DataError("must hold a JSON object in each line", self.log_path)
        return content

    def best_weights(
        self, fingerprint: str | None = None, validation_set: str | None = None
    ) -> "Weights":
        r"""Loads the weights of the best validation, or the last ones if there was
        none.

        Args:
            fingerprint (str, optional): The fingerprint that the model must
                have. (default: :obj:`None`, any)
            validation_set (str, optional): The validation set.
                (default: :obj:`None`, the first one)
        """
        from kblrn_pyg.training.checkpoint import load_checkpoint

        checkpoint = load_checkpoint(self.checkpoint_path, fingerprint)
        return checkpoint.best_or_last(validation_set)

    def lock(self) -> None:
        """Locks the folder for this process, until it ends or closes the run.

        Raises:
            DataError: If another training run is writing to it.
        """
        if self._lock is None:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self.path)

    def close(self) -> None:
        """Closes the log of TensorBoard, and unlocks the folder."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({str(self.path)!r})"


def _missing_folders(path: Path) -> list[Path]:
    """Returns a folder and those above it that do not exist, the innermost first."""
    folders = [path.absolute(), *path.absolute().parents]
    return [folder for folder in folders if not folder.exists()]


def _locked(path: Path) -> int:
    """Locks a folder that no other process has locked. It is unlocked when the
    process ends, even by a kill."""
    handle = os.open(path, os.O_RDONLY)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise DataError(
            "another training is writing to this folder, wait for its end or choose "
            "another one",
            path,
        ) from None
    except OSError:  # file systems that cannot lock
        logger.info("%s cannot be locked", path)
    return handle


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
