"""Queries of rows whose sealed copies are in tiles: the empty strings that stand for these are not
read column by column.

The copies of one row are in tiles together or not at all. So the columns are asked for of those
rows alone whose first copy is their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver import errors
from louver.trusted.backends import tile_texts
from louver.trusted.backends.backend import Backend
from louver.trusted.executor.tiles import opening, reading
from louver.trusted.executor.tiles.reading import Numbers
from louver.trusted.planner.ir import RemoteQuery
from louver.trusted.planner.render import answer_name
from louver.trusted.vault import scheme
from louver.trusted.vault.arrays import joined
from louver.trusted.vault.catalog import Table
from louver.untrusted.engines.engine import Engine
from louver.wire.messages import Statement

LEAST_ROWS = 1_000
"""An answer of which fewer rows are expected is asked for at once."""


@dataclass(frozen=True, slots=True)
class Question:
    """What asks for the rows of an answer: one statement, or two, of which the first leaves columns
    out that may be in tiles, and the second gives these of the rows that have copies of their own.
    """

    statements: tuple[Statement, ...]
    table: Table
    #: the columns of the second answer: the numbers of its rows, and their copies
    names: tuple[str, ...] = ()

    def answer(self, engine: Engine) -> pa.Table:
        """The answer, with all of its columns."""
        reply, *others = map(engine.query, self.statements)
        if not others:
            return reply
        (rest,), (row, *_) = others, self.names
        if rest.column_names != [*self.names] or row not in reply.column_names:
            raise errors.make("reply.format", detail="columns that were not asked for")
        return _beside(reply, rest, row, self.table)


def question(remote: RemoteQuery, statement: Statement, tables: Mapping[int, Table]) -> Question:
    """How a query is asked whose values may be in tiles; ``statement`` asks for all at once."""
    table, sealed = tables[remote.sources[0].table], _apart(remote)
    if not sealed:
        return Question((statement,), table)
    names = f"r{remote.sources[0].slot}", *sealed
    rows = replace(statement, sql=tile_texts.without(statement.sql, sealed))
    alone = replace(statement, sql=tile_texts.rows_alone(statement.sql, names[0], sealed))
    return Question((rows, alone), table, names)


def are_tiled(remote: RemoteQuery) -> bool:
    """Whether all that a query asks for of each row is in tiles where the row is."""
    outputs = (out for out in remote.outputs if out.kind != "absent")
    return all(out.tiled and out.row is None for out in outputs)


def single_rows(remote: RemoteQuery, reply: pa.Table) -> pa.Array | None:
    """The numbers of an answer's rows that are in no tile; None where it does not tell."""
    for out in remote.outputs:
        if out.tiled and out.row is None:
            alone = opening.outside(reply.column(answer_name(out.name, remote)))
            return joined(reply.column(f"r{out.slot}")).take(pa.array(alone))
    return None


def of_rows(
    remote: RemoteQuery, numbers: pa.Array, copies: pa.Table | None, table: Table
) -> pa.Table:
    """The answer to a query of rows by number, made of these, and of the copies of those that are
    in no tile.
    """
    row = f"r{remote.sources[0].slot}"
    given = pa.table({row: numbers})
    if copies is not None:
        return _beside(given, copies, row, table)
    blank = _blank(len(numbers))
    for out in remote.outputs:
        if out.kind != "absent":
            given = given.append_column(answer_name(out.name, remote), blank)
    return given


def _apart(remote: RemoteQuery) -> Sequence[str]:
    """The columns of an answer that may be in tiles, where it is one of many rows of one table, in
    whatever order.
    """
    if len(remote.sources) != 1 or remote.grouped or remote.order or remote.limit:
        return ()
    if remote.rows < LEAST_ROWS:
        return ()
    names = [answer_name(out.name, remote) for out in remote.outputs if out.tiled]
    return names if len(set(names)) == len(names) else ()


def texts_of_tiles(
    backend: Backend, remote: RemoteQuery, tables: Mapping[int, Table], rows: float
) -> list[str]:
    """The statements that ask for the tiles of an answer of so many rows, for people: which tiles
    have them, the answer tells.
    """
    wanted = dict[tuple[int, str], list[str]]()
    for output in remote.outputs:
        if output.tiled:
            table = tables[remote.table_of(output.slot)]
            stored = scheme.read_from(next(c for c in table.columns if c.id == output.column))
            # What the server picks of a group has a row of its own.
            names = wanted.setdefault((output.slot, output.name if output.row else ""), [])
            names += [stored] if stored not in names else []
    return [
        text
        for (slot, _), names in wanted.items()
        for text in reading.texts(backend, tables[remote.table_of(slot)], names, rows)
    ]


def _beside(reply: pa.Table, rest: pa.Table, row: str, table: Table) -> pa.Table:
    """An answer with columns whose values some of its rows have of their own."""
    own = _places(joined(reply.column(row)), joined(rest.column(row)), table)
    count, blank = reply.num_rows, _blank(reply.num_rows)
    at_end = np.array_equal(own, np.arange(count - len(own), count))
    chosen = np.zeros(0 if at_end else count, np.int64)
    if not at_end:
        chosen[own] = np.arange(1, len(own) + 1)
    for name in rest.column_names[1:]:
        values = joined(rest.column(name))
        if pa.types.is_null(values.type) and not len(values):
            values = blank.slice(0, 0)
        if not pa.types.is_binary(values.type):
            raise errors.make("reply.format", detail=f"column {name} is of type {values.type}")
        if at_end:
            column = pa.chunked_array([blank.slice(len(own)), values])
        else:
            column = pa.concat_arrays([_blank(1), values]).take(pa.array(chosen))
        reply = reply.append_column(name, column)
    return reply


def _places(rows: pa.Array, own: pa.Array, table: Table) -> Numbers:
    """Where rows are among all."""
    if not len(own):
        return np.empty(0, np.int64)
    if rows.slice(len(rows) - len(own)).equals(own):
        return np.arange(len(rows) - len(own), len(rows))
    places = pc.index_in(own, value_set=rows)
    if places.null_count:
        # Outside of a transaction another client may have added it meanwhile.
        row_id = own.filter(places.is_null())[0].as_py()
        raise errors.make("value.tampered", table=table.label, column="?", row=row_id)
    return np.asarray(places.to_numpy(), np.int64)


def _blank(count: int) -> pa.Array:
    """So many empty strings."""
    offsets = pa.py_buffer(np.zeros(count + 1, np.int32))
    return pa.Array.from_buffers(pa.binary(), count, [None, offsets, pa.py_buffer(b"")])
