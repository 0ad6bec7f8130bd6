"""What a provider was sent, kept as it arrived: for audits, and to show what it could learn."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

from louver import errors

_NAME = re.compile(r"(\d{6,})-[A-Za-z]+\.bin")


class Record:
    """A folder of numbered files, one for each request: ``000001-Answer.bin``."""

    def __init__(self, folder: str) -> None:
        """Go on after the files that are there; `provider.data` if the folder cannot be made."""
        self._folder = Path(folder).expanduser()
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            matches = [_NAME.fullmatch(path.name) for path in self._folder.iterdir()]
        except OSError as error:
            detail = f"requests cannot be kept in {folder}: {error.strerror}"
            raise errors.make("provider.data", detail=detail) from error
        self._number = max((int(name[1]) for name in matches if name), default=0)
        self._lock = threading.Lock()

    def write(self, method: str, data: bytes) -> None:
        """Keep one request; what cannot be kept is not answered: the error is raised."""
        with self._lock:
            self._number += 1
            path = self._folder / f"{self._number:06d}-{method}.bin"
            with open(path, "xb", opener=_private) as file:
                file.write(data)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
