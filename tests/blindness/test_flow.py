"""The flow rule through the tap: a refused change sends nothing, and nothing of it was sent before.

Which forms are refused is said in tests/planner/test_flow.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from louver import errors
from tests.recorded import RecordedSession, needles

NAME = "wombat-behind-the-boiler"
PAY = 6_203_517_000_000
SETUP = f"""
CREATE TABLE staff (id INTEGER PRIMARY KEY, quokka_name VARCHAR ENC, pay BIGINT ENC, city VARCHAR);
INSERT INTO staff VALUES (1, '{NAME}', {PAY}, 'Oslo'), (2, 'Bo', {PAY + 1}, 'Rome');
CREATE TABLE report (a VARCHAR, b VARCHAR);
CREATE TABLE probe (x BIGINT);
INSERT INTO probe VALUES (5), ({PAY // 2});
CREATE TABLE vault (secret VARCHAR ENC MAY REVEAL size, open VARCHAR ENC MAY REVEAL order);
CREATE VIEW columns_of AS SELECT column_name FROM information_schema.columns;
CREATE VIEW hinted AS SELECT city FROM staff WHERE quokka_name = '{NAME}';
"""
REFUSED = f"""
INSERT INTO report (a) SELECT * EXCLUDE (id, pay, city) FROM staff
INSERT INTO report (a) SELECT COLUMNS('quokka_name') FROM staff
INSERT INTO report SELECT * REPLACE (n AS a) FROM (SELECT a, quokka_name AS n FROM report, staff)
INSERT INTO report (a) SELECT q.t FROM staff, (SELECT staff.quokka_name AS t) q
INSERT INTO probe SELECT x * 2 FROM staff, probe, unnest(CASE WHEN pay = x * 2 THEN [1] END) u
INSERT INTO probe SELECT x * 2 FROM probe, LATERAL (SELECT 1 FROM staff WHERE pay = x * 2) q
INSERT INTO report (a) SELECT name FROM pragma_table_info('staff')
INSERT INTO report (a) SELECT column_name FROM columns_of
INSERT INTO report (a) SELECT sql FROM duckdb_views()
INSERT INTO report (a) SELECT column_name FROM (DESCRIBE staff)
INSERT INTO report (a) SELECT constraint_text FROM duckdb_constraints()
INSERT INTO vault (open) SELECT quokka_name FROM staff
UPDATE vault SET open = '{NAME}' || secret
UPDATE report SET a = (SELECT max(quokka_name) FROM staff)
MERGE INTO report USING staff ON a = city WHEN NOT MATCHED THEN INSERT VALUES (quokka_name, 'x')
INSERT INTO staff (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET city = quokka_name
""".strip().splitlines()


def test_a_refused_change_sends_nothing(tmp_path: Path, key_file: Path) -> None:
    watched = RecordedSession(tmp_path / "watched.duckdb", key_file, "sealed")
    run = watched.session.execute
    run(SETUP)
    for sql in REFUSED:
        for _ in range(2):
            before = len(watched.tap.sent())
            with pytest.raises(errors.LeakageRefused) as caught:
                run(sql)
            assert caught.value.code == "leak.flow", sql
            assert len(watched.tap.sent()) <= before + 1, "the version of the catalog at most"
    run("INSERT INTO report SELECT city, id FROM staff WHERE pay > 5")
    run("CREATE TABLE copy AS SELECT column_name AS c FROM (DESCRIBE staff)")
    hidden = [NAME.encode(), b"quokka_name", *needles(PAY), *needles(PAY + 1)]
    assert not watched.holds(*hidden)
    watched.session.close()


UNREACHED = (
    "CREATE VIEW v AS SELECT city FROM other.staff",
    "CREATE VIEW v AS SELECT o.city FROM staff JOIN Other.staff AS o USING (id)",
    "CREATE MACRO m() AS TABLE SELECT city FROM other.staff",
    "UPDATE report SET a = 'x' FROM other.staff AS o WHERE o.city = a",
    "DELETE FROM report WHERE a IN (SELECT city FROM other.staff)",
    "INSERT INTO other.staff (city) VALUES ('x')",
    "MERGE INTO report USING other.staff AS o ON a = o.city WHEN MATCHED THEN DELETE",
)
"""Statements that name an attached connection where Louver does not read it."""

ATTACHED = {
    "INSERT INTO report (a) SELECT quokka_name FROM other.staff": "leak.flow",
    "INSERT INTO report (a) SELECT staff.quokka_name FROM staff, other.staff s": "leak.flow",
    "INSERT INTO report (a) SELECT * EXCLUDE (id, pay, city) FROM other.staff": "leak.flow",
    "INSERT INTO report (a) SELECT s.city FROM other.staff s JOIN staff USING (pay)": "leak.flow",
    "INSERT INTO report (a) SELECT city FROM other.staff": "",
    "INSERT INTO report (a) SELECT city FROM other.staff WHERE quokka_name = 'x'": "",
    "INSERT INTO vault (open) SELECT city FROM other.staff": "",
    "CREATE TABLE copied AS SELECT quokka_name, city FROM other.staff": "",
    "CREATE TABLE n AS SELECT o.pay FROM other.staff AS o, probe WHERE o.pay < x": "leak.flow",
    "CREATE TABLE n AS SELECT o.pay FROM other.staff AS o, range(o.pay)": "leak.flow",
    "INSERT INTO vault SELECT 'x', 'y' FROM other.staff AS o, probe WHERE o.pay < x": "leak.flow",
}


def test_the_rule_holds_across_connections(tmp_path: Path, key_file: Path) -> None:
    other = RecordedSession(tmp_path / "other.duckdb", key_file, "sealed")
    other.session.execute(SETUP)
    other.session.close()
    watched = RecordedSession(tmp_path / "watched.duckdb", key_file, "sealed")
    run = watched.session.execute
    run(SETUP + f"ATTACH 'duckdb:///{tmp_path / 'other.duckdb'}' AS other")
    for sql, code in ATTACHED.items():
        if code:
            with pytest.raises(errors.LeakageRefused) as caught:
                run(sql)
            assert caught.value.code == code, sql
        else:
            run(sql)
    run("CREATE SEQUENCE sq")
    with pytest.raises(errors.NotSupportedError):
        run("SELECT nextval('sq'), city FROM other.staff")
    for sql in UNREACHED:
        with pytest.raises(errors.NotSupportedError) as refused:
            run(sql)
        assert refused.value.code == "attach.reads", sql
    kinds = [fact.kind for fact in watched.session.context.attached["other"].ledger.facts()]
    assert "rows.copied" in kinds, "what is shown of another server's table is its ledger's"
    assert not watched.holds(NAME.encode(), b"quokka_name", *needles(PAY))
    watched.session.close()


DECLARED = (
    "CREATE TABLE g (a INT ENC MAY REVEAL size,"
    " b INT ENC MAY REVEAL order GENERATED ALWAYS AS (a + 1) VIRTUAL)",
    "CREATE TABLE g (k INTEGER REFERENCES keys (k))",
    "CREATE TABLE g (k INTEGER ENC MAY REVEAL order REFERENCES keys (k))",
    "CREATE TABLE g (e VARCHAR ENC, q VARCHAR DEFAULT current_query())",
    "ALTER TABLE held ADD COLUMN q VARCHAR DEFAULT current_query()",
    "ALTER TABLE held ALTER COLUMN p SET DEFAULT current_query()",
    "ALTER TABLE held ALTER COLUMN b MAY REVEAL order",
    "ALTER TABLE held ALTER COLUMN a MAY REVEAL size",
    "ALTER TABLE held ALTER COLUMN k MAY REVEAL order",
    "ALTER TABLE keys ALTER COLUMN k MAY REVEAL size",
)


def test_declarations_are_held_to_it(tmp_path: Path, key_file: Path) -> None:
    watched = RecordedSession(tmp_path / "watched.duckdb", key_file, "sealed")
    run = watched.session.execute
    run("CREATE TABLE keys (k INTEGER ENC PRIMARY KEY)")
    run(
        "CREATE TABLE held (a INT ENC, b INT GENERATED ALWAYS AS (a + 1) VIRTUAL,"
        " k INT ENC REFERENCES keys (k), p VARCHAR DEFAULT 'x', t TIMESTAMP DEFAULT now())"
    )
    for sql in DECLARED:
        with pytest.raises(errors.LeakageRefused) as caught:
            run(sql)
        assert caught.value.code == "leak.flow", sql
    run("INSERT INTO keys VALUES (1)")
    run("INSERT INTO held (a, k) VALUES (1, 1)")
    run("ALTER TABLE keys ALTER COLUMN k MAY REVEAL order")
    run("ALTER TABLE held ALTER COLUMN k MAY REVEAL order")
    watched.session.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT max(nextval('sq')) FROM range((SELECT pay FROM staff WHERE id = 9))",
        "SELECT count(nextval('sq')) FROM staff, range(staff.pay)",
        "SELECT count(drawn) FROM (SELECT n() AS drawn FROM staff WHERE pay = 5)",
        "INSERT INTO vault SELECT nextval('sq')::TEXT, 'x' FROM staff WHERE pay > 5",
        "UPDATE staff SET id = nextval('sq') WHERE pay > 5",
        "INSERT INTO vault SELECT CASE WHEN pay > 5 THEN nextval('sq') END, 'x' FROM staff",
        "INSERT INTO vault SELECT nextval('sq'), 'x' FROM staff JOIN probe ON pay = x",
        "SELECT nextval('sq'), id FROM staff WHERE pay > 5",
        "SELECT nextval('sq'), id FROM staff WHERE nextval('sq') > pay",
    ],
)
def test_a_sequence_does_not_carry_secrets(tmp_path: Path, key_file: Path, sql: str) -> None:
    watched = RecordedSession(tmp_path / "watched.duckdb", key_file, "sealed")
    run = watched.session.execute
    run(SETUP)
    run("CREATE SEQUENCE sq; CREATE MACRO n() AS nextval('sq')")
    run("INSERT INTO staff VALUES (9, 'x', 4321, 'y')")
    with pytest.raises(errors.LeakageRefused) as caught:
        run(sql)
    assert caught.value.code == "leak.flow"
    run("INSERT INTO probe VALUES (nextval('sq'))")
    rows = run("SELECT x FROM probe WHERE x < 10 ORDER BY x").rows
    assert rows is not None
    assert rows.column(0).to_pylist() == [1, 5], "nothing was drawn before"
    assert run("SELECT nextval('sq'), id FROM staff LIMIT 1").rows is not None
    # One for every row of a table shows how many rows it has, and no more.
    run("CREATE TABLE numbered (place BIGINT, city VARCHAR, pay BIGINT ENC)")
    run("INSERT INTO numbered SELECT nextval('sq'), city, pay FROM staff")
    drawn = run("SELECT place FROM numbered ORDER BY place").rows
    assert drawn is not None
    assert drawn.column(0).to_pylist() == [3, 4, 5]
    watched.session.close()
