"""LOCK TABLE: the server's own locks of the stored tables, in the modes that PostgreSQL has.

The private PostgreSQL runs the statement on the declared tables, which says what is locked: the
tables that are named, and those that a view reads. The server learns which tables are locked how,
which no value has a part in.

A lock of the server's comes before the snapshot of the transaction, which so sees what others have
committed until then. Further ones may follow as long as nothing else has been sent. After that the
snapshot stays what it is, which is PostgreSQL's own meaning at REPEATABLE READ alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import keyword
from louver.trusted.executor.answer import Answer, Clock
from louver.trusted.executor.context import Context
from louver.trusted.executor.postgres.control import Characteristics
from louver.trusted.executor.postgres.messages import said
from louver.trusted.executor.postgres.words import refuse
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Table
from louver.untrusted.engines.engine import Nesting
from louver.wire import control

_MODES = {
    "AccessShareLock": "ACCESS SHARE", "RowShareLock": "ROW SHARE",
    "RowExclusiveLock": "ROW EXCLUSIVE", "ShareUpdateExclusiveLock": "SHARE UPDATE EXCLUSIVE",
    "ShareLock": "SHARE", "ShareRowExclusiveLock": "SHARE ROW EXCLUSIVE",
    "ExclusiveLock": "EXCLUSIVE", "AccessExclusiveLock": "ACCESS EXCLUSIVE",
}  # fmt: skip
_HELD = (
    "SELECT n.nspname::text, c.relname::text, l.mode, c.relkind::text, c.relpersistence::text"
    " FROM pg_catalog.pg_locks AS l JOIN pg_catalog.pg_class AS c ON c.oid = l.relation"
    " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE l.pid = pg_catalog.pg_backend_pid() AND l.granted"
)
_SYSTEM = ("pg_catalog", "information_schema", "pg_toast")
#: Behind these a word is a name.
_BEFORE_NAMES = frozenset(("LOCK", "TABLE", "ONLY", ",", "."))


def lock(
    context: Context, text: lexer.Text, _tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """LOCK [TABLE] [ONLY] name [*], … [IN … MODE] [NOWAIT]."""
    context.local.statements.require_syntax(text.home)
    if not context.in_transaction:
        raise said("25P01", "LOCK TABLE can only be used in transaction blocks")
    tables, mode = _locked(context, text.home)
    if not tables:
        return Answer()
    engine = context.engine
    if not isinstance(engine, Nesting):
        raise errors.make("engine.operation", engine=context.backend.name, operation="LOCK")
    first, follows = context.state.anew, context.state.cache(Characteristics).open.level
    if not (first or engine.only_locks or follows in ("REPEATABLE READ", "SERIALIZABLE")):
        refuse(
            "LOCK TABLE in a READ COMMITTED transaction that has changed or locked something"
            " before (begin with it)"
        )
    waits = not _is_nowait(lexer.every_token(text.plain))
    clock = Clock()
    with clock.step("lock"):
        try:
            engine.lock_tables([context.backend.lock_table(tables, mode, waits=waits)])
        except errors.Error as error:
            if error.code != "server.locked" or waits:
                raise
            message = f'could not obtain lock on relation "{tables[0].name}"'
            raise said("55P03", message) from error
        if first:
            _require_newest(context)
    return Answer(times_ms=clock.times_ms)


def _locked(context: Context, sql: str) -> tuple[list[Table], str]:
    """The stored tables that a statement locks, in the order of their ids, and its mode."""
    with context.local.rehearsal() as connection:
        before = {tuple(row) for row in connection.fetchall(_HELD)}
        connection.execute(sql)
        rows = {tuple(map(str, row)) for row in connection.fetchall(_HELD)} - before
    # The query above holds the catalogs that it reads.
    rows = {r for r in rows if not (r[0] in _SYSTEM and r[2] == "AccessShareLock")}
    tables, modes = dict[int, Table](), set[str]()
    for schema, name, mode, kind, persistence in sorted(rows):
        if kind == "v" or persistence == "t":
            continue
        table = context.catalog.named(schema, name) if kind == "r" else None
        if table is None:
            refuse("LOCK TABLE of anything but tables and views of this database")
        tables[table.id] = table
        modes.add(_MODES[mode])
    if len(modes) > 1:
        raise errors.make("internal", detail=f"one LOCK in the modes {sorted(modes)}")
    return [tables[number] for number in sorted(tables)], "".join(modes)


def _is_nowait(tokens: Sequence[Token]) -> bool:
    last, before = tokens[-1], keyword(tokens[-2].text)
    is_word = last.token_type != TokenType.IDENTIFIER and keyword(last.text) == "NOWAIT"
    return is_word and before not in _BEFORE_NAMES


def _require_newest(context: Context) -> None:
    """Raise `catalog.conflict`, with which the transaction begins anew, where others have saved a
    catalog while this statement waited. To look over the transaction would fix what it sees.
    """
    side = context.engine.side()
    try:
        if side.value(control.CATALOG_VERSION) != context.catalog.version:
            raise errors.make("catalog.conflict")
    finally:
        side.close()
