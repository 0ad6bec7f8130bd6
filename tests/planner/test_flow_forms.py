"""The flow rule on forms of MERGE, types and functions that it understands."""

from __future__ import annotations

import pytest

from louver import errors
from tests.planner.test_flow import verdict

REFUSED = """
MERGE INTO report USING staff ON a = city WHEN NOT MATCHED THEN INSERT
MERGE INTO report USING staff ON a = city WHEN NOT MATCHED THEN INSERT BY NAME
MERGE INTO report USING (SELECT city a, pay b FROM staff) s USING (a) WHEN MATCHED THEN UPDATE
MERGE INTO report USING (SELECT 'x' a, name b FROM staff) s USING (a) WHEN MATCHED THEN UPDATE
MERGE INTO chosen USING chosen c ON c.name = chosen.e2 WHEN MATCHED THEN UPDATE
UPDATE report SET a = TRY(name) FROM staff
UPDATE staff SET city = 'x' WHERE TRY(pay + 1) > 3
INSERT INTO report (a) SELECT cardinality(MAP {name: 1}) FROM staff
INSERT INTO report (a) SELECT name::STRUCT(city INT) FROM staff
INSERT INTO report (a) SELECT city FROM staff WHERE range(pay) = [0]
INSERT INTO report (a) SELECT list_where([1], [pay > 3]) FROM staff
INSERT INTO report (a) SELECT unnest(range(pay)) FROM staff
INSERT INTO report (a) SELECT city FROM (SELECT DISTINCT ON (2) city, pay FROM staff)
INSERT INTO report (a) SELECT city FROM (SELECT DISTINCT ON (city, (2)) city, pay FROM staff)
INSERT INTO report (a) SELECT city FROM (SELECT city, pay FROM staff ORDER BY (2) LIMIT 1)
INSERT INTO report (a) SELECT city FROM (SELECT city, pay FROM staff ORDER BY ((2)) DESC LIMIT 1)
INSERT INTO report (a) SELECT n FROM (SELECT pay % 2, count(*) AS n FROM staff GROUP BY (1))
INSERT INTO report (a) SELECT n FROM (SELECT city, pay, count(*) AS n FROM staff GROUP BY (1, 2))
INSERT INTO report (a) SELECT n FROM (SELECT city, pay, count(*) n FROM staff GROUP BY ALL)
""".strip().splitlines()
ALLOWED = """
MERGE INTO report USING (SELECT 'x' a, 'y' b) s USING (a) WHEN NOT MATCHED THEN INSERT BY NAME
MERGE INTO report USING (SELECT city a, 'y' b FROM staff) s USING (a) WHEN MATCHED THEN UPDATE
MERGE INTO sealed USING (SELECT name AS secret FROM staff) s ON false WHEN NOT MATCHED THEN INSERT
INSERT INTO report (a) SELECT city::STRUCT(a INT, b UNION(c INT[3])) FROM staff WHERE [0] = [id]
INSERT INTO report (a) SELECT TRY(city::INT) FROM staff WHERE TRY(id + 1) = 3
INSERT INTO report (a) SELECT list_unique(range(id)) FROM staff WHERE range(id) = [0]
INSERT INTO report (a) SELECT DISTINCT ON (1) city FROM staff ORDER BY (1)
INSERT INTO report (a) SELECT city FROM staff GROUP BY (city, 1) ORDER BY city
UPDATE sealed SET n = TRY(n + 1), secret = list_where([secret], [true])[1]
""".strip().splitlines()


@pytest.mark.parametrize("sql", REFUSED)
def test_what_depends_on_a_secret_is_refused(sql: str) -> None:
    with pytest.raises(errors.LeakageRefused) as caught:
        verdict(sql)
    assert caught.value.code in ("leak.flow", "leak.refused")


@pytest.mark.parametrize("sql", ALLOWED)
def test_what_depends_on_none_is_not(sql: str) -> None:
    assert verdict(sql) == []


@pytest.mark.parametrize("default", ["main.list_value('a')", "main.struct_pack(a := 'x')"])
def test_defaults_as_duckdb_prints_them(default: str) -> None:
    verdict("INSERT INTO vault (secret) VALUES ('x')", {"id": default})
