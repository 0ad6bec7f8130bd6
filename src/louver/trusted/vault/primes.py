"""The spaces of a key ring, and the cache of its primes.

Both moduli derive from the root secret alone, so all databases of one key file share them. The
search for two primes of 1,024 bits takes about a second; its result is a hint, encrypted with the
ring, which the catalog of a database contains. A new database has none, so hints are also cached in
this process and in the user's state directory. They only save time: a hint that cannot be read or
does not authenticate is computed again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeVar

from louver import errors
from louver.trusted.vault.keyring import HomSpace, KeyRing, SdbSpace
from louver.trusted.vault.pin import state_directory

_MAX_BYTES = 1 << 10


class _Space(Protocol):
    @property
    def hint(self) -> bytes: ...


_Kind = TypeVar("_Kind", bound=_Space)

#: Hints computed or read in this process, by file name.
_hints: dict[str, bytes] = {}


def sdb_space(keys: KeyRing, hint: bytes | None, bits: int) -> SdbSpace:
    """The secret-sharing space; `hint` is the one in the catalog, if it has one."""
    return _space(f"{keys.key_id}-sdb-{bits}.hint", hint, lambda known: keys.sdb(known, bits))


def hom_space(keys: KeyRing, hint: bytes | None, bits: int = 2048) -> HomSpace:
    """The space of packed sums; `hint` is the one in the catalog, if it has one."""
    name = f"{keys.key_id}-paillier-{bits}.hint"
    return _space(name, hint, lambda known: keys.hom(known, bits))


def _space(name: str, hint: bytes | None, make: Callable[[bytes | None], _Kind]) -> _Kind:
    if hint is not None:
        return make(hint)  # from the authenticated catalog: if it does not open, that is an error
    path = state_directory() / name
    known = _hints.get(name) or _read(path)
    if known is not None:
        with suppress(errors.VerificationError):
            space = make(known)
            _hints[name] = space.hint
            return space
    space = make(None)
    _hints[name] = space.hint
    _write(path, space.hint)
    return space


def _read(path: Path) -> bytes | None:
    with suppress(OSError), path.open("rb") as file:
        return file.read(_MAX_BYTES)
    return None


def _write(path: Path, hint: bytes) -> None:
    """Replace the file atomically; if that fails, the next process searches again."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(hint)
        os.replace(fresh, path)
