"""Queries by keys that come again, for the compiled module to run without Python (`ways`).

It does what `reading_again` does. What it does not take, it leaves to Python.
"""

from __future__ import annotations

from typing import Any

from louver.trusted.apps.pgproxy.described import Prepared
from louver.trusted.executor import direct, reading_again
from louver.trusted.executor.context import Context
from louver.trusted.executor.ledger import Ledger
from louver.trusted.executor.local.postgres.wire import Wire
from louver.trusted.planner.sql import lexer
from louver.trusted.vault import native
from louver.wire import control


def of(
    context: Context, wire: Wire, prepared: Prepared, reader: reading_again.Reader
) -> Any | None:
    """What reads the rows of a query; None where only Python does, or does not know yet."""
    send = getattr(context.engine, "direct", None)
    if prepared.columns is None or reader.catalog is not context.catalog or send is None:
        return None
    _, point = reader.points.of(reader.plan)
    if point is None or point.engine is not context.engine:
        return None
    shape = lexer.shape(reader.text.plain, reader.tokens)
    sources = direct.sources_of(shape, point.positions, prepared.parameters, reader.limits)
    ledger = context.ledger
    if sources is None or not isinstance(ledger, Ledger):
        return None
    reserves = ledger.reserves(
        context.stated(reader.plan, direct.bound(shape, len(prepared.parameters)))
    )
    sent = send(control.CATALOG_VERSION, context.catalog.version)
    columns = prepared.columns
    if reserves is None or sent is None or len(columns) != len(point.shown):
        return None
    session, text, constants = sent
    if any(wire.holds_numbers(column[3]) for column in columns):
        return None
    shown = [
        (at, column, wire.is_printed(column[3]))
        for at, column in zip(point.shown, columns, strict=True)
    ]
    opens = direct.names(context.catalog, point.opens)
    return context.columns.keyring.direct(
        native.module().proxy.Read, session, point.handle, point.sql, (text, list(constants)),
        sources, shown, [(reserve, direct.leak(fact)) for reserve, fact in reserves], opens,
    )  # fmt: skip
