"""The folder of a provider's files: the loaded data, and the tables prepared from it."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from louver import errors

_PREFIX = "louver-provider-"
#: A folder this young may belong to a provider that has not taken its lock yet.
_YOUNG_SECONDS = 60


class Folder:
    """A folder that belongs to one provider at a time; its content is removed after use."""

    def __init__(self, given: str | None = None) -> None:
        """Take the folder.

        Args:
            given: a folder that keeps prepared tables across restarts; by default a private one
                that is removed at the end. Folders left by killed providers are removed.

        Raises:
            louver.errors.Error: `provider.data` if it cannot be written or is in use.
        """
        self._is_private = given is None
        try:
            if given is None:
                _sweep(Path(tempfile.gettempdir()))
                self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            else:
                self.path = Path(given).expanduser()
                self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = _locked(self.path)
            self.prepared = self.path / "prepared"
            self.prepared.mkdir(mode=0o700, exist_ok=True)
            _require_own(self.prepared)
        except OSError as error:
            detail = f"the cache folder {given or ''}: {error.strerror}"
            raise errors.make("provider.data", detail=detail) from error
        if self._lock is None:
            detail = f"the cache folder {self.path} is another provider's"
            raise errors.make("provider.data", detail=detail)
        self._clear()

    def close(self) -> None:
        """Release the folder; a private one is removed."""
        if self._is_private:
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            self._clear()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _clear(self) -> None:
        """Remove files that are of no use to the next provider, and incomplete ones."""
        for left in (*self.path.glob("data-*.duckdb*"), *self.prepared.glob("writing-*")):
            with suppress(OSError):
                left.unlink()
        for left in self.prepared.glob("scratch-*"):
            shutil.rmtree(left, ignore_errors=True)


def _require_own(path: Path) -> None:
    """Tables are trusted to be written by this program, so no other user may be able to add any."""
    status = path.lstat()
    others = stat.S_IMODE(status.st_mode) & 0o022
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or others:
        detail = f"the cache folder {path} is a link, another user's, or others can write to it"
        raise errors.make("provider.data", detail=detail)


def _locked(path: Path) -> int | None:
    """The folder's lock, which ends with this process; None if another process has it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    number = os.open(path / "lock", flags, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        return None
    return number


def _sweep(parent: Path) -> None:
    """Remove the private folders of providers that were killed."""
    for path in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            state = path.lstat()
            if state.st_uid != os.getuid() or time.time() - state.st_mtime < _YOUNG_SECONDS:
                continue
            number = _locked(path)
            if number is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(number)
