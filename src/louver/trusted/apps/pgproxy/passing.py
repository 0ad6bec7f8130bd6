"""Queries that read no encrypted column, for the compiled module to relay (`ways`): the server
answers them as they are, or where they read no table the private PostgreSQL on this machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from louver import errors
from louver.names import keyword
from louver.trusted.apps.pgproxy.described import Prepared
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.postgres.statements import PostgresStatements
from louver.trusted.executor.local.postgres.wire import Wire
from louver.trusted.vault import native
from louver.trusted.vault.catalog import Table
from louver.wire import control

#: Whole numbers: a value of one of these is sent as one of another, or as numeric.
_WHOLE = frozenset((20, 21, 23))
_NUMERIC = 1700
#: Types whose texts no setting changes; of date and timestamp the server's are ISO's.
_FIRM = frozenset((16, 20, 21, 23, 25, 1042, 1043, 1700, 2950))
_ISO = frozenset((1082, 1114))


def of(context: Context, wire: Wire, prepared: Prepared) -> Any | None:
    """What relays the rows of a query; None where only Python runs it."""
    statements = context.local.statements
    if prepared.columns is None or not isinstance(statements, PostgresStatements):
        return None
    if keyword(prepared.tokens[0].text) != "SELECT" or context.has_temporary:
        return None
    try:
        passed = statements.passed(prepared.sql)
    except errors.Error:
        return None
    if passed is None:
        return None
    text, own, relations = passed
    types = _parameters(prepared.parameters, own)
    if types is None:
        return None
    tables = [context.catalog.tables.get(name) for name in relations]
    if not all(table is not None and _is_plain(context, table) for table in tables):
        return None
    if not tables:
        # The private server has the settings of this session.
        shown = [(column, True) for column in prepared.columns]
        types = [(given, type_, True) for given, type_, _ in types]
        return native.module().proxy.Pass(wire.session, None, text, types, shown)
    direct = getattr(context.engine, "direct", None)
    sent = direct(control.CATALOG_VERSION, context.catalog.version) if direct else None
    if sent is None:
        return None
    session, guard, constants = sent
    columns = [(column, _is_firm(wire, column[3])) for column in prepared.columns]
    return native.module().proxy.Pass(session, (guard, list(constants)), text, types, columns)


def relays_texts(wire: Wire, prepared: Prepared) -> bool:
    """Whether all columns of a query may be relayed as texts."""
    return all(_is_firm(wire, column[3]) for column in prepared.columns or ())


def _is_firm(wire: Wire, type_: int) -> bool:
    return type_ in _FIRM or (type_ in _ISO and wire.is_printed(type_))


def _parameters(given: Sequence[int], own: Sequence[int]) -> list[tuple[int, int, bool]] | None:
    """Of each parameter the type that the client says, the one that the text gives it, and whether
    texts of that mean the same under all settings; None where one is not brought to the other.
    """
    pairs = list(zip(given, own, strict=False))
    if len(given) != len(own) or not all(a == b or _is_wider(b, a) for a, b in pairs):
        return None
    return [(a, b, b in _FIRM) for a, b in pairs]


def _is_wider(type_: int, given: int) -> bool:
    return given in _WHOLE and (type_ in _WHOLE or type_ == _NUMERIC)


def _is_plain(context: Context, table: Table) -> bool:
    """Whether the server has a table as it is declared, but for columns that no query names."""
    own = f"{_quoted(table.schema)}.{_quoted(table.name)}"
    return context.backend.table(table) == own and all(
        not c.encrypted and c.stored == {"plain": c.name} for c in table.columns
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
