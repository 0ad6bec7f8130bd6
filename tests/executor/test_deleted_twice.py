"""A row with several partners is deleted once, as in DuckDB: in keyed tables too. So is one whose
key another row of the same MERGE gets.
"""

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


@pytest.mark.parametrize("begin", [False, True])
@pytest.mark.parametrize("profile", ["sealed", "cryptdb", "sdb"])
def test_a_merge_gives_the_key_of_a_row_that_it_deletes(
    open_connection, profile: str, begin: bool
) -> None:
    twin = Twin.beside(open_connection(profile), own_errors=True)
    twin.fill("CREATE TABLE t (k BIGINT ENC PRIMARY KEY, l BIGINT ENC UNIQUE, a BOOLEAN ENC)")
    twin.fill("INSERT INTO t VALUES (8, 3, false), (2, 2, false), (5, 9, true)")
    if begin:
        twin.fill("BEGIN")
    merge = (
        "MERGE INTO t USING (SELECT {} AS k, {} AS l, true AS a) AS s ON t.k = s.k"
        " WHEN NOT MATCHED THEN INSERT BY NAME"
        " WHEN NOT MATCHED BY SOURCE AND t.k < 6 THEN DELETE"
    )
    twin.run(merge.format(0, 2))
    twin.run("SELECT * FROM t ORDER BY k")
    twin.either(merge.format(1, 3))  # of a row that stays
    if begin:
        twin.fill("ROLLBACK")
    twin.run("SELECT * FROM t ORDER BY k")
