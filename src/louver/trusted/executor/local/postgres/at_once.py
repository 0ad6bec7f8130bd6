"""A change over few rows in one round trip (`difference`): what begins and undoes its transaction,
the rows, the user's text and the looks at what it did go together.

That needs the types of columns, of which those of the last time are taken: whether they still hold
is looked at in the same round trip. What does not go as expected is run again step by step, which
says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from louver import errors
from louver.trusted.executor.local.changed_rows import Filled, Outcome
from louver.trusted.executor.local.local import Parameters
from louver.trusted.executor.local.postgres import difference, parameters
from louver.trusted.executor.local.postgres.connection import PostgresConnection, Reply
from louver.trusted.executor.local.postgres.failures import translated

_MOST_TEXTS = 512
#: Errors after which nothing is run again.
_ENDING = ("interrupted", "postgres.lost")
_HAS_TRIGGERS = "SELECT relhastriggers FROM pg_catalog.pg_class WHERE oid = $1::regclass"
_LOOKS = (difference.COLUMNS, difference.NODES, _HAS_TRIGGERS)
Facts = list[list[Any]]
"""Columns of replies: names, types and domains, the number of files, and whether rows trigger."""


@dataclass(slots=True)
class Memory:
    """What is known of tables by their paths, and of the types of texts' parameters."""

    facts: dict[str, Facts] = field(default_factory=dict)
    inferred: dict[str, Sequence[int]] = field(default_factory=dict)

    def given(self, connection: PostgresConnection, sql: str, values: Parameters) -> list[Any]:
        """Values as they are sent with a text."""
        own = parameters.listed(values)
        if all(value is None or isinstance(value, str) for value in own):
            return own
        inferred = self.inferred.get(sql)
        if inferred is None:
            if len(self.inferred) >= _MOST_TEXTS:
                self.inferred.clear()
            inferred = self.inferred[sql] = connection.raw.describe(sql)[0]
        return parameters.sent(own, parameters.own_types(own, inferred))


def run(
    connection: PostgresConnection, memory: Memory, filled: Sequence[Filled], sql: str,
    values: Parameters,
) -> Outcome | None:  # fmt: skip
    """Run a change over rows; None where it is to be run step by step."""
    if connection.raw.state() != "idle" or any(table.is_partial for table in filled):
        return None
    try:
        with translated():
            return _run(connection, memory, filled, sql, values)
    except errors.Error as error:
        if error.code in _ENDING:
            raise
        return None
    finally:
        if connection.raw.state() in ("within", "failed"):
            with translated():
                connection.raw.run([("ROLLBACK", [])])


def _run(
    connection: PostgresConnection, memory: Memory, filled: Sequence[Filled], sql: str,
    values: Parameters,
) -> Outcome | None:  # fmt: skip
    looks = [(text, [table.path]) for table in filled for text in _LOOKS]
    if any(table.path not in memory.facts for table in filled):
        _note(memory, filled, connection.raw.run(looks))
    known = [memory.facts[table.path] for table in filled]
    insertions = []
    for table, (names, types, _, _, _) in zip(filled, known, strict=True):
        insertion = difference.bound_insertion(table, dict(zip(names, types, strict=True)))
        if insertion is None:
            return None
        insertions.append(insertion)
    triggers = any(facts[-1] != [False] for facts in known)
    quiet, loud = (
        [(f"SET LOCAL session_replication_role = {role}", list[Any]())] * triggers
        for role in ("replica", "origin")
    )
    watched = [number for number, table in enumerate(filled) if table.is_watched]
    steps: list[tuple[str, list[Any]]] = [
        ("BEGIN", []), *quiet, *insertions, *loud,
        (sql, memory.given(connection, sql, values)), ("SET CONSTRAINTS ALL IMMEDIATE", []),
        *(difference.after(filled[number]) for number in watched), *looks, ("ROLLBACK", []),
    ]  # fmt: skip
    replies = connection.raw.run(steps)
    first = 1 + len(quiet)
    places = replies[first : first + len(filled)]
    done, _, *others = replies[first + len(filled) + len(loud) : -1]
    for tag, _, _ in (*places, done):
        connection.note_written(tag)
    rows, seen = others[: len(watched)], others[len(watched) :]
    if not _holds(memory, filled, seen):
        return None
    changed = {
        (filled[number].schema, filled[number].name): difference.changes(
            connection.table(after), connection.table(places[number])
        )
        for number, after in zip(watched, rows, strict=True)
    }
    return difference.outcome(connection, done, changed)


def _note(memory: Memory, filled: Sequence[Filled], replies: Sequence[Reply]) -> None:
    for number, table in enumerate(filled):
        own = replies[len(_LOOKS) * number : len(_LOOKS) * (number + 1)]
        memory.facts[table.path] = [array.to_pylist() for _, _, arrays in own for array in arrays]


def _holds(memory: Memory, filled: Sequence[Filled], replies: Sequence[Reply]) -> bool:
    """Whether tables are as they were, and in their files still."""
    before = dict(memory.facts)
    _note(memory, filled, replies)
    if all(before[table.path] == memory.facts[table.path] for table in filled):
        return True
    memory.facts.clear()
    return False
