"""LIKE in CREATE TABLE: a column of a table with ENC columns is kept as it is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold
from louver.trusted.executor.context import Context
from louver.trusted.executor.schema import head
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.vault import scheme
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.protection import Protection


def sources(context: Context, tokens: Sequence[Token]) -> list[Table]:
    """The tables with ENC columns that a CREATE TABLE names behind LIKE. Refuses such a name that
    may mean anything else: the columns would be plain, and their names show.
    """
    secret = {fold(table.name) for table in context.catalog.tables.values() if table.has_encrypted}
    results = []
    for name in _named(tokens):
        if secret.isdisjoint(map(fold, name)):
            _require_stored(context, name, any_secret=bool(secret))
            continue
        hidden = context.local.temporary.mentioned({fold(name[-1])})
        known = None
        if spoken().prints_objects and len(name) <= 2 and not hidden:
            known = context.catalog.named(*("", *name)[-2:])
        if known is None:
            what = "LIKE of a table with ENC columns (declare the columns)"
            raise errors.make("sql.unsupported", statement=what)
        results.append(known)
    return results


def _require_stored(context: Context, name: Sequence[str], *, any_secret: bool) -> None:
    """Views and TEMP tables may show ENC columns, which would be plain in a new table."""
    if not (any_secret and spoken().prints_objects):
        return
    hidden = context.local.temporary.mentioned({fold(name[-1])})
    item = context.catalog.find(*("", *name)[-2:])
    if hidden or not (item is None or isinstance(item, Table)):
        what = "LIKE of a view or a TEMP table beside ENC columns (declare the columns)"
        raise errors.make("sql.unsupported", statement=what)


def protected(
    context: Context, label: str, tables: Sequence[Table], own: Mapping[str, Protection]
) -> dict[str, Protection]:
    """How the columns of a new table are kept, by folded name: ``own`` as its text and the policy
    say, others as in the tables that it is like.
    """
    results = dict(own)
    for column in (column for table in tables for column in table.columns if column.encrypted):
        name = fold(column.name)
        rule = context.policy.rule(label, column.name)
        if name in results and not (results[name].encrypted and rule is not None):
            results[name] = _same(column, tables)
    return results


def _same(column: Column, tables: Sequence[Table]) -> Protection:
    words = scheme.explicit(scheme.details(column, tables))
    return Protection(True, column.scheme, column.ceiling, words=words)


def _named(tokens: Sequence[Token]) -> Iterator[tuple[str, ...]]:
    for at in range(1, len(tokens) - 1):
        if tokens[at].token_type == TokenType.LIKE and tokens[at - 1].text in ("(", ","):
            yield head.names(tokens, at + 1)[0]
