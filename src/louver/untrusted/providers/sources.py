"""The arguments of `--data`: files, and the tables that they become."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from louver import errors
from louver.names import fold

_KINDS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".duckdb": "duckdb",
    ".db": "duckdb", ".ddb": "duckdb",
}  # fmt: skip
_NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Source:
    """The source of one table, or of all tables of a DuckDB file (`name` is empty)."""

    name: str
    kind: str
    files: tuple[str, ...]


def sources(data: Sequence[str]) -> tuple[Source, ...]:
    """Parse the arguments of `--data`; `provider.data` for a missing file.

    Args:
        data: file names or patterns; each file becomes a table named after its stem. With a prefix
            ``name=``, a pattern's files in the order of their names become one table.
    """
    sources: list[Source] = []
    for word in data:
        named = None if os.path.exists(word) else _NAMED.fullmatch(word)
        pattern = word if named is None else named[2]
        files = [pattern] if os.path.isfile(pattern) else sorted(glob.glob(pattern, recursive=True))
        files = [file for file in files if os.path.isfile(file)]
        if not files:
            raise errors.make("provider.data", detail=f"there is no file {pattern}")
        kinds = [_kind(file) for file in files]
        if named is None:
            sources += [
                Source("" if kind == "duckdb" else stem(file), kind, (file,))
                for file, kind in zip(files, kinds, strict=True)
            ]
        elif len(set(kinds)) > 1 or kinds[0] == "duckdb":
            raise errors.make(
                "provider.data", detail=f"{word} is not a pattern of files of one format"
            )
        else:
            sources.append(Source(named[1], kinds[0], tuple(files)))
    return tuple(sources)


def stem(file: str) -> str:
    """The table's name: the file's without folders and endings (flights.csv.gz: flights)."""
    return os.path.basename(file).partition(".")[0]


def signature(data: Sequence[str]) -> tuple[tuple[str, int, int, int], ...]:
    """Name, modification time, size and number of every file; changes if one is replaced."""
    files = [file for source in sources(data) for file in source.files]
    parts = []
    for file in files:
        try:
            state = os.stat(file)
        except OSError as error:
            raise errors.make("provider.data", detail=f"{file}: {error.strerror}") from error
        parts.append((file, state.st_mtime_ns, state.st_size, state.st_ino))
    return tuple(parts)


def _kind(file: str) -> str:
    name = fold(file).removesuffix(".gz").removesuffix(".zst")
    kind = _KINDS.get(os.path.splitext(name)[1])
    if kind is None or (kind != "csv" and name != fold(file)):
        raise errors.make("provider.data", detail=f"{file} is neither Parquet, CSV nor DuckDB")
    return kind
