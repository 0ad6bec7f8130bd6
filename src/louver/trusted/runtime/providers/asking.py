"""A question from its plan to its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from louver.trusted.planner.private.question import PARTIALS, Alternative, Question
from louver.trusted.runtime.answer import Answer, Clock
from louver.trusted.runtime.ledger import Fact
from louver.trusted.runtime.providers import constants, explaining, rounds
from louver.trusted.runtime.providers.constants import Keys
from louver.wire.questions import Protocol, Shape

if TYPE_CHECKING:
    from louver.trusted.runtime.providers.session import ProviderSession

_PROTOCOLS: dict[Protocol, Callable[[rounds.Run, Keys], pa.Table]] = {
    Protocol.SELECT: rounds.select,
    Protocol.SUM: rounds.sums,
    Protocol.NODES: rounds.nodes,
    Protocol.BUCKETS: rounds.select,
    Protocol.DYADIC: rounds.dyadic,
    Protocol.PAILLIER: rounds.paillier,
}


def ask(session: ProviderSession, question: Question, clock: Clock) -> Answer:
    """Ask, and finish at home."""
    way = chosen(session, question)
    shape = way.shape
    with clock.step("prepare"):
        prepared = session.fleet.prepared(shape)
    with clock.step("bind"):
        keys = constants.bind(session.home, prepared, shape, question.clauses)
    session.ledger.record(facts(session, question, shape), explaining.statement(shape))
    run = rounds.Run(session.fleet, shape, prepared, clock)
    partials = _PROTOCOLS[shape.protocol](run, keys)
    with clock.step("finish"):
        columns = [(field.name, field.type) for field in prepared.fields]
        rows = session.home.finish({("", PARTIALS): (columns, partials)}, way.finish)
    named = list(zip(question.names, question.types, strict=True))
    rows = rows.rename_columns(list(question.names))
    sent = explaining.sent(shape, session.fleet.parties, len(question.clauses))
    return Answer(rows, named, -1, dict(clock.times_ms), sent, way.finish)


def chosen(session: ProviderSession, question: Question) -> Alternative:
    """The cheapest way to ask it."""
    return Alternative(question.shape, question.finish)


def facts(session: ProviderSession, question: Question, shape: Shape) -> list[Fact]:
    """What each provider learns: the shape and its literals, and how many clauses there are."""
    text = (
        f"each provider sees the question {explaining.statement(shape)}; how many clauses it has "
        f"({len(question.clauses)}); and when it is asked"
    )
    columns = (*shape.equal, *((shape.interval,) if shape.interval else ()))
    return [Fact(shape.source, columns, "size", "question", text)]
