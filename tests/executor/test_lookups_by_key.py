"""Look-ups by key: the server's index gives the row by the tag of its key, and nothing else."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import louver
from louver import errors
from louver.trusted.apps import cli
from louver.trusted.planner.sql import lexer
from louver.wire.messages import Statement
from tests.generated import cases, generator, is_due
from tests.inside import context_of
from tests.twin import Twin, outcome_of, require_same

TYPES = {
    "TINYINT": ("1", "-128", "127"), "INTEGER": ("1", "-2", "0"), "UBIGINT": ("1", "2", "0"),
    "HUGEINT": ("1", "170141183460469231731687303715884105727", "0"), "DOUBLE": ("1.5", "-0.0",
    "'nan'"), "FLOAT": ("1.5", "0.1", "'inf'"), "DECIMAL(10, 2)": ("1.5", "1", "-99999999.99"),
    "DECIMAL(30, 3)": ("1.5", "1", "0"), "VARCHAR": ("'1'", "''", "'it''s'"), "BLOB": ("'1'::BLOB",
    "''::BLOB", "'\\x00'::BLOB"), "UUID": ("'00000000-0000-0000-0000-000000000001'::UUID",
    "'ffffffff-0000-0000-0000-000000000001'::UUID", "'10000000-0000-0000-0000-000000000001'"),
    "DATE": ("DATE '2020-01-01'", "'infinity'", "'1970-01-01'"), "TIME": ("'01:00:00'",
    "'24:00:00'", "'00:00:00'"), "TIMESTAMP": ("TIMESTAMP '2020-01-01 00:00:00'", "'infinity'",
    "'2020-01-01 00:00:01'"), "TIMESTAMP_S": ("'2020-01-01'", "'2020-01-02'", "'1970-01-01'"),
    "TIMESTAMPTZ": ("'2020-01-01 00:00:00+00'", "'2020-01-02'", "'1970-01-01'"),
    "BOOLEAN": ("true", "false", "NULL"), "BIT": ("'101'", "'0101'", "'1'"),
    "VARCHAR COLLATE NOCASE": ("'a'", "''", "'b'"),
    "ENUM('x', 'y')": ("'x'", "'y'", "NULL"),
}  # fmt: skip
#: Written in statements beside the values of all types.
OTHERS = (
    "NULL", "1", "1.5", "'1'", "'abc'", "300", "99999999999", "1e3", "1.50", "-0.0", "0.0", "true",
    "1 + 1", "-(1)", "DATE '2020-01-01'", "TIMESTAMP '2020-01-01 12:00:00'", "'a'::BLOB",
    "CAST(1 AS HUGEINT)", "18446744073709551616", "''", "'A'", "[1]", "(SELECT 1)", "v",
)  # fmt: skip
BOUND: tuple[object, ...] = (
    None, 1, -2, 0, 300, 1 << 70, 1.5, -0.0, float("nan"), "1", "abc", "", b"1", True,
    Decimal("1.50"), Decimal(1), date(2020, 1, 1), datetime(2020, 1, 1), datetime(2020, 1, 1, 12),
)  # fmt: skip
FORMS = (
    "SELECT * FROM t WHERE k = {0}", "SELECT v FROM t WHERE {0} = k AND v >= 0",
    "SELECT * FROM t WHERE k IN ({0}, {1})", "SELECT count(*) FROM t WHERE k = {0}",
    "SELECT * FROM t WHERE u = {0}", "SELECT * FROM t WHERE NOT (u = {0})",
    "SELECT count(*) FROM t WHERE u NOT IN ({0}, {1})", "SELECT * FROM t WHERE k = {0} OR u = {1}",
    "SELECT * FROM t WHERE c = 1 AND w = {0}", "SELECT v FROM t WHERE w = {0} AND v > 0 AND 2 = c",
    "SELECT * FROM t WHERE (c = 1 AND w = {0}) OR (w = {1} AND c = 2)",
    "SELECT * FROM t WHERE (w, c) = ({0}, 1)", "SELECT v FROM t WHERE (2, {0}) = (c, w) AND v > 0",
    "SELECT v FROM t WHERE (c, w) IN ((1, {0}), (2, {1}))",
    "SELECT v FROM t WHERE (c, w) NOT IN ((1, {0}), (2, {1}))",
    "SELECT v, c FROM t WHERE (c, v, w) IN ((1, 0, {0}), (1, 1, {1})) OR v = 3",
    "DELETE FROM t WHERE (c, w) IN ((2, {0}), (2, {1}))",
    "SELECT x.v, y.v FROM t x JOIN t y ON x.k = y.u WHERE x.k = {0}",
    "SELECT x.v, y.v FROM t x LEFT JOIN t y ON x.v = y.v AND y.k = {0}",
    "UPDATE t SET v = v + 100 WHERE k = {0}", "DELETE FROM t WHERE c = 2 AND w = {0}",
)  # fmt: skip


def rows_read(connection: Any) -> int:
    return int(context_of(connection).engine.traffic.rows_in)


def filled(twin: Twin, name: str, values: Sequence[str], enc: str = "ENC") -> None:
    twin.fill(
        f"CREATE TABLE t (k {name} {enc} PRIMARY KEY, u {name} {enc} UNIQUE, c INT, w {name} {enc},"
        " v INT ENC, UNIQUE (w, c))"
    )
    for number, value in enumerate(values):
        if value != "NULL":
            unique = "NULL" if number else value
            twin.either(f"INSERT INTO t VALUES ({value}, {unique}, 1, {value}, {number})")
            twin.either(f"INSERT INTO t BY NAME SELECT {value} AS w, 2 AS c, NULL AS k")


def compare(twin: Twin, sql: str, parameters: Sequence[object] = ()) -> None:
    """Both give the same; where DuckDB meets a value that does not convert, Louver may not meet it
    after conditions that the server decided.
    """
    expected = outcome_of(twin.plain, sql, parameters)
    actual = outcome_of(twin.louver, sql, parameters)
    if not isinstance(expected.error, duckdb.ConversionException) or actual.error is not None:
        require_same(sql, expected, actual)
    else:
        assert " AND " in sql or " IN " in sql, sql


@pytest.mark.parametrize("profile", ["sealed", "cryptdb", "sdb"])
def test_answers_are_those_of_duckdb_for_values_of_any_type(
    open_twin: Callable[..., Twin], profile: str
) -> None:
    draw = generator(profile)
    for number, (name, values) in enumerate(TYPES.items()):
        # Shares compare HUGEINT exactly where DuckDB finds no DECIMAL for both sides.
        if not is_due(number) or (profile, name) == ("sdb", "HUGEINT"):
            continue
        twin = open_twin(profile)
        filled(twin, name, values)
        written = [*values, *draw.sample(OTHERS, 5)]
        for form in draw.sample(FORMS, 14):
            first, second = draw.choice(written), draw.choice(written)
            for value in (first, *draw.sample(written, 2)):
                compare(twin, form.format(value, second))
            places = [item for item in ("{0}", "{1}") if item in form]
            text = form.format(*["?"] * 2)
            for _ in range(2):
                compare(twin, text, [draw.choice(BOUND) for _ in places])
        twin.run("SELECT * FROM t")
        twin.close()


def test_a_key_is_changed_and_looked_up_again_in_and_outside_of_transactions(twin: Twin) -> None:
    filled(twin, "INTEGER", ("1", "2", "3"))
    draw = generator("keys that change")
    texts = (
        "UPDATE t SET k = -k WHERE k = {}", "UPDATE t SET w = w + 10 WHERE c = 1 AND w = {}",
        "DELETE FROM t WHERE u = {}", "INSERT INTO t VALUES ({0}, {0}, 1, {0}, {0})",
        "INSERT OR REPLACE INTO t (k, v) VALUES ({}, 5)",
        "UPDATE t SET u = NULL WHERE u = {}",
    )  # fmt: skip
    for number in range(cases(40)):
        # An error ends a transaction, and not all that DuckDB calls one ends DuckDB's.
        within = 5 <= number % 20 < 12
        if number % 20 in (5, 12):
            twin.fill("BEGIN" if within else draw.choice(("COMMIT", "ROLLBACK")))
        twin.either(draw.choice(texts[-2:] if within else texts).format(draw.randint(-3, 5)))
        for form in draw.sample(FORMS[:9], 3):
            twin.either(form.format(draw.randint(-3, 5), draw.randint(-3, 5)))
    twin.reopen()
    twin.run("SELECT * FROM t")


STATEMENTS: dict[str, tuple[object, ...]] = {
    "SELECT * FROM t WHERE k = 7": (), "SELECT * FROM t WHERE k = ?": (7,),
    "SELECT v FROM t WHERE b = ? AND v >= 0 AND a = 3": ("x3",),
    "SELECT v FROM t WHERE k IN (3, ?, 5)": (4,), "UPDATE t SET v = v + 1 WHERE k = ?": (7,),
    "UPDATE t SET v = 1 WHERE a = 4 AND b = ?": ("x4",), "DELETE FROM t WHERE k = 9": (),
    "SELECT t.v, o.n FROM o JOIN t ON o.n = t.v WHERE t.k = 2": (),
    "SELECT v FROM t WHERE (b, a) = (?, 3)": ("x3",), "DELETE FROM t WHERE (a, b) = (4, 'x4')": (),
    "UPDATE t SET v = 1 WHERE (a, b) IN ((4, 'x4'), (?, 'x5'))": (5,),
    "SELECT v FROM t WHERE (a, b, v) IN ((4, 'x4', 4), (5, 'x5', 7), (3, ?, 3))": ("x3",),
    "SELECT v FROM t WHERE k = 1.5": (), "SELECT count(*) FROM t WHERE k = 3": (),
}  # fmt: skip


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_a_lookup_beside_another_condition_is_decided_again(
    open_twin: Callable[..., Twin], profile: str
) -> None:
    twin = open_twin(profile)
    twin.fill("CREATE TABLE t (k INT ENC PRIMARY KEY, a INT, b TEXT ENC, v INT ENC, UNIQUE (a, b))")
    twin.fill("INSERT INTO t SELECT range, range, 'x' || range, range % 2 FROM range(30)")
    for first in ("k = 4", "a = 4 AND b = 'x4'", "k IN (4, 5)"):
        for second in ("k = 7", "b = 'x7' AND a = 7"):
            for more in ("v = 1", "v = 0", "a > 5"):
                twin.run(f"SELECT * FROM t WHERE ({first} AND {more}) OR ({second})")
                twin.run(f"SELECT * FROM t WHERE (({first}) OR ({second})) AND {more}")
                twin.run(f"SELECT v FROM t WHERE {first} AND ({second} OR {more})")
    assert " IN (" in twin.louver.sql("SELECT v FROM t WHERE k = 4 OR k = 5").explain()


def test_rows_of_constants_that_a_key_cannot_tell_are_compared_locally(twin: Twin) -> None:
    twin.fill("CREATE TABLE t (a INT ENC, b TEXT ENC, d DATE, v INT ENC, UNIQUE (a, b))")
    twin.fill("INSERT INTO t SELECT range, 'x' || range, NULL, range FROM range(30)")
    twin.fill("INSERT INTO t VALUES (NULL, 'x', NULL, 50), (7, NULL, NULL, 51)")
    for sql in ("(a, b) = (7, NULL)", "(a, b) = (7, ?)", "(a, b) IN ((NULL, 'x'), (2, 'x2'))",
                "(a, b) = ('2', 'x2')", "(a, b) = ('02', 'x2')", "(a, b) IN (('a', 'x2'))",
                "(a, a) = (2, 2)", "(a, b) IN (SELECT 2, 'x2')", "(a, b) = (v, 'x2')",
                "(a, b) IN ((2, 'x2'), (v, 'x3'))", "(a + 0, b) = (2, 'x2')",
                "(b, a) = ('x2', 2.5)", "(b, a) = ('x2', 2)", "NOT (a, b) = (2, 'x2')",
                "(a, b, d) = (2, 'x2', NULL)",
                ):  # fmt: skip
        twin.run(f"SELECT v FROM t WHERE {sql}", [None] * sql.count("?"))
        sent = twin.louver.sql(f"SELECT v FROM t WHERE {sql.replace('?', 'NULL')}").explain()
        assert ("$" in sent) == (sql == "(b, a) = ('x2', 2)"), (sql, sent)
    twin.either("SELECT v FROM t WHERE (a, b) = (1, 'x', 2)")


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
@pytest.mark.parametrize("sql", STATEMENTS)
def test_rows_come_by_their_number_of_keys_alone(
    open_twin: Callable[..., Twin], sql: str, profile: str
) -> None:
    counts, sent = [], []
    for number in (20, 2000):
        twin = open_twin(profile)
        twin.fill(
            "CREATE TABLE t (k INT ENC PRIMARY KEY, a INT, b TEXT ENC, v INT ENC, UNIQUE (a, b))",
            f"INSERT INTO t SELECT range, range, 'x' || range, range FROM range({number})",
            "CREATE TABLE o (n INT ENC)",
        )
        before, statements = rows_read(twin.louver), twin.sent()
        twin.either(sql, STATEMENTS[sql])
        counts.append(rows_read(twin.louver) - before)
        sent.append(twin.sent() - statements)
        assert not any("closed" not in c.layers.values() for c in twin.table("t").columns if
                       c.layers and c.name != "v")  # fmt: skip
    assert counts[0] == counts[1] < 10
    assert sent[0] == sent[1]


def test_the_facts_say_which_key_was_asked_for_and_no_more(twin: Twin) -> None:
    twin.fill(
        "CREATE TABLE t (k INT ENC PRIMARY KEY, a INT, b TEXT ENC, v INT ENC, UNIQUE (a, b))",
        "INSERT INTO t SELECT range, range, 'x' || range, range FROM range(20)",
    )
    con = twin.louver
    known = {fact["reveals"] for fact in con.leakage().arrow().to_pylist()}
    shown = con.sql("SELECT v FROM t WHERE k = 5").explain(leakage=True)
    assert "ask for the same key of t (k), and which row has it [access]" in shown
    twin.run("SELECT v FROM t WHERE k = 5")
    new = [f for f in con.leakage().arrow().to_pylist() if f["reveals"] not in known]
    assert {(f["kind"], f["level"], tuple(f["columns"])) for f in new} == {
        ("key.asked", "access", ("k",)), ("rows", "access", ("k", "v")),
    }  # fmt: skip
    assert {"k", "v"} & set(new[0]["columns"])
    twin.run("UPDATE t SET v = 3 WHERE a = 5 AND b = 'x5'")
    facts = con.leakage().arrow().to_pylist()
    assert ["a", "b"] in [f["columns"] for f in facts if f["kind"] == "key.asked"]
    assert {f["level"] for f in facts} <= {"size", "access"}


def test_one_tag_is_sent_for_one_key_and_no_other_word_of_it(twin: Twin) -> None:
    twin.fill("CREATE TABLE t (k INT ENC PRIMARY KEY, v INT ENC)")
    twin.fill("INSERT INTO t SELECT range, range FROM range(9)")
    constants = []
    for value in (5, 5, 6):
        before = len(twin.tap.sent())
        twin.run("SELECT v FROM t WHERE k = ?", [value])
        statements = [m for m in twin.tap.sent()[before:] if isinstance(m, Statement)]
        (statement,) = [m for m in statements if m.kind == "query" and "_" in m.sql
                        and "k_" in m.sql]  # fmt: skip
        assert lexer.tokens(statement.sql)
        constants.append(statement.constants)
    assert constants[0] == constants[1] != constants[2]


class Lying:
    """An engine of which the answers to look-ups are altered."""

    def __init__(self, engine: Any, alter: Callable[[pa.Table], pa.Table]) -> None:
        self._engine, self._alter = engine, alter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def query(self, statement: Statement) -> pa.Table:
        answer = self._engine.query(statement)
        return self._alter(answer) if "louver_c" in statement.sql else answer


@pytest.mark.parametrize("sql", ["SELECT * FROM t WHERE k = 5", "SELECT v FROM t WHERE k = 5",
                                 "SELECT p FROM t WHERE k IN (5, 6)"])  # fmt: skip
def test_what_a_lying_server_gives_is_verified_and_decided_again(twin: Twin, sql: str) -> None:
    twin.fill("CREATE TABLE t (k INT ENC PRIMARY KEY, v INT ENC, p INT)")
    twin.fill("INSERT INTO t SELECT range, range, range FROM range(9)")
    context = twin.session.context
    engine = context.engine
    names = twin.table("t")
    stored = "SELECT row_id AS r0, {} FROM t WHERE row_id = (SELECT {}(row_id) FROM t)"

    def other(answer: pa.Table) -> pa.Table:
        """The first row that was stored, whichever was asked for."""
        outputs = [c for c in answer.column_names if c != "r0"]
        column = {
            f"louver_c{i}": next(iter(c.stored.values())) for i, c in enumerate(names.columns)
        }
        listed = ", ".join(f'"{column[name]}" AS {name}' for name in outputs)
        return engine.query(Statement(stored.format(listed, "min"))).select(answer.column_names)

    cases: dict[str, tuple[Callable[[pa.Table], pa.Table], object]] = {
        "another row": (other, []),
        "no row": (lambda answer: answer.slice(0, 0), []),
        "twice": (lambda answer: pa.concat_tables([answer.slice(0, 1)] * 2), "row.repeated"),
        "of another row": (lambda answer: other(answer).set_column(
            0, "r0", pa.chunked_array([answer.column("r0").chunk(0).slice(0, 1)])),
            "value.tampered"),
    }  # fmt: skip
    assert len(twin.rows(sql)) == len(twin.plain.execute(sql).fetchall())
    tables: Any = context.storage
    for name, (alter, expected) in cases.items():
        tables._parts = replace_engine(tables._parts, Lying(engine, alter))
        try:
            result: object = twin.rows(sql)
        except errors.VerificationError as error:
            result = error.code
        tables._parts = replace_engine(tables._parts, engine)
        assert result == expected, name


def replace_engine(parts: Any, engine: Any) -> Any:
    """The same parts with another engine."""
    return dataclasses.replace(parts, engine=engine)


def test_collations_of_a_session_hide_the_tags_of_texts(twin: Twin) -> None:
    twin.fill("CREATE TABLE t (k TEXT ENC PRIMARY KEY, v INT ENC)")
    twin.fill("INSERT INTO t VALUES ('a', 1), ('A', 2), ('b', 3)")
    assert len(twin.run("SELECT * FROM t WHERE k = 'a'")) == 1
    twin.fill("SET default_collation = 'nocase'")
    assert len(twin.run("SELECT * FROM t WHERE k = 'a'")) == 2


def test_a_fork_looks_up_its_own_rows(tmp_path: Path, key_file: Path) -> None:
    first = louver.connect(f"duckdb:///{tmp_path}/a.duckdb", keys=key_file)
    first.execute("CREATE TABLE t (k INT ENC PRIMARY KEY, v INT ENC)")
    first.execute("INSERT INTO t SELECT range, range FROM range(50)")
    first.close()
    shutil.copy(tmp_path / "a.duckdb", tmp_path / "b.duckdb")
    url = f"duckdb:///{tmp_path}/b.duckdb"
    assert cli.main(["status", "--fork", "--url", url, "--keys", str(key_file)]) == 0
    for name, value in (("a", 1000), ("b", 2000)):
        with louver.connect(f"duckdb:///{tmp_path}/{name}.duckdb", keys=key_file) as con:
            con.execute("UPDATE t SET v = ? WHERE k = 7", [value])
            con.execute("INSERT INTO t VALUES (?, ?)", [value, value])
            assert con.execute("SELECT v FROM t WHERE k IN (7, ?)", [value]).fetchall() == [
                (value,), (value,)]  # fmt: skip
            with pytest.raises(errors.IntegrityError):
                con.execute("INSERT INTO t VALUES (7, 7)")


def test_plain_keys_are_compared_as_they_are(twin: Twin) -> None:
    twin.fill(
        "CREATE TABLE t (k INT PRIMARY KEY, v INT ENC)",
        "INSERT INTO t SELECT range, 2 FROM range(9)",
    )
    assert twin.run("SELECT v FROM t WHERE k = 1") == [(2,)]
    assert 'k" = 1' in twin.louver.sql("SELECT v FROM t WHERE k = 1").explain()
