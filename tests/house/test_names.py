"""Names are folded as DuckDB folds them, A to Z alone: "ÖL" and "öl" are two tables.

Each statement runs on plaintext DuckDB too; answers are equal, and what is ENC is nowhere at the
server, whatever the name beside it is.
"""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pytest

from louver.names import TABLE_IS, fold, folded_sql, keyword
from tests.twin import Twin

SECRET = "axolotl-in-the-attic"
STATEMENTS = f"""
CREATE TABLE "ÖL" (a VARCHAR{{0}}, n INTEGER{{0}})
CREATE TABLE "öl" (a VARCHAR, n INTEGER)
INSERT INTO "ÖL" VALUES ('{SECRET}', 1), ('{SECRET}b', 2)
INSERT INTO "öl" VALUES ('plain', 7)
INSERT INTO ÖL SELECT a || '{SECRET}', n + 1 FROM "ÖL"
UPDATE "ÖL" SET a = '{SECRET}c' WHERE n = 2
UPDATE "öl" SET a = 'other' WHERE n = 7
CREATE TABLE t ("ä" VARCHAR{{0}}, "Ä" VARCHAR, k INTEGER PRIMARY KEY, "É" INTEGER CHECK ("É" > 0))
INSERT INTO t VALUES ('{SECRET}', 'p', 1, 5), ('{SECRET}d', 'q', 2, 6)
INSERT INTO t ("Ä", "ä", k, "É") VALUES ('r', '{SECRET}', 3, 7)
INSERT INTO t ("Ä", k) SELECT "Ä", k + 10 FROM t
UPDATE t SET "Ä" = "Ä" || 'x' WHERE k = 1
UPDATE t SET "ä" = "ä" || '{SECRET}' WHERE k = 2
INSERT INTO t (k, "Ä") VALUES (1, 'u') ON CONFLICT (k) DO UPDATE SET "Ä" = excluded."Ä"
CREATE VIEW "VÄ" AS SELECT "ä" AS x FROM t
CREATE VIEW "vä" AS SELECT "Ä" AS x FROM t
CREATE SCHEMA "Ü"
CREATE SCHEMA "ü"
CREATE TABLE "Ü".s (v VARCHAR{{0}})
CREATE TABLE "ü".s (v VARCHAR)
INSERT INTO "Ü".s VALUES ('{SECRET}')
INSERT INTO "ü".s VALUES ('plain')
CREATE INDEX "IÄ" ON "ÖL" (a)
CREATE INDEX "iä" ON "öl" (a)
CREATE TABLE made AS SELECT "Ä" FROM t
CREATE TABLE parent ("Ö" INTEGER{{0}} PRIMARY KEY)
CREATE TABLE child ("Ö" INTEGER{{0}} REFERENCES parent ("Ö"), "ö" INTEGER)
INSERT INTO parent VALUES (1)
INSERT INTO child VALUES (1, 99)
DELETE FROM "öl" WHERE a = 'none'
ALTER TABLE t ADD COLUMN "ØØ" INTEGER
ALTER TABLE t RENAME COLUMN "ØØ" TO "øø"
""".strip().splitlines()
QUERIES = """
SELECT * FROM "ÖL"
SELECT * FROM "öl"
SELECT "ä", "Ä", t."ä" || k, t."Ä" || k FROM t
SELECT "Ä" FROM t WHERE "ä" IS NULL
SELECT count(*) FROM t WHERE "ä" = 'p'
SELECT "Ä".a, "ä".a FROM "ÖL" AS "Ä", "öl" AS "ä"
SELECT "Ä".n FROM "ÖL" AS "Ä" JOIN "öl" AS "ä" ON "Ä".n < "ä".n
WITH "Ä" AS (SELECT a FROM "ÖL"), "ä" AS (SELECT a FROM "öl") SELECT * FROM "ä" UNION ALL FROM "Ä"
SELECT max("Ä") AS "É", max("ä") AS "é" FROM t GROUP BY k
SELECT x FROM "VÄ"
SELECT x FROM "vä"
SELECT * FROM "Ü".s
SELECT * FROM "ü".s
SELECT * FROM made
SELECT c."Ö", c."ö" FROM child c JOIN parent USING ("Ö")
SELECT "É" AS "é", "é" FROM t
SELECT A FROM "ÖL" ORDER BY a
""".strip().splitlines()


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_names_that_differ_in_other_letters(open_twin: Callable[..., Twin], profile: str) -> None:
    twin = open_twin(profile)
    twin.fill(*(sql.replace("{0}", " ENC") for sql in STATEMENTS))
    for sql in QUERIES:
        twin.run(sql)
    assert not twin.recorded.holds(SECRET.encode())


def test_folding_is_duckdbs() -> None:
    plain = duckdb.connect()
    for letter in "aAzZ_äÄöÖßẞıIİiKkΣςσǅ1":
        for other in "aAzZ_äÄöÖßẞıIİiKkΣςσǅ1":
            plain.execute(f'CREATE OR REPLACE TABLE t ("{letter}" INTEGER)')
            try:
                plain.execute(f'SELECT "{other}" FROM t')
                bound = True
            except duckdb.BinderException:
                bound = False
            assert (fold(letter) == fold(other)) == bound, (letter, other)
        row = plain.execute(f"SELECT {folded_sql('$1')}", [letter]).fetchone()
        assert row == (fold(letter),)
    assert keyword("selectı") == "SELECTı"
    plain.execute('CREATE TABLE "Ä" (a INTEGER); CREATE TABLE "ä" (b INTEGER)')
    query = f"SELECT column_name FROM duckdb_columns() WHERE {TABLE_IS}"
    assert plain.execute(query, ["main", "ä"]).fetchall() == [("b",)]
