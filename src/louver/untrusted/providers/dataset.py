"""A provider's data set: files, read once into a private DuckDB database.

Every table has an additional column `louver_position`: the number of the row in the order of
loading, from 0. It breaks ties, so that all providers return the same answer.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb

from louver import errors
from louver.untrusted.providers.digest import digest
from louver.untrusted.providers.interruption import Interruption
from louver.untrusted.providers.loading import POSITION, Told, read_source
from louver.untrusted.providers.sources import Source, signature, sources
from louver.wire.questions import TableFacts

__all__ = ["POSITION", "Interruption", "LoadedData", "Told", "load"]

_MAX_TABLES = 1_024
#: The share of reading in the work; the rest is the digest.
_READING = 0.8


@dataclass(frozen=True, slots=True)
class LoadedData:
    """One version of a data set.

    Attributes:
        version: 32 bytes, a digest of the schema and of all content in order; equal on every
            machine that loads the same files.
        database: a DuckDB file, to be opened read-only; its tables have the column
            `louver_position` (BIGINT) besides those of `tables`.
        tables: names, columns without `louver_position`, rows; sorted by name.
    """

    version: bytes
    database: Path
    tables: tuple[TableFacts, ...]

    def remove(self) -> None:
        """Delete the database; every connection to it must be closed."""
        for end in ("", ".wal"):
            with suppress(FileNotFoundError):
                os.remove(f"{self.database}{end}")


def load(
    data: Sequence[str], cache: Path, progress: Told | None = None, *, threads: int | None = None,
    memory_bytes: int | None = None, interruption: Interruption | None = None,
) -> LoadedData:  # fmt: skip
    """Read files into a database in the folder `cache`.

    Args:
        data: the arguments of `--data`, see `sources`.
        cache: an existing folder.
        progress: receives the progress, also from other threads.
        threads: the number of threads; all by default.
        memory_bytes: DuckDB's memory limit.
        interruption: lets another thread end the work.

    Raises:
        louver.errors.Error: `provider.data`, naming the file and the problem; `interrupted`;
            `disk.full`.
    """
    before = signature(data)
    ended = interruption or Interruption()
    database = cache / f"data-{uuid.uuid4().hex}.duckdb"
    try:
        loaded = _fill(sources(data), database, progress, ended, threads, memory_bytes)
        if signature(data) != before:
            raise errors.make("provider.data", detail="a file changed while it was read")
    except BaseException as error:
        LoadedData(b"", database, ()).remove()
        if ended.over and isinstance(error, Exception):
            # DuckDB and Arrow report an interruption by exceptions of their own.
            raise errors.make("interrupted") from error
        raise
    return loaded


def _fill(
    sources: Sequence[Source], database: Path, progress: Told | None, ended: Interruption,
    threads: int | None, memory_bytes: int | None,
) -> LoadedData:  # fmt: skip
    settings: dict[str, str | bool | int | float | list[str]] = {
        "preserve_insertion_order": "true",
        "autoinstall_known_extensions": "false",
    }
    if threads is not None:
        settings["threads"] = threads
    if memory_bytes is not None:
        settings["memory_limit"] = f"{memory_bytes}B"
    sizes = [sum(map(os.path.getsize, source.files)) for source in sources]
    total, done = max(sum(sizes), 1), 0
    with (
        duckdb.connect(str(database), config=settings) as connection,
        ended.watching(connection),
    ):
        # Without the progress bar DuckDB reports no progress; it is not printed.
        connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
        # Times with a zone are read, and printed as texts, in the same zone on all machines.
        connection.execute("SET TimeZone = 'UTC'")
        tables: list[str] = []
        for source, size in zip(sources, sizes, strict=True):
            scale = (_READING * done / total, _READING * size / total)
            part = None if progress is None else _part(progress, *scale)
            tables += read_source(connection, source, part, ended.check)
            done += size
        if len(tables) > _MAX_TABLES:
            raise errors.make("provider.data", detail=f"more than {_MAX_TABLES} tables")
        part = None if progress is None else _part(progress, _READING, 1 - _READING)
        facts, version = digest(connection, sorted(tables), part, ended.check)
    return LoadedData(version, database, facts)


def _part(progress: Told, begin: float, share: float) -> Told:
    """The progress of a part as progress of the whole."""
    return lambda stage, done: progress(stage, min(1.0, begin + share * done))
