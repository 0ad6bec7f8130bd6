"""A provider of one version of a data set, independent of transport: shapes and shares in, sums
out.

It computes public functions of public data, and evaluates shares on them. It has no key, and learns
of a question only its shape, its number of clauses, and that it was asked.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from louver import errors
from louver.untrusted.providers import evaluate, expressions, preparing
from louver.untrusted.providers.bounds import Bounds, DefaultBounds
from louver.untrusted.providers.cache import Cache
from louver.untrusted.providers.dataset import LoadedData
from louver.untrusted.providers.interruption import Interruption
from louver.untrusted.providers.preparing import Told
from louver.untrusted.providers.sandbox import Limits, machine_bytes, working
from louver.untrusted.providers.tables import Table
from louver.wire import question_codec
from louver.wire import questions as q

#: The interval at which a client waiting for another preparation checks for its end.
_LOOK_SECONDS = 0.1


class Provider:
    """Answers for one version; for any number of threads."""

    def __init__(
        self,
        loaded: LoadedData,
        folder: Path,
        bounds: Bounds | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Open a version.

        Args:
            loaded: the data.
            folder: of prepared tables; it exists and belongs to this process.
            bounds: the operator's limits.
            limits: the limits of one preparation, instead of those that follow from `bounds`.
        """
        allowed = bounds or DefaultBounds()
        memory = min(allowed.prepare_memory, machine_bytes() // 5)
        self._loaded = loaded
        self._folder = folder
        self._limits = limits or Limits(
            table_bytes=min(memory // 5, allowed.cache_bytes),
            memory_bytes=memory,
            scratch_bytes=allowed.prepare_scratch,
            seconds=allowed.prepare_seconds,
            threads=allowed.cores or None,
        )
        self._cache = Cache(folder, loaded.version, allowed.cache_bytes)
        self._lock = threading.Lock()
        self._under_way: dict[bytes, _Turn] = {}

    def describe(self) -> q.Dataset:
        """Describe this version; a server that holds several describes all (see `versions`)."""
        return q.Dataset(bytes(16), (self._loaded.version,), self._loaded.tables)

    def prepare(
        self, shape: q.Shape, version: bytes, progress: Told | None = None,
        interruption: Interruption | None = None,
    ) -> q.Prepared:  # fmt: skip
        """The prepared form of a shape; its tables are created if they do not exist.

        Args:
            shape: from any client.
            version: the version that the client requests.
            progress: receives the progress.
            interruption: lets another thread end the work.

        Raises:
            errors.Error: `provider.version`, `provider.refused`, `provider.wide`,
                `provider.large`, `disk.full`, `interrupted`.
        """
        self._require(version)
        ended = interruption or Interruption()
        shape_id = question_codec.shape_id(shape)
        with self._turn(shape_id, ended):
            table = self._cache.find(shape_id) or self._make(shape, progress, ended)
            return table.prepared

    def known(self, shape_id: bytes) -> q.Prepared | None:
        """The description of a shape whose tables are open; costs nothing."""
        table = self._cache.known(shape_id)
        return None if table is None else table.prepared

    def answer(self, ask: q.Ask, interruption: Interruption | None = None) -> q.Reply:
        """What the shares of a step select or sum.

        Raises:
            errors.Error: `provider.version`; `provider.shape` if the shape is not prepared;
                `provider.share`, `provider.large`, `interrupted`.
        """
        self._require(ask.version)
        table = self._cache.find(ask.shape_id)
        if table is None:
            raise errors.make("provider.shape")
        stop = None if interruption is None else interruption.stop
        return q.Reply(b"".join(evaluate.part(table, ask, stop=stop)))

    def close(self) -> None:
        """Close all files."""
        self._cache.close()

    def _require(self, version: bytes) -> None:
        if version != self._loaded.version:
            raise errors.make("provider.version")

    def _make(self, shape: q.Shape, progress: Told | None, ended: Interruption) -> Table:
        def hears(stage: str, share: float) -> None:
            ended.check()
            if progress is not None:
                progress(stage, share)

        checked = expressions.check(shape, self._loaded.tables)
        try:
            with (
                tempfile.TemporaryDirectory(prefix="scratch-", dir=self._folder) as scratch,
                working(self._loaded.database, Path(scratch), self._limits, ended) as work,
            ):
                prepared = preparing.prepare(
                    work, checked, self._limits, self._loaded.version, hears
                )
        except (MemoryError, pa.ArrowException) as error:
            raise expressions.refused("its tables take too much memory") from error
        return self._cache.put(shape.protocol, *prepared)

    @contextmanager
    def _turn(self, shape_id: bytes, ended: Interruption) -> Iterator[None]:
        """Only one thread at a time prepares a shape; the others then find it."""
        with self._lock:
            turn = self._under_way.setdefault(shape_id, _Turn(threading.Lock()))
            turn.waiting += 1
        try:
            while not turn.lock.acquire(timeout=_LOOK_SECONDS):
                ended.check()
            try:
                yield
            finally:
                turn.lock.release()
        finally:
            with self._lock:
                turn.waiting -= 1
                if not turn.waiting:
                    del self._under_way[shape_id]


@dataclass(slots=True)
class _Turn:
    lock: threading.Lock
    waiting: int = 0
