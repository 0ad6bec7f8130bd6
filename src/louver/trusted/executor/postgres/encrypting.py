"""Encrypt a plaintext PostgreSQL database: PostgreSQL's own statements of what it declares, then
table by table its rows.

All statements are tried first, in a transaction that is undone; what is refused is said before
anything is stored. Each table, with those that refer to each other in a circle, is made, filled and
counted in one transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace

import pyarrow as pa

from louver import errors
from louver.names import fold
from louver.trusted import backends
from louver.trusted.executor import row_writer, transaction, transfer
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.postgres import plaintext
from louver.trusted.executor.local.postgres.declarations import TEXT, Form
from louver.trusted.executor.local.postgres.plaintext import Item, Plaintext, SourceTable
from louver.trusted.executor.postgres import trial
from louver.trusted.executor.progress import Progress
from louver.trusted.executor.transfer import Encrypted, Filled
from louver.trusted.planner.sql.postgres_types import own_type
from louver.trusted.vault.catalog import HomeObject, Table

Count = Callable[[str], int]
_BATCH = "louver_batch"
#: What is made together with a table.
_PARTS = frozenset(("TABLE", "KEY", "OWNER", "POSITION", "INDEX"))
_BYTEWISE = ("C", "POSIX", "C.UTF-8", "C.utf8")


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user has chosen: tables by ``names``, or all; unknown types ``as_text``; what is
    refused is left where ``leaves``, and collations where ``drops_collations``; ``resumes`` takes
    tables that are there, with the same columns and number of rows, as done; ``most_rows`` of each
    table.
    """

    names: Sequence[str] = ()
    as_text: bool = False
    leaves: bool = False
    drops_collations: bool = False
    resumes: bool = False
    most_rows: int | None = None

    @property
    def form(self) -> Form:
        """How all tables are printed."""
        return Form(collations=not self.drops_collations)


def encrypt_url(
    context: Context, url: str, choices: Choices, count: Count,
    progress: Progress | None = None, filled: Filled | None = None,
) -> Encrypted:  # fmt: skip
    """Encrypt the tables of the database at a URL, see `encrypt`."""
    scheme = url.partition("://")[0]
    module = backends.engine(scheme)
    with closing(module.open_url(url, read_only=True)) as engine:
        if engine.address == context.engine.address:
            raise errors.make("source.same", place=engine.address)
        backends.plain(scheme).require_others(engine)
    with plaintext.reading(module.session_at(url)) as source:
        return encrypt(context, source, choices, count, progress, filled)


def encrypt(
    context: Context, source: Plaintext, choices: Choices, count: Count,
    progress: Progress | None = None, filled: Filled | None = None,
) -> Encrypted:  # fmt: skip
    """Encrypt the tables of a database; ``count`` gives the rows of a table of the target."""
    every, meant = not choices.names, Meant.of(context, source, choices)
    tables, sizes = meant.tables, meant.sizes
    done = _done(context, source, tables, sizes, choices, count)
    rest = [table for table in tables if table not in done]
    whole = {table.oid for table in done}
    items = _absent(context, [
        item for item in source.items(tables, meant.forms, every=every)
        if item.table not in whole or item.kind not in _PARTS
    ])  # fmt: skip
    refused = source.refused(tables, every=every)
    tried = trial.run(context, source, items, meant.forms, leaves=choices.leaves, every=every)
    if not choices.leaves:
        require_none(refused, tried.refused)
    texts = meant.texts
    move = Move(context, source, sizes, texts, progress, choices.most_rows, filled)
    move.passed = sum(sizes[table.oid] for table in done)
    move.run(tried.ordered, {table.oid: table for table in rest})
    for table in tables:
        require_count(table, count(table.path), sizes[table.oid])
    lost = (f"default {t.label}.{name}" for t in rest for kind, name in source.pieces(t)
            if kind == "default" and name in texts[t.oid])  # fmt: skip
    left = [*refused, *(label for label, _ in tried.refused), *lost]
    return Encrypted(move.counts, tuple(notices(source, left)))


@dataclass(frozen=True, slots=True)
class Meant:
    """What is to be encrypted: tables, and by their numbers how many rows they have, which columns
    are stored as texts, and how they are declared.
    """

    tables: list[SourceTable]
    sizes: dict[int, int]
    texts: dict[int, frozenset[str]]
    forms: dict[int, Form]

    @staticmethod
    def of(context: Context, source: Plaintext, choices: Choices) -> Meant:
        """What the user has chosen; raises for names and values that cannot be held."""
        tables = source.chosen(choices.names)
        _require_spelled(context, source, tables)
        sizes = _census(source, tables)
        if choices.most_rows is not None:
            sizes = {key: min(rows, choices.most_rows) for key, rows in sizes.items()}
        texts = {t.oid: _texts(source, t, as_text=choices.as_text) for t in tables}
        encrypted = not context.policy.rules
        forms = {
            key: replace(choices.form, texts=names, defaults=names, encrypted=encrypted)
            for key, names in texts.items()
        }
        return Meant(tables, sizes, texts, forms)


def require_none(unknown: Sequence[str], refused: Sequence[tuple[str, str]]) -> None:
    """Raise for what Louver does not have, and what is refused with its reason."""
    lines = [f"{name}: Louver has none" for name in unknown]
    lines += [f"{label}: {why}" for label, why in refused]
    if lines:
        raise errors.make("source.refused", objects="\n".join(f"  {line}" for line in lines))


def notices(source: Plaintext, left: Sequence[str]) -> Iterator[str]:
    """What the user is to know."""
    if left:
        yield f"Not brought along: {'; '.join(left)}."
    if source.collation not in _BYTEWISE:
        yield (
            f"The source compares texts by {source.collation}, and Louver by their bytes:"
            " ORDER BY, < and > of texts may differ."
        )


@dataclass(slots=True)
class Move:
    """The steps that change the target."""

    context: Context
    source: Plaintext
    sizes: dict[int, int]
    texts: dict[int, frozenset[str]]
    progress: Progress | None
    most_rows: int | None
    filled: Filled | None
    passed: int = 0
    counts: dict[str, int] = field(default_factory=dict)

    def run(self, items: Sequence[Item], tables: dict[int, SourceTable]) -> None:
        """Make and fill everything, in an order in which it can be made."""
        for group in groups(items):
            with committing(self.context):
                self.make(group, tables)

    def make(self, group: Sequence[Item], tables: dict[int, SourceTable]) -> None:
        """Make and fill what goes into one transaction."""
        for item in group:
            trial.say(self.context, item.sql)
        for item in group:
            if item.kind == "TABLE":
                self.fill(tables[item.oid])

    def fill(self, table: SourceTable) -> None:
        """Store the rows of a table."""
        start, rows = time.perf_counter(), 0
        entry = self.context.catalog.table(table.schema, table.name)
        if entry is None:
            raise errors.make("table.missing", table=table.label)
        texts = self.texts.get(table.oid, frozenset()) | {
            column.name for column in self.source.columns(table) if column.as_text
        }

        def batches() -> Iterator[pa.Table]:
            nonlocal rows
            for batch in self.source.stream(table, texts, self.most_rows):
                yield _as_stored(self.context, entry, batch, cast=bool(texts))
                rows += batch.num_rows
                if self.progress is not None:
                    self.progress(self.passed + rows, sum(self.sizes.values()))

        with transaction.writing(self.context) as catalog:
            self.store(catalog.tables[entry.key], batches())
        require_count(table, rows, self.sizes[table.oid])
        self.passed += rows
        self.counts[table.label] = rows
        if self.filled is not None:
            self.filled(table.label, rows, time.perf_counter() - start)

    def store(self, table: Table, batches: Iterator[pa.Table]) -> None:
        """Append rows to a table of the target."""
        row_writer.append_stream(self.context, table, batches)


@contextmanager
def committing(context: Context, begin: str = "BEGIN") -> Iterator[None]:
    """A user's transaction, committed behind the block, or undone where that fails."""
    trial.say(context, begin)
    try:
        yield
        trial.say(context, "COMMIT")
    except BaseException:
        with suppress(errors.Error):
            trial.say(context, "ROLLBACK")
        raise


def groups(items: Sequence[Item]) -> Iterator[list[Item]]:
    """What is made in one transaction each: a table with its parts, together with those between it
    and the last one that it has a key for; other objects as they come.
    """
    last = {item.oid: at for at, item in enumerate(items) if item.kind == "TABLE"}
    end = {
        last[item.table]: last.get(item.parent, 0) for item in items
        if item.kind == "KEY" and item.table in last
    }  # fmt: skip
    waiting, group, until = list(enumerate(items)), list[Item](), -1
    while waiting:
        at, item = waiting.pop(0)
        is_table = item.kind == "TABLE"
        if group and at > until and (is_table or group[0].kind == "TABLE"):
            yield group
            group = []
        group.append(item)
        if is_table:
            until = max(until, at, end.get(at, -1))
            if at == until:
                known = {other.oid for other in group if other.kind == "TABLE"}
                own = [x for x in waiting if x[1].kind in _PARTS and x[1].table in known]
                waiting = [x for x in waiting if x not in own]
                group += [other for _, other in own]
    if group:
        yield group


# ---------------------------------------------------------------------- what is refused


def _require_spelled(context: Context, source: Plaintext, tables: Sequence[SourceTable]) -> None:
    objects = [HomeObject("TABLE", table.schema, table.name, "") for table in tables]
    transfer.refuse_misspelled(context, source.schema, objects)


def _texts(source: Plaintext, table: SourceTable, *, as_text: bool) -> frozenset[str]:
    """The columns whose values are stored as texts."""
    if not as_text:
        return frozenset()
    return frozenset(column.name for column in source.columns(table) if column.is_foreign)


def _census(source: Plaintext, tables: Sequence[SourceTable]) -> dict[int, int]:
    """The rows of each table; raises for all values that cannot be held."""
    counted = {table.oid: source.census(table) for table in tables}
    refused = [column for _, odd in counted.values() for column in odd]
    if refused:
        raise errors.make("source.values", columns=", ".join(refused))
    return {oid: rows for oid, (rows, _) in counted.items()}


def require_count(table: SourceTable, rows: int, expected: int) -> None:
    """Raise where a table has another number of rows."""
    if rows != expected:
        raise errors.make("source.count", table=table.label, rows=rows, expected=expected)


# ---------------------------------------------------------------------- what the target has


def _done(
    context: Context, source: Plaintext, tables: Sequence[SourceTable], sizes: dict[int, int],
    choices: Choices, count: Count,
) -> list[SourceTable]:  # fmt: skip
    """The tables that the target has already, all of them whole."""
    own = {(fold(s), fold(n)) for kind, s, n in context.local.schema.snapshot(macros=False)
           if kind in ("TABLE", "VIEW")}  # fmt: skip
    done = []
    for table in tables:
        if (fold(table.schema), fold(table.name)) not in own:
            continue
        if not choices.resumes:
            raise errors.make("table.exists", table=table.label)
        if not _is_same(context, source, table):
            raise errors.make("file.object", kind="table", name=table.label)
        require_count(table, count(table.path), sizes[table.oid])
        done.append(table)
    return done


def _is_same(context: Context, source: Plaintext, table: SourceTable) -> bool:
    """Whether the target's table has the same columns, protected as they would be now."""
    entry = context.catalog.table(table.schema, table.name)
    path = table.schema, table.name
    names = [column.name for column in source.columns(table)]
    if entry is None or [column.name for column in entry.columns] != names:
        return False
    declared = {column.name: column.type for column in context.local.schema.columns(*path)}
    for name, type_ in ((c.name, c.type) for c in source.schema.columns(*path)):
        if declared.get(name) not in (type_, TEXT):
            return False
    return transfer.is_protected(context, entry)


def _absent(context: Context, items: Sequence[Item]) -> list[Item]:
    """What the target lacks; raises for an object of the same name that is another one."""
    held = {(i.kind, fold(i.schema), fold(i.name)): i.sql for i in context.local.schema.objects()}
    functions = context.local.schema.snapshot(macros=True).items()
    held |= {("FUNCTION", fold(s), fold(n)): seen.sql for (kind, s, n), seen in functions
             if kind == "MACRO"}  # fmt: skip
    comments = {i.sql for i in context.local.schema.objects() if i.kind == "COMMENT"}
    absent = []
    for item in items:
        text = held.get((item.kind, fold(item.schema), fold(item.name)))
        if item.kind == "COMMENT":
            absent += [] if item.sql in comments else [item]
        elif text is None or item.kind == "POSITION":
            absent.append(item)
        elif item.kind != "SCHEMA" and not _is_equal(item, text):
            raise errors.make("file.object", kind=fold(item.kind), name=item.name)
    return absent


def _is_equal(item: Item, text: str) -> bool:
    """Whether an object of the target has the statement of the source's; of a sequence the position
    and the column that it goes with are other statements.
    """
    own = text.partition("; ")[0] if item.kind == "SEQUENCE" else text
    return own.strip() == item.sql


# ---------------------------------------------------------------------- rows


def _as_stored(context: Context, table: Table, batch: pa.Table, *, cast: bool) -> pa.Table:
    """Rows in the types of the local engine; ``cast``: where some came as texts."""
    fields = [context.local.arrow_field(column.type) for column in table.columns]
    names = [column.name for column in table.columns]
    if cast:
        listed = [f"c{number}" for number in range(batch.num_columns)]
        columns = [
            (name, "VARCHAR" if pa.types.is_string(given) else column.type)
            for name, given, column in zip(listed, batch.schema.types, table.columns, strict=True)
        ]
        sql = ", ".join(
            f"{name}::{own_type(column.type)}"
            for name, column in zip(listed, table.columns, strict=True)
        )
        rows = batch.rename_columns(listed)
        batch = context.local.finish_over(_BATCH, columns, rows, f"SELECT {sql} FROM {_BATCH}")
    arrays = [_typed(c, field.type) for c, field in zip(batch.columns, fields, strict=True)]
    return pa.Table.from_arrays(arrays, names)


def _typed(column: pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    """The same values under the local engine's name of their type."""
    array = column.combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    if array.type == type_:
        return array
    if isinstance(type_, pa.OpaqueType) and array.type.storage_type == type_.storage_type:
        return pa.ExtensionArray.from_storage(type_, array.storage)
    raise errors.make("internal", detail=f"values of type {array.type} for one of {type_}")
