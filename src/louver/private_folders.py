"""Folders in a place that all users share, which go with the process that made them.

A folder is its owner's alone (0700) and locked for as long as it is in use. What a process that was
killed left behind is not locked, and is removed by the next one that looks.
"""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

_LOCK = "lock"


@dataclass(frozen=True, slots=True)
class PrivateFolder:
    """A folder, and the open file that is locked."""

    path: Path
    lock: FileIO
    owner: int

    def remove(self) -> None:
        """Remove it with all that it holds, unless another process made it; more than once does no
        harm.
        """
        if self.owner == os.getpid():
            _remove(self.path)
            self.unlock()

    def unlock(self) -> None:
        """Leave what is still there to the next process that looks."""
        self.lock.close()


def new(prefix: str, base: Path) -> PrivateFolder:
    """A new folder, which is locked."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
        lock = FileIO(folder / _LOCK, "w", opener=functools.partial(os.open, mode=0o600))
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock.fileno()).st_nlink:
            return PrivateFolder(folder, lock, os.getpid())
        # Another process took it for a folder that was left behind, before it was locked.
        lock.close()


def sweep(prefix: str, base: Path) -> None:
    """Remove folders of this user's that are not locked: their processes were killed."""
    for folder in base.glob(f"{prefix}*"):
        with suppress(OSError):
            if folder.is_symlink() or not _is_own(folder):
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)
            finally:
                os.close(lock)


@functools.cache
def sweep_once(prefix: str, base: Path) -> None:
    """`sweep`, with the first call of this process."""
    sweep(prefix, base)


def _remove(folder: Path) -> None:
    """Remove a folder. Its lock goes last: one without a lock is not swept."""
    with suppress(OSError):
        for entry in folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != _LOCK:
                entry.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _is_own(folder: Path) -> bool:
    """Servers of root's may have their folders as another user."""
    return folder.stat().st_uid == os.getuid() or not os.getuid()
