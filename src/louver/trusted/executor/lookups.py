"""Rows looked up in two steps (`ir.Lookup`): the columns of a condition are read and the condition
is decided here; then the other columns are read, of the rows that passed.

A row never changes under its number: an UPDATE gives it a new one. So what the second step returns
is of the state that the first one saw, if it returns every row that was asked for, each once. Where
it does not, another client may have changed these rows meanwhile, and both steps run again in one
transaction; what is missing there too, the server withholds.

Whether the other columns are read by number or of all rows depends on how many rows passed, which
the server sees either way: that the rest is read whole tells it that many passed, and the ledger
holds already that it can tell which ones did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver import errors
from louver.trusted.executor import row_conditions
from louver.trusted.executor.answer import Clock
from louver.trusted.executor.columns import Tables
from louver.trusted.executor.storage import (
    ROW_ID,
    Parts,
    different,
    translate_reply_errors,
)
from louver.trusted.executor.tiles import asking
from louver.trusted.planner import cost, postcondition
from louver.trusted.planner.ir import LOOKUP_ROWS, Column, Lookup, RemoteQuery
from louver.trusted.planner.operators.codes import fill
from louver.wire.messages import Statement

#: Up to so many row numbers go beside a text as constants, more as an Arrow table.
MOST_CONSTANTS = 64
_NUMBERS = "louver_numbers"


@dataclass(frozen=True, slots=True)
class Steps:
    """The statements of a look-up; the second one is printed for one row."""

    first: Statement
    rest: Statement | None

    @property
    def both(self) -> tuple[Statement, Statement | None]:
        """Both of them."""
        return self.first, self.rest

    @property
    def sql(self) -> str:
        """Both texts, for people."""
        return ";\n".join(step.sql for step in self.both if step is not None)

    @property
    def constants(self) -> Sequence[object]:
        """What goes beside the first text."""
        return self.first.constants


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads what one look-up asks for: ``bind`` makes a statement of a remote query, ``ask`` has it
    answered, ``complete`` checks a reply that is to hold all rows.
    """

    parts: Parts
    tables: Tables
    literals: Sequence[str]
    bind: Callable[[RemoteQuery], Statement]
    ask: Callable[[RemoteQuery, Statement], pa.Table]
    complete: Callable[[RemoteQuery, Tables, pa.Table], None]

    def steps(self, lookup: Lookup) -> Steps:
        """What would be sent for a look-up."""
        rest = None if lookup.rest is None else self._by_number(lookup.rest, pa.array([0]))
        return Steps(self.bind(lookup.first), rest)

    def rows(self, lookup: Lookup, clock: Clock) -> pa.Table:
        """The columns of both steps, opened, of the rows that pass the condition, and their numbers
        (column ``louver_row_id``).
        """
        engine = self.parts.engine
        try:
            return self._rows(lookup, clock)
        except errors.VerificationError as error:
            again = error.code == "row.missing" and lookup.rest is not None
            again = again or any(table.tiles for table in self.tables.values())
            if not again or engine.in_transaction:
                raise
        engine.begin()
        try:
            return self._rows(lookup, clock)
        finally:
            engine.rollback()

    def answer(self, remote: RemoteQuery, lookup: Lookup, clock: Clock) -> pa.Table:
        """The answer of a whole query that is looked up: its columns in their order."""
        rows = self.rows(lookup, clock)
        columns = {
            out.name: pa.nulls(rows.num_rows) if out.kind == "absent" else rows.column(out.name)
            for out in remote.outputs
        }
        return pa.table(columns)

    def _rows(self, lookup: Lookup, clock: Clock) -> pa.Table:
        reply = self._replied(lookup.first, self.bind(lookup.first), clock)
        everything = self._opened(lookup.first, reply, clock)
        with clock.step("decide"):
            passed = self._decided(lookup, everything)
            rows = everything if passed is None else everything.filter(passed)
            numbers = rows.column(ROW_ID).combine_chunks()
            if different(rows.column(ROW_ID)) != len(numbers):
                raise _missing(self._label(lookup), len(numbers), len(numbers.unique()))
        if lookup.rest is None or not rows.num_rows:
            return self._with_empty(lookup, rows)
        # Of columns that are read of all rows, to leave a few out takes longer than to keep them.
        most = everything if 2 * rows.num_rows > everything.num_rows else rows
        rest, single = lookup.rest, asking.single_rows(lookup.first, reply)
        if single is not None and asking.are_tiled(rest):
            rows, numbers = most, most.column(ROW_ID).combine_chunks()
            others = self._of_tiles(rest, numbers, single, clock)
        elif self._pays(rest, rows.num_rows, everything.num_rows):
            others = self._numbered(rest, numbers, clock)
        else:
            rows = most
            others = self._opened(rest, self._replied(rest, self.bind(rest), clock), clock)
        with clock.step("decide"):
            return _beside(rows, others, self._label(lookup))

    def _pays(self, rest: RemoteQuery, rows: int, of: int) -> bool:
        """Whether to ask for so many rows by number takes less than to ask for all."""
        link, costs = self.parts.state.planning.link, self.parts.backend.costs
        return cost.by_number_s(rest, rows, of, link, costs) < cost.seconds(rest, of, link)

    def _of_tiles(
        self, rest: RemoteQuery, numbers: pa.Array, single: pa.Array, clock: Clock
    ) -> pa.Table:
        """Columns of known rows whose tiles are read, and of which those that are in none are asked
        for by number. A value in a tile is bound to its row, whatever has become of this.
        """
        own = numbers.filter(pc.is_in(numbers, value_set=single)) if len(single) else single
        with clock.step("server"), translate_reply_errors():
            copies = self._copies(rest, own) if len(own) else None
        given = asking.of_rows(rest, numbers, copies, self.tables[rest.sources[0].table])
        return self._opened(rest, given, clock, whole=False)

    def _numbered(self, rest: RemoteQuery, numbers: pa.Array, clock: Clock) -> pa.Table:
        """Columns of some rows, each of which must be there once."""
        with clock.step("server"), translate_reply_errors():
            reply = self._copies(rest, numbers)
        return self._opened(rest, reply, clock, whole=False)

    def _copies(self, rest: RemoteQuery, numbers: pa.Array) -> pa.Table:
        """The server's answer to a query for rows by number."""
        slot = rest.sources[0].slot
        reply = self.parts.engine.query(self._by_number(rest, numbers))
        names = [f"r{slot}", *(f"louver_c{i}" for i in range(len(rest.outputs)))]
        if reply.num_columns != len(names):
            raise errors.make("reply.format", detail="columns were not asked for")
        reply = reply.rename_columns(names)
        if not _same(numbers, reply.column(f"r{slot}")):
            raise _missing(self._table_label(rest), len(numbers), reply.num_rows)
        return reply

    def _replied(self, remote: RemoteQuery, statement: Statement, clock: Clock) -> pa.Table:
        with clock.step("server"), translate_reply_errors():
            return self.ask(remote, statement)

    def _opened(
        self, remote: RemoteQuery, reply: pa.Table, clock: Clock, *, whole: bool = True
    ) -> pa.Table:
        """An answer opened, with the numbers of its rows; ``whole``: it is to have all rows."""
        with clock.step("open"), translate_reply_errors():
            field_of = self.parts.local.arrow_field
            opened = self.parts.columns.open(remote, self.tables, reply, self.literals, field_of)
            if whole:
                self.complete(remote, self.tables, reply)
        return opened.append_column(ROW_ID, reply.column(f"r{remote.sources[0].slot}"))

    def _decided(self, lookup: Lookup, rows: pa.Table) -> pa.Array | None:
        """Which rows the condition may be true of; None of all of them where it fails."""
        columns = [(out.name, out.type) for out in lookup.first.outputs]
        condition = fill(lookup.condition, self.literals)
        return row_conditions.decided(self.parts.local, LOOKUP_ROWS, columns, rows, condition)

    def _by_number(self, remote: RemoteQuery, numbers: pa.Array) -> Statement:
        """The request for some rows of a table by their numbers."""
        table = self.tables[remote.sources[0].table]
        backend = self.parts.backend
        names = [out.node.name for out in remote.outputs if isinstance(out.node, Column)]
        if len(numbers) <= MOST_CONSTANTS:
            # Equal lengths share a text; how many rows are asked for shows anyway.
            sql = backend.chosen_rows(table, names, len(numbers))
            constants = tuple(numbers.to_pylist())
            return Statement(self._checked(sql, remote), constants)
        sql = backend.numbered_rows(table, names, _NUMBERS)
        rows = {_NUMBERS: pa.table({"row_id": numbers})}
        return Statement(self._checked(sql, remote), tables=rows)

    def _checked(self, sql: str, remote: RemoteQuery) -> str:
        return postcondition.check(sql, remote, self.tables, self.parts.backend)

    def _with_empty(self, lookup: Lookup, rows: pa.Table) -> pa.Table:
        """The rows with the columns that nothing is asked of."""
        for out in lookup.rest.outputs if lookup.rest is not None else ():
            field = self.parts.local.arrow_field(out.type)
            rows = rows.append_column(out.name, pa.nulls(rows.num_rows, field.type))
        return rows

    def _label(self, lookup: Lookup) -> str:
        return self._table_label(lookup.first)

    def _table_label(self, remote: RemoteQuery) -> str:
        return self.tables[remote.sources[0].table].label


def _beside(rows: pa.Table, others: pa.Table, label: str) -> pa.Table:
    """Rows with the columns that others have under the same numbers."""
    if rows.column(ROW_ID).equals(others.column(ROW_ID)):
        for name in others.column_names:
            if name != ROW_ID:
                rows = rows.append_column(name, others.column(name))
        return rows
    positions = _positions(rows.column(ROW_ID), others.column(ROW_ID))
    if positions.null_count:
        raise _missing(label, rows.num_rows, rows.num_rows - positions.null_count)
    for name in others.column_names:
        if name != ROW_ID:
            rows = rows.append_column(name, others.column(name).take(positions))
    return rows


def _positions(numbers: pa.ChunkedArray, of: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Where numbers are among others, which are each there once; NULL where they are not."""
    ordered = np.asarray(of.to_numpy())
    if not len(ordered) or not np.all(ordered[1:] > ordered[:-1]):
        return pc.index_in(numbers, value_set=of.combine_chunks())
    # They mostly come in order: a search takes less than to hash all of them.
    wanted = np.asarray(numbers.to_numpy())
    places = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return pa.array(places, mask=ordered[places] != wanted)


def _same(numbers: pa.Array, returned: pa.ChunkedArray) -> bool:
    """Whether rows are those that were asked for, each once."""
    if returned.equals(pa.chunked_array([numbers])):
        return True  # which are each there once
    if len(returned) != len(numbers) or len(returned.unique()) != len(numbers):
        return False
    return bool(pc.all(pc.is_in(returned, value_set=numbers), min_count=0).as_py())


def _missing(label: str, expected: int, number: int) -> errors.Error:
    return errors.make("row.missing", table=label, expected=expected, found=number)
