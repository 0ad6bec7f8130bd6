"""The suite that every engine passes, on sealed columns: DuckDB's, and one that is no part of the
product, described and spoken to by two files of tests/toy.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import louver
from louver import errors
from louver.trusted import backends
from louver.trusted.apps import cli, inference
from louver.trusted.apps.commands.attack import stored_rows
from louver.trusted.vault import tile_forms
from louver.wire.messages import Statement
from tests.engines import suite
from tests.engines.suite import EngineTwin
from tests.engines.table import BACKENDS
from tests.generated import cases
from tests.sources import ROOT

Make = Callable[..., EngineTwin]

CONDITIONS = (
    "id = 3", "id <> 3", "id > 2 AND id <= 5", "id BETWEEN 2 AND 4", "id IN (1, 4, -6, 99)",
    "NOT (id < 3)", "dept = 'it'", "dept < 'it'", "dept IS NULL", "dept IN ('hr', '')",
    "dept >= 'h' OR id = 5", "dept LIKE 'h%'", "id + 1 = 3", "id = 2.5", "id * 2 > id + 3",
    "name = 'ann'", "name <> 'ann'", "name IN ('ann', 'bob')", "name IS NULL", "name LIKE 'a%'",
    "born < DATE '1991-07-01'", "born >= DATE '1980-02-29'", "born = DATE '1970-01-01'",
    "born BETWEEN DATE '1970-01-01' AND DATE '1991-07-01'", "born IS NULL", "salary > 4000",
    "salary IS NULL", "salary - 1 > 4998", "rate = 1.5", "rate < 0", "note = 'canary-7031'",
    "boss = 1", "boss = id", "name = 'ann' AND id > 1", "name = 'ann' OR dept = 'it'",
    "born > DATE '1975-01-01' AND (dept = 'it' OR boss = 2)", "lower(name) = 'bob'",
    "id > (SELECT min(boss) FROM staff)", "id IN (SELECT boss FROM staff)",
    "EXISTS (SELECT 1 FROM depts WHERE head = name AND floor > 1)",
)  # fmt: skip
QUERIES = (
    "SELECT * FROM staff ORDER BY id",
    "SELECT id, salary * 2 AS twice FROM staff WHERE salary < 10000 ORDER BY id",
    "SELECT s.id, d.floor FROM staff s JOIN depts d ON s.dept = d.code ORDER BY ALL",
    "SELECT s.id, d.floor FROM staff s LEFT JOIN depts d ON s.dept = d.code ORDER BY ALL",
    "SELECT s.id, d.code FROM staff s JOIN depts d ON s.name = d.head WHERE d.floor = 3",
    "SELECT a.id, b.id FROM staff a JOIN staff b ON a.boss = b.id ORDER BY ALL",
    "SELECT a.id, b.id FROM staff a JOIN staff b ON a.name = b.name ORDER BY ALL",
    "SELECT count(*), count(name), count(salary), count(DISTINCT name) FROM staff",
    "SELECT sum(salary), avg(salary), min(rate), max(rate) FROM staff WHERE id <> 4",
    "SELECT min(born), max(born), min(id), max(dept), sum(id) FROM staff",
    "SELECT name, count(*) FROM staff GROUP BY name",
    "SELECT dept, count(*) AS n, sum(salary) FROM staff WHERE id < 4 GROUP BY dept",
    "SELECT dept, name, count(*) FROM staff GROUP BY ALL HAVING count(*) >= 1",
    "SELECT name FROM staff WHERE id > 100 GROUP BY name",
    "SELECT DISTINCT name FROM staff", "SELECT DISTINCT dept FROM staff",
    "SELECT id FROM staff ORDER BY id LIMIT 2 OFFSET 1",
    "SELECT id FROM staff ORDER BY born DESC NULLS LAST, id LIMIT 3",
    "SELECT id FROM staff ORDER BY dept NULLS FIRST, id LIMIT 4",
    "WITH x AS (SELECT * FROM staff WHERE dept = 'it') SELECT count(*) FROM x",
    "SELECT id, rank() OVER (ORDER BY born, id) FROM staff",
    "SELECT id FROM staff UNION ALL SELECT floor FROM depts",
)  # fmt: skip


@pytest.fixture(params=BACKENDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """An engine, registered through the table that the product has for this."""
    suite.register(request.param, monkeypatch)
    return str(request.param)


@pytest.fixture
def make(kind: str, tmp_path: Path, key_file: Path) -> Iterator[Make]:
    """A twin over the engine, with the tables of the suite."""
    twins: list[EngineTwin] = []

    def twin(profile: str = "sealed", *, counted: bool = False) -> EngineTwin:
        engine_twin = EngineTwin(kind, tmp_path, key_file, profile)
        twins.append(engine_twin)
        engine_twin.louver.execute(f"SET default_counted = {'on' if counted else 'off'}")
        for sql in (suite.STAFF, suite.ROWS, suite.DEPARTMENTS, suite.DEPARTMENT_ROWS):
            engine_twin.run(sql)
        return engine_twin

    yield twin
    for engine_twin in twins:
        engine_twin.close()


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_queries(make: Make, profile: str) -> None:
    twin = make(profile)
    for sql in QUERIES:
        twin.run(sql)
    for condition in CONDITIONS:
        twin.run(f"SELECT id, name, salary FROM staff WHERE {condition}")
        twin.run(f"SELECT count(*) FROM staff WHERE {condition}")


def test_bound_values(make: Make) -> None:
    twin = make()
    for sql, values in (
        ("SELECT id FROM staff WHERE id = ?", [2]), ("SELECT id FROM staff WHERE id > ?", [2.5]),
        ("SELECT id FROM staff WHERE dept = ?", ["it"]),
        ("SELECT id FROM staff WHERE dept = ?", ["it' OR '1' = '1"]),
        ("SELECT id FROM staff WHERE name = ?", ["ann"]),
        ("SELECT id FROM staff WHERE name IN (?, ?)", ["ann", "zoe"]),
        ("SELECT id FROM staff WHERE salary = ?", [5000]),
    ):  # fmt: skip
        twin.run(sql, values)


def test_generated_conditions(make: Make) -> None:
    twin, chance = make(), random.Random(20)
    for _ in range(cases(25)):
        first, second, third = chance.choices(CONDITIONS, k=3)
        words = chance.choices(("AND", "OR", "AND NOT", "OR NOT"), k=2)
        where = f"({first}) {words[0]} (({second}) {words[1]} ({third}))"
        twin.run(f"SELECT id, note FROM staff WHERE {where}")


def test_changes(make: Make) -> None:
    twin = make()
    for sql in (
        "UPDATE staff SET salary = salary + 1 WHERE dept = 'it'",
        "UPDATE staff SET name = 'dan', dept = 'ops' WHERE name = 'ann' AND id > 1",
        "UPDATE staff SET note = name WHERE id = 5",
        "DELETE FROM staff WHERE id = 2",
        "DELETE FROM staff WHERE name = 'nobody'",
        "INSERT INTO staff (id, name, salary) SELECT id + 10, name, id FROM staff WHERE id > 3",
        "INSERT INTO staff (id) VALUES (20), (21)",
        "INSERT INTO staff SELECT * FROM staff WHERE salary = 'x'",
        "DELETE FROM staff WHERE born < DATE '1975-01-01'",
        "INSERT INTO depts VALUES ('it', 'eve', 9)",
        "UPDATE depts SET head = 'fay' FROM staff WHERE staff.dept = depts.code",
    ):
        twin.either(sql)
        twin.run("SELECT * FROM staff")
        twin.run("SELECT * FROM depts")


def test_keys_and_checks(make: Make) -> None:
    twin = make()
    twin.run(
        "CREATE TABLE k (id INTEGER PRIMARY KEY, mail VARCHAR ENC UNIQUE, n INTEGER CHECK (n > 0))"
    )
    for sql in (
        "INSERT INTO k VALUES (1, 'a', 1), (2, 'b', 2)", "INSERT INTO k VALUES (1, 'c', 1)",
        "INSERT INTO k VALUES (3, 'a', 1)", "INSERT INTO k VALUES (3, 'c', 0)",
        "INSERT INTO k VALUES (1, 'c', 5) ON CONFLICT (id) DO UPDATE SET mail = excluded.mail",
        "UPDATE k SET mail = 'b' WHERE id = 1", "INSERT OR IGNORE INTO k VALUES (2, 'q', 7)",
    ):  # fmt: skip
        twin.either(sql)
        twin.run("SELECT * FROM k ORDER BY id")


def test_transactions(make: Make) -> None:
    twin = make()
    for sql in ("BEGIN", "DELETE FROM staff WHERE id = 1", "ROLLBACK"):
        twin.run(sql)
    assert len(twin.run("SELECT * FROM staff")) == 6
    for sql in ("BEGIN", "INSERT INTO staff (id, name) VALUES (7, 'gus')",
                "UPDATE staff SET boss = 7 WHERE id < 3", "COMMIT"):  # fmt: skip
        twin.run(sql)
    twin.run("SELECT * FROM staff")
    twin.run("BEGIN")
    twin.run("CREATE TABLE gone (a INTEGER ENC)")
    twin.run("ROLLBACK")
    twin.either("SELECT * FROM gone")
    assert twin.either("INSERT INTO staff VALUES (1, 2)") is None
    twin.run("SELECT count(*) FROM staff")


def test_definitions(make: Make) -> None:
    twin = make()
    for sql in (
        "ALTER TABLE staff ADD COLUMN age INTEGER ENC",
        "ALTER TABLE staff ADD COLUMN c INT DEFAULT 4",
        "ALTER TABLE staff DROP COLUMN rate", "ALTER TABLE staff RENAME COLUMN note TO remark",
        "ALTER TABLE staff ALTER COLUMN salary TYPE HUGEINT", "ALTER TABLE staff RENAME TO people",
        "CREATE VIEW rich AS SELECT name FROM people WHERE salary > 4500",
        "CREATE TABLE copy AS SELECT id, dept FROM people", "DROP TABLE depts",
    ):  # fmt: skip
        twin.run(sql)
    for sql in (
        "SELECT * FROM people", "SELECT * FROM rich", "SELECT * FROM copy", "DESCRIBE people",
        "SELECT table_name FROM information_schema.tables ORDER BY 1",
    ):  # fmt: skip
        twin.run(sql)
    twin.reopen()
    twin.run("SELECT * FROM people")
    assert twin.either("SELECT * FROM depts") is None


def test_a_ceiling_holds_and_can_be_raised(make: Make) -> None:
    twin = make()
    sql = "SELECT id FROM staff WHERE note = 'x''y'"
    assert "WHERE" not in twin.remote(sql)
    twin.run(sql)
    twin.louver.execute("SET local_processing = off")
    with pytest.raises(errors.Error) as caught:
        twin.louver.execute(sql)
    assert caught.value.code == "leak.ceiling"
    twin.louver.execute("RESET local_processing")
    twin.louver.execute("ALTER TABLE staff ALTER COLUMN note MAY REVEAL equality")
    assert re.search(r"WHERE t0\.q_\w+ = ", twin.remote(sql))
    twin.run(sql)
    twin.louver.execute("ALTER TABLE staff ALTER COLUMN note MAY REVEAL access")
    assert "WHERE" not in twin.remote(sql)
    twin.run(sql)


def test_the_ledger_stays_with_the_database(make: Make) -> None:
    twin = make()
    reason = "the server can tell which rows of staff have the same name"

    def known() -> list[str]:
        rows = twin.louver.execute("SHOW LEAKAGE FOR staff").fetchall()
        return [row[3] for row in rows if row[3].startswith(reason)]

    assert not known()
    twin.run("SELECT id FROM staff WHERE name = 'ann'")
    assert known()
    twin.reopen()
    assert known()
    twin.run("SELECT id FROM staff WHERE name = 'ann'")


def test_another_client_sees_what_was_committed(make: Make, key_file: Path) -> None:
    twin = make()
    other = louver.connect(twin.url, key_file)
    twin.run("INSERT INTO staff (id, name) VALUES (8, 'hal')")
    assert other.execute("SELECT name FROM staff WHERE id = 8").fetchall() == [("hal",)]
    other.execute("UPDATE staff SET name = 'ida' WHERE id = 8")
    assert twin.louver.execute("SELECT name FROM staff WHERE id = 8").fetchall() == [("ida",)]
    other.close()


def test_tables_of_two_engines_are_joined_locally(make: Make, key_file: Path) -> None:
    twin = make()
    con = louver.connect("duckdb:///:memory:", key_file)
    con.execute("CREATE TABLE bonus (who VARCHAR ENC, amount INTEGER)")
    con.execute("INSERT INTO bonus VALUES ('ann', 5), ('eve', 6)")
    con.attach(twin.url, "cloud")
    sql = (
        "SELECT s.id, b.amount FROM cloud.staff s JOIN bonus b ON s.name = b.who"
        " WHERE s.id < 4 AND s.dept = 'it' ORDER BY ALL"
    )
    assert con.execute(sql).fetchall() == [(1, 5)]
    con.close()


def test_nothing_encrypted_is_sent_in_the_clear(make: Make) -> None:
    twin = make()
    twin.run("SELECT id FROM staff WHERE note = 'canary-7031' /* canary-7031 */")
    twin.run("UPDATE staff SET name = 'canary-7031' WHERE id = 1 -- canary-7031")
    twin.run("SELECT id FROM staff WHERE name = 'canary-7031'")
    assert twin.tap.search(b"staff")
    assert not twin.tap.search(b"canary-7031")


def test_what_is_stored_is_seen_without_a_key(
    make: Make, key_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    twin = make()
    twin.run("SELECT id FROM staff WHERE name = 'ann' OR born < DATE '1990-01-01'")
    twin.run("INSERT INTO staff (id, name) SELECT 30 + n, 'ann' FROM range(20) t(n)")
    code, _ = stored(twin, "name", "eq")
    sealed, _ = stored(twin, "name", "rnd")
    expected = Counter(row[0] for row in twin.run("SELECT name FROM staff"))
    nulls = expected.pop(None)

    auxiliary = str(tmp_path / "known.csv")
    Path(auxiliary).write_text("name\n" + "ann\n" * 30 + "bob\nBob\n")
    rows = stored_rows(twin.louver)
    entries = inference.of_connection(twin.louver, rows, "staff", auxiliary)
    (entry,) = [entry for entry in entries if entry["stored_as"] == code]
    assert (entry["column"], entry["shown"]) == ("name", "equality")
    assert (entry["rows"], entry["nulls_visible"]) == (sum(expected.values()) + nulls, nulls)
    assert entry["most_frequent"] == sorted(expected.values(), reverse=True)
    assert entry["attacks"][0]["recovered_rows"] >= expected["ann"]

    twin.close()
    (listed,) = as_inspected(twin.url, key_file, "staff", capsys)
    names = {column["name"] for column in listed["columns"]}
    assert {"row_id", "id", "dept", code, sealed} <= names
    assert not {"name", "salary", "note"} & names
    assert len(listed["rows"]) == 3
    assert "canary" not in json.dumps(listed)


def as_inspected(
    url: str, key_file: Path, table: str, capsys: pytest.CaptureFixture[str]
) -> list[dict[str, Any]]:
    """The tables that `louver inspect` prints."""
    capsys.readouterr()
    words = ["-u", url, "-k", str(key_file), "--json", "inspect", table, "--rows", "3"]
    assert cli.main(words) == 0
    tables: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["tables"]
    return tables


def stored(twin: EngineTwin, column: str, kind: str) -> tuple[str, str]:
    """A stored column and its table on the server."""
    table = twin.session.context.catalog.table("main", "staff")
    assert table is not None
    values = table.column(column)
    assert values is not None
    return values.stored[kind], twin.session.context.backend.table(table)


@pytest.mark.parametrize("what", ["moved", "altered", "deleted"])
def test_tampering_is_found(make: Make, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of single rows; of tiles see tests/executor/tiles/test_tiles_of_tables.py."""
    monkeypatch.setattr(tile_forms, "ROWS", 1 << 40)
    twin = make(counted=True)
    name, table = stored(twin, "salary", "rnd")
    rows = twin.tap.query(Statement(f"SELECT row_id FROM {table} ORDER BY row_id"))
    first, second = rows.column(0).to_pylist()[:2]
    other = f"(SELECT {name} FROM {table} WHERE row_id = {second})"
    sql = {
        "moved": f"UPDATE {table} SET {name} = {other} WHERE row_id = {first}",
        "altered": f"UPDATE {table} SET {name} = $1 WHERE row_id = {first}",
        "deleted": f"DELETE FROM {table} WHERE row_id = {first}",
    }[what]
    constants = (b"\0" * 37,) if what == "altered" else ()
    twin.tap.run(Statement(sql, constants, kind="write"))
    with pytest.raises(errors.VerificationError):
        twin.louver.execute("SELECT id, salary FROM staff")


def test_exchanged_codes_are_found(make: Make) -> None:
    twin = make()
    name, table = stored(twin, "name", "eq")
    rows = twin.tap.query(Statement(f"SELECT row_id, {name} FROM {table} ORDER BY row_id"))
    code = f"(SELECT {name} FROM {table} WHERE row_id = {rows.column(0)[0].as_py()})"
    twin.tap.run(Statement(f"UPDATE {table} SET {name} = {code}", kind="write"))
    with pytest.raises(errors.VerificationError):
        twin.louver.execute("SELECT id FROM staff WHERE name = 'ann'")


REFUSED = {
    "CREATE TABLE x (a DECIMAL(4, 1))": "engine.type",
    "CREATE TABLE x (a INTEGER[])": "engine.type",
    "ALTER TABLE staff ADD COLUMN a DOUBLE": "engine.type",
    "CREATE TABLE x (a INTEGER ENC USING sdb)": "engine.operation",
    "SET default_collation = 'nocase'": "engine.operation",
}


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_what_an_engine_lacks_is_refused_before_anything_is_done(make: Make) -> None:
    twin = make()
    for sql, code in REFUSED.items():
        with pytest.raises(errors.Error) as caught:
            twin.louver.execute(sql)
        assert caught.value.code == code, sql
    with pytest.raises(errors.Error) as caught:
        twin.louver.execute("CREATE SCHEMA s; CREATE TABLE s.x (a INTEGER)")
    assert caught.value.code == "engine.schema"
    assert sorted(name for name in twin.tap.table_names() if "louver" not in name) == [
        "depts", "staff",
    ]  # fmt: skip
    for sql in QUERIES[:3]:
        twin.run(sql)


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_only_what_means_the_same_there_is_pushed(make: Make) -> None:
    twin = make()
    for condition in CONDITIONS:
        sent = twin.remote(f"SELECT count(*) FROM staff WHERE {condition}")
        assert not re.search(r"\+|\*\s|LIKE|CAST|lower|::|/", sent.replace("count(*)", "")), sent
    assert 'WHERE (t0."id" = 3)' in twin.remote("SELECT count(*) FROM staff WHERE id = 3")
    assert "'it'" in twin.remote("SELECT count(*) FROM staff WHERE dept = 'it'")


def test_the_toy_engine_is_two_files_and_changes_none_of_the_product() -> None:
    toy = {path.name for path in (ROOT / "tests" / "toy").glob("*.py")}
    assert {"backend.py", "engine.py"} <= toy
    assert "sqlite" not in backends.ENGINES
    # DuckDB's own tables and functions that begin so, and the control file of lakes.
    allowed = {"schema_queries.py"}
    naming = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "src" / "louver" / "trusted").rglob("*.py")
        if "sqlite" in path.read_text(encoding="utf-8").lower() and path.name not in allowed
    ]
    assert naming == []
