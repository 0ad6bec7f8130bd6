"""Transactions and savepoints beside plaintext PostgreSQL: outcomes, and what is left."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import louver
from louver import errors
from louver._rust import postgres
from tests import shared
from tests.local_postgres.twin import PostgresTwin
from tests.postgres import servers

ALL = "SELECT * FROM t ORDER BY id"


@pytest.fixture(scope="module")
def opened() -> Iterator[PostgresTwin]:
    twin = PostgresTwin()
    twin.run("CREATE TABLE t (id integer ENC PRIMARY KEY, a text ENC, n integer)")
    twin.run("CREATE SEQUENCE numbers")
    twin.run("CREATE TABLE drawn (k bigint ENC, a text ENC)")
    twin.louver.execute("SET default_counted = on")
    twin.run("CREATE TABLE counted (id integer ENC PRIMARY KEY, a text ENC)")
    twin.louver.execute("SET default_counted = off")
    yield twin
    twin.close()


@pytest.fixture
def twin(opened: PostgresTwin) -> Iterator[PostgresTwin]:
    opened.run("INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 2)")
    yield opened
    opened.run("ROLLBACK")
    for table in ("t", "counted", "drawn"):
        opened.both(f"DELETE FROM {table}")


def run(twin: PostgresTwin, *statements: str) -> None:
    """Run statements, about each of which both must say the same."""
    for sql in statements:
        twin.run(sql)


def test_what_came_after_a_savepoint_is_undone(twin: PostgresTwin) -> None:
    run(
        twin, "BEGIN", "INSERT INTO t VALUES (3, 'kept', 3)", "SAVEPOINT s",
        "INSERT INTO t VALUES (4, 'gone', 4)", "UPDATE t SET a = 'gone' WHERE id = 1",
        "DELETE FROM t WHERE id = 2", ALL, "ROLLBACK TO s", ALL,
        "INSERT INTO t VALUES (4, 'again', 4)", ALL, "RELEASE s", ALL, "COMMIT", ALL,
    )  # fmt: skip


def test_an_error_ends_the_transaction_until_it_is_undone(twin: PostgresTwin) -> None:
    for failing in ("INSERT INTO t VALUES (1, 'twice', 1)", "SELECT nope", "SELEC 1",
                    "SELECT 1 / (id - 1) FROM t", "RELEASE nope", "SET nope = 1"):  # fmt: skip
        run(twin, "BEGIN", "SAVEPOINT s", "INSERT INTO t VALUES (5, 'v', 5)", failing, ALL,
            "BEGIN", "SAVEPOINT other", "SHOW timezone", "SET timezone = 'UTC'",
            "ROLLBACK TO SAVEPOINT s", ALL, "INSERT INTO t VALUES (6, 'w', 6)", failing, ALL,
            "COMMIT", ALL)  # fmt: skip
        assert not twin.louver._session.in_transaction


def test_a_refused_statement_ends_it_too(twin: PostgresTwin) -> None:
    twin.louver.execute("BEGIN")
    with pytest.raises(errors.NotSupportedError):
        twin.louver.execute("CLUSTER t")
    assert twin.on_louver(ALL).state == "25P02"
    twin.louver.execute("COMMIT")
    assert twin.on_louver(ALL).error is None


def test_names_of_savepoints_hide_each_other(twin: PostgresTwin) -> None:
    run(
        twin, "BEGIN", "SAVEPOINT s", "INSERT INTO t VALUES (3, 'a', 3)", 'SAVEPOINT "S"',
        "SAVEPOINT S", "INSERT INTO t VALUES (4, 'b', 4)", "ROLLBACK TO s", ALL, "RELEASE s",
        "ROLLBACK TO s", ALL, 'ROLLBACK TO "S"', "ROLLBACK TO s", "RELEASE SAVEPOINT s",
        "RELEASE s", "ROLLBACK",
    )  # fmt: skip


def test_statements_without_their_transaction(twin: PostgresTwin) -> None:
    run(
        twin, "COMMIT", "ROLLBACK", "END", "ABORT", "SAVEPOINT s", "ROLLBACK TO s", "RELEASE s",
        "COMMIT AND CHAIN", "BEGIN", "BEGIN", "START TRANSACTION", "COMMIT WORK", "BEGIN WORK",
        "ROLLBACK TRANSACTION", "SET TRANSACTION READ ONLY", "SET TRANSACTION ISOLATION LEVEL NO",
    )  # fmt: skip


def test_the_time_stands_still_where_a_text_means_it(twin: PostgresTwin) -> None:
    run(
        twin,
        "CREATE TABLE times (at timestamp ENC, day date ENC)",
        "BEGIN",
        "INSERT INTO times VALUES ('now', 'today')",
        "SELECT pg_sleep(0.01)",
        "INSERT INTO times VALUES ('now', 'tomorrow')",
        "SELECT count(*), count(DISTINCT at), bool_and(at <= timestamp 'now') FROM times",
        "COMMIT",
    )
    run(twin, "BEGIN")
    for _ in range(2):
        assert not twin.differs("INSERT INTO times VALUES ($1, $2)", ("now", "yesterday"))
    run(
        twin,
        "SELECT count(DISTINCT at) FROM times WHERE day = 'yesterday'",
        "COMMIT",
        "DROP TABLE times",
    )


def test_what_is_said_within_a_savepoint_ends_with_it(twin: PostgresTwin) -> None:
    run(
        twin, "BEGIN", "SAVEPOINT x", "SET TRANSACTION READ ONLY", "INSERT INTO t VALUES (1)",
        "ROLLBACK TO x", "SHOW transaction_read_only", "INSERT INTO t VALUES (2)",
        "SAVEPOINT y", "SET TRANSACTION READ ONLY", "RELEASE y", "SHOW transaction_read_only",
        "INSERT INTO t VALUES (3)", "ROLLBACK",
    )  # fmt: skip


def test_statements_by_themselves_only_read(twin: PostgresTwin) -> None:
    run(
        twin,
        "CREATE TEMP TABLE own (a int)",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "DROP TABLE t",
        "INSERT INTO t VALUES (1)",
        "CREATE TABLE other (a int ENC)",
        "CREATE SEQUENCE others",
        "ALTER TABLE t ADD other int ENC",
        "TRUNCATE t",
        "COMMENT ON TABLE t IS 'x'",
        "INSERT INTO own VALUES (1)",
        "SELECT * FROM own",
        "BEGIN READ WRITE",
        "INSERT INTO t VALUES (9)",
        "ROLLBACK",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
        "SET default_transaction_read_only = on",
        "INSERT INTO t VALUES (1)",
        "RESET default_transaction_read_only",
        "DROP TABLE own",
        ALL,
    )


def test_a_cursor_computes_when_it_is_fetched(twin: PostgresTwin) -> None:
    run(
        twin, "BEGIN", "INSERT INTO t VALUES (2)", "SAVEPOINT a",
        "DECLARE c CURSOR FOR SELECT 1 / (id - id) FROM t ORDER BY id", "SELECT 1",
        "SAVEPOINT b", "FETCH 1 FROM c", "ROLLBACK TO b", "FETCH 1 FROM c", "ROLLBACK TO a",
        "DECLARE c CURSOR FOR SELECT nope FROM t", "ROLLBACK",
    )  # fmt: skip


def test_a_cursor_that_does_not_scroll(twin: PostgresTwin) -> None:
    run(
        twin, "BEGIN", "DECLARE c NO SCROLL CURSOR FOR SELECT generate_series(1, 10)",
        "FETCH FROM c", "FETCH ABSOLUTE 4 FROM c", "MOVE RELATIVE 1 IN c", "SAVEPOINT a",
    )  # fmt: skip
    for move in ("ABSOLUTE 5", "ABSOLUTE 0", "LAST", "0", "RELATIVE 0", "PRIOR", "BACKWARD ALL"):
        run(
            twin, "DECLARE d NO SCROLL CURSOR FOR SELECT generate_series(1, 10)",
            "FETCH 5 FROM d", "SAVEPOINT b", f"FETCH {move} FROM d", "ROLLBACK TO b",
            "FETCH 1 FROM d", "ROLLBACK TO a",
        )  # fmt: skip
    run(twin, "FETCH ALL FROM c", "ROLLBACK")


def test_what_cannot_be_cut_into_words_is_postgresql_s_error(twin: PostgresTwin) -> None:
    for sql in (r"SELECT U&'\061'", r"SELECT E'\u061'", r"SELECT E'\U0000db99\U00000061'",
                r"SELECT U&'+0061' UESCAPE '+'"):  # fmt: skip
        run(twin, sql, "BEGIN", sql, "SELECT 1", "ROLLBACK")


def test_modes(twin: PostgresTwin) -> None:
    run(
        twin, "BEGIN ISOLATION LEVEL SERIALIZABLE, READ WRITE, NOT DEFERRABLE",
        "INSERT INTO t VALUES (3, 'a', 3)", "COMMIT AND CHAIN", "SHOW transaction_read_only",
        "SHOW TRANSACTION ISOLATION LEVEL", ALL, "ROLLBACK AND NO CHAIN",
        "START TRANSACTION READ ONLY", ALL, "INSERT INTO t VALUES (4, 'b', 4)", "ROLLBACK",
        "BEGIN", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SHOW transaction_isolation",
        "SELECT count(*) FROM t", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "ROLLBACK",
        "BEGIN READ ONLY", "SET TRANSACTION READ WRITE", "INSERT INTO t VALUES (5, 'c', 5)",
        "SET TRANSACTION READ ONLY", "INSERT INTO t VALUES (6, 'c', 6)", "COMMIT", ALL,
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "BEGIN",
        "INSERT INTO t VALUES (6, 'c', 6)", "ROLLBACK", "RESET default_transaction_read_only",
        "SET default_transaction_isolation = 'repeatable read'",
        "SHOW default_transaction_isolation", "RESET default_transaction_isolation",
    )  # fmt: skip


def test_whether_a_transaction_is_deferrable_is_shown(twin: PostgresTwin) -> None:
    show = "SHOW transaction_deferrable"
    run(
        twin, show, "BEGIN DEFERRABLE", show, "SHOW default_transaction_deferrable",
        "SET TRANSACTION NOT DEFERRABLE", show, ALL, "SET TRANSACTION DEFERRABLE", "ROLLBACK",
        "BEGIN", "SAVEPOINT a", "SET TRANSACTION DEFERRABLE", "ROLLBACK",
        "SET SESSION CHARACTERISTICS AS TRANSACTION DEFERRABLE", show, "BEGIN", show, "COMMIT",
        "BEGIN NOT DEFERRABLE", show, "SET transaction_deferrable = on", show, "COMMIT AND CHAIN",
        show, "COMMIT", "SHOW default_transaction_deferrable",
        "SET default_transaction_deferrable = off", show, "RESET default_transaction_deferrable",
    )  # fmt: skip


def test_the_isolation_is_the_servers(twin: PostgresTwin) -> None:
    """What BEGIN asks for the server is asked for, and no less than REPEATABLE READ; SHOW says what
    BEGIN said.
    """
    engine = twin.louver._session.context.engine

    def level() -> object:
        reply = engine._session.run([("SHOW transaction_isolation", [])])[0]
        return reply[2][0][0].as_py()

    for name, given in (
        ("SERIALIZABLE", "serializable"), ("REPEATABLE READ", "repeatable read"),
        ("READ COMMITTED", "repeatable read"), ("READ UNCOMMITTED", "repeatable read"),
    ):  # fmt: skip
        twin.louver.execute(f"BEGIN ISOLATION LEVEL {name}")
        twin.louver.execute(ALL).fetchall()
        assert level() == given
        shown = twin.louver.execute("SHOW transaction_isolation").fetchall()
        assert shown == [(name.lower(),)]
        twin.louver.execute("COMMIT")


def test_two_who_read_what_the_other_writes_do_not_both_commit(twin: PostgresTwin) -> None:
    keys = str(shared.key_file())
    with louver.connect(twin.url, keys=keys, language="postgres") as other:
        both = (twin.louver, other)
        for number, connection in enumerate(both, 10):
            connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
            assert connection.execute("SELECT count(*) FROM t").fetchall() == [(2,)]
            connection.execute(f"INSERT INTO t VALUES ({number}, 'z', 0)")
        twin.louver.execute("COMMIT")
        with pytest.raises(errors.Error) as error:
            other.execute("COMMIT")
        assert error.value.sqlstate == "40001"
        assert other.execute("SELECT count(*) FROM t").fetchall() == [(3,)]
    twin.both("DELETE FROM t")


def test_the_schema_goes_back_to_a_savepoint(twin: PostgresTwin) -> None:
    run(
        twin, "BEGIN", "CREATE TABLE first (i integer ENC)", "SAVEPOINT s",
        "CREATE TABLE second (i integer ENC)", "INSERT INTO second VALUES (1)",
        "INSERT INTO first VALUES (1)", "ALTER TABLE t ADD COLUMN e integer ENC DEFAULT 7", ALL,
        "ROLLBACK TO s", ALL, "SELECT * FROM first", "SELECT * FROM second", "ROLLBACK TO s",
        "INSERT INTO first VALUES (2)", "COMMIT", "SELECT * FROM first", "DROP TABLE first",
    )  # fmt: skip


def test_sequences_go_on_and_tables_that_are_counted_go_back(twin: PostgresTwin) -> None:
    run(
        twin, "BEGIN", "INSERT INTO counted VALUES (1, 'a')", "SAVEPOINT s",
        "INSERT INTO counted VALUES (2, 'b')", "INSERT INTO drawn SELECT nextval('numbers'), 'x'",
        "DELETE FROM counted WHERE id = 1", "SELECT * FROM counted ORDER BY id", "ROLLBACK TO s",
        "SELECT * FROM counted ORDER BY id", "INSERT INTO drawn SELECT nextval('numbers'), 'y'",
        "INSERT INTO counted VALUES (2, 'c')", "COMMIT", "SELECT * FROM counted ORDER BY id",
        "SELECT * FROM drawn ORDER BY k", "SELECT nextval('numbers')",
    )  # fmt: skip


def test_temporary_tables_go_back(twin: PostgresTwin) -> None:
    run(twin, "CREATE TEMP TABLE held (i integer)")
    for sql in ("INSERT INTO held VALUES (1)", "BEGIN", "INSERT INTO held VALUES (2)",
                "SAVEPOINT s", "INSERT INTO held VALUES (3)", "ROLLBACK TO s"):  # fmt: skip
        assert [outcome.error for outcome in twin.both(sql)] == [None, None]
    run(twin, "SELECT * FROM held ORDER BY i", "ROLLBACK", "SELECT * FROM held ORDER BY i",
        "DROP TABLE held")  # fmt: skip


def test_a_layer_that_opened_after_a_savepoint_is_closed_again(twin: PostgresTwin) -> None:
    run(
        twin, "BEGIN", "SAVEPOINT s", "SELECT a, count(*) FROM t GROUP BY a ORDER BY a",
        "ROLLBACK TO s", "INSERT INTO t VALUES (8, 'x', 8)",
        "SELECT a, count(*) FROM t GROUP BY a ORDER BY a", "SELECT id FROM t WHERE a = 'x'",
        "ROLLBACK", "SELECT id FROM t WHERE a = 'x'",
    )  # fmt: skip


def test_the_server_reads_no_name_of_a_savepoint(
    twin: PostgresTwin, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, sent = twin.louver._session.context.engine, list[str]()
    send = type(engine)._send_now

    def noted(self: object, last: list[tuple[str, object]], *, writes: bool) -> object:
        sent.extend(text for text, _ in last)
        return send(self, last, writes=writes)

    monkeypatch.setattr(type(engine), "_send_now", noted)
    run(twin, "BEGIN", "SAVEPOINT salary_of_ann", "ROLLBACK TO salary_of_ann",
        "RELEASE salary_of_ann", "COMMIT")  # fmt: skip
    assert [text for text in sent if "SAVEPOINT" in text] == [
        "SAVEPOINT louver_0", "ROLLBACK TO SAVEPOINT louver_0", "RELEASE SAVEPOINT louver_0",
    ]  # fmt: skip
    assert not any("salary" in text for text in sent)


def test_a_table_that_somebody_changed_is_no_false_reply(opened: PostgresTwin) -> None:
    """In a transaction the server refuses what it prepared before, and so the session asks anew."""
    louver_, name = opened.louver, opened.url.partition("?")[0].rpartition("/")[2]
    louver_.execute("CREATE TABLE changed (a integer ENC, b integer)")
    louver_.execute("INSERT INTO changed VALUES (1, 2)")
    question = "SELECT b FROM changed WHERE b = $1"
    for _ in range(3):
        assert louver_.execute(question, [2]).fetchall() == [(2,)]
    louver_.execute("BEGIN")
    louver_.execute("SELECT * FROM t").fetchall()
    other = postgres.Session(str(servers.shared().folder), servers.PORT, servers.USER, name)
    other.run([("ALTER TABLE changed ALTER COLUMN b TYPE bigint", [])])
    other.close()
    assert louver_.execute(question, [2]).fetchall() == [(2,)]
    louver_.execute("COMMIT")
    louver_.execute("DROP TABLE changed")


def statement(chance: random.Random) -> str:
    """A statement that means something within transactions and beside them."""
    number, name = chance.randrange(12), chance.choice("abc")
    return chance.choice([
        "BEGIN", "COMMIT", "ROLLBACK", "END AND CHAIN", f"SAVEPOINT {name}", f"SAVEPOINT {name}",
        f"ROLLBACK TO {name}", f"ROLLBACK TO {name}", f"RELEASE {name}", "SELECT nope", ALL, ALL,
        f"INSERT INTO t VALUES ({number}, 'v{number}', 0)",
        f"INSERT INTO t VALUES ({number}, 'w{number}', 1)",
        f"UPDATE t SET a = a || 'u' WHERE id = {number}", f"DELETE FROM t WHERE id = {number}",
        "INSERT INTO drawn SELECT nextval('numbers'), 'z'", "SELECT * FROM drawn ORDER BY k",
        f"SELECT id FROM t WHERE a = 'v{number}'", f"SET application_name = 'n{number}'",
        f"SET LOCAL application_name = 'l{number}'", "SELECT current_setting('application_name')",
    ])  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
def test_drawn_statements(twin: PostgresTwin, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(150):
        twin.run(statement(chance))
