"""Plain columns of all of PostgreSQL's types: values come back as they were, the server shows them
as they are, and statements say what plaintext PostgreSQL says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import louver
from louver import errors
from louver._rust import postgres
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.executor.local.postgres.type_names import TypeNames
from louver.untrusted.engines.postgres.connection import PostgresEngine
from louver.untrusted.engines.postgres.type_numbers import names, number_of
from tests.client.harness import answers, key_file, run
from tests.generated import SEED, SOAK, cases
from tests.local_postgres import moving
from tests.local_postgres.plain_types import ALL, DEFINITIONS, OWN, UNCOMPARED, PlainTypes, literal
from tests.local_postgres.twin import PostgresTwin
from tests.postgres import servers
from tests.postgres.moving import Database

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
_TOGETHER = 8
"""Columns of one table."""


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    twin = PostgresTwin()
    for sql in DEFINITIONS:
        twin.run(sql)
    yield twin
    twin.close()


def on_server(twin: PostgresTwin) -> PostgresConnection:
    """The server that Louver stores in, as psql sees it."""
    raw = postgres.Session(
        str(servers.shared().folder), servers.PORT, servers.USER, f"twin_{twin._number}"
    )
    connection = PostgresConnection(raw, TypeNames())
    connection.execute("SET TimeZone = 'UTC'")
    return connection


@pytest.mark.parametrize("seed", range(SOAK))
def test_statements_do_the_same(twin: PostgresTwin, seed: int) -> None:
    random = Random(SEED + seed)
    types = list(ALL)
    random.shuffle(types)
    differences: list[str] = []
    for start in range(0, len(types), _TOGETHER):
        drawn = PlainTypes(random, types[start : start + _TOGETHER], f"t{start}")
        twin.run(drawn.create())
        twin.run(drawn.rows(4))
        for sql in (*drawn.statements(8), drawn.query()):
            differs, _ = twin.refused_or_differs(sql, ("leak.",))
            differences += [f"{sql}: {differs}"] if differs else []
    assert not differences, "\n".join(differences)


def test_the_server_shows_values_as_they_are(twin: PostgresTwin) -> None:
    twin.run(f"CREATE TABLE t ({', '.join(f'c{n} {t}' for n, t in enumerate(ALL))})")
    most = max(map(len, ALL.values()))
    for row in range(most):
        values = (literal(t, texts[row % len(texts)]) for t, texts in ALL.items())
        twin.run(f"INSERT INTO t VALUES ({', '.join(values)})")
    server = on_server(twin)
    stored = server.fetchall(
        "SELECT format_type(atttypid, atttypmod), attname::text FROM pg_attribute WHERE attrelid ="
        " 'public.t'::regclass AND attname ~ '^c[0-9]+$' ORDER BY substr(attname, 2)::int"
    )
    for (kind, name), type_ in zip(stored, ALL, strict=True):
        # A composite's, a user's range's and an array's of users' types: the binary form.
        shows = kind != "bytea" or type_ == "bytea"
        assert shows or type_ not in OWN, type_
        if type_ in OWN:
            ((declared,),) = twin.plain.fetchall(
                "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid ="
                f" 't'::regclass AND attname = '{name}'"
            )
            assert kind == declared or (kind, type_) == ("text", "varchar(3)"), type_
        if shows:
            sql = f"SELECT {name}::text FROM t ORDER BY 1"
            assert server.fetchall(sql) == twin.plain.fetchall(sql), type_


def test_columns_become_enc_and_plain_again(twin: PostgresTwin) -> None:
    drawn = PlainTypes(Random(SEED), list(ALL))
    drawn.encrypted = [False] * len(ALL)
    twin.run(drawn.create())
    twin.run(drawn.rows(7))
    for verb in ("SET ENC", "DROP ENC"):
        for name in drawn.types:
            twin.louver.execute(f"ALTER TABLE t ALTER COLUMN {name} {verb}")
        twin.run(drawn.query())
    twin.reopen()
    twin.run(drawn.query())


SETTINGS = (
    "SET TimeZone = 'Asia/Kathmandu'", "SET DateStyle = 'German, DMY'",
    "SET IntervalStyle = 'sql_standard'", "SET extra_float_digits = -15",
    "SET bytea_output = 'escape'", "SET lc_monetary = 'C'",
)  # fmt: skip


def test_no_setting_of_a_session_or_of_the_server_matters(twin: PostgresTwin) -> None:
    server = on_server(twin)
    name = f"twin_{twin._number}"
    for setting in SETTINGS:
        server.execute(setting.replace("SET", f"ALTER DATABASE {name} SET", 1))
    twin.reopen()
    drawn = PlainTypes(Random(SEED), list(ALL))
    twin.run(drawn.create())
    for sql in SETTINGS:
        twin.run(sql)
    for _ in range(6):
        twin.run(drawn.rows(1))
    twin.run(drawn.rows(20))
    # More rows than are bound as arrays.
    listed = ", ".join(map(drawn.value, drawn.types.values()))
    twin.run(f"INSERT INTO t SELECT n, {listed} FROM generate_series(1000, 2200) AS n")
    twin.run(drawn.query())


def test_the_server_compares_moments_with_moments_alone(twin: PostgresTwin) -> None:
    twin.run("CREATE TABLE t (k int ENC PRIMARY KEY, a timestamptz, b timestamptz, c date,"
             " d timestamp)")  # fmt: skip
    moments = (
        "NULL", "'infinity'", "'2026-01-01 00:00+05:45'", "'2026-01-01 00:00Z'",
        "'2025-12-31 18:15Z'", "'2026-01-01 05:45Z'",
    )  # fmt: skip
    rows = [
        f"({number}, {a}, {b}, '2026-01-01', '2026-01-01')"
        for number, (a, b) in enumerate((a, b) for a in moments for b in moments)
    ]
    twin.run(f"INSERT INTO t VALUES {', '.join(rows)}")
    for zone in ("UTC", "Asia/Kathmandu"):
        twin.run(f"SET TimeZone = '{zone}'")
        for condition, on_server in (
            ("a < b", True), ("a IS NULL", True), ("a = b OR b IS NULL", True),
            ("a BETWEEN b AND a", True), ("a <= c", False), ("a = d", False),
            ("a < b + interval '1 day'", False), ("a = '2026-01-01'", False),
            ("a IN (b, c)", False), ("coalesce(a, d) = b", False), ("(a IS NULL) = (b < c)", False),
        ):  # fmt: skip
            twin.run(f"SELECT k FROM t WHERE {condition} ORDER BY k")
            plan = twin.louver.execute(f"EXPLAIN SELECT k FROM t WHERE {condition}").fetchall()
            sent = plan[0][1].partition("open  ")[0]
            assert ("WHERE" in sent) == on_server, (condition, plan)
        twin.run("SELECT a::text, count(*) FROM t GROUP BY a ORDER BY a")
        twin.run("SELECT min(a)::text, max(b)::text, count(DISTINCT a) FROM t")


@pytest.mark.parametrize("form", ["", "(FORMAT csv)", "(FORMAT binary)"])
def test_copy_brings_and_gives_them(twin: PostgresTwin, form: str) -> None:
    twin.run("CREATE TABLE t (k int ENC PRIMARY KEY, a jsonb, b text[], c interval, d numeric,"
             " e timestamptz, f mood, g pair, h char(3), i int4range, j oid, l time)")  # fmt: skip
    row = ("'{\"a\": 1}', '[0:1]={x,NULL}', '1 mon', 1.50, 'infinity', 'ok', '(1,ok,x)', 'a',"
           " '[1,3)', 4294967295, '24:00'")  # fmt: skip
    twin.run(f"INSERT INTO t VALUES (1, {row}), (2, {', '.join(['NULL'] * 11)})")
    cursor = twin.louver.cursor()
    with cursor.copy(f"COPY t TO STDOUT {form}") as copy:
        data = b"".join(copy)
    twin.louver.execute("DELETE FROM t")
    with cursor.copy(f"COPY t FROM STDIN {form}") as copy:
        copy.write(data)
    twin.run("SELECT t::text FROM t ORDER BY k")


def test_files_and_frames_are_loaded_into_them(twin: PostgresTwin, tmp_path: Path) -> None:
    twin.run("CREATE TABLE t (k int ENC PRIMARY KEY, a jsonb, b text[], c timestamptz, d numeric,"
             " e mood, f time)")  # fmt: skip
    path = tmp_path / "t.csv"
    path.write_text('k,a,b,c,d,e,f\n1,"{""a"": 1}","{x,y}",2026-01-01 00:00+02,1.50,ok,24:00\n')
    twin.louver.load("t", str(path))
    texts = {"a": '{"b": 2}', "b": "{NULL}", "d": "1.00", "e": "sad", "f": "00:00"}
    moment = pa.array([7], pa.timestamp("us", "UTC"))
    frame = pa.table({"k": [2], "c": moment} | {name: [text] for name, text in texts.items()})
    twin.louver.load("t", frame)
    twin.on_plain(
        "INSERT INTO t VALUES (1, '{\"a\": 1}', '{x,y}', '2026-01-01 00:00+02', 1.50, 'ok',"
        " '24:00'),"
        " (2, '{\"b\": 2}', '{NULL}', '1970-01-01 00:00:00.000007+00', 1.00, 'sad', '00:00')"
    )
    twin.run("SELECT t::text FROM t ORDER BY k")


def test_keys_of_them_are_exact(twin: PostgresTwin) -> None:
    compared = [t for t in ALL if t not in UNCOMPARED]
    compared = Random(SEED).sample(compared, min(cases(20), len(compared)))
    for number, type_ in enumerate(compared):
        table, (first, *_, last) = f"u{number}", (*ALL[type_], ALL[type_][-1])
        twin.run(f"CREATE TABLE {table} (k int ENC, v {type_} UNIQUE)")
        for position, value in enumerate((*ALL[type_], None, first, None, last)):
            twin.run(f"INSERT INTO {table} VALUES ({position}, {literal(type_, value)})")
        upsert = f"VALUES (99, {literal(type_, first)}) ON CONFLICT (v) DO UPDATE SET k = 99"
        # Which of them have no tree, and so may depend on any column, is of no concern here.
        differs, _ = twin.refused_or_differs(f"INSERT INTO {table} {upsert}", ("leak.flow",))
        assert not differs, differs
        twin.run(f"SELECT k, v::text FROM {table} ORDER BY k")


@pytest.mark.parametrize("type_", ["numeric", "timestamptz", "char(3)", "mood", "int4[]", "inet"])
def test_foreign_keys_of_them_are_exact(twin: PostgresTwin, type_: str) -> None:
    twin.run(f"CREATE TABLE p (v {type_} PRIMARY KEY, s text ENC)")
    twin.run(f"CREATE TABLE c (k int ENC, v {type_} REFERENCES p ON DELETE CASCADE)")
    values = ALL[type_]
    twin.run(f"INSERT INTO p VALUES ({literal(type_, values[0])}, 'x')")
    for position, value in enumerate((*values, None)):
        twin.run(f"INSERT INTO c VALUES ({position}, {literal(type_, value)})")
    twin.run("SELECT k, v::text FROM c ORDER BY k")
    twin.run(f"DELETE FROM p WHERE v = {literal(type_, values[0])}")
    twin.run("SELECT k, v::text FROM c ORDER BY k")


def test_they_are_declared_in_every_way(twin: PostgresTwin) -> None:
    for sql in (
        "CREATE TABLE t (k int ENC PRIMARY KEY, a jsonb DEFAULT '{}', b text[] DEFAULT '{}', c"
        " interval CHECK (c > '0'), d numeric DEFAULT 1.50, e numeric GENERATED ALWAYS AS (d * 2)"
        " STORED, f int4range, g mood DEFAULT 'ok', CHECK (NOT isempty(f)))",
        "INSERT INTO t (k, c) VALUES (1, '1 day')",
        "INSERT INTO t (k, c) VALUES (2, '-1 day')",
        "INSERT INTO t (k, f) VALUES (2, 'empty')",
        "UPDATE t SET d = 2, a = a || '{\"x\": 1}', b = b || ARRAY['x'] RETURNING t::text",
        "CREATE TABLE u AS SELECT a, b, c, d FROM t",
        "CREATE TEMP TABLE v AS SELECT * FROM t",
        "SELECT v::text FROM v",
        "CREATE INDEX ON t (d)", "CREATE INDEX ON t USING gin (a)", "CREATE INDEX ON t (g, c)",
        "ALTER TABLE t ADD COLUMN h money DEFAULT '1.50', ADD COLUMN i mood[] DEFAULT '{ok}'",
        "ALTER TABLE t ALTER COLUMN a TYPE json",
        "ALTER TABLE t ALTER COLUMN b TYPE varchar(5)[]",
        "ALTER TABLE t ALTER COLUMN g TYPE text",
        "SELECT t::text FROM t",
        "TRUNCATE t",
        "DROP TABLE t",
    ):  # fmt: skip
        twin.run(sql)


POLICY = 'profile = "cryptdb"\n["*"]\n"*" = "plain"\n[odd]\nt = "enc"\n'


def test_indexes_of_them_refuse_no_value(twin: PostgresTwin) -> None:
    twin.run("CREATE TABLE t (k int ENC PRIMARY KEY, a jsonb, b text[], c point, d timestamptz)")
    for how in ("(a)", "USING gin (a)", "USING gin (b)", "(b)", "USING gist (c)", "(d)"):
        twin.run(f"CREATE INDEX ON t {how}")
    twin.run("DROP INDEX t_a_idx, t_b_idx1")
    twin.run("INSERT INTO t SELECT 1, jsonb_agg(x), array_agg(md5(x::text)), '(1,2)', 'infinity'"
             " FROM generate_series(1, 3000) AS x")  # fmt: skip
    twin.run("SELECT k, c::text, cardinality(b) FROM t WHERE a @> '[7]'")
    indexed = on_server(twin).fetchall(
        "SELECT indexdef FROM pg_indexes WHERE tablename = 't' AND indexdef ~ '\\(d\\)'"
    )
    assert len(indexed) == 1


def test_few_rows_with_arrays_wait_for_the_next_statement(
    twin: PostgresTwin, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []
    copy = PostgresEngine._copy

    def noted(engine: PostgresEngine, table: str, *given: Any, **options: Any) -> None:
        copied.append(table)
        copy(engine, table, *given, **options)

    monkeypatch.setattr(PostgresEngine, "_copy", noted)
    types = ("int[]", "text[]", "numeric[]", "timestamptz[]", "bool[]", "uuid[]", "json")
    for number, type_ in enumerate(types):
        twin.run(f"CREATE TABLE t{number} (k int ENC PRIMARY KEY, v {type_}, w text)")
        texts = [text for text in ALL.get(type_, ("{}",)) if "=" not in text and "{{" not in text]
        rows = ", ".join(f"({i}, {literal(type_, v)}, 'x')" for i, v in enumerate((*texts, None)))
        twin.run(f"INSERT INTO t{number} VALUES {rows}")
        assert not copied, type_
        twin.run(f"INSERT INTO t{number} SELECT i, NULL, 'y' FROM generate_series(100, 200) AS i")
        assert copied == [f'"public"."t{number}"']
        copied.clear()
        twin.run(f"SELECT k, v::text, w FROM t{number} ORDER BY k")
    for value in ("[0:0]={1}", "{{1,2}}"):
        twin.run(f"INSERT INTO t0 VALUES ({len(copied) + 900}, '{value}')")
    assert len(copied) == 2
    twin.run("SELECT k, v::text FROM t0 WHERE k >= 900 ORDER BY k")


@pytest.mark.parametrize("words", [("--to",), ("--in-place", "--yes")])
def test_a_database_comes_over_whose_policy_leaves_columns_plain(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    source, target, back = Database(), Database(), Database()
    source.run(moving.RICH.replace("DEFAULT twice(4)", "DEFAULT 8"))
    texts = {table: source.texts(table) for table in moving.TABLES}
    definitions = moving.definitions(source)
    url = target.url if words == ("--to",) else source.url
    to = (target.url,) if words == ("--to",) else ()
    first, *rest = words
    given = ("--policy", str(policy))
    run(*given, "encrypt", source.url, first, *to, *rest, "--json", folder=tmp_path)
    with louver.connect(url, keys=key_file()) as con:
        for table, rows in texts.items():
            done = con.execute(f"SELECT x::text FROM (SELECT * FROM {table}) AS x ORDER BY 1")
            assert [text for (text,) in done.fetchall()] == rows, table
    answers(run(*given, "-u", url, "export", "--to", back.url, "--json", folder=tmp_path))
    assert moving.definitions(back) == definitions
    assert {table: back.texts(table) for table in moving.TABLES} == texts


def test_nothing_of_an_enc_column_goes_into_them(twin: PostgresTwin) -> None:
    twin.run("CREATE TABLE t (k int ENC PRIMARY KEY, s text ENC, n numeric ENC, a jsonb, b text[],"
             " c timestamptz, d mood)")  # fmt: skip
    twin.run("INSERT INTO t VALUES (1, 'ok', 3, '{}', '{}', NULL, NULL)")
    for sql in (
        "UPDATE t SET a = jsonb_build_object('s', s)", "UPDATE t SET b = ARRAY[s]",
        "UPDATE t SET b = b || s", "UPDATE t SET c = to_timestamp(n::float8)",
        "UPDATE t SET d = s::mood", "INSERT INTO t (k, a) SELECT 2, to_jsonb(s) FROM t",
        "ALTER TABLE t ADD COLUMN e text[] GENERATED ALWAYS AS (ARRAY[s]) STORED",
        "MERGE INTO t USING (SELECT k, s FROM t) AS u ON t.k = u.k WHEN MATCHED THEN UPDATE SET"
        " b = ARRAY[u.s]",
    ):  # fmt: skip
        with pytest.raises(errors.Error) as refused:
            twin.louver.execute(sql)
        assert refused.value.code == "leak.flow", sql
    rows = json.dumps(on_server(twin).fetchall("SELECT t::text FROM public.t"))
    assert "ok" not in rows


def test_a_value_that_postgresql_would_not_read_again_is_refused(twin: PostgresTwin) -> None:
    twin.run("CREATE TABLE t (k int ENC PRIMARY KEY, a tsquery, b tsquery ENC, c tsquery[])")
    for name, value in (("a", "''"), ("b", "''"), ("c", "'{a,\"\"}'")):
        with pytest.raises(errors.Error) as refused:
            twin.louver.execute(f"INSERT INTO t (k, {name}) VALUES (1, {value})")
        assert refused.value.code == "postgres.value", name
    twin.run("INSERT INTO t VALUES (1, 'a', 'b & !c', '{a,b}')")
    twin.run("SELECT t::text FROM t")


def test_numbers_of_types_are_those_of_a_server(twin: PostgresTwin) -> None:
    listed = twin.plain.fetchall(
        "SELECT format_type(t.oid, NULL), t.oid::bigint, t.typarray::bigint FROM pg_type AS t"
        " WHERE t.oid < 16384 AND typtype IN ('b', 'r', 'm') AND typsend <> 0 AND typarray <> 0"
        " AND typname !~ '^reg' AND typname !~ '^_'"
    )
    assert {name for name, *_ in listed} | {"bpchar"} == set(names())
    for name, number, array in listed:
        assert number_of(name) == number
        assert number_of(f"{name}[]") == array
    for name, bare in (
        ("timestamp(3) with time zone", "timestamp with time zone"),
        ("interval day to second(3)", "interval"), ("interval year", "interval"),
        ("numeric(3,-2)", "numeric"), ("character varying(3)", "character varying"),
        ("pg_catalog.inet", "inet"),
    ):  # fmt: skip
        assert number_of(name) == number_of(bare) is not None
        assert number_of(f"{name}[]") == number_of(f"{bare}[]")
    assert number_of("public.mood") is None
