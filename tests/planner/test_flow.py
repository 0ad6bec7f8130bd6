"""The flow rule form by form: what a target may depend on, decided on trees and a catalog alone."""

from __future__ import annotations

import re

import pytest

import louver.trusted.vault.schemes  # noqa: F401 - has the sentences of leaks
from louver import errors
from louver.trusted.planner.sql import lexer, trees
from louver.trusted.planner.write import information_flow, local, permit
from louver.trusted.planner.write.reads import Reads
from louver.trusted.vault.catalog import Catalog, Column, HomeObject, Table
from louver.trusted.vault.facts import Fact

#: Columns with a ceiling are ENC.
TABLES = {
    "staff": "id, name size, pay size, city, tags size",
    "report": "a, b",
    "numbers": "n",
    "probe": "x",
    "vault": "id, secret size, open order",
    "sealed": "secret size, n size",
    "chosen": "id, name access, e2 access, city, known equality",
    "free": "id, name plaintext",
    "hollow": "a, rowid size",
}
OBJECTS = (
    "CREATE VIEW seen AS SELECT name, city FROM staff",
    "CREATE VIEW renamed (x, y) AS SELECT city, name FROM staff",
    "CREATE VIEW columns_of AS SELECT table_name, column_name FROM information_schema.columns",
    "CREATE VIEW hinted AS SELECT city FROM staff WHERE name = 'Ann'",
    "CREATE MACRO top() AS (SELECT max(name) FROM staff)",
    "CREATE MACRO whole(x) AS TABLE SELECT name, city FROM staff",
)
KEYS = {"staff": ["id"], "chosen": ["name"]}
TARGET = re.compile(r"(?:INSERT (?:OR REPLACE )?INTO|UPDATE|DELETE FROM|MERGE INTO) (\w+)")
REFUSED = """
INSERT INTO sealed SELECT name, pay FROM staff WHERE pay > 5 AND name <> city
INSERT INTO report SELECT * EXCLUDE (id, pay, tags) FROM staff
INSERT INTO report SELECT COLUMNS('name|city') FROM staff
INSERT INTO report SELECT COLUMNS(c -> c = 'name'), 'x' FROM staff
INSERT INTO report (a) SELECT COLUMNS('name') FROM staff
INSERT INTO report SELECT * REPLACE (name AS city) FROM (SELECT city, 'x' AS b, name FROM staff) q
INSERT INTO report (a) SELECT * REPLACE (name AS city) FROM (SELECT city FROM staff) q, staff
INSERT INTO report SELECT * RENAME (name AS b) FROM (SELECT city, name FROM staff)
INSERT INTO report (a) SELECT name FROM staff
INSERT INTO report (a) SELECT staff.name FROM staff
INSERT INTO report (a) SELECT main.staff.name FROM staff
INSERT INTO report (a) SELECT s.name FROM staff AS s
INSERT INTO report (a) SELECT x FROM staff AS s (i, x)
INSERT INTO report (a) SELECT staff FROM staff
INSERT INTO report (a) SELECT s::VARCHAR FROM staff s
INSERT INTO report (a) SELECT to_json(s) FROM staff s
INSERT INTO report (a) SELECT struct_pack(name).name FROM staff
INSERT INTO report (a) SELECT unnest(tags) FROM staff
INSERT INTO report (a) SELECT t FROM staff, unnest(tags) u(t)
INSERT INTO report (a) SELECT t FROM staff, LATERAL (SELECT name AS t) q
INSERT INTO report (a) SELECT t FROM staff, (SELECT staff.name AS t) q
INSERT INTO report (a) SELECT list(name)::VARCHAR FROM staff
INSERT INTO report (a) SELECT max(name) OVER () FROM staff
INSERT INTO report (a) SELECT first_value(name) OVER (ORDER BY id) FROM staff
INSERT INTO report (a) SELECT row_number() OVER (ORDER BY name) FROM staff
INSERT INTO report (a) SELECT id FROM staff QUALIFY row_number() OVER (ORDER BY name) = 1
INSERT INTO report (a) SELECT DISTINCT ON (name) city FROM staff
INSERT INTO report (a) SELECT city FROM staff GROUP BY city, name
INSERT INTO report (a) SELECT city FROM staff GROUP BY ROLLUP (city, name)
INSERT INTO report (a) SELECT count(*) FROM staff GROUP BY GROUPING SETS ((city), (name))
INSERT INTO report (a) SELECT staff.name.field FROM staff
INSERT INTO report (a) SELECT #2 FROM staff
INSERT INTO report (a) SELECT city FROM staff GROUP BY city HAVING max(pay) > 3
INSERT INTO report (a) SELECT city FROM staff ORDER BY pay
INSERT INTO report (a) SELECT city FROM staff ORDER BY pay LIMIT 1
INSERT INTO report (a) SELECT city FROM staff WHERE name = 'x'
INSERT INTO report (a) SELECT city FROM staff WHERE id IN (SELECT id FROM staff WHERE pay > 5)
INSERT INTO report (a) SELECT a.city FROM staff a LEFT JOIN staff b ON a.id = b.id AND b.pay > 5
INSERT INTO report (a) SELECT b.city FROM staff a LEFT JOIN staff b ON a.id = b.id AND a.pay > 5
INSERT INTO report (a) SELECT a.city FROM staff a SEMI JOIN staff b ON a.name = b.name
INSERT INTO report (a) SELECT a.city FROM staff a JOIN staff b USING (name)
INSERT INTO report (a) SELECT a.city FROM staff a NATURAL JOIN staff b
INSERT INTO report (a) SELECT a.city FROM staff a POSITIONAL JOIN (SELECT name FROM staff) b
INSERT INTO report (a) WITH q AS (SELECT name FROM staff) SELECT * FROM q
WITH q AS (SELECT name FROM staff) INSERT INTO report (a) SELECT * FROM q
INSERT INTO report (a) WITH RECURSIVE q AS (SELECT name FROM staff UNION SELECT * FROM q) FROM q
INSERT INTO report (a) SELECT city FROM staff UNION ALL SELECT name FROM staff
INSERT INTO report (a) SELECT city FROM staff EXCEPT SELECT name FROM staff
INSERT INTO report (a) SELECT city AS a FROM staff UNION BY NAME SELECT name AS a FROM staff
INSERT INTO report BY NAME SELECT name AS a FROM staff
INSERT INTO report BY NAME SELECT * EXCLUDE (id), name AS a FROM staff
INSERT INTO report FROM seen
INSERT INTO report FROM renamed
INSERT INTO report (a) SELECT y FROM renamed
INSERT INTO report (a) FROM hinted
INSERT INTO report (a) SELECT top()
INSERT INTO report FROM whole(1)
INSERT INTO report (a) SELECT (SELECT max(name) FROM staff)
INSERT INTO report (a) SELECT EXISTS (SELECT 1 FROM staff WHERE name = 'x')
INSERT INTO report (a) SELECT name IS NULL FROM staff
INSERT INTO report (a) SELECT count(*) FROM staff WHERE pay > 5
INSERT INTO report (a) SELECT CASE WHEN pay > 5 THEN 'high' ELSE 'low' END FROM staff
INSERT INTO report (a) SELECT [x FOR x IN tags]::VARCHAR FROM staff
INSERT INTO report (a) SELECT list_transform(tags, lambda x: x || 'y')::VARCHAR FROM staff
INSERT INTO report (a) PIVOT staff ON city USING first(name)
INSERT INTO report UNPIVOT (SELECT name, city FROM staff) ON name, city
INSERT INTO report (a) FROM (SUMMARIZE staff) SELECT max
INSERT INTO report (a) VALUES ((SELECT max(name) FROM staff))
INSERT INTO report (a) SELECT name AS city FROM staff
INSERT INTO report (a, b) SELECT name AS x, x FROM staff
INSERT INTO report (b, a) SELECT id, name AS id FROM staff
INSERT INTO numbers SELECT r.i FROM staff s, range(10) r(i) WHERE r.i = s.pay
INSERT INTO numbers SELECT x FROM staff s, probe p WHERE s.pay = p.x
INSERT INTO numbers SELECT x FROM staff s, (VALUES (5), (6)) v(x) WHERE s.pay = v.x
INSERT INTO numbers SELECT x FROM (VALUES (5), (6)) v(x) WHERE x IN (SELECT pay FROM staff)
INSERT INTO numbers SELECT x FROM probe p, LATERAL (SELECT 1 FROM staff s WHERE s.pay = p.x) q
INSERT INTO numbers SELECT x FROM probe p, (SELECT 1 FROM staff s WHERE s.pay = p.x) q
INSERT INTO numbers SELECT p.x FROM staff s, probe p, unnest(CASE WHEN s.pay = p.x THEN [1] END) u
INSERT INTO numbers SELECT unnest(CASE WHEN s.pay = p.x THEN [p.x] END) FROM staff s, probe p
INSERT INTO report SELECT column_name, data_type FROM information_schema.columns
INSERT INTO report (a) SELECT column_name FROM columns_of
INSERT INTO report SELECT * EXCLUDE (table_name), 'x' FROM columns_of
INSERT INTO report (a) SELECT name FROM pragma_table_info('staff')
INSERT INTO report (a) SELECT constraint_text FROM duckdb_constraints()
INSERT INTO report (a) SELECT sql FROM duckdb_views()
INSERT INTO report (a) SELECT sql FROM duckdb_views
INSERT INTO report (a) SELECT sql FROM sqlite_master
INSERT INTO report (a) SELECT attname FROM pg_catalog.pg_attribute
INSERT INTO report (a) SELECT column_name FROM (DESCRIBE staff)
INSERT INTO report (a) SELECT column_name FROM (DESCRIBE SELECT * FROM staff)
INSERT INTO report (a) SELECT current_query()
INSERT INTO report (a) VALUES (current_query())
INSERT INTO report (a) SELECT current_setting('search_path')
INSERT INTO report (a) SELECT getvariable('x')
INSERT INTO vault VALUES (1, 'x', current_query())
INSERT INTO vault (id, open) SELECT id, name FROM staff
INSERT INTO vault (id, open) SELECT id, upper(name) || city FROM staff
INSERT INTO vault (id, secret) SELECT id, name FROM staff WHERE pay > 5
INSERT INTO vault (id, secret) SELECT id, name FROM staff ORDER BY pay
UPDATE report SET a = (SELECT max(name) FROM staff)
UPDATE report SET a = name FROM staff
UPDATE report SET (a, b) = (SELECT max(name), 'x' FROM staff)
UPDATE report SET a = current_query()
UPDATE report SET a = 'x' WHERE b IN (SELECT name FROM staff)
UPDATE report SET a = 'x' WHERE EXISTS (SELECT 1 FROM staff WHERE name = b)
UPDATE report SET a = 'x' FROM staff WHERE staff.name = report.b
UPDATE report SET a = v.y FROM staff, (VALUES ('a', 'b'), ('c', 'd')) v(x, y) WHERE name = v.x
UPDATE staff SET city = name
UPDATE staff SET city = CASE WHEN pay > 3 THEN 'a' ELSE 'b' END
UPDATE staff SET city = 'x' WHERE name = city
UPDATE staff SET city = 'x' WHERE name = 'y'
UPDATE staff SET city = 'x' WHERE rowid = pay
UPDATE vault SET open = rowid || secret
UPDATE hollow SET a = rowid
INSERT INTO report SELECT rowid, rowid FROM renamed
INSERT INTO report SELECT s.*, 'x' FROM (SELECT rowid FROM hollow) s
UPDATE vault SET open = secret
UPDATE vault SET open = upper(secret) || 'x'
DELETE FROM report WHERE a IN (SELECT name FROM staff)
DELETE FROM report USING staff WHERE a = name
DELETE FROM staff WHERE name = 'x'
MERGE INTO report USING staff ON report.a = staff.city WHEN MATCHED THEN UPDATE SET b = name
MERGE INTO report USING staff ON report.a = staff.name WHEN MATCHED THEN UPDATE SET b = 'x'
MERGE INTO report USING staff ON a = city WHEN NOT MATCHED THEN INSERT VALUES (name, 'x')
MERGE INTO report USING staff ON a = city WHEN NOT MATCHED AND pay > 3 THEN INSERT VALUES ('x', 'x')
MERGE INTO staff USING (SELECT 'x' AS n) q ON name = q.n WHEN MATCHED THEN UPDATE SET city = 'y'
MERGE INTO report USING staff ON a = city WHEN NOT MATCHED THEN INSERT *
MERGE INTO report USING staff ON a = city WHEN MATCHED THEN UPDATE
INSERT INTO staff (id, city) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET city = name
INSERT INTO staff (id, city) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET city = staff.name
INSERT INTO staff (id, name) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET city = excluded.name
INSERT INTO staff (id, city) SELECT id, name FROM staff ON CONFLICT DO NOTHING
INSERT OR REPLACE INTO staff (id, city) SELECT id, name FROM staff
""".strip().splitlines()
ALLOWED = """
INSERT INTO report SELECT city, id::VARCHAR FROM staff
INSERT INTO report (a) SELECT DISTINCT city FROM staff ORDER BY city LIMIT 3
INSERT INTO report SELECT upper(city) || 'x' AS a, a FROM staff s WHERE s.id > 0 AND city <> 'x'
INSERT INTO report (a) SELECT count(*) FROM staff
INSERT INTO report SELECT city, count(*) FROM staff GROUP BY city HAVING count(*) > 0
INSERT INTO report SELECT city, count(*) FROM staff GROUP BY ALL ORDER BY ALL
INSERT INTO report (a) SELECT x FROM renamed
INSERT INTO report (a) SELECT city FROM seen
INSERT INTO report (a) SELECT s.city FROM staff s JOIN probe p ON s.id = p.x
INSERT INTO report (a) SELECT city FROM staff UNION ALL SELECT 'x'
INSERT INTO report (a) WITH q AS (SELECT city AS c FROM staff) SELECT c FROM q
INSERT INTO report (a) SELECT city FROM staff WHERE id IN (SELECT x FROM probe)
INSERT INTO report (a) SELECT city FROM staff s WHERE EXISTS (FROM probe p WHERE p.x = s.id)
INSERT INTO report BY NAME SELECT city AS b FROM staff
INSERT INTO report FROM (VALUES ('a', 'b'))
INSERT INTO report (a) SELECT row_number() OVER (ORDER BY n) FROM numbers
INSERT INTO report (a) SELECT * EXCLUDE (b) FROM report
INSERT INTO report (a) SELECT COLUMNS('a') FROM report
INSERT INTO report (a) SELECT unnest([n]) FROM numbers
INSERT INTO report (a) SELECT main.staff.city FROM staff WHERE main.staff.id > 1
INSERT INTO report (a) SELECT city FROM staff GROUP BY 1
INSERT INTO report (a) SELECT now()
INSERT INTO report (a) SELECT i FROM range(5) r(i)
INSERT INTO numbers SELECT * FROM range(5)
INSERT INTO numbers SELECT nextval('seq') FROM staff
INSERT INTO sealed (secret) SELECT name FROM staff
INSERT INTO sealed SELECT max(name), count(*) FROM staff GROUP BY city
INSERT INTO sealed SELECT COLUMNS('name|pay') FROM staff
INSERT INTO sealed (secret) SELECT current_query()
INSERT INTO sealed (secret) SELECT column_name FROM (DESCRIBE staff)
INSERT INTO vault (id, secret) SELECT id, name FROM staff
INSERT INTO staff (id, name, city) VALUES (3, 'x', 'y'), (4, upper('z'), DEFAULT)
UPDATE staff SET name = upper(name), city = upper(city)
UPDATE staff SET city = 'x' WHERE id = 1
UPDATE report SET a = p.x FROM probe p WHERE p.x = 5
UPDATE report SET a = (SELECT max(n) FROM numbers)
UPDATE vault SET secret = secret || 'x'
DELETE FROM staff WHERE id = 1
DELETE FROM staff WHERE rowid = 0
UPDATE staff SET id = staff.rowid, city = 'x' WHERE rowid + id > 3
INSERT INTO report SELECT s.rowid, rowid FROM staff s
DELETE FROM report WHERE a IN (SELECT city FROM staff)
INSERT INTO staff (id, name) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = excluded.name
INSERT INTO staff (id, city) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET city = excluded.city
INSERT OR REPLACE INTO staff (id, name, city) VALUES (1, 'x', 'y')
MERGE INTO staff USING probe p ON id = p.x WHEN NOT MATCHED THEN INSERT (id, name) VALUES (9, 'x')
""".strip().splitlines()
#: Under `access`: what shows which rows were chosen, and by which column.
CHOSEN = {
    "INSERT INTO report (a) SELECT city FROM chosen WHERE name = 'x' AND id > 3": "name",
    "INSERT INTO report (a) SELECT city FROM chosen WHERE e2 > 'a' OR id = 1": "e2",
    "UPDATE chosen SET city = 'x' WHERE name = 'y'": "name",
    "UPDATE report SET a = 'x' WHERE EXISTS (SELECT 1 FROM chosen WHERE e2 = 'c')": "e2",
    "DELETE FROM chosen WHERE upper(name) LIKE 'A%' OR (name, id) IN (('x', 1), ('y', 2))": "name",
    "DELETE FROM chosen USING (VALUES ('a'), ('b')) v(x) WHERE name = v.x": "name",
    "MERGE INTO chosen USING (VALUES ('a', 'b')) q(x, y) ON name = q.x"
    " WHEN MATCHED THEN UPDATE SET city = q.y WHEN NOT MATCHED THEN INSERT (name) VALUES (q.x)":
        "name",
    "INSERT INTO chosen (name, city) VALUES ('a', 'b'), ('c', 'd')"
    " ON CONFLICT (name) DO UPDATE SET city = excluded.city": "name",
    "INSERT OR REPLACE INTO chosen (name, city) VALUES ('a', 'b')": "name",
}  # fmt: skip
COMPARED = """
INSERT INTO report (a) SELECT city FROM chosen WHERE name = city
INSERT INTO report (a) SELECT x FROM chosen, probe WHERE name = x
INSERT INTO report (a) SELECT a.city FROM chosen a JOIN chosen b ON a.name = b.e2
INSERT INTO report (a) SELECT v.y FROM chosen JOIN (VALUES (1, 2), (3, 4)) v(x, y) ON name = v.x
INSERT INTO report (a) SELECT x FROM chosen, range(9) r(x) WHERE known = x
UPDATE report SET a = 'x' WHERE b IN (SELECT known FROM chosen)
UPDATE chosen SET city = v.y FROM (VALUES ('a', 'b'), ('c', 'd')) v(x, y) WHERE name = v.x
UPDATE chosen SET city = (SELECT x FROM probe WHERE x = name)
DELETE FROM report USING chosen WHERE known = a
DELETE FROM chosen WHERE (id, name) IN ((1, 'x'), (1, city))
DELETE FROM report WHERE a IN (SELECT a FROM report INTERSECT SELECT name FROM chosen)
MERGE INTO report USING chosen ON a = known WHEN MATCHED THEN DELETE
MERGE INTO chosen USING probe ON name = x WHEN NOT MATCHED THEN INSERT (city) VALUES (x)
INSERT INTO chosen (name, city) SELECT x, x FROM probe ON CONFLICT (name) DO UPDATE SET city = 'a'
""".strip().splitlines()

#: Into a table of which every column is ENC, under no higher ceiling: how many rows there are is
#: plain all the same.
COUNTED = (
    """
INSERT INTO sealed SELECT name, pay FROM staff, probe WHERE pay < x
INSERT INTO sealed SELECT name, pay FROM staff JOIN probe ON pay = x
INSERT INTO sealed SELECT name, pay FROM staff LEFT JOIN probe ON pay = x
INSERT INTO sealed SELECT name, pay FROM staff WHERE pay IN (SELECT x FROM probe)
INSERT INTO sealed SELECT name, pay FROM staff WHERE EXISTS (SELECT 1 FROM probe WHERE x > pay)
INSERT INTO sealed SELECT name, pay FROM staff WHERE pay > (SELECT max(x) FROM probe)
INSERT INTO sealed SELECT name, pay FROM staff, range(pay)
INSERT INTO sealed SELECT name, pay FROM staff, range(1000) AS r (x) WHERE pay < x
INSERT INTO sealed SELECT name, pay FROM staff, LATERAL (SELECT unnest(range(pay))) l
INSERT INTO sealed SELECT name, unnest(tags) FROM staff
INSERT INTO sealed SELECT name, unnest(range(length(name))) FROM staff
INSERT INTO sealed SELECT name, pay FROM staff LIMIT (SELECT max(pay) FROM staff)
INSERT INTO sealed SELECT name, pay FROM staff OFFSET (SELECT max(pay) FROM staff)
INSERT INTO sealed SELECT name, pay FROM staff USING SAMPLE 10%
INSERT INTO sealed SELECT name, pay FROM staff QUALIFY max(pay) OVER () > id
INSERT INTO sealed (n) SELECT pay FROM staff INTERSECT SELECT x FROM probe
INSERT INTO sealed (n) SELECT pay FROM staff EXCEPT SELECT x FROM probe
INSERT INTO sealed (n) SELECT pay FROM staff UNION SELECT x FROM probe
INSERT INTO sealed (n) SELECT DISTINCT pay - x FROM staff, probe
INSERT INTO sealed (n) SELECT max(pay) FROM staff, probe GROUP BY pay < x
INSERT INTO sealed (n) SELECT max(pay) FROM staff, probe GROUP BY name HAVING max(pay) < max(x)
INSERT INTO sealed WITH RECURSIVE r(a, b) AS (SELECT name, pay FROM staff UNION ALL \
SELECT a, b - 1 FROM r WHERE b > 0) SELECT * FROM r
DELETE FROM sealed USING probe WHERE n = x
DELETE FROM sealed WHERE n < (SELECT max(x) FROM probe)
DELETE FROM sealed WHERE n IN (SELECT x FROM probe)
MERGE INTO sealed USING probe ON n = x WHEN MATCHED THEN DELETE
MERGE INTO sealed USING probe ON n = x WHEN NOT MATCHED THEN INSERT (n) VALUES (x)
""".replace("\\\n", "")
    .strip()
    .splitlines()
)
UNCOUNTED = (
    """
INSERT INTO sealed SELECT name, pay FROM staff
INSERT INTO sealed SELECT name, pay FROM staff WHERE id IN (SELECT x FROM probe)
INSERT INTO sealed SELECT name, pay FROM staff, probe WHERE id < x
INSERT INTO sealed (n) SELECT DISTINCT pay FROM staff
INSERT INTO sealed SELECT name, max(pay) FROM staff GROUP BY name
INSERT INTO sealed SELECT name, pay FROM staff ORDER BY id LIMIT 10
INSERT INTO sealed SELECT name, pay FROM staff \
QUALIFY row_number() OVER (PARTITION BY name ORDER BY pay) = 1
INSERT INTO sealed SELECT a.name, b.pay FROM staff a JOIN staff b ON a.name = b.name
INSERT INTO sealed SELECT name, pay FROM staff UNION ALL SELECT 'x', x FROM probe
INSERT INTO sealed SELECT name, pay FROM staff JOIN 'keys.csv' AS f ON name = f.name
INSERT INTO sealed SELECT s.name, pay FROM staff AS s JOIN read_csv('k.csv') AS f ON s.name = f.k
""".replace("\\\n", "")
    .strip()
    .splitlines()
)


def catalog() -> Catalog:
    catalog = Catalog("x")
    for name, listed in TABLES.items():
        table = Table("main", name, catalog.take_table_id())
        for column in listed.split(", "):
            known, _, ceiling = column.partition(" ")
            number, secret = catalog.take_column_id(), bool(ceiling)
            level = ceiling or "plaintext"
            table.columns.append(Column(known, "VARCHAR", number, secret, "", level))
        catalog.add(table)
    for sql in OBJECTS:
        _, kind, name = re.split(r"\W+", sql)[:3]
        catalog.objects.append(HomeObject(kind, "main", name, sql))
    return catalog


CATALOG = catalog()


def verdict(sql: str, defaults: dict[str, str] | None = None) -> list[Fact]:
    """What a change shows; raises where that is too much."""
    tokens = lexer.tokens(sql)
    named = TARGET.search(sql)
    assert named is not None
    table = CATALOG.tables["main", named[1]]
    if sql.startswith("INSERT INTO") and "CONFLICT" not in sql:
        words = ("SELECT", "VALUES", "FROM", "WITH", "PIVOT", "UNPIVOT")
        tokens = tokens[next(i for i, t in enumerate(tokens) if t.text.upper() in words) :]
    reads = Reads(CATALOG, trees.parse(sql), tokens, table, local.of_any_time())
    target = information_flow.Target(table, defaults or {}, KEYS.get(named[1], []))
    return permit.Judge(CATALOG, table).judge(information_flow.of_change(reads, target))


@pytest.mark.parametrize("sql", [*REFUSED, *COMPARED])
def test_what_depends_on_a_secret_is_refused(sql: str) -> None:
    with pytest.raises(errors.LeakageRefused) as caught:
        verdict(sql)
    assert caught.value.code in ("leak.flow", "leak.refused")
    assert "plaintext" not in caught.value.fix


@pytest.mark.parametrize("sql", COUNTED)
def test_how_many_rows_there_are_is_plain(sql: str) -> None:
    with pytest.raises(errors.LeakageRefused) as caught:
        verdict(sql)
    assert caught.value.code == "leak.flow"


@pytest.mark.parametrize("sql", UNCOUNTED)
def test_numbers_of_rows_that_tell_no_value(sql: str) -> None:
    verdict(sql)


@pytest.mark.parametrize("sql", ALLOWED)
def test_what_depends_on_none_is_not(sql: str) -> None:
    assert {leak.kind for leak in verdict(sql)} <= {"rows.counted"}


@pytest.mark.parametrize(("sql", "column"), CHOSEN.items())
def test_which_rows_were_chosen_is_access(sql: str, column: str) -> None:
    (leak,) = verdict(sql)
    assert (leak.table, leak.columns, leak.level) == ("chosen", (column,), "access")


def test_the_refusal_names_column_target_and_way_out() -> None:
    with pytest.raises(errors.LeakageRefused) as caught:
        verdict("INSERT INTO report (b) SELECT name FROM staff")
    assert caught.value.code == "leak.flow"
    assert "report.b" in caught.value.message
    assert "staff.name" in caught.value.message
    assert "Declare report.b as ENC MAY REVEAL size" in caught.value.fix
    with pytest.raises(errors.LeakageRefused) as caught:
        verdict("UPDATE vault SET open = secret")
    assert "ALTER TABLE vault ALTER COLUMN open MAY REVEAL size" in caught.value.fix


def test_plaintext_may_go_anywhere_and_is_noted() -> None:
    (leak,) = verdict("INSERT INTO report (a) SELECT max(name) OVER () FROM free")
    assert (leak.table, leak.columns, leak.level) == ("free", ("name",), "plaintext")


@pytest.mark.parametrize("default", ["current_query()", "top()", "getvariable('x')"])
def test_defaults_count_as_written(default: str) -> None:
    for sql in (
        "INSERT INTO vault (secret) VALUES ('x')",
        "INSERT INTO vault VALUES (DEFAULT, 'x')",
    ):
        with pytest.raises(errors.LeakageRefused):
            verdict(sql, {"id": default})
        verdict(sql, {"id": "nextval('seq')"})
    verdict("INSERT INTO vault (id, secret) VALUES (1, 'x')", {"id": default})
