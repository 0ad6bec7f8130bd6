"""Queries of rows by values of their columns, for the compiled module to run without Python
(`ways`): PostgreSQL's own tree says what they are.
"""

from __future__ import annotations

from typing import Any

from louver.trusted.apps.pgproxy.described import Prepared
from louver.trusted.executor import direct, equal_rows
from louver.trusted.executor.context import Context
from louver.trusted.executor.ledger import Ledger
from louver.trusted.executor.local.postgres.wire import Wire
from louver.trusted.planner.sql import lexer
from louver.trusted.vault import native
from louver.wire import control


def of(context: Context, wire: Wire, prepared: Prepared, noted: equal_rows.EqualRows) -> Any | None:
    """What reads the rows of a query; None where only Python does."""
    send = getattr(context.engine, "direct", None)
    if noted.catalog is not context.catalog or send is None or prepared.columns is None:
        return None
    ledger = context.ledger
    if not isinstance(ledger, Ledger):
        return None
    if any(wire.holds_numbers(column[3]) for column in prepared.columns):
        return None
    query = wire.trees.equalities(prepared.sql)
    if query is None or len(query.shown) != len(prepared.columns):
        return None
    read = equal_rows.prepared(context, noted, query, prepared.parameters)
    if read is None:
        return None
    shape = lexer.shape(noted.text.plain, prepared.tokens)
    bound = direct.bound(shape, len(prepared.parameters))
    reserves = ledger.reserves(context.stated(noted.plan, bound))
    sent = send(control.CATALOG_VERSION, context.catalog.version)
    if reserves is None or sent is None:
        return None
    session, text, constants = sent
    shown = [
        (at, column, wire.is_printed(column[3]))
        for at, column in zip(read.shown, prepared.columns, strict=True)
    ]
    return context.columns.keyring.direct(
        native.module().proxy.Read, session, read.handle, read.sql, (text, list(constants)), [],
        shown, [(reserve, direct.leak(fact)) for reserve, fact in reserves],
        direct.names(context.catalog, read.opens), read.finish,
    )  # fmt: skip
