"""Encrypt a plaintext PostgreSQL database within itself.

Everything is tried first, with what is removed, in a transaction that is undone. Then one
transaction moves the plaintext tables out of the way, so that no client changes them any more,
removes views and what else can go, and stores what is left to do as a plan, with all definitions.
Each part of the plan is done in a transaction of its own: a table is made and filled, its rows are
counted, its plaintext is dropped, and the part is struck off. So whatever happens, each table is
there in one form, and the plan says how it goes on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby

import pyarrow as pa

from louver import errors
from louver.names import is_home, quoted
from louver.trusted.executor import row_writer, transaction
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.postgres import in_place_queries as queries
from louver.trusted.executor.local.postgres.plaintext import Item, Plaintext, SourceTable
from louver.trusted.executor.postgres import trial
from louver.trusted.executor.postgres.encrypting import (
    Choices,
    Count,
    Meant,
    Move,
    committing,
    groups,
    notices,
    require_count,
    require_none,
)
from louver.trusted.executor.progress import Progress
from louver.trusted.executor.transfer import Encrypted, Filled
from louver.trusted.vault.catalog import Table
from louver.untrusted.engines.engine import Sharing
from louver.wire.messages import Statement

Drop = tuple[str, str]
"""What is removed: a name for people, and the statement."""
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ"
_DROP = "DROP"
#: Of sequences the positions change while they are looked at.
_MOVING = "POSITION"
KEPT = (
    "The server still has what was dropped: in its WAL and its archive, on replicas, in base"
    " backups and dumps, in its logs, and in blocks of its disks."
)


@dataclass(frozen=True, slots=True)
class _Step:
    """A row of the plan: something to make, with how many rows, or to remove."""

    part: int
    policy: str
    kind: str
    schema: str
    name: str
    sql: str
    number: int = 0
    home: str = ""
    size: int = 0

    @property
    def item(self) -> Item:
        return Item(self.kind, self.schema, self.name, self.sql, self.number)

    @property
    def table(self) -> SourceTable:
        return SourceTable(self.number, self.schema, self.name, "r", self.home)


def encrypt(
    context: Context, choices: Choices, count: Count, progress: Progress | None = None,
    filled: Filled | None = None, *, confirmed: bool,
) -> Encrypted:  # fmt: skip
    """Encrypt all tables of the database that this is a connection to; ``count`` gives the rows of
    an encrypted one. Unless ``confirmed``, it is only tried, which ends in an error.
    """
    database, said = _Database(context), list[str]()
    if not database.is_begun:
        if context.catalog.tables or context.catalog.objects:
            if choices.resumes:
                return Encrypted({}, ())
            detail = "it is a database of Louver's already"
            raise errors.make("file.database", path=context.engine.address, detail=detail)
        said = database.begin(choices, confirmed=confirmed)
    elif not choices.resumes:
        raise errors.make("source.begun", place=context.engine.address)
    counts, left = database.go_on(count, progress, filled)
    if left:
        said.append(f"Still there as plaintext: {'; '.join(left)}.")
    return Encrypted(counts, (*said, KEPT))


class _Move(Move):
    """Rows come over the session that they go to."""

    def store(self, table: Table, batches: Iterator[pa.Table]) -> None:
        """See `Move`."""
        for batch in batches:
            row_writer.append(self.context, table, batch)
        self.context.engine.catch_up()


class _Database:
    """The database."""

    def __init__(self, context: Context) -> None:
        engine = context.engine
        if not isinstance(engine, Sharing):
            raise errors.make("usage", detail="--in-place is for a PostgreSQL database")
        self._context, self._engine, self._sharing = context, engine, engine

    @property
    def is_begun(self) -> bool:
        """Whether there is a plan."""
        return bool(self._engine.value(Statement(queries.HAS_PLAN)))

    # ------------------------------------------------------------------ before anything is changed

    def begin(self, choices: Choices, *, confirmed: bool) -> list[str]:
        """Try everything, then take the tables out of the way and store the plan; what the user is
        to know.
        """
        with self._within(undone=True) as source:
            paths = [table.path for table in source.tables]
        locks = [f"LOCK TABLE {', '.join(paths)} IN ACCESS EXCLUSIVE MODE"] if paths else []
        with self._within(locks, undone=True) as source:
            meant, items = self._read(source, choices)
            ordered = self._tried(source, meant, items)
        if not confirmed:
            rows, tables = sum(meant.sizes.values()), len(meant.tables)
            raise errors.make("source.unconfirmed", rows=f"{rows:,}", tables=tables)
        with self._within(locks) as source:
            now, items_now = self._read(source, choices)
            if _settled(items_now) != _settled(items) or now.tables != meant.tables:
                raise errors.make("source.changed", place=self._engine.address)
            ordered = [item for item in ordered if item.kind != _MOVING]
            ordered += [item for item in items_now if item.kind == _MOVING]
            self._store(source, groups(ordered), now, _set_aside(source, now.tables))
            return list(notices(source, ()))

    def _read(self, source: Plaintext, choices: Choices) -> tuple[Meant, list[Item]]:
        meant = Meant.of(self._context, source, choices)
        if {table.oid for table in source.tables} != {table.oid for table in meant.tables}:
            raise errors.make("internal", detail="some tables, in place")
        return meant, source.items(meant.tables, meant.forms, every=True)

    def _tried(self, source: Plaintext, meant: Meant, items: Sequence[Item]) -> list[Item]:
        """Do everything but for the rows; raises for all that cannot be done."""
        unknown = source.refused(meant.tables, every=True)
        unknown += [label for (label,) in source.rows(queries.COMMENTS)]
        waiting = _set_aside(source, meant.tables)
        tried = trial.attempt(self._context, source, items, meant.forms, leaves=False, every=True)
        missing = [i for i in items if i not in tried.ordered and i.kind == "COMMENT"]
        refused = [*tried.refused, *((f"comment on {i.name}", "it is refused") for i in missing)]
        require_none(unknown, refused)
        homes = _homes(source)
        for group in groups(tried.ordered):
            tables = [(item, homes[item.schema]) for item in group if item.kind == "TABLE"]
            drops = [(item.label, _drop(home, item.name)) for item, home in tables]
            refused += _removed(source, drops)
        refused += _removed(source, waiting)
        if not refused:
            _clear(source)
            refused = [(label, "it would stay as plaintext") for label in self._left(source)]
        require_none((), refused)
        return tried.ordered

    # ------------------------------------------------------------------ the plan

    def _store(
        self, source: Plaintext, parts: Iterator[list[Item]], meant: Meant,
        waiting: Sequence[Drop],
    ) -> None:  # fmt: skip
        policy, homes, steps, part = self._policy, _homes(source), list[_Step](), 0
        for part, group in enumerate(parts, 1):
            for item in group:
                step = _Step(part, policy, item.kind, item.schema, item.name, item.sql)
                if item.kind == "TABLE":
                    home, size = homes[item.schema], meant.sizes[item.oid]
                    step = replace(step, number=item.oid, home=home, size=size)
                steps.append(step)
        # The last part is there even where nothing is to be removed: it ends the plan.
        ends = [*waiting, ("", "")]
        steps += [_Step(part + 1, policy, _DROP, "", label, sql) for label, sql in ends]
        for sql in queries.CREATE:
            source.connection.execute(sql)
        for position, step in enumerate(steps):
            values = (
                position, step.part, step.policy, step.kind, step.schema, step.name, step.sql,
                step.number, step.home, step.size,
            )  # fmt: skip
            source.connection.execute(queries.WRITE, [str(value) for value in values])

    @property
    def _policy(self) -> str:
        """What decides how columns are stored."""
        policy = self._context.policy
        text = repr((policy.profile, sorted(policy.rules.items(), key=lambda rule: rule[0])))
        return hashlib.sha256(text.encode()).hexdigest()

    def go_on(
        self, count: Count, progress: Progress | None, filled: Filled | None
    ) -> tuple[dict[str, int], list[str]]:
        """Do what is left of the plan: the rows of each table, and what stays as plaintext."""
        rows = self._engine.query(Statement(queries.READ)).to_pylist()
        steps = [_Step(**row) for row in rows]
        if any(step.policy != self._policy for step in steps):
            raise errors.make("source.policy", place=self._engine.address)
        sizes, left = {step.number: step.size for step in steps if step.number}, list[str]()
        move: _Move | None = None
        for part, own in groupby(steps, lambda step: step.part):
            group = list(own)
            tables = {step.number: step.table for step in group if step.kind == "TABLE"}
            paths = [f"{quoted(table.home)}.{quoted(table.name)}" for table in tables.values()]
            locks = [f"LOCK TABLE {path} IN ACCESS EXCLUSIVE MODE" for path in paths]
            with self._within([queries.LOCK_PLAN, *locks]) as source:
                if source.connection.run(queries.DONE, [str(part)])[0] != f"DELETE {len(group)}":
                    raise errors.make("source.changed", place=self._engine.address)
                if group[0].kind == _DROP:
                    left = self._end(source, [(step.name, step.sql) for step in group if step.sql])
                    continue
                move = move or _Move(self._context, source, sizes, {}, progress, None, filled)
                move.source = source
                move.make([step.item for step in group], tables)
                source.connection.execute("CLOSE ALL")
                for table in tables.values():
                    require_count(table, count(table.path), sizes[table.oid])
                    source.connection.execute(_drop(table.home, table.name))
        return move.counts if move else {}, left

    def _end(self, source: Plaintext, waiting: Sequence[Drop]) -> list[str]:
        """Remove what is left and the plan; what others have made meanwhile stays."""
        failures = _removed(source, waiting)
        if failures:
            lines = [f"  {label}: {why}" for label, why in failures]
            raise errors.make("source.left", objects="\n".join(lines))
        source.connection.execute(f"DROP TABLE {queries.PLAN}")
        source.connection.execute(f"DROP SCHEMA {queries.HOME}")
        _clear(source)
        return self._left(source)

    def _left(self, source: Plaintext) -> list[str]:
        """What is in the database that is not Louver's."""
        own = self._context.catalog.tables.values()
        known = {("public" if is_home(table.schema) else table.schema, table.name) for table in own}
        return [
            label for label, schema, name in source.rows(queries.LEFT)
            if (schema, name) not in known
        ]  # fmt: skip

    # ------------------------------------------------------------------ transactions

    @contextmanager
    def _within(self, locks: Sequence[str] = (), *, undone: bool = False) -> Iterator[Plaintext]:
        """A transaction that sees one state, with these locks from before that on; what is read and
        removed of the plaintext is a part of it.
        """
        context, begun = self._context, False
        self._sharing.lock(locks)
        try:
            with trial.undone(context, _BEGIN) if undone else committing(context, _BEGIN):
                transaction.fix(context)
                source = Plaintext(self._sharing.entered(), begun=True)
                begun = True
                yield source
        except errors.Error as error:
            if begun or error.code != "server.locked":
                raise
            raise errors.make(
                "source.locked", place=self._engine.address, detail=error.detail
            ) from error
        finally:
            self._sharing.lock(())


def _settled(items: Sequence[Item]) -> set[Item]:
    return {item for item in items if item.kind != _MOVING}


def _homes(source: Plaintext) -> dict[str, str]:
    """By schema, where its tables wait."""
    return {name: f"{queries.HOME}_{number}" for name, number in source.rows(queries.NAMESPACES)}


def _set_aside(source: Plaintext, tables: Sequence[SourceTable]) -> list[Drop]:
    """Move tables where no client looks for them, without what ties them to others, and remove the
    other objects that can go; the names and statements for those that cannot yet.
    """
    run, homes = source.connection.execute, _homes(source)
    drops = [(label, sql) for _, label, sql in source.rows(queries.DROPS)]
    for (sql,) in source.rows(queries.DETACHING):
        run(sql)
    for home in sorted({homes[table.schema] for table in tables}):
        run(f"CREATE SCHEMA {quoted(home)}")
    for table in tables:
        run(f"ALTER TABLE {table.path} SET SCHEMA {quoted(homes[table.schema])}")
    return list(_failures(source, drops))


def _removed(source: Plaintext, drops: Sequence[Drop]) -> list[tuple[str, str]]:
    """Run statements that remove something; the names of what stays, and why."""
    return [(label, why) for (label, _), why in _failures(source, drops).items()]


def _failures(source: Plaintext, drops: Sequence[Drop]) -> dict[Drop, str]:
    """Run statements as often as one more of them runs; the others, and why."""
    connection, waiting = source.connection, list(drops)
    connection.is_guarded = True
    try:
        while True:
            failures: dict[Drop, str] = {}
            for drop in waiting:
                try:
                    connection.execute(drop[1])
                except errors.Error as error:
                    failures[drop] = str(error).partition("\n")[0]
            if len(failures) == len(waiting):
                return failures
            waiting = list(failures)
    finally:
        connection.is_guarded = False


def _clear(source: Plaintext) -> None:
    """Remove the schemas that tables waited in, and those of which nothing is left."""
    for query in (queries.HOMES, queries.EMPTY):
        for (sql,) in source.rows(query):
            source.connection.execute(sql)


def _drop(home: str, name: str) -> str:
    return f"DROP TABLE {quoted(home)}.{quoted(name)}"
