"""What a user writes beside a statement stays at home: no comment crosses."""

from __future__ import annotations

from pathlib import Path

import pytest

from louver import errors
from louver.trusted.backends.duckdb import BACKEND
from louver.trusted.planner import postcondition
from louver.trusted.planner.ir import RemoteQuery
from louver.trusted.planner.private.postcondition import require_public
from louver.trusted.planner.sql import lexer, trees
from louver.wire import question_codec
from louver.wire.questions import Protocol, Shape
from tests.providers.fake import Fake
from tests.recorded import RecordedSession
from tests.twin import Twin

CANARY = "marmoset-under-the-stairs"
STATEMENTS = (
    "SELECT city, pay FROM staff WHERE city = 'Oslo' -- AND name = '{0}'",
    "SELECT city /* {0} */, /* {0} */ pay FROM staff /* {0} */ WHERE /* {0} */ age /* {0} */ > 3",
    "/* {0} */ SELECT city, count(*) /* {0} */ FROM staff GROUP BY /* {0} */ city -- {0}",
    "SELECT sum(pay) FROM staff WHERE /* a /* {0} */ {0} */ age BETWEEN /* {0} */ 1 AND 99 -- {0}",
    "SELECT name FROM staff JOIN depts ON staff.city = /* {0} */ depts.city -- {0}\r AND age > 1",
    "SELECT name FROM staff WHERE city IN (/* {0} */ 'Oslo', -- {0}\n 'Rome')",
    "SELECT name FROM staff WHERE pay > 3 /* {0} */ ORDER BY pay -- {0}\n LIMIT 1 /* {0} */",
    "SELECT age + /* {0} */ 1 FROM staff WHERE (city /* {0} */ = 'Oslo' OR age > /* {0} */ 1)",
    "UPDATE staff SET pay = pay + 1 WHERE city = 'Oslo' -- AND name = '{0}'",
    "UPDATE staff SET pay = 5 WHERE /* {0} */ age /* {0} */ = /* {0} */ 3 /* {0} */",
    "DELETE FROM staff WHERE city = 'Rome' -- OR name = '{0}'",
    "INSERT INTO staff /* {0} */ VALUES ('x', 1, 'Rome', 2) -- {0}",
    "CREATE TABLE other (a INT DEFAULT 1 /* {0} */, b INT CHECK (b > 0 /* {0} */) /* {0} */)",
    "ALTER TABLE other ADD COLUMN c INT DEFAULT 2 -- {0}",
    "CREATE VIEW v AS SELECT city FROM staff WHERE age > 1 -- {0}",
    "SELECT * FROM v WHERE city = 'Oslo' /* {0} */",
    "EXPLAIN SELECT city FROM staff WHERE city = 'Oslo' -- {0}",
)


@pytest.mark.parametrize("profile", ["sealed", "cryptdb", "sdb"])
def test_no_comment_crosses(tmp_path: Path, key_file: Path, profile: str) -> None:
    watched = RecordedSession(tmp_path / "watched.duckdb", key_file, profile)
    run = watched.session.execute
    run("CREATE TABLE staff (name VARCHAR ENC, pay INTEGER ENC, city VARCHAR, age INTEGER)")
    run("CREATE TABLE depts (city VARCHAR, head VARCHAR ENC)")
    run("INSERT INTO staff VALUES ('Ann', 4, 'Oslo', 3), ('Bo', 7, 'Rome', 5)")
    run("INSERT INTO depts VALUES ('Oslo', 'Cy')")
    for sql in STATEMENTS:
        run(sql.replace("{0}", CANARY))
    assert not watched.holds(CANARY.encode())
    watched.session.close()


def test_a_shape_for_providers_has_no_comment() -> None:
    fake = Fake.of(
        flights=("origin VARCHAR, month INTEGER, price INTEGER, ok BOOLEAN", []),
        cities=("origin VARCHAR, land VARCHAR", []),
    )
    for sql in (
        "SELECT sum(price /* {0} */) FROM flights WHERE origin = ? AND month > 3 -- {0}",
        "SELECT count(*) FROM flights f JOIN cities c ON f.origin = c.origin /* {0} */"
        " WHERE /* {0} */ month /* {0} */ = ? AND (ok OR /* {0} */ price > 1 -- {0}\n)",
        "SELECT month, max(price) FILTER (WHERE ok /* {0} */) FROM flights WHERE origin = ?"
        " GROUP BY /* {0} */ month /* {0} */",
        "SELECT origin, price /* {0} */ FROM flights WHERE month = ?"
        " ORDER BY price /* {0} */ DESC LIMIT 3 -- {0}",
        "SELECT histogram(price, [1, /* {0} */ 2]) FROM flights WHERE origin = ?",
    ):
        question = fake.plan(sql.replace("{0}", CANARY), ["x"])
        for shape in (question.shape, *(way.shape for way in question.alternatives)):
            assert CANARY.encode() not in question_codec.encode(shape)
            assert "/*" not in repr(shape)
            assert "--" not in repr(shape)


def test_settings_go_without_comments(tmp_path: Path, key_file: Path) -> None:
    watched = RecordedSession(tmp_path / "watched.duckdb", key_file, "sealed")
    for sql in ("SET timezone = 'UTC' -- {0}", "SET timezone /* {0} */ = 'UTC' /* {0} */",
                "SET /* {0} */ default_order /* {0} */ TO 'ASC' -- {0}", "RESET timezone -- {0}",
                "SET TIME /* {0} */ ZONE 'UTC' --{0}", "SET search_path /* {0} */ = 'main' -- {0}",
                "SET /* {0} */ link_latency = '1ms' -- {0}"):  # fmt: skip
        watched.session.execute(sql.replace("{0}", CANARY))
    assert not watched.holds(CANARY.encode())
    watched.session.close()


@pytest.mark.parametrize("comment", ["-- a\n", "/* a */", "/* a /* b */ */", "--"])
def test_the_postcondition_refuses_a_comment(comment: str) -> None:
    remote = RemoteQuery(("main", "t"), (), (), ())
    postcondition.check("SELECT 1 AS louver_c0", remote, {}, BACKEND)
    for text in (f"SELECT {comment} 1 AS louver_c0", f"SELECT 1 AS louver_c0 {comment}"):
        with pytest.raises(errors.Error) as caught:
            postcondition.check(text, remote, {}, BACKEND)
        assert caught.value.code == "internal.check"
    shape = Shape(Protocol.SELECT, "t", where=f"a = 1 {comment}")
    with pytest.raises(errors.Error) as caught:
        require_public(shape)
    assert caught.value.code == "internal.check"


def test_texts_are_cut_where_duckdb_cuts_them() -> None:
    (first, two) = lexer.split("SELECT 1 /* a /* ; ? */ ; */ + ?; -- ; ?\rSELECT ?")
    assert (len(first.parameters), len(two.parameters)) == (1, 1)
    assert lexer.split("-- a\n /* b /* c */ ; */ ;; ") == []
    tree = trees.parse("SELECT 'it -- is' /* a */ -- b")
    assert tree is not None
    assert tree.sql("duckdb") == "SELECT 'it -- is'"


@pytest.mark.parametrize(
    "sql",
    [
        "WITH w AS (SELECT city AS x, count(*) AS n FROM staff WHERE pay >= ? GROUP -- {0}\nBY 1)"
        " SELECT x, n FROM w",
        "SELECT city, count(*) FROM staff WHERE pay > ? GROUP /* {0} */ BY city ORDER -- {0}\nBY 1",
        "SELECT city, rank() OVER (PARTITION /* {0} */ BY city ORDER BY pay) - ? FROM staff",
        "SELECT city, pay! FROM staff WHERE pay > ?",  # read by DuckDB alone, with a placeholder
    ],
)
def test_comments_stand_wherever_duckdb_takes_them(twin: Twin, sql: str) -> None:
    twin.fill(
        "CREATE TABLE staff (pay INT ENC, city VARCHAR)",
        "INSERT INTO staff VALUES (4, 'Oslo'), (7, 'Rome'), (1, 'Rome')",
    )
    assert twin.run(sql.replace("{0}", CANARY), [3])
    assert not twin.recorded.holds(CANARY.encode())
