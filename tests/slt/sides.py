"""The two databases that a file runs on: Louver's, and plaintext DuckDB's, each with its
connections by name and a folder of its own for what the file writes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

#: Opens a connection to the database of a path.
Opener = Callable[[Path], Any]


class Side:
    """One database; `load` and `restart` close all its connections and open it anew."""

    def __init__(self, folder: Path, opener: Opener) -> None:
        self.folder = folder
        self._opener = opener
        self._path = folder / "main.db"
        self._open: dict[str, Any] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def connection(self, name: str | None = None) -> Any:
        """The connection of a name, opened when it is first used."""
        key = name or ""
        if key not in self._open:
            self._open[key] = self._opener(self._path)
        return self._open[key]

    def close(self) -> None:
        """Close all connections."""
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    def load(self, name: str | None) -> None:
        """Open the database of a file's name, or the same one again."""
        self.close()
        if name is not None:
            self._path = self.folder / Path(name).name


def duck(path: Path) -> duckdb.DuckDBPyConnection:
    """Plaintext DuckDB on a file of its own."""
    return duckdb.connect(path)


class Borrowed(Side):
    """A side whose connection is another's: it is neither closed nor opened anew."""

    def __init__(self, folder: Path, connection: Any) -> None:
        super().__init__(folder, lambda _: connection)

    def close(self) -> None:
        """The connection is its owner's."""

    def load(self, name: str | None) -> None:
        raise ValueError("load and restart need a database of the file's own")
