"""Statements that wait for the next one of their session, to go in one round trip with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from louver import errors
from louver._rust import postgres
from louver._rust.postgres import SealedRow
from louver.untrusted.engines.engine import Otherwise
from louver.untrusted.engines.postgres.failures import translated

Step = tuple[str, Sequence[Any]]
"""A statement's text and its values."""
Reply = postgres.Reply
MOST_WAITING = 64
#: What a guard does whose statement had another outcome: SQLSTATE of a division by zero.
_UNEXPECTED = "22012"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A statement that was not sent yet; ``otherwise`` is of one that is guarded."""

    step: Step
    writes: bool
    otherwise: Otherwise | None = None


def guarded(sql: str, values: Sequence[Any], outcome: int, *, writes: bool) -> Step:
    """A statement that the server refuses unless it has this outcome, so that nothing behind it is
    done: COMMIT may be on its way already.
    """
    right, check = f"${_width(values) + 1}::bigint", "SELECT 1 / (count(*) = {})::integer FROM"
    if writes:
        text = f"WITH louver_done AS ({sql} RETURNING 1) {check.format(right)} louver_done"
    else:
        text = f"{check.format(1)} ({sql}) AS louver_done(n) WHERE n = {right}"
    return text, [*values, outcome]


def entered(
    sql: str, values: Sequence[Any], outcome: int, limits: Sequence[tuple[str, str]]
) -> Step:
    """The same of a change, before which limits are set until the transaction ends: PostgreSQL goes
    through what it selects in order, and runs what stands in brackets when it comes to it.
    """
    settings = "".join(
        f"pg_catalog.set_config('{name}', '{value}', true), " for name, value in limits
    )
    right = f"${_width(values) + 1}::bigint"
    text = (
        f"WITH louver_done AS ({sql} RETURNING 1) SELECT {settings}"
        f"1 / ((SELECT count(*) FROM louver_done) = {right})::integer"
    )
    return text, [*values, outcome]


def _width(values: Sequence[Any]) -> int:
    return sum(len(value) if isinstance(value, SealedRow) else 1 for value in values)


def exchanged(
    session: postgres.Session, address: str, opening: Sequence[Step], waiting: Sequence[Waiting],
    last: Sequence[Step], *, unsure: bool,
) -> list[Reply]:  # fmt: skip
    """The replies to ``last``, which goes in one round trip with what opens its transaction, and
    with what waits. A failure is that of the statement that failed.
    """
    steps = [*opening, *(item.step for item in waiting), *last]
    with translated(address, unsure=unsure):
        try:
            return session.run(steps)[len(steps) - len(last) :]
        except postgres.ServerError as error:
            failure = _unexpected(error.args[0], len(opening), waiting)
            if failure is None:
                raise
            raise failure from error


def _unexpected(
    fields: dict[str, Any], before: int, waiting: Sequence[Waiting]
) -> errors.Error | None:
    """The error of a guarded statement that had another outcome; None if it was not that."""
    position = int(fields.get("statement", -1)) - before
    if fields.get("code") != _UNEXPECTED or not 0 <= position < len(waiting):
        return None
    otherwise = waiting[position].otherwise
    return otherwise() if otherwise is not None else None
