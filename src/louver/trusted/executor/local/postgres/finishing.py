"""A query over opened rows: tables, rows, views, the user's text, and nothing of it afterwards."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from louver import errors
from louver._rust import postgres
from louver.names import fold, quoted
from louver.trusted.executor.local.local import Answers, Described, Parameters
from louver.trusted.executor.local.postgres import bound_rows, readable, workspace_indexes
from louver.trusted.executor.local.postgres.connection import (
    PostgresConnection,
    Reply,
    Statement,
    creation,
)
from louver.trusted.executor.local.postgres.failures import translated
from louver.trusted.executor.local.postgres.instances import path_instead
from louver.trusted.executor.local.postgres.parameters import listed, own_types, sent
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.resolver import name_words
from louver.trusted.vault.catalog import HomeObject

#: Of a table with as many rows PostgreSQL's planner needs to know how they are distributed.
_ANALYZED_ROWS = 200
#: Of a table with more rows it looks at 300 times as many as this, which is the number of the most
#: frequent values that it remembers: by default at 30,000, which takes longer than most queries.
_SAMPLED_ROWS, _STATISTICS = 3_000, 10
_WORD = re.compile(r"\w+")
_DEPENDED_ON = "2BP01"
_NO_TABLE = "42P01"
_PART, _VIEW = "louver_finish", "louver_view"
Home = tuple[str, str]
"""Schema and name of a table in the workspace."""
#: Names and types of a table's columns, and its rows.
Answered = tuple[Sequence[tuple[str, str]], pa.Table]


def finished(
    workspace: PostgresConnection,
    binder: PostgresConnection,
    answers: Answers,
    views: Sequence[HomeObject],
    sql: str,
    parameters: Parameters,
    *,
    keeps: bool,
    limits: Sequence[str] = (),
    is_printed: bool = False,
) -> tuple[int, Described, pa.Table]:
    """The count, columns and rows of a statement over rows that fill (schema, name). ``views`` are
    what there is of views, in the order in which they can be made. What ``is_printed`` has texts
    where its columns are whole rows.
    """
    needed = _needed(views, sql)
    try:
        reply = _run(
            workspace, binder, answers, needed, sql, parameters, keeps=keeps, limits=limits,
            is_printed=is_printed,
        )  # fmt: skip
    except errors.Error as error:
        if keeps and error.sqlstate == _DEPENDED_ON:
            statement = "A TEMP table that depends on another table, as by a column of its rows,"
            raise errors.make("sql.unsupported", statement=statement) from None
        if not readable.needs_text(error):
            raise
        reply = _run(
            workspace, binder, answers, needed, sql, parameters, keeps=keeps, limits=limits,
            is_printed=True,
        )  # fmt: skip
    with translated(sql):
        count = reply[0].rpartition(" ")[2]
        affected = int(count) if count.isdecimal() else -1
        return affected, workspace.described(reply[1]), workspace.table(reply)


def _run(
    workspace: PostgresConnection,
    binder: PostgresConnection,
    answers: Answers,
    views: Sequence[HomeObject],
    sql: str,
    parameters: Parameters,
    *,
    keeps: bool,
    limits: Sequence[str],
    is_printed: bool = False,
) -> Reply:
    raw = workspace.raw
    # Of Python's values other than texts the statement is asked for their types, with its tables.
    own: list[Any] = listed(parameters)
    is_bound = all(value is None or isinstance(value, str) for value in own)
    within = raw.state() != "idle"
    words = _words(sql, views)
    answers = {key: _without_domains(workspace, words, answer) for key, answer in answers.items()}
    targets = {key: _target(*key) for key in answers}
    end = [f"RELEASE {_PART}" if within else "COMMIT"] if keeps else _undoing(within)
    limited: list[Statement] = [(text, []) for text in limits]
    steps: list[Statement] = [(f"SAVEPOINT {_PART}" if within else "BEGIN", [])]
    schemas = sorted({schema for schema, _ in answers} - {"", "public"})
    steps += [(f"CREATE SCHEMA IF NOT EXISTS {quoted(name)}", []) for name in schemas]
    many = []
    for key, (columns, rows) in answers.items():
        steps.append((creation(targets[key], columns, rows), []))
        few = _insertion(workspace, targets[key], columns, rows)
        if few is None:
            many.append(key)
        elif rows.num_rows:
            steps.append(few)
    try:
        if is_bound and not many and not views and not is_printed:
            last = _last(views, targets, end) if keeps else _last((), {}, end)
            with translated(sql):
                return raw.run([*steps, *limited, (sql, own), *last])[len(steps) + len(limited)]
        with translated():
            raw.run(steps)
        _fill(workspace, answers, {key: targets[key] for key in many}, words)
        views = _made(workspace, views)
        last = _last(views, targets, end) if keeps else _last((), {}, end)
        with translated(sql):
            given = _given(workspace, binder, sql, own)
            limited += _indexes(workspace, binder, answers, targets, many, (sql, given))
            text = readable.as_text(raw, sql) if is_printed else sql
            return raw.run([*limited, (text, given), *last])[len(limited)]
    except BaseException:
        with suppress(postgres.ServerError, postgres.ConnectionLost):
            if raw.state() != "idle":
                raw.run([(text, []) for text in _undoing(within)])
        raise
    finally:
        workspace.note_undone()


def _given(
    workspace: PostgresConnection, binder: PostgresConnection, sql: str, values: list[Any]
) -> list[Any]:
    """Values as they are sent. A column of varchar is of text here, and PostgreSQL reads a value
    beside it otherwise: the binder has the columns as they are declared.
    """
    if all(value is None or isinstance(value, str) for value in values):
        return values
    inferred = workspace.raw.describe(sql)[0]
    own = own_types(values, inferred)
    if any(own) and binder.raw.state() != "failed":
        with suppress(errors.Error), binder.guarded(), translated(sql):
            own = own_types(values, binder.raw.describe(sql)[0])
    return sent(values, own)


def _last(
    views: Sequence[HomeObject], targets: Mapping[Home, str], end: Sequence[str]
) -> list[Statement]:
    """What drops views and tables, and nothing that depends on them: it would be lost with them.
    Then the end.
    """
    texts = []
    for view in reversed(views):
        # Of several functions of a name each has its arguments in it.
        name = view.name if "(" in view.name else quoted(view.name)
        kind = "VIEW" if view.kind == "VIEW" else "ROUTINE"
        schema = "pg_temp" if view.temporary else quoted(view.schema or "public")
        texts.append(f"DROP {kind} {schema}.{name}")
    texts += [f"DROP TABLE {target}" for target in targets.values()]
    return [(text, []) for text in (*texts, *end)]


def _fill(
    workspace: PostgresConnection,
    answers: Answers,
    targets: Mapping[Home, str],
    words: set[str],
) -> None:
    """Fill tables with many rows."""
    for key, target in targets.items():
        columns, rows = answers[key]
        # What was not read is NULL without being said so in every row.
        unread = _unread(words, answers[key])
        names = [name for name, _ in columns if name not in unread] or [columns[0][0]]
        workspace.fill(target, names, rows.select(names))
        if rows.num_rows >= _ANALYZED_ROWS:
            steps: list[Statement] = [(text, []) for text in _analysis(target, rows)]
            with translated():
                workspace.raw.run(steps)


def _made(workspace: PostgresConnection, views: Sequence[HomeObject]) -> list[HomeObject]:
    """Make the views over all tables. One whose tables were not read is not read either: the text
    has its name for something else, such as the alias of what the server has computed of it.
    """
    results = []
    for view in views:
        with path_instead(workspace, view.path), translated():
            try:
                workspace.raw.run([(f"SAVEPOINT {_VIEW}", []), (view.sql, [])])
            except postgres.ServerError as error:
                if view.kind != "VIEW" or error.args[0]["code"] != _NO_TABLE:
                    raise
                workspace.raw.run([(f"ROLLBACK TO {_VIEW}", [])])
            else:
                results.append(view)
    return results


def _is_null(column: pa.ChunkedArray) -> bool:
    return bool(column.null_count == len(column))


def _analysis(target: str, rows: pa.Table) -> list[str]:
    """What has PostgreSQL look at the columns that were read, of many rows at fewer of them."""
    columns = zip(rows.column_names, rows.columns, strict=True)
    names = [quoted(name) for name, column in columns if not _is_null(column)]
    if not names:
        return [f"ANALYZE {target}"]
    texts = [f"ANALYZE {target} ({', '.join(names)})"]
    if rows.num_rows > _SAMPLED_ROWS:
        sampled = ", ".join(f"ALTER COLUMN {name} SET STATISTICS {_STATISTICS}" for name in names)
        texts.insert(0, f"ALTER TABLE {target} {sampled}")
    return texts


def _indexes(
    workspace: PostgresConnection,
    binder: PostgresConnection,
    answers: Answers,
    targets: Mapping[Home, str],
    many: Sequence[Home],
    statement: Statement,
) -> list[Statement]:
    """What makes the indexes that a statement needs of tables with many rows."""
    if not many:
        return []
    filled = {key: (targets[key], [name for name, _ in answers[key][0]]) for key in many}
    rows = sum(answers[key][1].num_rows for key in many)
    texts = workspace_indexes.wanted(workspace, binder, filled, rows, statement)
    return [(text, []) for text in texts]


def _words(sql: str, views: Sequence[HomeObject]) -> set[str]:
    """The words of a text and of views that may be names, folded; the tables of a view that a
    string is like have not been read.
    """
    texts = [sql, *(view.sql for view in views)]
    return set[str]().union(*(name_words(lexer.tokens(text)) for text in texts))


def _parts(text: str) -> set[str]:
    return set(map(fold, _WORD.findall(text)))


def _without_domains(workspace: PostgresConnection, words: set[str], answer: Answered) -> Answered:
    """Columns that were not read are NULL, which their domain may forbid."""
    columns, _ = answer
    unread = _unread(words, answer)
    if not unread:
        return answer
    return [(n, workspace.base_type(t) if n in unread else t) for n, t in columns], answer[1]


def _unread(words: set[str], answer: Answered) -> set[str]:
    """The columns of rows that are NULL, and that no text names."""
    columns, rows = answer
    if not rows.num_rows:
        return set()
    return {n for n, _ in columns if _is_null(rows.column(n)) and fold(n) not in words}


def _insertion(
    workspace: PostgresConnection, target: str, columns: Sequence[tuple[str, str]], rows: pa.Table
) -> Statement | None:
    """The statement that fills a table with few rows."""
    if rows.num_rows > bound_rows.MOST_ROWS:
        return None
    numbers = workspace.numbers([type_ for _, type_ in columns])
    names = [name for name, _ in columns]
    few = bound_rows.source(rows, dict(zip(names, numbers, strict=True)))
    if few is None:
        return None
    return f"INSERT INTO {target} SELECT {', '.join(map(quoted, names))} FROM {few[0]}", few[1]


def _undoing(within: bool) -> list[str]:
    return [f"ROLLBACK TO {_PART}", f"RELEASE {_PART}"] if within else ["ROLLBACK"]


def _target(schema: str, name: str) -> str:
    return f"{quoted(schema or 'pg_temp')}.{quoted(name)}"


def _needed(views: Sequence[HomeObject], sql: str) -> list[HomeObject]:
    """Those that a text names, with those that these name."""
    words, left = _words(sql, ()), list(views)
    while fresh := [view for view in left if not words.isdisjoint(_parts(view.name))]:
        words |= _words("", fresh)
        left = [view for view in left if view not in fresh]
    return _in_order([view for view in views if view not in left])


def _in_order(views: list[HomeObject]) -> list[HomeObject]:
    """Views behind those that they name, as one that was replaced may be newer."""
    results: list[HomeObject] = []

    def add(view: HomeObject, above: tuple[HomeObject, ...]) -> None:
        words = _parts(view.sql)
        for other in views:
            if other not in (*results, *above, view) and fold(other.name) in words:
                add(other, (*above, view))
        if view not in results:
            results.append(view)

    for view in views:
        add(view, ())
    return results
