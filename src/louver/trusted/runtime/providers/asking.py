"""A question from its plan to its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from louver.trusted.planner.private import price
from louver.trusted.planner.private.question import Question
from louver.trusted.runtime.answer import Answer, Clock
from louver.trusted.runtime.ledger import Fact
from louver.trusted.runtime.providers import constants, explaining, rounds, searching
from louver.trusted.runtime.providers.constants import Keys
from louver.wire.questions import Prepared, Protocol, Shape

if TYPE_CHECKING:
    from louver.trusted.runtime.providers.session import ProviderSession

_PROTOCOLS: dict[Protocol, Callable[[rounds.Run, Keys], pa.Table]] = {
    Protocol.SELECT: rounds.select,
    Protocol.SUM: rounds.sums,
    Protocol.NODES: rounds.nodes,
    Protocol.SEARCH: searching.search,
    Protocol.BUCKETS: rounds.select,
    Protocol.DYADIC: rounds.dyadic,
    Protocol.PAILLIER: rounds.paillier,
}


def ask(session: ProviderSession, question: Question, clock: Clock) -> Answer:
    """Ask, and finish at home."""
    with clock.step("prepare"):
        shape = chosen(session, question)
        prepared = session.fleet.prepared(shape)
    with clock.step("bind"):
        keys = constants.bind(session.home, prepared, shape, question.clauses)
    session.ledger.record(facts(session, question, shape), explaining.statement(shape))
    run = rounds.Run(session.fleet, shape, prepared, clock)
    partials = _PROTOCOLS[shape.protocol](run, keys)
    with clock.step("finish"):
        rows = _finished(session, question, prepared, partials)
        columns = session.home.describe_rows(rows)
    sent = explaining.sent(shape, session.fleet.parties, len(question.clauses))
    return Answer(rows, columns, -1, dict(clock.times_ms), sent, question.finish)


def described(session: ProviderSession, question: Question) -> list[tuple[str, str]]:
    """Names and types of the answer's columns."""
    prepared = session.fleet.prepared(chosen(session, question))
    empty = _finished(session, question, prepared, rounds.none(prepared))
    return session.home.describe_rows(empty)


def chosen(session: ProviderSession, question: Question) -> Shape:
    """The cheapest way to ask it."""
    return price.cheapest(question, session.fleet.dataset, session.planner.link)


def facts(session: ProviderSession, question: Question, shape: Shape) -> list[Fact]:
    """What each provider learns: the shape and its literals, and how many clauses there are."""
    text = (
        f"each provider sees the question {explaining.statement(shape)}; how many clauses it has "
        f"({len(question.clauses)}); and when it is asked"
    )
    columns = (*shape.equal, *((shape.interval,) if shape.interval else ()))
    return [Fact(shape.source, columns, "size", "question", text)]


def _finished(
    session: ProviderSession, question: Question, prepared: Prepared, partials: pa.Table
) -> pa.Table:
    columns = [(field.name, field.type) for field in prepared.fields]
    return session.home.finish({("", "louver_partials"): (columns, partials)}, question.finish)
