"""The versions of a data set that a provider answers for.

A newer version is loaded next to the older one. Current questions end on the version that they were
prepared for, and the older one is kept for a while: two providers are never reloaded at the same
time, and shares are never combined across versions.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from louver import errors
from louver.untrusted.providers.dataset import LoadedData, Told
from louver.untrusted.providers.interruption import Interruption
from louver.wire.question_codec import MAX_VERSIONS
from louver.wire.questions import Ask, Dataset, Prepared, Reply, Shape

#: Questions of each version that are certainly remembered; at most twice as many are stored.
REMEMBERED = 1 << 18


class Answering(Protocol):
    """The provider of one version: `louver.untrusted.providers.provider.Provider`."""

    def prepare(
        self, shape: Shape, version: bytes, progress: Told | None, interruption: Interruption | None
    ) -> Prepared:
        """Create the tables of a shape, or find them."""

    def known(self, shape_id: bytes) -> Prepared | None:
        """The description of a shape whose tables are ready."""

    def answer(self, ask: Ask, interruption: Interruption | None) -> Reply:
        """Evaluate shares."""

    def close(self) -> None:
        """Close files and connections."""


class Seen:
    """The questions already asked, in bounded memory: the latest ones with certainty."""

    def __init__(self, most: int = REMEMBERED) -> None:
        """Remember at least `most`."""
        self._most = most
        self._young: set[bytes] = set()
        self._old: set[bytes] = set()
        self._lock = threading.Lock()

    def add(self, name: bytes) -> None:
        """Record a name; `provider.replayed` if it is already recorded."""
        with self._lock:
            if name in self._young or name in self._old:
                raise errors.make("provider.replayed")
            if len(self._young) >= self._most:
                self._young, self._old = set(), self._young
            self._young.add(name)


class _Held:
    """One version, and the number of its users."""

    def __init__(self, loaded: LoadedData, provider: Answering) -> None:
        self.loaded = loaded
        self.provider = provider
        self.seen = Seen()
        self.users = 0
        #: When it was replaced by a newer one.
        self.replaced: float | None = None

    def close(self) -> None:
        self.provider.close()
        self.loaded.remove()


class Versions:
    """All supported versions, newest first; for any number of threads."""

    def __init__(self, keep_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`keep_seconds` is how long a version is kept after it was replaced."""
        self._keep_seconds = keep_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._held: list[_Held] = []
        self._failed: list[_Held] = []
        self._instance = os.urandom(16)

    def install(self, loaded: LoadedData, make: Callable[[LoadedData], Answering]) -> bool:
        """Make this the newest version; False if it already is.

        `make` opens a provider of the data; it is not called if the version is already held, and
        the data is removed.
        """
        with self._lock:
            known = [held for held in self._held if held.loaded.version == loaded.version]
            newest = bool(known) and known[0] is self._held[0]
            if known and not newest:
                # Files were reverted to their earlier content.
                self._put_first(known[0])
        if known:
            loaded.remove()
            return not newest
        try:
            held = _Held(loaded, make(loaded))
        except BaseException:
            loaded.remove()
            raise
        with self._lock:
            self._put_first(held)
        return True

    def describe(self) -> Dataset:
        """The description for clients; its instance is that of this process."""
        with self._lock:
            described = self._held[:MAX_VERSIONS]
            tables = [held.loaded.tables for held in described] or [()]
            versions = tuple(held.loaded.version for held in described)
            return Dataset(self._instance, versions, tables[0], tuple(tables[1:]))

    def prepare(
        self, shape: Shape, version: bytes, progress: Told | None = None,
        interruption: Interruption | None = None,
    ) -> Prepared:  # fmt: skip
        """Prepare a shape; `provider.version` if the version is not held."""
        with self._using(version) as held:
            return held.provider.prepare(shape, version, progress, interruption)

    def known(self, shape_id: bytes, version: bytes) -> Prepared | None:
        """The description of a shape whose tables are ready; costs nothing."""
        with self._using(version) as held:
            return held.provider.known(shape_id)

    def answer(self, ask: Ask, interruption: Interruption | None = None) -> Reply:
        """Evaluate shares once; `provider.replayed` if they were sent before."""
        with self._using(ask.version) as held:
            # Every step of a question has its own shares.
            held.seen.add(ask.query_id + ask.step.to_bytes(2, "big"))
            return held.provider.answer(ask, interruption)

    def sweep(self) -> int:
        """Remove expired versions without users; returns how many are left."""
        with self._lock:
            over = [held for held in self._held if self._is_over(held)]
            self._held = [held for held in self._held if held not in over]
            left = len(self._held)
        self._remove(over)
        return left

    def close(self) -> None:
        """Remove all versions, which must not be in use."""
        with self._lock:
            held, self._held = self._held, []
        self._remove(held)

    def _remove(self, over: list[_Held]) -> None:
        """Remove versions; failures are retried the next time."""
        tried, self._failed = [*self._failed, *over], []
        for path in tried:
            try:
                path.close()
            except OSError:
                self._failed.append(path)

    def _put_first(self, held: _Held) -> None:
        now = self._clock()
        for other in self._held:
            if other is not held and other.replaced is None:
                other.replaced = now
        held.replaced = None
        self._held = [held, *(other for other in self._held if other is not held)]

    def _is_over(self, held: _Held) -> bool:
        if held.replaced is None or held.users:
            return False
        crowded = self._held.index(held) >= MAX_VERSIONS
        return crowded or self._clock() - held.replaced >= self._keep_seconds

    @contextmanager
    def _using(self, version: bytes) -> Iterator[_Held]:
        with self._lock:
            users = [held for held in self._held if held.loaded.version == version]
            if not users:
                raise errors.make("provider.version")
            users[0].users += 1
        try:
            yield users[0]
        finally:
            with self._lock:
                users[0].users -= 1
