"""Opened rows as tables of the workspace, for as long as a query reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from louver import arrow_streams
from louver.names import quoted
from louver.trusted.executor.local import arrow_values
from louver.trusted.executor.local.local import Answers

MOST_ROWS = 2_048
"""Of more rows, columns that nothing reads are not stored."""


@contextmanager
def filled(workspace: duckdb.DuckDBPyConnection, answers: Answers) -> Iterator[None]:
    """The rows of answers in tables of their names, which are gone afterwards.

    DuckDB counts the values of a table, and so finds a good order of joins, only when its rows are
    committed.
    """
    objects: list[str] = []
    try:
        for position, ((schema, name), (columns, rows)) in enumerate(answers.items()):
            target = f"{quoted(schema)}.{quoted(name)}" if schema else quoted(name)
            word = "" if schema else "TEMP "
            types = zip(columns, rows.schema.types, strict=True)
            stored = [item for item, type_ in types if not pa.types.is_null(type_)] or columns[:1]
            if rows.num_rows <= MOST_ROWS or len(stored) == len(columns):
                objects.append(f"TABLE IF EXISTS {target}")
                _fill(workspace, position, f"{word}TABLE {target}", columns, rows)
                continue
            base = quoted(f"louver_filled_{position}")
            objects += [f"TABLE IF EXISTS {base}", f"VIEW IF EXISTS {target}"]
            _fill(workspace, position, f"TEMP TABLE {base}", stored, rows)
            # What stands there else is a table, which a view does not replace.
            workspace.execute(f"DROP TABLE IF EXISTS {target}")
            items = _with_absent(columns, {name for name, _ in stored})
            workspace.execute(
                f"CREATE OR REPLACE {word}VIEW {target} AS SELECT {items} FROM {base}"
            )
        yield
    finally:
        for item in reversed(objects):
            workspace.execute(f"DROP {item}")


def _fill(
    workspace: duckdb.DuckDBPyConnection, position: int, target: str,
    columns: Sequence[tuple[str, str]], rows: pa.Table,
) -> None:  # fmt: skip
    """Make a table of some columns of rows."""
    rows = arrow_values.readable(rows.select([name for name, _ in columns]))
    incoming = f"louver_answer_{position}"
    workspace.register(incoming, arrow_streams.once(rows))
    try:
        items = ", ".join(f"{quoted(c)}::{type_} AS {quoted(c)}" for c, type_ in columns)
        workspace.execute(f"CREATE OR REPLACE {target} AS SELECT {items} FROM {incoming}")
    finally:
        workspace.unregister(incoming)


def _with_absent(columns: Sequence[tuple[str, str]], stored: set[str]) -> str:
    """Columns in their order, NULL in the place of those that are not stored."""
    return ", ".join(
        quoted(c) if c in stored else f"NULL::{type_} AS {quoted(c)}" for c, type_ in columns
    )
