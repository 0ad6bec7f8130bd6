"""UPDATE and DELETE of plain tables, for the compiled module to relay (`passing`): the server
changes its rows itself. What the catalog says of the columns, and what the table demands of its
rows, is looked at in the same statement, which fails where a new row is not fit: then Python runs
it, widens the catalog, or says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from sqlglot.tokens import TokenType

from louver import errors
from louver.names import fold
from louver.trusted.apps.pgproxy import relayed_texts
from louver.trusted.apps.pgproxy.described import Prepared
from louver.trusted.executor import constraint_check, raw_rows
from louver.trusted.executor.change import direct_changes, flow, judged_rows, statement_parts
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.postgres.relaying import Changed, Passed, SetColumn
from louver.trusted.executor.local.postgres.wire import Wire
from louver.trusted.planner.sql import lexer
from louver.trusted.vault import native
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.types import decimal_scale, shifted

#: What shows the last number that a row got, the next one, and what sets that before the first.
_LAST = "pg_catalog.current_setting('louver.row_id')"
_NEXT = f"pg_catalog.set_config('louver.row_id', ({_LAST}::bigint + 1)::text, true)::bigint"
_SETTING = ("SELECT pg_catalog.set_config('louver.row_id', $1, true)", f"SELECT {_LAST}::bigint")


def of(
    context: Context, wire: Wire, prepared: Prepared, passed: Passed,
    parameters: list[tuple[int, int, bool]],
) -> Any | None:  # fmt: skip
    """What relays a change of a plain table; None where only Python runs it."""
    changed, state = passed.changed, context.state
    table = None if changed is None else context.catalog.tables.get(changed.table)
    if changed is None or table is None or not state.writable or state.only_reads:
        return None
    if not _is_free(context, table, changed) or not _may_flow(context, prepared, table):
        return None
    checks = _checks(table, changed.columns)
    if checks is None or (checks and not changed.is_alone):
        return None
    sent = direct_changes.opening(context)
    if sent is None:
        return None
    columns, text, numbers = prepared.columns, passed.text, None
    if changed.verb == "UPDATE":
        is_one = _is_one_row(changed, constraint_check.rules(context, table))
        if not is_one and not changed.is_alone:
            return None
        last = f"${len(parameters) + 1}"
        text = _numbered(text, last if is_one else _NEXT)
        checks += [] if is_one else [f"row_id <= {last}"]
        numbers = (direct_changes.numbers(context), None if is_one else _SETTING)
    if checks:
        # Names are of the only table, whose new rows they mean there.
        text += f"{' RETURNING' if columns is None else ','} 1 / ({' AND '.join(checks)})::integer"
    shown = None if columns is None else relayed_texts.shown(wire, columns)
    growth = direct_changes.counted_in(context, table) if changed.verb == "DELETE" else None
    longest = min((c.longest for c in changed.columns if c.longest >= 0), default=None)
    return native.module().proxy.PassedChange(
        *sent, changed.verb, text, parameters, longest, shown, len(checks[:1]), growth, numbers
    )


def _is_free(context: Context, table: Table, changed: Changed) -> bool:
    """Whether rows may change without others being looked at, and nothing is kept of them."""
    rules = constraint_check.rules(context, table)
    if table.counted or table.kept or table.has_generated or rules.generated:
        return False
    if changed.verb == "DELETE":
        return not rules.children
    held = {column.id for column in table.columns if column.name in _names(changed)}
    keyed = {column for columns in table.tags.values() for column in columns}
    names = {*rules.key_columns(), *(name for key in rules.foreign for name in key.columns)}
    if held & keyed or {fold(name) for name in names} & {fold(n) for n in _names(changed)}:
        return False
    return not rules.deciding and not judged_rows.indexes_expressions(context, table)


def _is_one_row(changed: Changed, rules: constraint_check.Rules) -> bool:
    """Whether a change meets one row at most: it states the values of a key."""
    keyed = {fold(name) for name in changed.keyed}
    return any(key.columns and keyed.issuperset(map(fold, key.columns)) for key in rules.keys)


def _numbered(text: str, number: str) -> str:
    """The text of an UPDATE, with a number for each row that it changes, by which Python's changes
    know that a row which they have read is not there any more.
    """
    tokens = lexer.tokens(text)
    at = next(t.end for t in tokens if t.token_type == TokenType.SET) + 1
    return f"{text[:at]} row_id = {number},{text[at:]}"


def _names(changed: Changed) -> set[str]:
    return {column.name for column in changed.columns}


def _may_flow(context: Context, prepared: Prepared, table: Table) -> bool:
    """Whether the change may be, and shows nothing by what it depends on."""
    (text,) = lexer.split(prepared.sql)
    nothing = (None,) * len(text.parameters)
    words = statement_parts.Words(text.plain, lexer.tokens(text.plain), nothing)
    try:
        verdict = flow.judged(context, words, table)
    except errors.Error:
        return False
    return not verdict.leaks and not verdict.all_met


def _checks(table: Table, changed: Sequence[SetColumn]) -> list[str] | None:
    """What must hold of new rows, as the server is asked; None where it cannot be."""
    results = []
    for item in changed:
        column = next((c for c in table.columns if c.name == item.name), None)
        if column is None:
            return None
        has_null, limits = raw_rows.bounds(column)
        name = '"' + item.name.replace('"', '""') + '"'
        conditions = [] if limits is None else [_within(column, name, limits)]
        if item.longest >= 0:
            # The server has text there. What is longer loses blanks, or is refused.
            conditions.append(f"pg_catalog.length({name}) <= {item.longest}")
        if not (has_null and item.takes_null):
            conditions.append(f"{name} IS NOT NULL")
        if conditions:
            condition = " AND ".join(conditions)
            is_open = has_null and item.takes_null
            results.append(f"({name} IS NULL OR {condition})" if is_open else f"({condition})")
    return results


def _within(column: Column, name: str, limits: tuple[int, int]) -> str:
    """Whether a column's value is within bounds of raw ones, as SQL."""
    low, high = (str(limit) for limit in limits)
    scale = decimal_scale(column.type)
    if scale:
        low, high = (f"{shifted(Decimal(limit), -scale):f}" for limit in limits)
    if column.type == "DATE":
        name = f"({name} OPERATOR(pg_catalog.-) date '1970-01-01')"
    elif column.type.startswith("TIMESTAMP"):
        name = f"(extract(epoch FROM {name}) * 1000000)"
    return f"{name} BETWEEN {low} AND {high}"
