"""Queries by keys that come again with other values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot.tokens import Token

from louver import errors
from louver.trusted.executor import cardinality, point_reads, seen_state
from louver.trusted.executor.answer import Answer, Clock, OpenedAnswer
from louver.trusted.executor.context import Context
from louver.trusted.executor.planned_reads import finished_alone, is_look_up, tables_of
from louver.trusted.executor.storage import translate_reply_errors
from louver.trusted.executor.table_basis import are_same
from louver.trusted.planner.ir import Plan
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Catalog
from louver.wire.messages import Statement


@dataclass(slots=True)
class Reader:
    """A query that is known by its text, and what it is known to be a look-up by."""

    text: lexer.Text
    tokens: Sequence[Token]
    plan: Plan
    catalog: Catalog
    limits: point_reads.Limits
    points: point_reads.Points = field(default_factory=point_reads.Points)

    def is_current(self, context: Context) -> bool:
        """Whether the newest catalog says of its tables what its own one does."""
        return are_same(self.catalog, context.catalog, tables_of(self.plan))

    def fits(self, context: Context, plan: Plan) -> bool:
        """Whether a plan is a look-up: with values of other types it is another one."""
        if plan is not self.plan or context.catalog is not self.catalog:
            if not is_look_up(context.catalog, plan):
                return False
            if not self.is_current(context):
                self.points.clear()
            self.plan, self.catalog = plan, context.catalog
        return True


def read_again(context: Context, reader: Reader, parameters: list[object]) -> Answer | None:
    """Run such a query with other values; None where it is to take the general way. The version of
    the catalog is read as for any other, but that both go together where it was read just before.
    """
    if not point_reads.are_within(reader.limits, parameters):
        return None
    before, clock = context.catalog, Clock()
    beside = not context.in_transaction and _goes_beside(context)
    if not context.in_transaction and not beside:
        seen_state.refresh(context)
        if context.catalog is not before:
            return None
    with clock.step("plan"):
        plan, shape = context.planner.plan(
            reader.text, parameters, before, context.planning, reader.tokens
        )
    if not reader.fits(context, plan):
        return None
    notices = cardinality.warned(context.record(plan, shape, reader.tokens), before)
    ready = _Ready(reader, plan, shape, parameters, before.version if beside else None)
    try:
        answer = _pointed(context, ready, clock) or _answered(context, ready, clock)
    except errors.OperationalError as error:
        if context.in_transaction or error.code != "catalog.conflict":
            raise
        return None
    except errors.DataError:
        return None  # a constant has no value of the type that it is compared as
    except errors.VerificationError:
        if context.in_transaction:
            raise
        return None  # what another client has changed meanwhile may look like tampering
    if answer is not None:
        answer.times_ms, answer.notices = {**context.planner.times_ms, **clock.times_ms}, notices
    return answer


@dataclass(frozen=True, slots=True)
class _Ready:
    """A query with its plan and its values; ``version`` is the catalog's that it relies on, where
    that is still to be looked at.
    """

    reader: Reader
    plan: Plan
    shape: lexer.Shape
    parameters: list[object]
    version: int | None

    def expect(self, context: Context) -> None:
        """Have the catalog's version read with what is sent next."""
        if self.version is not None:
            context.store.versions.expect(self.version)

    @property
    def columns(self) -> list[tuple[str, str]]:
        return list(zip(self.plan.names, self.plan.types, strict=True))


def _pointed(context: Context, ready: _Ready, clock: Clock) -> Answer | None:
    """The answer by one call each way; None where nothing was sent, or what came is to be looked at
    closely.
    """
    _, point = ready.reader.points.of(ready.plan)
    if point is None or point.engine is not context.engine:
        return None
    tags = point.tags(context, ready.shape, ready.parameters)
    if tags is None:
        return None
    ready.expect(context)
    with clock.step("server"), translate_reply_errors():
        rows = point.opened(context, tags)
    if rows is None:
        return None
    return OpenedAnswer(rows, point.shown, ready.columns, point.sql)


def _answered(context: Context, ready: _Ready, clock: Clock) -> Answer | None:
    """The answer as any other, and what gives it by one call each way from now on."""
    (remote,), literals = ready.plan.remotes, ready.shape.literals
    request = context.storage.request(remote, literals)
    ready.expect(context)
    rows = context.storage.answer(remote, request, literals, clock)
    with clock.step("finish"):
        done = finished_alone(context, ready.plan, rows, literals)
    if done is None:
        return None
    points = ready.reader.points
    if isinstance(request, Statement) and not points.of(ready.plan)[0]:
        given = ready.plan, ready.shape, ready.parameters
        points.note(ready.plan, point_reads.prepared(context, *given, request))
    sql = request.sql if isinstance(request, Statement) else ""
    return Answer(done, ready.columns, remote_sql=[sql])


def _goes_beside(context: Context) -> bool:
    """Whether a look-up may go together with the look at the catalog's version."""
    store = context.store
    known = context.backend.catalog_counts and store.knows(context.catalog.version)
    return known and store.versions.is_recent
