"""A record of a provider's requests as they arrived: for audits, and to show what it can learn."""

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
        """Continue after the existing files; `provider.data` if the folder cannot be created."""
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
        """Store one request; if that fails, the error is raised and the request not answered."""
        with self._lock:
            self._number += 1
            path = self._folder / f"{self._number:06d}-{method}.bin"
            with open(path, "xb", opener=_private) as file:
                file.write(data)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
