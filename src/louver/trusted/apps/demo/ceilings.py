"""`EXPLAIN (LEAKAGE)` of one query under three ceilings, on a generated table.

`docs/generate.py` writes the output into docs/reference/ceilings.md.
"""

from __future__ import annotations

import os
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import louver
from louver.trusted.apps import terminal
from louver.trusted.backends import tile_texts
from louver.trusted.client.inside import context_of
from louver.trusted.vault.catalog import Table

CEILINGS = ("access", "equality", "order")
QUERY = "SELECT name, salary FROM staff WHERE dept = 'sales' AND born < DATE '1975-01-01'"
_TABLE = (
    "CREATE TABLE staff (name TEXT ENC, dept TEXT ENC MAY REVEAL {0}, born DATE ENC"
    " MAY REVEAL {0}, salary INTEGER ENC)"
)
_ROWS = (
    "INSERT INTO staff SELECT 'employee ' || i, ['sales', 'research', 'legal', 'stock'][1 + i % 4],"
    " DATE '1960-01-01' + CAST((i * 37) % 14000 AS INTEGER), 30000 + (i * 7919) % 50000"
    " FROM range(1500) r(i)"
)


def explained() -> dict[str, str]:
    """The output by ceiling. The server's random column names are replaced by readable ones."""
    texts = {}
    with _connected() as connect:
        for ceiling in CEILINGS:
            connection = connect(ceiling)
            connection.execute(_TABLE.format(ceiling))
            connection.execute(_ROWS)
            text = connection.execute(f"EXPLAIN (LEAKAGE) {QUERY}").fetchall()[0][1]
            table = context_of(connection).catalog.table("main", "staff")
            for hidden, name in _names(table).items():
                text = text.replace(hidden, name)
            texts[ceiling] = "\n".join(_folded(line) for line in text.splitlines())
            connection.close()
    return texts


def _names(table: Table | None) -> dict[str, str]:
    """Readable names by the server's."""
    if table is None:
        return {}
    names = {tile_texts.layout_of(table): "layout", table.tile_table: "staff_tiles"}
    for column in table.columns:
        names |= {stored: f"{column.name}_{form}" for form, stored in column.stored.items()}
    return names


def _folded(line: str) -> str:
    return textwrap.fill(line, 100, subsequent_indent=" " * 11, break_long_words=False)


def shown() -> str:
    """The whole output as one block of text."""
    return "\n\n".join(f"-- MAY REVEAL {level}\n{text}" for level, text in explained().items())


@contextmanager
def _connected() -> Iterator[Callable[[str], louver.Connection]]:
    before = os.environ.get("LOUVER_STATE_DIR")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", louver.LeakageWarning)
        os.environ["LOUVER_STATE_DIR"] = str(Path(folder) / "state")
        louver.KeyRing.create(Path(folder) / "example.louverkey")
        try:
            yield lambda name: louver.connect(
                f"duckdb:////{folder}/{name}.duckdb", keys=f"{folder}/example.louverkey"
            )
        finally:
            if before is None:
                del os.environ["LOUVER_STATE_DIR"]
            else:
                os.environ["LOUVER_STATE_DIR"] = before


if __name__ == "__main__":
    terminal.out(shown())
