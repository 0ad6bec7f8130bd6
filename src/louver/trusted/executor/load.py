"""`con.load`: Arrow, data frames and files into a table, batch by batch, all or nothing.

The local engine casts and checks every batch, and the batch is encrypted while one statement sends
the batches before it to the server, so memory does not grow with the data. Keys are collected in a
local table that may spill, encrypted, into the private directory, and are compared at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pyarrow as pa
import pyarrow.compute as pc

from louver import errors
from louver.names import fold, quoted
from louver.trusted.executor import (
    constraint_check,
    dry_run,
    row_writer,
    seen_state,
    storage,
    transaction,
)
from louver.trusted.executor.answer import Answer, Clock
from louver.trusted.executor.context import Context
from louver.trusted.executor.csv_files import CsvForm
from louver.trusted.executor.load_sources import Source, open_source
from louver.trusted.executor.schema.representations import tag_of
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.types import bare

Progress = Callable[[int, int | None], None]
"""Called with the rows done and the total rows, or None if the total is unknown."""

_SOURCE = "louver_source"


def load(
    context: Context,
    table_name: str,
    source: object,
    progress: Progress | None = None,
    form: CsvForm | None = None,
) -> Answer:
    """Append the rows of a source to a table; columns are matched by name."""
    if not context.in_transaction:
        seen_state.refresh(context)
    table = _table(context, table_name)
    clock = Clock()
    incoming = open_source(context, table, source, form or CsvForm())
    try:
        known = constraint_check.rules(context, table)
        names = _require_columns(context, table, incoming.reader.schema, known)
        with (
            clock.step("load"),
            transaction.writing_rows(context, table, refers=bool(known.foreign)) as catalog,
            closing(_Keys(context, table, known)) as gatherer,
        ):
            held = catalog.table(table.schema, table.name)
            if held is None:
                raise errors.make("table.missing", table=table.label)
            before = held.row_count
            fresh = _fresh(context, table, known, names, incoming, progress)
            try:
                row_writer.append_stream(context, held, gatherer.passing(fresh))
            except errors.IntegrityError as error:
                batches = gatherer.collected()
                raise row_writer.explained(context, held, batches, error) from None
            gatherer.require()
            loaded = held.row_count - before
    finally:
        incoming.close()
    return Answer(affected=loaded, times_ms=clock.times_ms)


def _fresh(
    context: Context,
    table: Table,
    known: constraint_check.Rules,
    names: list[str],
    incoming: Source,
    progress: Progress | None,
) -> Iterator[pa.Table]:
    """The rows as they will be stored, cast while the server receives earlier batches."""
    done = 0
    for batch in incoming.batches():
        fresh = _cast(context, table, known, batch.select(names), done)
        yield fresh
        done += fresh.num_rows
        if progress is not None:
            progress(done, incoming.total)


def _table(context: Context, name: str) -> Table:
    table = context.catalog.named("", name)
    if table is None and "." in name:
        schema, _, rest = name.partition(".")
        table = context.catalog.table(schema.strip('"'), rest.strip('"'))
    if table is None:
        raise errors.make("table.missing", table=name)
    return table


def _require_columns(
    context: Context, table: Table, schema: pa.Schema, known: constraint_check.Rules
) -> list[str]:
    """The source's columns that are loaded; raises if they do not match the table's columns."""
    given = [fold(name) for name in schema.names]
    problems = []
    doubled = sorted({name for name in given if given.count(name) > 1})
    if doubled:
        problems.append(f"{', '.join(doubled)} twice")
    unknown = [name for name in schema.names if table.column(name) is None]
    if unknown:
        problems.append(f"{', '.join(unknown)} not in the table")
    defaults = known.defaults.keys()
    missing = [
        c.name
        for c in table.columns
        if fold(c.name) not in given and fold(c.name) not in known.generated | defaults
    ]
    if missing:
        problems.append(f"{', '.join(missing)} missing in the data")
    if problems:
        raise errors.make("load.columns", table=table.label, detail="; ".join(problems))
    return [name for name in schema.names if fold(name) not in known.generated]


def _cast(
    context: Context, table: Table, known: constraint_check.Rules, batch: pa.Table, done: int
) -> pa.Table:
    """A batch as it will be stored. An error about a value names its row but not the value, since
    messages end up in logs.
    """
    try:
        return _attempt(context, table, known, batch)
    except errors.DataError:
        position = 0
        while batch.num_rows > 1:
            half = batch.num_rows // 2
            try:
                _attempt(context, table, known, batch.slice(0, half))
            except errors.DataError:
                batch = batch.slice(0, half)
            else:
                position, batch = position + half, batch.slice(half)
        raise errors.make(
            "load.row",
            table=table.label,
            row=done + position + 1,
            detail="a value does not fit the type of its column",
        ) from None


#: Arrow types of which DuckDB takes every value as it is.
_TAKEN: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_binary,
    pa.types.is_date32, pa.types.is_timestamp,
)  # fmt: skip


def _as_they_are(
    context: Context, table: Table, known: constraint_check.Rules, batch: pa.Table
) -> pa.Table | None:
    """A batch whose rows the table takes as they are; None where the local engine is to say so."""
    if context.local.dialect.reads_off or known.deciding or known.generated:
        return None
    given = {fold(name): batch.column(name) for name in batch.column_names}
    taken = dict[str, pa.ChunkedArray]()
    for column in table.columns:
        values, name = given.get(fold(column.name)), fold(column.name)
        if values is None or values.type != context.local.arrow_field(column.type).type:
            return None
        fits = any(is_one(values.type) for is_one in _TAKEN) or _is_text(values)
        fits = fits or _has_digits(values)
        if not fits or (name in known.required and values.null_count):
            return None
        taken[column.name] = values
    return pa.table(taken)


def _is_text(values: pa.ChunkedArray) -> bool:
    """Whether these are texts of valid UTF-8, which Arrow does not look at when it makes them."""
    if not pa.types.is_string(values.type):
        return False
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _has_digits(values: pa.ChunkedArray) -> bool:
    """Whether these are decimals of no more digits than their type says."""
    if not pa.types.is_decimal128(values.type):
        return False
    ends = pc.min_max(values)
    digits = values.type.precision - values.type.scale
    return all(
        end.as_py() is None or abs(end.as_py()) < 10**digits for end in (ends["min"], ends["max"])
    )


def _attempt(
    context: Context, table: Table, known: constraint_check.Rules, batch: pa.Table
) -> pa.Table:
    ready = _as_they_are(context, table, known, batch)
    if ready is not None:
        return ready
    name = dry_run.stand_in(table) if known.without_foreign else table.local_name
    with constraint_check.rehearsal(context) as connection:
        if known.without_foreign:
            connection.execute(known.without_foreign)
        connection.register(_SOURCE, batch)
        listed = ", ".join(quoted(column) for column in batch.column_names)
        values = ", ".join(connection.taken(name, batch))
        statement = connection.fetch_arrow(
            f"INSERT INTO {name} ({listed}) SELECT {values} FROM {_SOURCE} RETURNING *"
        )
        connection.require_exact(name, table, statement)
    return statement.select([column.name for column in table.columns])


class _Keys:
    """The keys of all rows loaded so far, in a local table that may spill.

    Stored keys are read before rows are sent, in the state that these change.
    """

    def __init__(self, context: Context, table: Table, known: constraint_check.Rules) -> None:
        self._table, self._known = table, known
        self._keys = [key for key in known.keys if not tag_of(table, key.expressions)]
        foreign = [name for f in known.foreign for name in f.columns]
        self._columns = list(dict.fromkeys([*known.key_columns(), *foreign]))
        self._parents = [constraint_check.parent_of(context, f) for f in known.foreign]
        if not self._columns:
            return
        self._connection = context.local.key_store()
        self._make("louver_fresh", table, self._columns)
        if self._keys:
            read = list(dict.fromkeys(name for key in self._keys for name in key.columns))
            self._read(context, "louver_kept", table, read)
        for position, (item, parent) in enumerate(zip(known.foreign, self._parents, strict=True)):
            self._read(context, f"louver_parent_{position}", parent, list(item.parent_columns))

    def passing(self, batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """The same batches; their keys are collected."""
        for fresh in batches:
            if self._columns:
                self._insert("louver_fresh", fresh.select(self._columns))
            yield fresh

    def collected(self) -> Iterator[pa.Table]:
        """The keys of the rows that were sent."""
        if self._columns:
            reader = self._connection.stream("SELECT * FROM louver_fresh")
            yield from (pa.Table.from_batches([batch]) for batch in reader)

    def require(self) -> None:
        """Raise DuckDB's error for a duplicate key or a reference without a parent. A row may
        refer to another row of the same load.
        """
        if not self._columns:
            return
        connection, fresh = self._connection, "louver_fresh"
        for key in self._keys:
            connection.require_key(key, fresh, "louver_kept")
        for position, item in enumerate(self._known.foreign):
            name = f"louver_parent_{position}"
            if self._parents[position].id == self._table.id:
                listed = ", ".join(quoted(column) for column in item.parent_columns)
                connection.execute(f"INSERT INTO {name} SELECT {listed} FROM {fresh}")
            connection.require_parent(item, fresh, name)

    def close(self) -> None:
        """Release the keys."""
        if self._columns:
            self._connection.close()

    def _make(self, name: str, table: Table, columns: list[str]) -> None:
        types = {fold(c.name): bare(c.type) for c in table.columns}
        body = ", ".join(f"{quoted(c)} {types[fold(c)]}" for c in columns)
        self._connection.execute(f"CREATE TEMP TABLE {name} ({body})")

    def _insert(self, name: str, batch: pa.Table) -> None:
        self._connection.register("louver_batch", batch)
        self._connection.execute(f"INSERT INTO {name} SELECT * FROM louver_batch")
        self._connection.unregister("louver_batch")

    def _read(self, context: Context, name: str, table: Table, columns: list[str]) -> None:
        self._make(name, table, columns)
        for batch in context.storage.batches(table, columns):
            self._insert(name, batch.drop_columns([storage.ROW_ID]))
