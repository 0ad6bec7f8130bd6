"""The version of a catalog that only this process can change, for all sessions of the process.

An embedded database lets one process write at a time. What its sessions have saved is all there is,
so none of them asks the database for the version while no one is saving one.
"""

from __future__ import annotations

import os
import threading


class _Shared:
    """What the sessions of this process know of one database file."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.version: int | None = None
        #: transactions that save a version
        self.saving = 0
        #: another number when what somebody looked at before may be out of date
        self.changes = 0

    def change(self, saving: int = 0) -> None:
        """Whatever is known may be out of date from now on."""
        with self.lock:
            # Ctrl-C may come between any two of these: the last one lets others know something.
            self.changes += 1
            self.version = None
            self.saving += saving


_known: dict[tuple[int, str], _Shared] = {}


class Part:
    """One session's part in it.

    The version is not known from before one is saved until a session has looked at the database
    after that: whether the save succeeds, and which of several is the last, only that tells.
    """

    def __init__(self, address: str) -> None:
        """``address`` is "" where nothing is known: others may save versions, or no one else."""
        # A child of this process begins anew.
        key = (os.getpid(), address)
        self._shared = _known.setdefault(key, _Shared()) if address else None
        self._saving = False

    @property
    def version(self) -> int | None:
        """The newest version; None where the database must be asked."""
        return None if self._shared is None else self._shared.version

    @property
    def changes(self) -> int:
        """To be read before a look at the database, see `looked`."""
        return 0 if self._shared is None else self._shared.changes

    def looked(self, changes: int, version: int) -> None:
        """The database has shown a version after the time of ``changes``."""
        if self._shared is not None:
            with self._shared.lock:
                if not self._shared.saving and changes == self._shared.changes:
                    self._shared.version = version

    def begin(self) -> None:
        """The session begins: until now another process may have had the database."""
        if self._shared is not None:
            self._shared.change()

    def begin_saving(self) -> None:
        """The session's transaction saves a version."""
        if self._shared is not None and not self._saving:
            self._shared.change(saving=1)
            self._saving = True

    def end_saving(self) -> None:
        """The session's transaction was committed or undone."""
        if self._shared is not None and self._saving:
            # In this order, Ctrl-C can only leave it unknown: never is one save ended twice.
            self._saving = False
            self._shared.change(saving=-1)
