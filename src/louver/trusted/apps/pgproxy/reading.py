"""Queries by keys that come again, for the compiled module to run without Python (`ways`).

It does what `reading_again` does. What it does not take, it leaves to Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from louver.trusted.apps.pgproxy.described import Prepared
from louver.trusted.executor import point_reads, reading_again
from louver.trusted.executor.context import Context
from louver.trusted.executor.ledger import Ledger
from louver.trusted.executor.local.postgres.wire import Wire
from louver.trusted.planner.sql import lexer
from louver.trusted.vault import native
from louver.wire import control

_MOST = (1 << 63) - 1


def of(
    context: Context, wire: Wire, prepared: Prepared, reader: reading_again.Reader
) -> Any | None:
    """What reads the rows of a query; None where only Python does, or does not know yet."""
    direct = getattr(context.engine, "direct", None)
    if prepared.columns is None or reader.catalog is not context.catalog or direct is None:
        return None
    _, point = reader.points.of(reader.plan)
    if point is None or point.engine is not context.engine:
        return None
    shape = lexer.shape(reader.text.plain, reader.tokens)
    sources = sources_of(shape, point.positions, prepared.parameters, reader.limits)
    ledger = context.ledger
    if sources is None or not isinstance(ledger, Ledger):
        return None
    reserves = ledger.reserves(context.stated(reader.plan, bound(shape, prepared)))
    sent = direct(control.CATALOG_VERSION, context.catalog.version)
    columns = prepared.columns
    if reserves is None or sent is None or len(columns) != len(point.shown):
        return None
    session, text, constants = sent
    shown = [
        (at, column, wire.is_printed(column[3]))
        for at, column in zip(point.shown, columns, strict=True)
    ]
    return context.columns.keyring.direct(
        native.module().proxy.Read, session, point.handle, point.sql, (text, list(constants)),
        sources, shown, reserves,
    )  # fmt: skip


def bound(shape: lexer.Shape, prepared: Prepared) -> lexer.Shape:
    """The shape of a statement with some values of its parameters."""
    values: list[object] = [0] * len(prepared.parameters)
    return lexer.with_parameters(shape, values)


def sources_of(
    shape: lexer.Shape, positions: point_reads.Positions, types: Sequence[int],
    limits: point_reads.Limits,
) -> list[list[list[object]]] | None:  # fmt: skip
    """Where the values of the keys come from: parameters with their types and limits, or numbers of
    the text; None where a constant is neither.
    """
    first = len(shape.literals)
    bounds = {position: (least, most) for position, least, most in limits}

    def source(position: int) -> object:
        if position >= first:
            at = position - first
            least, most = bounds.get(at, (-_MOST - 1, _MOST))
            return (at, types[at], (max(least, -_MOST - 1), min(most, _MOST)))
        return point_reads.whole_number(shape.literals[position])

    results = [[list(map(source, columns)) for columns in constants] for constants in positions]
    flat = (value for key in results for columns in key for value in columns)
    return None if any(value is None for value in flat) else results
