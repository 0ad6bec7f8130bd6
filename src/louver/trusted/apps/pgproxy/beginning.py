"""BEGIN, for the compiled module to begin transactions that Python does not know of (`ways`)."""

from __future__ import annotations

from typing import Any, cast

from louver.trusted.apps.pgproxy import tags
from louver.trusted.apps.pgproxy.described import Prepared
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.postgres.wire import Wire
from louver.trusted.executor.postgres.control import Characteristics, Modes
from louver.trusted.vault import native
from louver.wire import control

_USUAL = Modes("READ COMMITTED", read_only=False)


def of(context: Context, wire: Wire, prepared: Prepared) -> Any | None:
    """What begins transactions that read and write at READ COMMITTED; None where Python does."""
    state, engine = context.state, cast(Any, context.engine)
    begin = getattr(engine, "direct_begin", None)
    if begin is None or not state.writable or state.only_reads:
        return None
    if not tags.begins_plainly(prepared.tokens):
        return None
    if state.cache(Characteristics).default != _USUAL:
        return None
    sent, guarded = begin(), engine.direct(control.CATALOG_VERSION, context.catalog.version)
    if sent is None or guarded is None:
        return None
    _, guard, constants = guarded
    tag = tags.tag(prepared.tokens, -1, has_rows=False)
    return native.module().proxy.Begin(*sent, (guard, list(constants)), wire.sessions, tag)
