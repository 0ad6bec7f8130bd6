"""No statement leaves a session worse than it found it; nothing but `errors.Error` leaves one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from louver import errors
from louver.trusted.executor.session import Session
from tests.inside import context_of
from tests.local_duckdb import local_duckdb
from tests.recorded import RecordedSession

FAILING = (
    "INSERT INTO pl SELECT 1, max(a) FROM (PIVOT (SELECT p, q FROM t) ON p USING max(q))",
    "SET VARIABLE x = (SELECT q / 'x' FROM t)",
    "EXECUTE nothing(1)",
    "CREATE TEMP TABLE x AS SELECT error(p) FROM t",
    "EXPORT DATABASE '/dev/null/nowhere'",
    "SELECT q / 'x' FROM t",
    "SELECT error(p) FROM t",
    "SELECT (SELECT p FROM t)::INT",
    "CREATE TYPE mood AS ENUM (SELECT p FROM nowhere)",
)


@pytest.fixture(params=["sealed", "cryptdb"])
def session(request: pytest.FixtureRequest, tmp_path: Path, key_file: Path) -> Iterator[Session]:
    watched = RecordedSession(tmp_path / "watched.duckdb", key_file, request.param)
    watched.session.execute(
        "CREATE TABLE t (p VARCHAR, q INT ENC); CREATE TABLE pl (a INT, b INT);"
        "INSERT INTO t VALUES ('a', 1), ('b', 2)"
    )
    yield watched.session
    watched.session.close()


def answers(session: Session) -> list[object]:
    """Answers of what any session can be asked, and of a change."""
    answers: list[object] = []
    for sql in (
        "SELECT p, q FROM t ORDER BY q",
        "SELECT sum(q) FROM t WHERE q > 1",
        "SELECT table_name FROM information_schema.tables ORDER BY 1",
        "UPDATE t SET q = q WHERE p = 'a'",
        "SELECT [q], {'a': p}, DATE '2024-01-01', now() > '2000-01-01' FROM t ORDER BY q",
    ):
        answer = session.execute(sql)
        rows = answer.rows
        answers.append(answer.affected if rows is None else session.python_rows(rows))
    return answers


@pytest.mark.in_turn
@pytest.mark.parametrize("sql", FAILING, ids=range(len(FAILING)))
def test_a_failing_statement_leaves_the_session_as_it_was(session: Session, sql: str) -> None:
    before = answers(session)
    for _ in range(2):
        with pytest.raises(errors.Error):
            session.execute(sql)
        assert answers(session) == before
        with pytest.raises(errors.Error) as caught:
            session.execute("ROLLBACK")
        assert caught.value.code == "transaction.none"


def test_a_duckdb_at_home_that_gave_up_is_made_anew(session: Session) -> None:
    before = answers(session)
    local = local_duckdb(session.context.local)
    for index in range(len(local.instances)):
        local.instances[index].close()
        with pytest.raises(errors.Error):
            session.execute("SELECT error(p) FROM t")
        assert answers(session) == before


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (pa.ArrowInvalid("secret-value"), "value.form"),
        (MemoryError("secret-value"), "memory.full"),
        (KeyError("secret-value"), "internal"),
        (ValueError("secret-value"), "internal"),
        (RecursionError(), "sql.unsupported"),
    ],
)
def test_nothing_else_leaves_a_statement(
    session: Session, monkeypatch: pytest.MonkeyPatch, raised: Exception, code: str
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(session.context.planner, "plan", failing)
    with pytest.raises(errors.Error) as caught:
        session.execute("SELECT q FROM t")
    monkeypatch.undo()
    assert caught.value.code == code
    assert "secret-value" not in str(caught.value)
    assert caught.value.__suppress_context__
    assert len(answers(session)) == 5


def test_what_cannot_be_described_does_not_run(open_connection: Any) -> None:
    con = open_connection()
    con.execute("CREATE TABLE t (a INT ENC); INSERT INTO t VALUES (1)")
    changes = ("INSERT INTO t VALUES (7) RETURNING *", "UPDATE t SET a = 8 RETURNING a",
               "DELETE FROM t RETURNING a", "DROP TABLE t")  # fmt: skip
    for change in changes:
        for text in (f"COPY ({change}) TO '/dev/null'", f"SELECT * FROM ({change})"):
            with pytest.raises(errors.Error):
                con.execute(text)
        with pytest.raises(errors.Error):
            context_of(con).local.describe(change)
    assert con.execute("INSERT INTO t VALUES (2)").rowcount == 1
    assert con.execute("FROM t ORDER BY a").fetchall() == [(1,), (2,)]
