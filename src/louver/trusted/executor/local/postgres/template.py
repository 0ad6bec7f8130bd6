"""The data of a new server: made once for each user, then copied, which is five times as fast.

The copy that is kept is as initdb left it: it never held a row. It is in the user's cache folder,
in a folder of mode 0700; where that cannot be, initdb runs each time.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

from louver.untrusted.servers import private_postgres

_OWNER_ALONE = 0o700


def fill(binaries: Path, data: Path, log_path: Path) -> bool:
    """Fill the folder of a server's data, which is not there yet; whether that was done."""
    source = _kept(binaries, log_path)
    if source is not None:
        try:
            shutil.copytree(source, data, copy_function=shutil.copyfile)
            data.chmod(_OWNER_ALONE)
            return True
        except OSError:
            shutil.rmtree(data, ignore_errors=True)
    return _new(binaries, data, log_path)


def _new(binaries: Path, data: Path, log_path: Path) -> bool:
    with log_path.open("ab") as log:
        return not private_postgres.run(private_postgres.initdb(binaries, data), log).wait()


def _kept(binaries: Path, log_path: Path) -> Path | None:
    """The data that is kept for these binaries, made with the first call."""
    if not os.getuid() and not private_postgres.has_name_spaces():
        # A server of another user could not read what is copied.
        return None
    try:
        state = (binaries / "postgres").stat()
        name = f"{binaries} {state.st_size} {state.st_mtime_ns}"
        folder = _cache() / f"postgres-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        if not folder.exists():
            fresh = Path(tempfile.mkdtemp(prefix="postgres-new-", dir=folder.parent))
            try:
                if _new(binaries, fresh / "data", log_path):
                    # Whole or not at all; another process may have been quicker.
                    fresh.rename(folder)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
        return folder / "data" if _is_private(folder) else None
    except (OSError, RuntimeError):  # the latter of a user without a home
        return None


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "louver"
    folder.mkdir(mode=_OWNER_ALONE, parents=True, exist_ok=True)
    return folder


def _is_private(folder: Path) -> bool:
    """Whether only this user could have put anything into it."""
    state = folder.lstat()
    is_own = state.st_uid == os.getuid() and stat.S_ISDIR(state.st_mode)
    return is_own and not stat.S_IMODE(state.st_mode) & 0o077
