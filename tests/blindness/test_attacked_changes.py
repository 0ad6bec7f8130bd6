"""What an attacker found in statements that change data or schema, each kept closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import louver
from louver import errors
from louver.trusted.executor import transfer
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.duckdb import DuckDBEngine
from louver.wire.messages import Statement

ZOO = (
    "CREATE TABLE zoo (name VARCHAR ENC, kind INT, note VARCHAR)",
    "INSERT INTO zoo VALUES ('axolotl', 1, 'x'), ('b', 2, 'y'), ('c', 3, 'z')",
    "CREATE TABLE pub (s VARCHAR)",
    "CREATE TABLE keep (k INT)",
    "INSERT INTO keep VALUES (1), (2)",
    "CREATE TABLE o (n INT)",
)


class Opened:
    """A session and the engine behind it."""

    def __init__(self, folder: Path) -> None:
        self.engine = DuckDBEngine(":memory:")
        keys = folder / "a.louverkey"
        KeyRing.create(str(keys))
        self.session = Session(
            self.engine, KeyRing.open(str(keys)), Policy("sealed"), modulus_bits=512
        )

    def run(self, *statements: str) -> list[tuple[object, ...]]:
        """Run them all; the rows of the last."""
        for sql in statements:
            answer = self.session.execute(sql)
        return [] if answer.rows is None else list(self.session.python_rows(answer.rows))

    def refused(self, sql: str, code: str) -> errors.Error:
        """Run it, which must fail with this code."""
        with pytest.raises(errors.Error) as caught:
            self.session.execute(sql)
        assert caught.value.code == code, caught.value
        return caught.value

    def held(self, sql: str) -> list[object]:
        """What the server holds."""
        return list(self.engine.query(Statement(sql)).column(0).to_pylist())


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    monkeypatch.setenv("LOUVER_STATE_DIR", str(tmp_path / "state"))
    session = Opened(tmp_path)
    yield session
    session.session.close()


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE zoo SET note = q.name FROM query_table('zoo') q WHERE q.kind = zoo.kind",
        "UPDATE zoo SET note = q.name FROM \"query_table\"('z' || 'oo') q WHERE q.kind = zoo.kind",
        "INSERT INTO pub SELECT q.name FROM zoo z, query_table('zoo') q",
        "MERGE INTO zoo USING query('SELECT * FROM zoo') q ON zoo.kind = q.kind"
        " WHEN MATCHED THEN UPDATE SET note = q.name",
        "DELETE FROM zoo WHERE kind NOT IN (SELECT k FROM query_table('keep'))",
        "INSERT INTO o SELECT kind FROM query_table('zoo')",
        "INSERT INTO o VALUES ((SELECT max(kind) FROM query_table('zoo')))",
    ],
)
def test_no_table_is_read_by_a_text(opened: Opened, sql: str) -> None:
    opened.run(*ZOO)
    error = opened.refused(sql, "sql.unsupported")
    assert "name the table" in str(error)
    assert opened.run("SELECT count(*) FROM zoo") == [(3,)]
    assert opened.held("SELECT note FROM zoo ORDER BY kind") == ["x", "y", "z"]


def test_nor_within_a_macro_or_view(opened: Opened) -> None:
    opened.run(*ZOO, "CREATE MACRO m() AS TABLE SELECT * FROM query_table('keep')")
    opened.refused("DELETE FROM zoo WHERE kind NOT IN (SELECT k FROM m())", "sql.unsupported")
    assert opened.run("SELECT count(*) FROM zoo") == [(3,)]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE zoo SET note = q.kind FROM (SELECT name AS kind FROM 'zoo') q WHERE q.kind <> ''",
        "UPDATE zoo SET note = z.note FROM zoo z PIVOT (first(name) FOR kind IN (1 AS note)) z",
        "UPDATE zoo SET note = d.n FROM (SELECT first(column_name) n FROM duckdb_columns()) d",
        "MERGE INTO zoo USING (SELECT column_name n FROM information_schema.columns) d"
        " ON d.n = zoo.note WHEN NOT MATCHED THEN INSERT VALUES ('q', 1, d.n)",
    ],
)
def test_unknown_sources_count_as_encrypted(opened: Opened, sql: str) -> None:
    opened.run(*ZOO)
    with pytest.raises(errors.Error):
        opened.run(sql)
    assert opened.held("SELECT note FROM zoo ORDER BY kind") == ["x", "y", "z"]


def test_values_and_constants_still_go_into_plain_columns(opened: Opened) -> None:
    opened.run(*ZOO)
    opened.run("UPDATE zoo SET note = v.n FROM (VALUES (1, 'one')) v(k, n) WHERE v.k = zoo.kind")
    opened.run("UPDATE zoo SET note = v.n FROM (SELECT 2 AS k, 'two' AS n) v WHERE v.k = zoo.kind")
    assert opened.held("SELECT note FROM zoo ORDER BY kind") == ["one", "two", "z"]


def test_a_table_named_by_a_string_is_read(opened: Opened) -> None:
    opened.run(*ZOO, "INSERT INTO o SELECT kind FROM 'zoo'")
    assert opened.run("SELECT n FROM o ORDER BY n") == [(1,), (2,), (3,)]
    opened.run("DELETE FROM zoo WHERE kind NOT IN (SELECT k FROM 'keep')")
    assert opened.run("SELECT kind FROM zoo ORDER BY kind") == [(1,), (2,)]


def test_a_macro_that_reads_a_table(opened: Opened) -> None:
    opened.run(
        *ZOO,
        "CREATE MACRO inner_one() AS (SELECT max(k) FROM 'keep')",
        "CREATE MACRO outer_one() AS inner_one() + 1",
        "INSERT INTO o SELECT outer_one()",
        "INSERT INTO o VALUES (outer_one())",
    )
    assert opened.run("SELECT n FROM o") == [(3,), (3,)]


Z = (
    "CREATE TABLE z (e VARCHAR ENC MAY REVEAL {}, k INT)",
    "INSERT INTO z VALUES ('a', 1), ('b', 2), ('c', 3)",
    "CREATE TABLE pub (s VARCHAR, n INT)",
    "INSERT INTO pub VALUES ('a', 1), ('q', 2)",
)
CHOOSING = [
    "UPDATE z SET e = 'n' WHERE e = 'b'",
    "UPDATE z SET k = 99 WHERE e = 'b'",
    "DELETE FROM z WHERE e = 'c'",
    "DELETE FROM z USING (VALUES ('c')) v(x) WHERE e = v.x",
    "MERGE INTO z USING (VALUES ('c')) v(x) ON e = v.x WHEN MATCHED THEN DELETE",
    "UPDATE pub SET n = 5 WHERE EXISTS (SELECT 1 FROM z WHERE e = 'c')",
]
COMPARING = [
    "DELETE FROM pub WHERE s IN (SELECT e FROM z)",
    "DELETE FROM pub WHERE EXISTS (SELECT 1 FROM z WHERE z.e = pub.s)",
    "DELETE FROM pub USING z WHERE z.e = pub.s",
    "UPDATE pub SET n = 0 FROM (SELECT e AS s2 FROM z) q WHERE q.s2 = s",
    "DELETE FROM pub WHERE s IN (SELECT s FROM pub INTERSECT SELECT e FROM z)",
    "MERGE INTO pub USING z ON z.e = pub.s WHEN MATCHED THEN DELETE",
    "INSERT INTO pub SELECT p.s, p.n FROM pub p JOIN z ON p.s = z.e",
    "INSERT INTO pub SELECT p.s, p.n FROM pub p, z WHERE p.s = z.e",
]


def _with_ceiling(opened: Opened, ceiling: str) -> None:
    opened.run(*(sql.format(ceiling) for sql in Z))


@pytest.mark.parametrize("sql", [*CHOOSING, *COMPARING])
def test_chosen_rows_stay_hidden_under_size(opened: Opened, sql: str) -> None:
    _with_ceiling(opened, "size")
    opened.refused(sql, "leak.refused" if sql in CHOOSING else "leak.flow")
    assert opened.session.context.ledger.level("z", "e") == "size"
    assert opened.held("SELECT k FROM z ORDER BY k") == [1, 2, 3]


@pytest.mark.parametrize("sql", CHOOSING)
def test_access_lets_conditions_choose(opened: Opened, sql: str) -> None:
    _with_ceiling(opened, "access")
    opened.run(sql)
    assert opened.session.context.ledger.level("z", "e") == "access"


@pytest.mark.parametrize("sql", COMPARING)
def test_a_comparison_with_a_plain_column_shows_values(opened: Opened, sql: str) -> None:
    for ceiling in ("access", "equality", "order"):
        _with_ceiling(opened, ceiling)
        opened.refused(sql, "leak.flow")
        assert opened.session.context.ledger.level("z", "e") in ("", "size")
        opened.run("DROP TABLE z", "DROP TABLE pub")
    _with_ceiling(opened, "plaintext")
    opened.run(sql)
    assert opened.session.context.ledger.level("z", "e") == "plaintext"


def test_a_macro_hides_no_choice(opened: Opened) -> None:
    _with_ceiling(opened, "size")
    opened.run("CREATE MACRO chosen(x) AS (x = 'b')")
    opened.refused("UPDATE z SET k = 99 WHERE chosen(e)", "leak.flow")
    opened.refused("DELETE FROM z WHERE k > 0 AND chosen(e)", "leak.flow")
    assert opened.held("SELECT k FROM z ORDER BY k") == [1, 2, 3]


def test_conflicts_on_an_encrypted_key(opened: Opened) -> None:
    opened.run(
        "CREATE TABLE u (e INT ENC MAY REVEAL size PRIMARY KEY, k INT)",
        "INSERT INTO u VALUES (1, 1), (2, 2)",
    )
    update = " ON CONFLICT (e) DO UPDATE SET k = 9"
    opened.refused(f"INSERT INTO u VALUES (2, 5){update}", "leak.refused")
    opened.refused("INSERT OR REPLACE INTO u VALUES (2, 5)", "leak.refused")
    assert opened.held("SELECT k FROM u ORDER BY k") == [1, 2]
    opened.run("ALTER TABLE u ALTER COLUMN e MAY REVEAL access")
    opened.run(f"INSERT INTO u VALUES (2, 5){update}")
    opened.run("CREATE TABLE src (e2 INT, k2 INT)", "INSERT INTO src VALUES (1, 7)")
    opened.refused(f"INSERT INTO u SELECT e2, k2 FROM src WHERE true{update}", "leak.flow")
    assert opened.held("SELECT k FROM u ORDER BY k") == [1, 9]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE z SET e = 'n' WHERE k = 2",
        "UPDATE z SET k = 5",
        "UPDATE z SET k = 5 WHERE k = 2",
        "DELETE FROM z WHERE k = 2",
        "DELETE FROM z",
        "INSERT INTO z VALUES ('pub', 2)",
    ],
)
def test_what_shows_no_choice_runs_under_size(opened: Opened, sql: str) -> None:
    _with_ceiling(opened, "size")
    opened.run(sql)
    assert opened.session.context.ledger.level("z", "e") == "size"


@pytest.mark.parametrize(
    ("sql", "table", "column"),
    [
        ("CREATE TABLE c (s VARCHAR COLLATE NOCASE)", "c", "s"),
        ("CREATE TABLE c AS SELECT s COLLATE NOCASE AS s FROM base", "c", "s"),
        ("ALTER TABLE base ADD COLUMN t VARCHAR COLLATE NOCASE", "base", "t"),
        ("ALTER TABLE base ALTER s TYPE VARCHAR COLLATE NOCASE", "base", "s"),
    ],
)
def test_plain_columns_compare_by_their_collation(
    opened: Opened, sql: str, table: str, column: str
) -> None:
    opened.run("CREATE TABLE base (s VARCHAR, e VARCHAR ENC)", "INSERT INTO base VALUES ('z', 'b')")
    opened.run(sql, f"INSERT INTO {table} ({column}) VALUES ('Ann'), ('ANN'), ('bob')")
    query = f"SELECT count(*) FROM {table} WHERE {column} = 'ann'"
    assert opened.run(query) == [(2,)]
    opened.run(f"UPDATE {table} SET {column} = 'x' WHERE {column} = 'aNN'")
    assert opened.run(query) == [(0,)]
    opened.run(f"DELETE FROM {table} WHERE {column} IN ('X', 'BOB')")
    assert opened.run(f"SELECT count(*) FROM {table} WHERE {column} >= 'B'") == opened.run(
        f"SELECT count(*) FROM {table} WHERE {column} = 'Z'"
    )


@pytest.mark.parametrize(
    ("column", "code"),
    [("louver_c0 INT", "sql.reserved"), ('"Louver_Place" INT', "sql.reserved")],
)
def test_nor_in_a_file_brought_over(opened: Opened, tmp_path: Path, column: str, code: str) -> None:
    with duckdb.connect(str(tmp_path / "plain.duckdb")) as plain:
        plain.execute(f"CREATE TABLE c ({column})")
    with pytest.raises(errors.Error) as caught:
        transfer.encrypt(opened.session.context, tmp_path / "plain.duckdb")
    assert caught.value.code == code
    assert opened.run("SHOW TABLES") == []


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE louver_t (a INT)",
        "CREATE TABLE t (louver_row_id INT ENC)",
        'CREATE TABLE t ("Louver_Place" INT)',
        "CREATE TABLE t AS SELECT 1 AS louver_c0",
        "CREATE VIEW louver_v AS SELECT 1 AS one",
        "ALTER TABLE base ADD COLUMN louver_parameter_0 INT",
        "ALTER TABLE base RENAME a TO louver_c0",
        "ALTER TABLE base RENAME TO louver_base",
    ],
)
def test_reserved_names(opened: Opened, sql: str) -> None:
    opened.run("CREATE TABLE base (a INT ENC)", "INSERT INTO base VALUES (1)")
    opened.refused(sql, "sql.reserved")
    assert opened.run("SHOW TABLES") == [("base",)]
    assert opened.run("SELECT a FROM base") == [(1,)]


SECRET = "LOUVER-KEY-1qqqqsyzkf9m4xh3jc8w0t2v7p5n6a"


@pytest.mark.parametrize("text", [SECRET, SECRET.lower(), f"# a comment\n{SECRET}\n"])
@pytest.mark.parametrize("act", [KeyRing.open, KeyRing.create])
def test_a_key_in_place_of_its_path_is_not_repeated(
    text: str, act: Callable[[str], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.KeyFileError) as caught:
        act(text)
    said = f"{caught.value}{caught.value.as_dict()}{caught.value.__context__}"
    assert caught.value.code == "key.text"
    assert SECRET[12:].lower() not in said.lower()
    assert "path of the key file" in caught.value.fix
    with pytest.raises(errors.KeyFileError):
        louver.connect("duckdb:///x.duckdb", keys=text)
    assert list(tmp_path.iterdir()) == []


def test_the_error_of_an_altered_value_names_its_row(opened: Opened) -> None:
    opened.run("CREATE TABLE t (a VARCHAR ENC)", "INSERT INTO t VALUES ('x')")
    table = opened.session.context.catalog.tables["main", "t"]
    (column,) = table.columns
    field = pa.field("a", pa.string())
    sealed = pa.array([bytes(40)], pa.binary())
    with pytest.raises(errors.VerificationError) as caught:
        opened.session.context.columns.open_column(table, column, sealed, pa.array([7]), field)
    assert caught.value.message == "t.a: the value in row 7 is not the value that was stored."
