"""Rows of a query as they come from the server: of one table, where no engine finishes them.

What is missing or repeated shows at the end, and is an error then.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import pyarrow as pa

from louver import errors
from louver.trusted.executor import binding, planned_reads, schema_queries, select
from louver.trusted.executor.context import Context
from louver.trusted.executor.local import exact
from louver.trusted.executor.local.local import Described
from louver.trusted.executor.read_ahead import ahead, closed
from louver.trusted.executor.server_storage import ServerStorage
from louver.trusted.planner.ir import Plan, RemoteQuery
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.resolver import pivots
from louver.trusted.planner.write import sequence_draws


def stream(context: Context, sql: str) -> tuple[Described, Iterator[pa.Table]] | None:
    """The columns of a query without parameters, and its rows in parts, of which there is one at
    least; None of one that is to run as any other.
    """
    (text,) = lexer.split(sql)
    tokens = lexer.tokens(text.plain)
    storage = context.storage
    if context.attached or text.parameters or not isinstance(storage, ServerStorage):
        return None
    if schema_queries.asks_schema(context, text, tokens) or pivots(tokens):
        return None
    plan, shape = context.planner.plan(text, [], context.catalog, context.planning, tokens)
    if not _comes_alone(context, plan) or sequence_draws.draws(context.catalog, tokens):
        return None
    context.record(plan, shape, tokens)
    try:
        ready = binding.bind(context, plan, shape, text, [])
    except errors.DataError:
        # Whether that is an error depends on the rows (`select`).
        return None
    (remote,), (statement,) = plan.remotes, ready.statements
    if context.engine.in_transaction and _has_tiles(context, remote):
        return None  # rows and tiles are not read at once there
    opened = storage.stream(remote, statement, ready.literals)
    first = next(opened)
    if select.as_opened(context, plan, ready, first) is None:
        opened.close()
        return None

    def parts() -> Iterator[pa.Table]:
        with closed(opened):
            for rows in chain((first,), opened):
                part = select.as_opened(context, plan, ready, rows)
                if part is None:
                    raise errors.make("internal", detail="parts of an answer of different types")
                yield part.rename_columns(list(plan.names))

    return list(zip(plan.names, plan.types, strict=True)), ahead(parts())


def _has_tiles(context: Context, remote: RemoteQuery) -> bool:
    return any(context.catalog.by_id(source.table).tiles for source in remote.sources)


def _comes_alone(context: Context, plan: Plan) -> bool:
    """Whether the rows of one query of one table are the result, each by itself."""
    if not (plan.names and plan.alone and len(plan.remotes) == 1) or plan.opens:
        return False
    (remote,) = plan.remotes
    if len(remote.sources) != 1 or remote.grouped or remote.counted or remote.lookup is not None:
        return False
    once = planned_reads.reads_once(context.catalog, plan)
    return once and not remote.probes and not any(map(exact.may_change, plan.types))
