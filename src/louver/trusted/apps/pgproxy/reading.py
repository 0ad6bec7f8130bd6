"""Queries by keys that come again, for the compiled module to run without Python.

It does what `reading_again` does, as long as nothing that it relies on has changed: the client's
`generation` says so. What it does not take, it leaves to Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from louver.trusted.apps.pgproxy import audited
from louver.trusted.apps.pgproxy.described import Prepared
from louver.trusted.executor import point_reads, reading_again, repeated
from louver.trusted.executor.context import Context
from louver.trusted.executor.ledger import Ledger
from louver.trusted.executor.local.postgres.wire import Wire
from louver.trusted.planner.sql import lexer
from louver.wire import control

_MOST = (1 << 63) - 1


def basis(context: Context) -> tuple[object, ...]:
    """What such a query relies on, as it is now."""
    catalog = context.catalog
    return (
        id(catalog), catalog.version, context.local.revision, catalog.path, context.planning,
        repeated.is_alone(context), id(getattr(context.engine, "session", None)),
        getattr(context.local, "rights", None),
    )  # fmt: skip


def of(context: Context, wire: Wire, prepared: Prepared) -> Any | None:
    """What reads a statement's rows; None where only Python does, or does not know yet."""
    if context.in_transaction or prepared.kind != "other" or prepared.columns is None:
        return None
    (text,) = lexer.split(prepared.sql)
    known = repeated.find(context.state, text)
    if known is None or not repeated.holds(context, known):
        return None
    reader = known.reader
    if not isinstance(reader, reading_again.Reader) or reader.catalog is not context.catalog:
        return None
    # Each placeholder is one value, in the order of Bind.
    if text.parameters != tuple(range(1, len(prepared.parameters) + 1)):
        return None
    _, point = reader.points.of(reader.plan)
    direct = getattr(context.engine, "direct", None)
    if point is None or direct is None or point.engine is not context.engine:
        return None
    return _reading(context, wire, prepared, reader, point, direct)


def _reading(
    context: Context, wire: Wire, prepared: Prepared, reader: reading_again.Reader,
    point: point_reads.PointRead, direct: Any,
) -> Any | None:  # fmt: skip
    shape = lexer.shape(reader.text.plain, reader.tokens)
    sources = _sources(shape, point.positions, prepared.parameters, reader.limits)
    values: list[object] = [0] * len(prepared.parameters)
    facts = context.stated(reader.plan, lexer.with_parameters(shape, values))
    ledger = context.ledger
    reserves = ledger.reserves(facts) if isinstance(ledger, Ledger) else None
    sent = direct(control.CATALOG_VERSION, context.catalog.version)
    columns = prepared.columns or []
    if sources is None or reserves is None or sent is None or len(columns) != len(point.shown):
        return None
    session, text, constants = sent
    shown = [
        (at, column, wire.is_printed(column[3]))
        for at, column in zip(point.shown, columns, strict=True)
    ]
    opens = audited.names(context.catalog, point.opens)
    return context.columns.keyring.reading(
        session, (text, list(constants)), point.handle, point.sql, sources, shown,
        [(reserve, audited.leak(fact)) for reserve, fact in reserves], opens,
    )  # fmt: skip


def _sources(
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
