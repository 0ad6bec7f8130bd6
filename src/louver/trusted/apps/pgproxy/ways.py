"""How statements that come again run without Python, as long as nothing that they rely on has
changed: the client's generation says so (docs/decisions/0034).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from louver._rust.proxy import Reserve
from louver.trusted.apps.pgproxy import (
    beginning,
    moments,
    narrowed,
    passing,
    reading,
    relayed_texts,
    selecting,
)
from louver.trusted.apps.pgproxy.described import Prepared
from louver.trusted.executor import carried, dispatch, equal_rows, reading_again, repeated
from louver.trusted.executor.change import direct_changes
from louver.trusted.executor.context import Context
from louver.trusted.executor.ledger import Ledger
from louver.trusted.executor.local.postgres.wire import Wire
from louver.trusted.executor.schema import numbers_ahead
from louver.trusted.planner.sql import lexer


def of(context: Context, wire: Wire, prepared: Prepared) -> Any | None:
    """What runs a statement; None where only Python does, or does not know yet."""
    if context.in_transaction:
        return None
    if prepared.kind == "begins":
        return beginning.of(context, wire, prepared)
    if prepared.kind != "other" or not moments.are_utc(wire, prepared.moments):
        return None
    in_order = prepared.in_order(prepared.parameters, prepared.moments)
    prepared = replace(prepared, parameters=tuple(in_order))
    (text,) = lexer.split(prepared.sql)
    if not dispatch.is_permitted(context, text):
        return None
    known = repeated.find(context, text)
    if known is None:
        return passing.of(context, wire, prepared)
    if not repeated.holds(context):
        return None
    passed = (
        passing.of(context, wire, prepared) if _is_plain(context, wire, prepared, known) else None
    )
    if passed is not None:
        return passed
    if narrowed.counts_blanks(prepared.parameters, prepared.narrowed):
        return None
    # Each placeholder is one value, in the order of Bind.
    if text.parameters != tuple(range(1, len(prepared.parameters) + 1)):
        return None
    form = carried.carried(context, known.form)
    if isinstance(form, reading_again.Reader):
        return reading.of(context, wire, prepared, form)
    if isinstance(form, equal_rows.EqualRows):
        return selecting.of(context, wire, prepared, form)
    shown = [(column, wire.is_printed(column[3])) for column in prepared.columns or ()]
    if prepared.columns and any(wire.holds_numbers(column[3]) for column in prepared.columns):
        return None
    change = direct_changes.of(context, known.flow[0], form, prepared.parameters, shown)
    return None if change is None else change.write


def _is_plain(context: Context, wire: Wire, prepared: Prepared, known: repeated.Known) -> bool:
    """Whether a statement may be one of plain columns: what is relayed need not be opened."""
    if isinstance(known.form, reading_again.Reader):
        return not known.form.plan.leaks and relayed_texts.are_relayed(wire, prepared)
    table = context.catalog.tables.get(known.flow[0])
    return prepared.does in ("UPDATE", "DELETE") and table is not None and not table.has_encrypted


def provide(
    context: Context, reserves: Sequence[Reserve], numbers: bool, drawn: Sequence[int], *,
    within: bool,
) -> bool:  # fmt: skip
    """Have what runs without Python go on: more conditions of these in the ledger, ``numbers`` of
    new rows, and some of the sequences that are ``drawn`` from, also ``within`` a transaction that
    Python does not know of. Whether all of it could be had.
    """
    ledger = context.ledger
    if not isinstance(ledger, Ledger):
        return False
    extended = [ledger.extend(reserve) for reserve in reserves]
    if not all(extended) or (numbers and not direct_changes.renumber(context)):
        return False
    return not drawn or numbers_ahead.provide(context, drawn, within=within)
