"""Raw files of the public data sets: their locations and verified downloads."""

import hashlib
import logging
import os
import shutil
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from kblrn_pyg.data import DataError
from kblrn_pyg.data.whole import whole_file
from kblrn_pyg.progress import ProgressBar

logger = logging.getLogger(__name__)

ENVIRONMENT = "KBLRN_DATA"


@dataclass(frozen=True)
class RawFile:
    r"""A file of a public data set.

    Args:
        path (str): Its path below the directory in :obj:`KBLRN_DATA`.
        url (str): Its public location.
        sha256 (str): The checksum of its content.
    """

    path: str
    url: str
    sha256: str

    @property
    def name(self) -> str:
        """A file name that is unique within a data set."""
        return Path(self.path).name

    def locate(self, raw_dir: str) -> Path:
        """Returns the file below :obj:`KBLRN_DATA` if it exists, else the one in
        the root."""
        directory = os.environ.get(ENVIRONMENT)
        if directory and (path := Path(directory) / self.path).exists():
            return path
        return Path(raw_dir) / self.name

    def fetch(self, raw_dir: str) -> None:
        """Downloads the file unless it exists; it is written whole or not at
        all."""
        path = self.locate(raw_dir)
        if path.exists():
            return
        logger.info("downloading %s", self.url)
        with whole_file(path) as file:
            self._download(file)
            file.flush()
            self.verify(Path(file.name), advice="try again, or get it by hand")

    def _download(self, file: object) -> None:
        try:
            with urllib.request.urlopen(self.url, timeout=60) as response:
                size = int(response.headers.get("Content-Length") or 0) or None
                with ProgressBar.wrapattr(
                    file, "write", total=size, desc=self.name, leave=False
                ) as out:
                    shutil.copyfileobj(response, out)
        except (urllib.error.URLError, OSError) as error:
            reason = getattr(error, "reason", None) or error
            raise DataError(
                f"cannot download {self.url} ({reason}); put the file at "
                f"${ENVIRONMENT}/{self.path} instead"
            ) from None

    def verify(self, path: Path, advice: str = "delete it and load again") -> None:
        """Refuses a file whose content is not the expected one."""
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != self.sha256:
            message = f"{self.name} has the sha256 {found}, expected {self.sha256}"
            raise DataError(f"{message}; {advice}", path)


def split_files(
    directory: str, url: str, train: str, valid: str, test: str
) -> tuple[RawFile, ...]:
    r"""Returns the files of the training, validation and test triples.

    Args:
        directory (str): Their directory below :obj:`KBLRN_DATA`.
        url (str): Their public location, with :obj:`{}` for the split.
        train (str): The checksum of the training triples, and so on.
    """
    return tuple(
        RawFile(f"{directory}/{split}.txt", url.format(split), sha256)
        for split, sha256 in (("train", train), ("valid", valid), ("test", test))
    )
