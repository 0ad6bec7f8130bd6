"""Codes compared with the sealed values beside them, on rows that the client picks.

A server cannot forge a sealed value, but nothing binds a code to it. So before a session relies on
a column's codes, and whenever a layer is opened, a few rows are opened and their codes computed
again. That finds a server whose columns were swapped or filled with something else; one that
changes single rows is found by chance only (THREAT_MODEL.md).
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterable, Sequence
from functools import partial

import pyarrow as pa

from louver import errors
from louver.trusted.executor.context import Context
from louver.trusted.executor.storage import in_one_state
from louver.trusted.planner.ir import Opening
from louver.trusted.vault import scheme, schemes
from louver.trusted.vault.arrays import unwrapped
from louver.trusted.vault.catalog import Column, Table
from louver.wire.messages import Statement

SAMPLE_ROWS = 16
Mark = tuple[int, int, str]
"""Column, generation and onion."""


class _Checked(set[Mark]):
    """What a session has checked already."""


def require(context: Context, relied: Sequence[Opening], anew: Iterable[Opening] = ()) -> None:
    """Check the codes that a plan relies on, unless this session has; raise ``value.tampered``."""
    seen = context.state.cache(_Checked)
    again = {(opening.column, opening.onion) for opening in anew}
    for opening in relied:
        table, column = context.catalog.column(opening.table, opening.column)
        mark = (column.id, column.generation, opening.onion)
        if mark in seen and (opening.column, opening.onion) not in again:
            continue
        if table.counted and not table.row_count:
            continue
        sample = table, column, opening.onion
        if in_one_state(context.engine, [table], partial(_check, context, *sample)):
            seen.add(mark)


def _check(context: Context, table: Table, column: Column, onion: str) -> bool:
    """Check a sample of a column's codes; whether there was any."""
    sql, picked = _sample(context, table, column, onion)
    reply = context.engine.query(Statement(sql, tuple(picked)))
    if not reply.num_rows and not picked:
        return False
    row_ids, values, held = (_chunk(reply.column(position)) for position in range(3))
    field = context.local.arrow_field(column.type)
    plain = unwrapped(context.columns.open_column(table, column, values, row_ids, field))
    wanted = schemes.seal_one(context.columns, table, column, onion, plain, row_ids)
    numbers = row_ids.to_pylist()
    if picked and sorted(numbers) != picked:
        raise errors.make(
            "row.missing", table=table.label, expected=len(picked), found=len(numbers)
        )
    for number, item, other in zip(numbers, _codes(held), _codes(wanted), strict=True):
        if item != other:
            raise errors.make("value.tampered", table=table.label, column=column.name, row=number)
    return True


def _sample(context: Context, table: Table, column: Column, onion: str) -> tuple[str, list[int]]:
    """A query for some rows: picked here where it is known which there are, else over there."""
    names = (scheme.read_from(column), column.stored[onion])
    if not table.runs_known:
        return context.backend.some_rows(table, names, SAMPLE_ROWS), []
    picked = sorted({_row(table) for _ in range(SAMPLE_ROWS)})
    return context.backend.chosen_rows(table, names, len(picked)), picked


def _row(table: Table) -> int:
    """The number of a row, each as likely as any other."""
    position = secrets.randbelow(table.row_count)
    for first, count in table.runs:
        if position < count:
            return first + position
        position -= count
    raise errors.make("internal", detail="the row id ranges of a table do not match its rows")


def _chunk(values: pa.ChunkedArray) -> pa.Array:
    combined = values.combine_chunks()
    return (
        combined.chunk(0)
        if isinstance(combined, pa.ChunkedArray) and combined.num_chunks
        else combined
    )


def _codes(values: pa.Array) -> list[object]:
    """Codes in one form, whether the engine gives UUIDs as such, as bytes or as text."""
    results: list[object] = []
    for value in unwrapped(values).to_pylist():
        match value:
            case bytes():
                results.append(value)
            case str():
                results.append(uuid.UUID(value).bytes)
            case _:
                results.append(value)
    return results
