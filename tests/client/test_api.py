"""The Python face: connect, Relation, settings, SHOW, EXPLAIN, and what is loaded when."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import louver
from louver.trusted.client.table_format import box
from louver.trusted.executor.progress import line
from louver.trusted.executor.settings import SETTINGS
from louver.wire.tap import Tap
from tests.client.harness import connection, key_file
from tests.sources import ROOT

TABLE = """
CREATE TABLE staff (name TEXT ENC, salary BIGINT ENC USING sdb, big HUGEINT ENC, age INT);
INSERT INTO staff VALUES ('Ada', 9000, 1, 36), ('Grace', 8500, 2, 45), (NULL, -3, NULL, 9)
"""
PLAIN = TABLE.replace(" ENC USING sdb", "").replace(" ENC", "")


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOUVER_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="module")
def con(state: None) -> Iterator[louver.Connection]:
    with connection() as database:
        database.execute(TABLE)
        yield database


@pytest.fixture(scope="module")
def plain() -> duckdb.DuckDBPyConnection:
    twin = duckdb.connect()
    twin.execute(PLAIN)
    return twin


QUERY = "SELECT name, salary * 2 AS s, big FROM staff WHERE salary > 100 ORDER BY age"


def test_a_relation_is_planned_at_once_and_runs_when_needed(con: louver.Connection) -> None:
    before = len(con.leakage())
    relation = con.sql(QUERY)
    assert relation.columns == ["name", "s", "big"]
    assert relation.types == ["VARCHAR", "BIGINT", "HUGEINT"]
    assert len(relation.remote_sql()) == 1
    assert len(con.leakage()) == before
    assert relation.fetchall() == [("Ada", 18000, 1), ("Grace", 17000, 2)]
    assert len(con.leakage()) > before
    with pytest.raises(louver.ProgrammingError):
        con.sql("SELECT nothing FROM staff")


def test_all_forms_of_an_answer_are_duckdbs(
    con: louver.Connection, plain: duckdb.DuckDBPyConnection
) -> None:
    mine, theirs = con.sql(QUERY), plain.sql(QUERY)
    assert mine.arrow().equals(theirs.to_arrow_table())
    assert mine.df().equals(theirs.df())
    assert mine.df().dtypes.equals(theirs.df().dtypes)
    assert mine.pl().rows() == theirs.pl().rows()
    assert mine.fetchone() == ("Ada", 18000, 1)
    assert mine.fetchall() == [("Grace", 17000, 2)]
    assert mine.fetchone() is None
    assert len(mine) == 2


def test_show_draws_a_box(con: louver.Connection, capsys: pytest.CaptureFixture[str]) -> None:
    con.sql("SELECT name, salary FROM staff ORDER BY age").show(max_width=40)
    drawn = capsys.readouterr().out
    assert drawn == (
        "┌─────────┬────────┐\n"
        "│  name   │ salary │\n"
        "│ varchar │ int64  │\n"
        "├─────────┼────────┤\n"
        "│ NULL    │     -3 │\n"
        "│ Ada     │   9000 │\n"
        "│ Grace   │   8500 │\n"
        "└─────────┴────────┘\n"
        "3 rows\n"
    )


def test_a_box_fits_and_cannot_command_the_terminal() -> None:
    columns = [(f"column_{i}", "VARCHAR") for i in range(8)]
    drawn = box(columns, [["\x1b[2J" + "x" * 90] * 8, [None] * 8], max_width=60)
    assert all(len(text) <= 60 for text in drawn.splitlines())
    assert "\x1b" not in drawn
    assert "columns (" in drawn
    few = box([("i", "BIGINT")], [["0"], ["99"]], total=100, max_width=60)
    assert "100 rows (2 shown)" in few
    assert few.count("·") == 3
    assert "┌" not in box([("i", "BIGINT")], [["日本"]], ascii_only=True)


def test_explain_tells_and_neither_sends_nor_records(state: None) -> None:
    from louver.trusted.client.connect import open_session
    from louver.trusted.client.dbapi import Connection

    session = open_session("duckdb:///:memory:", key_file(), tapped=True)
    assert isinstance(session.context.engine, Tap)
    with Connection(session) as con:
        con.execute(TABLE)
        con.execute("SELECT 1 FROM staff").fetchall()
        facts = len(con.leakage())
        session.context.engine.records.clear()
        text = con.sql("EXPLAIN (LEAKAGE) SELECT sum(salary) FROM staff").fetchall()[0][1]
        explanation = con.sql("SELECT sum(salary) FROM staff").explain(leakage=True, format="json")
        chart = con.sql("EXPLAIN (FORMAT mermaid) SELECT sum(salary) FROM staff").fetchall()
        sent = [repr(message) for message in session.context.engine.sent()]
        assert not [message for message in sent if "sdb_" in message or "staff" in message]
        assert len(con.leakage()) == facts
    assert "sdb_sum(" in text
    assert "+ the server can compute all ratios of values of salary in staff" in text
    parsed = json.loads(explanation)
    assert [fact["kind"] for fact in parsed["reveals"]["new"]] == ["sdb.sum", "scan"]
    assert parsed["servers"][0]["constants_bytes"]
    assert chart[0][1].startswith("flowchart")


def test_explain_takes_parameters(con: louver.Connection) -> None:
    con.execute("CREATE TABLE dates (d DATE ENC MAY REVEAL order, n INT ENC, p INT)")
    con.execute("INSERT INTO dates VALUES ('2020-01-01', 1, 1), ('2020-01-02', 2, 2)")
    values = [datetime.date(2020, 1, 1), 1, 1]
    sql = "EXPLAIN (LEAKAGE) SELECT n FROM dates WHERE d >= ? AND n > ? OR p < ?"
    assert con.execute(sql, values).fetchall()
    con.execute("DROP TABLE dates")


def test_explain_marks_what_is_known_already(con: louver.Connection) -> None:
    query = "SELECT sum(salary) FROM staff"
    con.sql(query).fetchall()
    explanation = con.sql(query).explain(leakage=True)
    assert "nothing new" in explanation
    assert "= the server can compute all ratios of values of salary" in explanation
    assert "reveals" not in con.sql(query).explain()
    analyzed = con.sql(f"EXPLAIN ANALYZE {query}").fetchall()[0][1]
    assert "server" in analyzed
    assert " ms" in analyzed


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("EXPLAIN (LEAKAGE, NONSENSE) SELECT 1", "sql.syntax"),
        ("EXPLAIN (FORMAT yaml) SELECT 1", "setting.value"),
        ("SHOW LEAKAGE FOR nobody", "table.missing"),
        ("SET local_processing = maybe", "setting.value"),
        ("SET no_such_setting = 1", "setting.unknown"),
        ("SET temp_directory = '/tmp'", "setting.refused"),
        ("SET arrow_lossless_conversion = false", "setting.refused"),
        ("PRAGMA enable_profiling", "sql.unsupported"),
        ("GRANT ALL ON staff TO me", "sql.unsupported"),
    ],
)
def test_what_is_not_understood_is_refused(con: louver.Connection, sql: str, code: str) -> None:
    with pytest.raises(louver.Error) as raised:
        con.execute(sql)
    assert raised.value.code == code


@pytest.mark.parametrize(
    "sql",
    ["SELECT * EXCLUDE (extra) FROM (DESCRIBE staff)", "SHOW TABLES", "PRAGMA table_info('staff')",
     "DESCRIBE SELECT name, salary + 1 AS s FROM staff",
     "SELECT * EXCLUDE (column_types) FROM (SHOW ALL TABLES)",
     "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'staff'"],
)  # fmt: skip
def test_the_schema_is_the_declared_one(
    con: louver.Connection, plain: duckdb.DuckDBPyConnection, sql: str
) -> None:
    mine, theirs = con.sql(sql), plain.sql(sql)
    assert mine.columns == theirs.columns
    assert mine.fetchall() == theirs.fetchall()


def test_show_leakage(con: louver.Connection) -> None:
    con.sql("SELECT sum(salary) FROM staff").fetchall()
    facts = con.sql("SHOW LEAKAGE FOR staff")
    assert facts.columns == ["table_name", "columns", "level", "reveals"]
    assert {row[0] for row in facts.fetchall()} == {"staff"}
    rows = con.sql("SHOW LEAKAGE").fetchall()
    assert ("staff", "salary", "plaintext") in {row[:3] for row in rows}
    assert len(rows) == len(set(rows))
    assert set(con.leakage().columns) >= {"sequence", "when", "level", "reveals", "kind"}


def test_settings(con: louver.Connection) -> None:
    con.execute("SET local_processing = off")
    assert con.sql("SHOW local_processing").fetchall() == [("off",)]
    with pytest.raises(louver.LeakageRefused):
        con.execute("SELECT rank() OVER (ORDER BY name) FROM staff")
    # The setting's earlier name is still understood.
    assert con.sql("SHOW finish_at_home").fetchall() == [("off",)]
    con.execute("RESET finish_at_home")
    assert len(con.execute("SELECT rank() OVER (ORDER BY name) FROM staff").fetchall()) == 3
    con.execute("SET default_null_order = 'nulls_first'")
    assert con.sql("SELECT name FROM staff ORDER BY name").fetchone() == (None,)
    con.execute("RESET default_null_order")
    page = (ROOT / "docs/guides/sql.md").read_text(encoding="utf-8")
    for setting in SETTINGS:
        assert f"| `{setting.name}` |" in page
        assert setting.meaning in page.replace("`off`", "off").replace("`leak", "leak").replace(
            "home_off`", "home_off"
        )


def test_every_setting_that_is_let_through_is_documented() -> None:
    from louver.trusted.executor import settings

    page = (ROOT / "docs/guides/sql.md").read_text(encoding="utf-8").lower()
    for name in (*settings.BOTH_SIDES, *settings._AT_HOME):
        assert f"`{name}`" in page


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("cloud.duckdb", "url.format"),
        ("duckdb:///", "url.format"),
        ("duckdb://host/file", "url.format"),
        ("mysql://host/db", "url.scheme"),
        ("postgresql://user:secret@host/db", "url.format"),
        ("spark://local[2]", "url.unsupported"),
        ("lake:///", "url.format"),
        ("lake://host/warehouse", "url.format"),
        ("lake:///warehouse?s3.secret-access-key=x", "url.format"),
        ("lake+http://", "url.format"),
        ("providers://a:1", "provider.few"),
        ("duckdb+http://a:1", "url.unsupported"),
    ],
)
def test_urls_that_cannot_be(url: str, code: str) -> None:
    with pytest.raises(louver.Error) as raised:
        louver.connect(url, keys=key_file())
    assert raised.value.code == code


def test_connecting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOUVER_STATE_DIR", str(tmp_path / "state"))
    with connection("duckdb:///a.duckdb") as con:
        con.execute("CREATE TABLE t (a INT ENC)")
    assert (tmp_path / "a.duckdb").exists()
    with connection(f"duckdb:///{tmp_path}/a.duckdb", profile="sdb") as con:
        assert con.sql("SHOW TABLES").fetchall() == [("t",)]
    with pytest.raises(louver.KeyFileError, match="No key file"):
        louver.connect("duckdb:///a.duckdb")
    with pytest.raises(louver.InterfaceError, match="does not exist"):
        connection("duckdb:///a.duckdb", profile="none")
    other = tmp_path / "other.louverkey"
    louver.KeyRing.create(other)
    with pytest.raises(louver.KeyFileError, match="does not open"):
        louver.connect("duckdb:///a.duckdb", keys=other)
    assert connection("duckdb:///a.duckdb").closed is False


def test_load_returns_the_number_of_rows(con: louver.Connection) -> None:
    con.execute("CREATE OR REPLACE TABLE loaded (a INT ENC, b TEXT)")
    calls: list[tuple[int, int | None]] = []
    rows = pa.table({"a": [1, 2, None], "b": ["x", "y", "z"]})
    assert con.load("loaded", rows, progress=lambda *done: calls.append(done)) == 3
    assert calls[-1] == (3, 3)
    assert con.sql("FROM loaded").fetchall() == [(1, "x"), (2, "y"), (None, "z")]


def test_the_bar() -> None:
    assert line(50, 100, 1.0).startswith("  ███████████████░░░")
    assert "50 %" in line(50, 100, 1.0)
    assert "rows/s" in line(50, None, 1.0)


def test_importing_loads_only_what_is_asked_for() -> None:
    script = (
        "import sys, louver, louver.untrusted.engines.duckdb, louver.wire.tap\n"
        "assert not [m for m in sys.modules if m.startswith('louver.trusted')]\n"
        "louver.connect\n"
        "assert [m for m in sys.modules if m.startswith('louver.trusted')]\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=600)


def test_every_public_name_is_there() -> None:
    for name in louver.__all__:
        assert getattr(louver, name) is not None
    assert set(dir(louver)) == set(louver.__all__)
    with pytest.raises(AttributeError):
        louver.no_such_name  # noqa: B018


def test_a_time_zone_holds_for_constants_too(open_connection) -> None:
    con = open_connection("cryptdb")
    con.execute("CREATE TABLE moments (m TIMESTAMPTZ ENC)")
    con.execute("INSERT INTO moments VALUES ('2020-01-01 00:00:00+00')")
    query = "SELECT count(*) FROM moments WHERE m = TIMESTAMPTZ '2020-01-01 00:00:00'"
    counts = []
    for zone in ("UTC", "America/New_York", "UTC"):
        con.execute(f"SET TimeZone = '{zone}'")
        counts.append(con.execute(query).fetchall())
    assert counts == [[(1,)], [(0,)], [(1,)]]
