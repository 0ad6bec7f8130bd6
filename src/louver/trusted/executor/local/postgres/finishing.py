"""A query over opened rows: tables, rows, views, the user's text, and nothing of it afterwards."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa

from louver import errors
from louver._rust import postgres
from louver.names import fold, quoted
from louver.trusted.executor.local.local import Answers, Described, Parameters
from louver.trusted.executor.local.postgres.connection import PostgresConnection, Reply, creation
from louver.trusted.executor.local.postgres.failures import translated
from louver.trusted.executor.local.postgres.instances import path_instead
from louver.trusted.vault.catalog import HomeObject

#: Of a table with as many rows PostgreSQL's planner needs to know how they are distributed.
_ANALYZED_ROWS = 2_000
#: What was planned for a table of these names that had other columns.
_OTHER_COLUMNS = "cached plan must not change result type"
_WORD = re.compile(r"\w+")
_PART = "louver_finish"


def finished(
    workspace: PostgresConnection,
    answers: Answers,
    views: Sequence[HomeObject],
    sql: str,
    parameters: Parameters,
    *,
    keeps: bool,
) -> tuple[Described, pa.Table]:
    """The columns and rows of a query over rows that fill (schema, name). ``views`` are what there
    is of views, in the order in which they can be made.
    """
    needed = _needed(views, sql)
    for is_last in (False, True):
        try:
            reply = _run(workspace, answers, needed, sql, parameters, keeps=keeps)
            break
        except errors.Error as error:
            if is_last or _OTHER_COLUMNS not in error.message:
                raise
    with translated(sql):
        return workspace.described(reply[1]), workspace.table(reply)


def _run(
    workspace: PostgresConnection,
    answers: Answers,
    views: Sequence[HomeObject],
    sql: str,
    parameters: Parameters,
    *,
    keeps: bool,
) -> Reply:
    raw = workspace.raw
    within = raw.state() != "idle"
    begin = f"SAVEPOINT {_PART}" if within else "BEGIN"
    targets = {key: _target(*key) for key in answers}
    schemas = {schema for schema, _ in answers if schema not in ("", "public")}
    steps = [begin, *(f"CREATE SCHEMA IF NOT EXISTS {quoted(name)}" for name in sorted(schemas))]
    steps += [creation(targets[key], columns, rows) for key, (columns, rows) in answers.items()]
    try:
        with translated():
            raw.run([(text, []) for text in steps])
        for key, (columns, rows) in answers.items():
            workspace.fill(targets[key], [name for name, _ in columns], rows)
            if rows.num_rows >= _ANALYZED_ROWS:
                workspace.execute(f"ANALYZE {targets[key]}")
        for view in views:
            with path_instead(workspace, view.path):
                workspace.execute(view.sql)
        end = [f"RELEASE {_PART}" if within else "COMMIT"] if keeps else _undoing(within)
        dropped = [f"DROP TABLE {target} CASCADE" for target in targets.values()] if keeps else []
        with translated(sql):
            given = workspace.given(sql, parameters)
            return raw.run([(sql, given), *((text, []) for text in (*dropped, *end))])[0]
    except BaseException:
        with suppress(postgres.ServerError, postgres.ConnectionLost):
            if raw.state() != "idle":
                raw.run([(text, []) for text in _undoing(within)])
        raise


def _undoing(within: bool) -> list[str]:
    return [f"ROLLBACK TO {_PART}", f"RELEASE {_PART}"] if within else ["ROLLBACK"]


def _target(schema: str, name: str) -> str:
    return f"{quoted(schema or 'pg_temp')}.{quoted(name)}"


def _needed(views: Sequence[HomeObject], sql: str) -> list[HomeObject]:
    """Those that a text names, with those that these name."""
    words = set(map(fold, _WORD.findall(sql)))
    needed: list[HomeObject] = []
    for view in reversed(views):
        if words.intersection(map(fold, _WORD.findall(view.name))):
            needed.insert(0, view)
            words |= set(map(fold, _WORD.findall(view.sql)))
    return needed
