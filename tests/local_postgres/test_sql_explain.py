"""EXPLAIN of changes in PostgreSQL's language: what is recorded when one runs was stated before."""

from __future__ import annotations

import json

import pytest

from tests.generated import cases, generator
from tests.local_postgres.twin import PostgresTwin
from tests.postgres_grammar.statements import Statements, Step

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


def _change(drawn: Statements) -> Step:
    draw = drawn.random.choice((drawn.insert, drawn.update, drawn.delete, drawn.merge))
    return Step(draw())


def _facts(twin: PostgresTwin) -> set[tuple[str, str, str, tuple[str, ...]]]:
    ledger = twin.louver._session.context.ledger
    return {(f.table.rpartition(".")[2], f.kind, f.level, f.columns) for f in ledger.facts()}


def _compare(twin: PostgresTwin, sql: str) -> int:
    """The number of facts that running a change added, each of which EXPLAIN has stated."""
    context, known = twin.louver._session.context, _facts(twin)
    before, version = context.ledger.length, context.catalog.version
    explained = twin.on_louver(f"EXPLAIN (LEAKAGE, FORMAT json) {sql}")
    assert (context.ledger.length, context.catalog.version) == (before, version)
    outcome = twin.on_louver(sql)
    recorded = _facts(twin) - known
    if explained.error is not None:
        # The planner computes constants, which may fail where no row would have needed them.
        assert outcome.error is not None or explained.error.sqlstate.startswith("22"), sql
        return 0
    assert explained.rows
    body = json.loads(explained.rows[0][1])
    stated = {
        (item["table"].rpartition(".")[2], item["kind"], item["level"], tuple(item["columns"]))
        for item in body["reveals"]["new"] + body["reveals"]["known"]
    }
    assert recorded <= stated, (sql, recorded - stated)
    return len(recorded)


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_what_is_recorded_was_stated(profile: str) -> None:
    recorded = 0
    for number in range(cases(2)):
        drawn = Statements(generator(f"stated {profile} {number}"))
        twin = PostgresTwin(profile)
        try:
            for table in range(3):
                if twin.on_louver(drawn.create(f"t{table}")).error is not None:
                    drawn.tables.pop()
            for _ in range(40):
                recorded += _compare(twin, _change(drawn).sql)
        finally:
            twin.close()
    assert recorded > 10


def test_a_cascade_is_stated() -> None:
    twin = PostgresTwin()
    try:
        twin.run("CREATE TABLE p (id integer ENC PRIMARY KEY, a text ENC)")
        twin.run(
            "CREATE TABLE c (id integer ENC PRIMARY KEY,"
            " p integer ENC REFERENCES p ON DELETE CASCADE)"
        )
        twin.run("INSERT INTO p VALUES (1, 'x'), (2, 'y')")
        twin.run("INSERT INTO c VALUES (1, 1), (2, 2)")
        assert _compare(twin, "DELETE FROM p WHERE id = 1") > 0
        outcome = twin.on_louver("EXPLAIN (LEAKAGE) DELETE FROM p WHERE id = 2")
        assert outcome.rows
        assert "which rows of c were changed" in outcome.rows[0][1]
    finally:
        twin.close()


def test_the_plan_is_the_local_engine_s() -> None:
    twin = PostgresTwin()
    try:
        twin.run("CREATE TABLE t (id integer ENC PRIMARY KEY, a text ENC)")
        for sql, word in (
            ("UPDATE t SET a = 'x' WHERE id = 1", "Update on t"),
            ("INSERT INTO t VALUES (1, 'x')", "Insert on t"),
            ("DELETE FROM t", "Delete on t"),
            ("MERGE INTO t USING (VALUES (1)) AS s(k) ON t.id = s.k WHEN MATCHED THEN DELETE",
             "Merge on t"),
        ):  # fmt: skip
            outcome = twin.on_louver(f"EXPLAIN {sql}")
            assert outcome.rows, outcome.error
            assert word in outcome.rows[0][1]
            assert "cost" not in outcome.rows[0][1]
        assert twin.on_louver("SELECT count(*) FROM t").rows == [(0,)]
        assert twin.on_louver("EXPLAIN ANALYZE INSERT INTO t VALUES (1, 'x')").error is None
        assert twin.on_louver("SELECT count(*) FROM t").rows == [(1,)]
        assert twin.on_louver("EXPLAIN (LEAKAGE, FORMAT mermaid) DELETE FROM t").error is not None
    finally:
        twin.close()
