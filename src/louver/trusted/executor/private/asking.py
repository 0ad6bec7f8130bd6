"""Execution of a planned question, up to its answer."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from louver import errors
from louver.trusted.executor import progress
from louver.trusted.executor.answer import Answer, Clock
from louver.trusted.executor.ledger import Fact
from louver.trusted.executor.private import constants, rounds, searching
from louver.trusted.executor.private.constants import Keys
from louver.trusted.executor.private.context import ProviderContext
from louver.trusted.planner.private import cost, describe
from louver.trusted.planner.private.question import PARTIALS, Alternative, Question
from louver.wire.questions import Prepared, Protocol, Shape

_PROTOCOLS: dict[Protocol, Callable[[rounds.Run, Keys], pa.Table]] = {
    Protocol.SELECT: rounds.select,
    Protocol.SUM: rounds.sums,
    Protocol.NODES: rounds.nodes,
    Protocol.SEARCH: searching.search,
    Protocol.BUCKETS: rounds.select,
    Protocol.DYADIC: rounds.dyadic,
    Protocol.PAILLIER: rounds.paillier,
}


_NOTHING_PRIVATE = (
    "nothing of this question is private: it holds no ? and no PRIVATE(...), so every provider "
    "sees all of it"
)
#: Errors that show during preparation; an alternative may still work.
_UNFIT = ("provider.large", "provider.wide")


def ask(context: ProviderContext, question: Question, clock: Clock) -> Answer:
    """Send the question, and finish locally."""
    with clock.step("bind"):
        values = constants.evaluate(context.local, question.shape, question.clauses)
    with clock.step("prepare"), progress.stages("the providers prepare") as hear:
        way, prepared = prepared_way(context, question, hear)
    shape = way.shape
    with clock.step("bind"):
        keys = constants.bind(context.local, prepared, shape, values)
    context.ledger.record(facts(context, question, shape), describe.statement(shape))
    run = rounds.Run(context.fleet, shape, prepared, clock)
    partials = _PROTOCOLS[shape.protocol](run, keys)
    with clock.step("finish"):
        columns = [(field.name, field.type) for field in prepared.fields]
        rows = context.local.finish_over(PARTIALS, columns, partials, way.finish)
    named = list(zip(question.names, question.types, strict=True))
    rows = rows.rename_columns(list(question.names))
    sent = describe.statements(shape, context.fleet.parties, len(question.clauses))
    notices = [] if question.private else [_NOTHING_PRIVATE]
    return Answer(rows, named, -1, dict(clock.times_ms), sent, way.finish, notices)


def prepared_way(
    context: ProviderContext, question: Question, hear: progress.Stages | None = None
) -> tuple[Alternative, Prepared]:
    """The alternative to execute, prepared: the one of its class, or a search if that is cheaper or
    the only possibility. The choice depends on public values only: sizes of tables, and the link.
    `hear` receives the progress of preparations.
    """
    way = Alternative(question.shape, question.finish)
    others = [other for other in question.alternatives if not other.shape.interval]
    try:
        prepared = context.fleet.prepared(way.shape, hear)
    except errors.Error as error:
        if not others or error.code not in _UNFIT:
            raise
        return others[0], context.fleet.prepared(others[0].shape, hear)
    best = chosen(context, question)
    if best.shape is way.shape:
        return way, prepared
    try:
        return best, context.fleet.prepared(best.shape, hear)
    except errors.Error as error:
        if error.code not in _UNFIT:
            raise
        return way, prepared


def chosen(context: ProviderContext, question: Question) -> Alternative:
    """The cheapest alternative, by the known sizes; nothing is sent."""
    ways = [Alternative(question.shape, question.finish)]
    ways += [other for other in question.alternatives if not other.shape.interval]
    costs = [cost_of(context, question, way.shape) for way in ways]
    return ways[cost.cheapest(costs, link_of(context))]


def cost_of(context: ProviderContext, question: Question, shape: Shape) -> cost.Cost:
    """The cost of a shape: exact if it is prepared, otherwise an upper bound."""
    fleet, clauses = context.fleet, len(question.clauses)
    prepared = fleet.is_prepared(shape)
    guessed = cost.assumed_sizes(shape, fleet.dataset, clauses, fleet.parties)
    if prepared is None:
        return cost.estimate(shape.protocol, guessed)
    sizes = cost.sizes(shape, prepared, clauses, fleet.parties, guessed.rows)
    return cost.estimate(shape.protocol, sizes)


def link_of(context: ProviderContext) -> cost.Link:
    """The network link to the providers, from the session's settings."""
    link = context.state.planning.link
    return cost.Link(latency_s=link.latency_ms / 1000, bytes_per_s=link.bandwidth)


def facts(context: ProviderContext, question: Question, shape: Shape) -> list[Fact]:
    """What each provider learns: the shape with its literals, and the number of clauses."""
    text = (
        f"each provider sees the question {describe.statement(shape)}; how many clauses it has "
        f"({len(question.clauses)}); and when it is asked"
    )
    columns = (*shape.equal, *((shape.interval,) if shape.interval else ()))
    return [Fact(shape.source, columns, "size", "question", text)]
