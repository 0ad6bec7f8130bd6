"""Louver and plaintext DuckDB, each on a file of its own in the same folder."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from bench import data

#: A name in the tables, the profile, and what stands after each ENC.
PROFILES = {
    "sealed": ("sealed", ""),
    "order": ("sealed", " MAY REVEAL order"),
    "cryptdb": ("cryptdb", ""),
}
#: `{enc}` is empty for plaintext DuckDB, which has the same keys.
TABLE = "CREATE TABLE {name} (id BIGINT{enc}{key}, v BIGINT{enc}, s TEXT{enc})"
ROWS = "INSERT INTO {name} SELECT i, i % 1000, 'v' || i FROM range({rows}) AS r(i)"


@dataclass(frozen=True, slots=True)
class Sides:
    """A connection to each, and where further ones lead."""

    folder: Path
    profile: str
    ours: Any
    plain: duckdb.DuckDBPyConnection

    def enc(self, side: Any) -> str:
        """What follows a type in CREATE TABLE."""
        return f" ENC{PROFILES[self.profile][1]}" if side is self.ours else ""

    def both(self) -> tuple[Any, Any]:
        """Louver first."""
        return self.ours, self.plain

    def table(self, name: str, rows: int, *, key: bool) -> None:
        """The same table on both sides."""
        declared = " PRIMARY KEY" if key else ""
        for side in self.both():
            side.execute(TABLE.format(name=name, enc=self.enc(side), key=declared))
            side.execute(ROWS.format(name=name, rows=rows))

    def another(self, side: Any) -> Any:
        """One more connection to the database of a side."""
        if side is self.ours:
            return _connected(self.folder, self.profile)
        return duckdb.connect(str(self.folder / "plain.duckdb"))

    def equal(self, sql: str) -> None:
        """Both sides give the same answer, or no time of them means anything."""
        ours, plain = (side.execute(sql).fetchall() for side in self.both())
        if ours != plain:
            raise RuntimeError(f"another answer than plaintext DuckDB's: {sql}")


@contextmanager
def opened(profile: str) -> Iterator[Sides]:
    """New databases in a folder that is removed afterwards."""
    import louver

    warnings.simplefilter("ignore", louver.LeakageWarning)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data.state(folder)
        louver.KeyRing.create(folder / "key")
        with _connected(folder, profile) as ours, data.plain(folder) as plain:
            yield Sides(folder, profile, ours, plain)


def _connected(folder: Path, profile: str) -> Any:
    import louver

    url = f"duckdb:///{folder}/louver.duckdb"
    return louver.connect(url, keys=folder / "key", profile=PROFILES[profile][0])
