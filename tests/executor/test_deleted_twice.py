"""A row with several partners is deleted once, as in DuckDB: in keyed tables too."""

from __future__ import annotations

import pytest

from tests.twin import Twin

SETUP = """
CREATE SEQUENCE numbers;
CREATE TABLE parent (id BIGINT ENC PRIMARY KEY, above BIGINT ENC REFERENCES parent (id));
CREATE TABLE t (id BIGINT ENC UNIQUE, a BIGINT ENC, n BIGINT DEFAULT nextval('numbers'),
                p BIGINT ENC REFERENCES parent (id));
CREATE TABLE s (id BIGINT, b BIGINT);
INSERT INTO parent VALUES (1, NULL);
INSERT INTO parent VALUES (2, 1);
INSERT INTO t (id, a, p) VALUES (1, 10, 1), (2, 20, 2), (3, 30, NULL), (NULL, 40, 1);
INSERT INTO s VALUES (1, 5), (1, 6), (2, 7), (2, 8), (9, 9)
"""
CHANGES = (
    "DELETE FROM t USING s WHERE t.id = s.id AND s.b < 7 RETURNING t.a",
    "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE"
    " WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id + s.b, s.b)",
    "MERGE INTO t USING (FROM s WHERE b > 6) AS s ON t.p = 1 WHEN MATCHED THEN DELETE",
    "INSERT INTO t (id, a) VALUES (1, 11)",
    "DELETE FROM parent USING s WHERE parent.id = 2 AND s.id = 2",
)


@pytest.mark.parametrize("begin", [False, True])
def test_rows_with_several_partners_go_once(open_connection, begin: bool) -> None:
    twin = Twin.beside(open_connection("sdb"), own_errors=True)
    for sql in SETUP.split(";"):
        twin.fill(sql)
    if begin:
        twin.fill("BEGIN")
    for sql in CHANGES[:3] if begin else CHANGES:
        twin.fill(sql)
        twin.either("SELECT id, a, p, n IS NULL FROM t")
        twin.either("SELECT * FROM parent")
    twin.either("INSERT INTO t (id, a) VALUES (9 + 9, 0)")
    if begin:
        twin.fill("ROLLBACK")
        twin.either("SELECT id, a, p, n FROM t")
