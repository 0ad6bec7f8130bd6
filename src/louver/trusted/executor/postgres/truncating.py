"""TRUNCATE of several tables, of those that refer to them (CASCADE), and RESTART IDENTITY."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token

from louver.names import quoted
from louver.trusted.executor import constraint_check, storage, transaction
from louver.trusted.executor.answer import Answer, Clock
from louver.trusted.executor.context import Context
from louver.trusted.executor.postgres.words import Words, refuse
from louver.trusted.executor.row_writer import send
from louver.trusted.executor.schema import sequences
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Table

_OWNED = (
    "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_depend AS d"
    " JOIN pg_class AS c ON c.oid = d.objid JOIN pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass"
    " AND d.refobjid = $1::regclass AND d.deptype IN ('a', 'i') AND c.relkind = 'S' ORDER BY 1"
)


def truncate(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """TRUNCATE [TABLE] [ONLY] table, … [RESTART IDENTITY] [CASCADE]."""
    transaction.require_writable(context)
    # What may not be emptied, for instance because other tables refer to it, PostgreSQL says.
    with context.local.rehearsal() as connection:
        connection.execute(text.home)
    words = Words(context, text, tokens)
    words.takes("TABLE")
    tables, more = list[Table](), True
    while more:
        words.takes("ONLY")
        tables.append(_named(context, words))
        words.takes("*")
        more = words.takes(",")
    restarts = words.takes("RESTART", "IDENTITY")
    if not restarts:
        words.takes("CONTINUE", "IDENTITY")
    if words.takes("CASCADE"):
        tables = _with_referring(context, tables)
    else:
        words.takes("RESTRICT")
    words.ends()
    tables = [*{table.id: table for table in tables}.values()]
    own = not context.in_transaction and (len(tables) > 1 or restarts)
    if own:
        transaction.begin(context)
    try:
        times_ms = _emptied(context, tables)
        if restarts:
            sequences.bring_back(context)
        for name in _sequences(context, tables) if restarts else ():
            (statement,) = lexer.split(f"ALTER SEQUENCE {name} RESTART")
            context.run(statement, [])
    except BaseException:
        if own:
            transaction.rollback(context)
        raise
    if own:
        transaction.commit(context)
    return Answer(times_ms=times_ms)


def _named(context: Context, words: Words) -> Table:
    schema, name = "", words.name()
    if words.takes("."):
        schema, name = name, words.name()
    table = (
        None if context.local.temporary.mentioned({name}) else context.catalog.named(schema, name)
    )
    if table is None:
        refuse("TRUNCATE of anything but tables of this database, or of temporary ones with others")
    return table


def _with_referring(context: Context, tables: Sequence[Table]) -> list[Table]:
    """Tables with all that refer to them, directly or not."""
    results, pending = {table.id: table for table in tables}, list(tables)
    while pending:
        for position in constraint_check.rules(context, pending.pop()).children:
            child = context.catalog.table(*position)
            if child is not None and child.id not in results:
                results[child.id] = child
                pending.append(child)
    return [*results.values()]


def _emptied(context: Context, tables: Sequence[Table]) -> dict[str, float]:
    """Remove all rows; a client that refers to one of them meanwhile has to wait, and fails."""
    clock = Clock()
    with clock.step("server"):
        for key in [table.key for table in tables]:
            table = context.catalog.tables[key]
            rows = storage.whole(context.storage, table, [])
            if rows.num_rows:
                ids = rows.column(storage.ROW_ID).combine_chunks()
                referred = bool(constraint_check.rules(context, table).children)
                hold = context.store.hold_references if referred else lambda: None
                send(context, table, rows.slice(0, 0), ids, hold)
    return clock.times_ms


def _sequences(context: Context, tables: Sequence[Table]) -> list[str]:
    """The sequences of the tables' own columns."""
    results = list[str]()
    with context.local.rehearsal() as connection:
        for table in tables:
            path = f"{quoted(table.schema)}.{quoted(table.name)}"
            results += [name for (name,) in connection.fetchall(_OWNED, [path])]
    return results
