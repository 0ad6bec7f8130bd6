"""Statements that touch no encrypted column, for the compiled module to relay (`ways`): the server
runs them as they are, or where they read no table the private PostgreSQL on this machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from louver.names import fold, keyword
from louver.trusted.apps.pgproxy import plain_changes, relayed_texts
from louver.trusted.apps.pgproxy.described import Prepared
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.postgres.wire import Wire
from louver.trusted.vault import native
from louver.trusted.vault.catalog import Table
from louver.wire import control

#: Whole numbers: a value of one of these is sent as one of another, or as numeric.
_WHOLE = frozenset((20, 21, 23))
_NUMERIC = 1700


def of(context: Context, wire: Wire, prepared: Prepared) -> Any | None:
    """What relays the rows of a query; None where only Python runs it."""
    word = keyword(prepared.tokens[0].text)
    if word not in ("SELECT", "UPDATE", "DELETE") or context.has_temporary:
        return None
    passed = wire.trees.passed(prepared.sql, doubtful=_is_doubtful(context, prepared))
    if passed is None:
        return None
    types = _parameters(prepared, passed.types)
    if types is None:
        return None
    tables = [context.catalog.tables.get(name) for name in passed.relations]
    if not all(table is not None and is_plain(context, table) for table in tables):
        return None
    if passed.changed is not None:
        return plain_changes.of(context, wire, prepared, passed, types)
    if prepared.columns is None:
        return None
    if not tables:
        # The private server has the settings of this session.
        shown = [(column, True) for column in prepared.columns]
        types = [(given, type_, True) for given, type_, _ in types]
        return native.module().proxy.Pass(wire.session, None, passed.text, types, shown)
    direct = getattr(context.engine, "direct", None)
    sent = direct(control.CATALOG_VERSION, context.catalog.version) if direct else None
    if sent is None:
        return None
    session, guard, constants = sent
    columns = relayed_texts.shown(wire, prepared.columns)
    guarded = (guard, list(constants))
    return native.module().proxy.Pass(session, guarded, passed.text, types, columns)


def _is_doubtful(context: Context, prepared: Prepared) -> bool:
    """Whether a text may well read what is not plain: it has a word that names such a table."""
    words = {fold(token.text) for token in prepared.tokens}
    encrypted = (t.name for t in context.catalog.tables.values() if t.has_encrypted)
    return any(word.startswith("pg_") for word in words) or any(
        fold(name) in words for name in encrypted
    )


def _parameters(prepared: Prepared, own: Sequence[int]) -> list[tuple[int, int, bool]] | None:
    """Of each parameter the type that the client says, the one that the text gives it, and whether
    texts of that mean the same under all settings; None where one is not brought to the other.
    """
    given, narrow = prepared.parameters, dict(prepared.narrowed)
    pairs = list(zip(given, own, strict=False))
    if len(given) != len(own):
        return None
    for at, (a, b) in enumerate(pairs):
        if a != b and narrow.get(at) != b and not _is_wider(b, a):
            return None
    return [(a, b, b in relayed_texts.FIRM) for a, b in pairs]


def _is_wider(type_: int, given: int) -> bool:
    return given in _WHOLE and (type_ in _WHOLE or type_ == _NUMERIC)


def is_plain(context: Context, table: Table) -> bool:
    """Whether the server has a table as it is declared, but for columns that no query names."""
    own = f"{_quoted(table.schema)}.{_quoted(table.name)}"
    return context.backend.table(table) == own and all(
        not c.encrypted and c.stored == {"plain": c.name} for c in table.columns
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
