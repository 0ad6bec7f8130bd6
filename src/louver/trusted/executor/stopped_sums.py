"""Columns that the server is to add up no more, because one of its sums did not verify.

A server that lies learns something about a value from whether the client objects. It learns it
once: the column stands in the pin before the error is raised, and its sums are computed on this
machine, in every session of this user, until the user says otherwise.
"""

from __future__ import annotations

import os

from louver import errors
from louver.trusted.vault.pin import Pin

Place = tuple[int, int]
"""Table and column by their ids."""


class Stopped:
    """The columns of one database that are stopped; what other sessions add shows at once."""

    def __init__(self, pin: Pin) -> None:
        self._pin = pin
        # Where the pin could not be written: this session at least asks no more.
        self._own: frozenset[Place] = frozenset()
        self._read: frozenset[Place] = frozenset()
        self._stamp: tuple[int, int] | None = None

    def __call__(self) -> frozenset[Place]:
        """The ids of table and column of each; the pin is read again when it was written."""
        stamp = self._written()
        if stamp is None or stamp != self._stamp:
            self._read = frozenset((table, column) for table, column in self._pin.read().stopped)
            self._stamp = stamp
        return self._read | self._own

    def add(self, member: Place) -> None:
        """Stop a column, durably."""
        try:
            self._pin.stop_sums(member)
        except errors.Error:
            self._own |= {member}
            raise

    def resume(self) -> None:
        """Start all of them again."""
        self._own = frozenset()
        self._pin.resume_sums()

    def _written(self) -> tuple[int, int] | None:
        """What changes when the pin does; None where that is not known."""
        if self._pin.path is None:
            return None
        try:
            status = os.stat(self._pin.path)
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns
