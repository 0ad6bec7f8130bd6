"""Whole rows as values: as texts, in functions of JSON, in rows and arrays of rows."""

from __future__ import annotations

from tests.generated import cases, generator
from tests.local_postgres.twin import PostgresTwin


def test_whole_rows_are_those_of_plaintext() -> None:
    twin = PostgresTwin()
    try:
        twin.run("CREATE TABLE t (id integer ENC PRIMARY KEY, a text ENC, r integer[] ENC)")
        twin.run("CREATE TABLE u (t integer ENC, n numeric(5,2))")
        twin.run("CREATE VIEW v AS SELECT id, a FROM t")
        twin.run("CREATE SEQUENCE s")
        twin.run("INSERT INTO t VALUES (1, 'x, \"y\"', '{1,2}'), (2, NULL, NULL)")
        twin.run("INSERT INTO u VALUES (1, 1.5), (2, 2)")
        for sql in (
            "SELECT t FROM t ORDER BY id", "SELECT t FROM t WHERE t.a IS NOT NULL",
            "SELECT x, x.id FROM t AS x ORDER BY id", "SELECT v FROM v ORDER BY id",
            "SELECT t, u FROM t JOIN u ON u.t = t.id ORDER BY id", "SELECT t FROM t WHERE false",
            "SELECT row_to_json(t) FROM t ORDER BY id",
            "SELECT to_jsonb(t) - 'a' FROM t ORDER BY id",
            "SELECT json_agg(t ORDER BY id) FROM t", "SELECT array_agg(t ORDER BY id) FROM t",
            "SELECT t::text, (t).a FROM t ORDER BY id", "SELECT (SELECT t FROM t LIMIT 1) IS NULL",
            "SELECT row(t.*, 1)::text, row(t.*) = row(t.*) FROM t ORDER BY id",
            "SELECT row_to_json(x) FROM (SELECT id, a FROM t) AS x ORDER BY id",
            "SELECT jsonb_object_agg(u.t, u) FROM u", "SELECT t IS NULL, t IS NOT NULL FROM t",
            "SELECT nextval('s'), currval('s')",
        ):  # fmt: skip
            outcome = twin.differs(sql, ordered="ORDER BY" in sql)
            assert not outcome, (sql, outcome)
            assert twin.on_louver(sql).error is None, sql
            twin.on_plain(sql)
        # psycopg would give tuples, whose values have no types; the text says the same.
        rows = twin.louver.execute(
            "SELECT x FROM (SELECT id, a FROM t) AS x ORDER BY id"
        ).fetchall()
        assert rows[1] == ("(2,)",)
    finally:
        twin.close()


def test_tables_are_made_of_values_of_composite_types() -> None:
    twin = PostgresTwin()
    try:
        for sql in (
            "CREATE TYPE pair AS (a int, b text)",
            "CREATE TABLE t (p pair ENC, d int ENC)",
            "INSERT INTO t VALUES ('(1,\"x, y\")', 2), (ROW(5, NULL), 3), (NULL, 4)",
            "CREATE TABLE one (c) AS SELECT '(1,)'::pair",
            "CREATE TABLE many AS SELECT array_agg(p ORDER BY d) FROM t",
            "CREATE TABLE made (e ENC) AS SELECT ROW(d, 'z')::pair FROM t",
            "SELECT array[p], d, ROW(1, 'b')::pair AS r INTO into_this FROM t",
            "SELECT * FROM one",
            "SELECT (c).a FROM one",
            "SELECT * FROM many",
            "SELECT (e).a, e FROM made ORDER BY 1",
            "SELECT * FROM into_this ORDER BY d",
        ):
            twin.run(sql)
        own = twin.on_louver("CREATE TABLE whole AS SELECT t FROM t")
        assert own.error is not None
        assert own.error.code == "sql.unsupported"
    finally:
        twin.close()


def test_changes_give_whole_rows_back() -> None:
    twin, random = PostgresTwin(), generator("whole rows of changes")
    try:
        twin.run("CREATE TABLE target (id int ENC PRIMARY KEY, n int ENC)")
        twin.run("CREATE TABLE source (id int ENC, n int ENC)")
        twin.run("INSERT INTO source SELECT i, i * 10 FROM generate_series(1, 6) AS i")
        twin.run("INSERT INTO target SELECT i, i FROM generate_series(3, 8) AS i")
        for number in range(cases(30)):
            rows = random.choice(("old", "new", "old, new", "t", "t, new, t.*"))
            sql = random.choice((
                f"UPDATE target AS t SET n = n + 1 WHERE id < 6 RETURNING {rows}",
                f"INSERT INTO target AS t VALUES ({number}, 1) ON CONFLICT (id) DO UPDATE"
                f" SET n = excluded.n + t.n RETURNING {rows}",
                f"DELETE FROM target AS t WHERE id = {number % 9} RETURNING {rows}",
                "UPDATE target AS t SET n = s.n FROM source AS s WHERE s.id = t.id"
                f" RETURNING s, {rows}",
                "MERGE INTO target AS t USING source AS s ON s.id = t.id WHEN MATCHED THEN"
                " UPDATE SET n = t.n + s.n WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n)"
                f" RETURNING merge_action(), s, {rows}",
            ))  # fmt: skip
            twin.run(sql)
            twin.run("SELECT * FROM target")
    finally:
        twin.close()
