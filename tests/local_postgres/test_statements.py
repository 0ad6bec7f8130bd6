"""What PostgreSQL says of statements: syntax, types, and soundly what they read."""

from __future__ import annotations

import pytest

from louver import errors
from louver.trusted.executor.local.postgres import node_tree
from louver.trusted.executor.local.postgres.engine import PostgresLocalEngine
from louver.trusted.executor.local.postgres.statements import PostgresStatements

_SCHEMA = (
    "CREATE SCHEMA other",
    "CREATE TABLE t (id int, a text)",
    "CREATE TABLE other.t (id int)",
    'CREATE TABLE ":relid" (":funcid" int)',
    "CREATE VIEW v AS SELECT id FROM t WHERE a <> ''",
    "CREATE VIEW w AS SELECT * FROM v UNION SELECT id FROM other.t",
    "CREATE FUNCTION tree() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT count(*) FROM w; END",
    "CREATE FUNCTION hidden() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM t'",
    "CREATE FUNCTION block() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'",
    "CREATE FUNCTION same(int, int) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN true; END'",
    "CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = same)",
)
T, OTHER, V, W = ("table", "public", "t"), ("table", "other", "t"), ("table", "public", "v"), (
    "table", "public", "w")  # fmt: skip
UNKNOWN = ("statement", "", "")


@pytest.fixture
def declared(engine: PostgresLocalEngine) -> PostgresLocalEngine:
    for sql in _SCHEMA:
        engine.declare(sql)
    return engine


def statements(engine: PostgresLocalEngine) -> PostgresStatements:
    return PostgresStatements(engine.binder, engine.workspace)


def tables(engine: PostgresLocalEngine, sql: str) -> set[tuple[str, str, str]]:
    """What a query reads but calls."""
    sources = engine.statements.sources(sql)
    assert sources is not None
    return {source for source in sources if source[0] != "call"}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1", set()),
        ("SELECT * FROM t", {T}),
        ("SELECT * FROM other.t AS v", {OTHER}),
        ("SELECT * FROM v", {V, T}),
        ("SELECT (SELECT max(id) FROM w)", {W, V, T, OTHER}),
        ("WITH t AS (SELECT 1 AS id) SELECT * FROM t", set()),
        ("WITH x AS (SELECT * FROM t) SELECT 1 FROM x", {T}),
        ("SELECT $1::int FROM t WHERE id = $2 AND a = $3", {T}),
        ("SELECT 1 -- FROM other.t\nFROM t /* w */", {T}),
        ("SELECT 'FROM other.t', \"id\" FROM t", {T}),
        ("SELECT EXISTS (SELECT FROM t) OR 1 IN (SELECT id FROM other.t)", {T, OTHER}),
        ("SELECT * FROM t, LATERAL (SELECT id FROM other.t AS o WHERE o.id = t.id) AS l",
         {T, OTHER}),
        ("VALUES ((SELECT count(*) FROM t))", {T}),
        ("TABLE t", {T}),
        ("SELECT tree()", {W, V, T, OTHER}),
        ("SELECT * FROM generate_series(1, (SELECT max(id)::int FROM t))", {T}),
        ('SELECT ":funcid" AS ":relid" FROM ":relid" AS ":rtekind"',
         {("table", "public", ":relid")}),
        ("SELECT relname FROM pg_class", {("table", "pg_catalog", "pg_class")}),
        ("SELECT id, row_number() OVER (ORDER BY id), grouping(id) FROM t GROUP BY CUBE (id)",
         {T}),
        ("SELECT * FROM t TABLESAMPLE bernoulli (10) FOR UPDATE", {T}),
        ("SELECT CASE WHEN id = ANY ($1) THEN coalesce(a, 'x') ELSE greatest(a, 'y') END,"
         " ROW(id, a) < ROW(1, 'b'), ARRAY[id], current_date, a COLLATE \"C\", (t).a FROM t",
         {T}),
        ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5)"
         " SELECT n FROM r JOIN t ON t.id = n", {T}),
    ],
)  # fmt: skip
def test_what_a_query_reads(
    declared: PostgresLocalEngine, sql: str, expected: set[tuple[str, str, str]]
) -> None:
    assert tables(declared, sql) == expected


@pytest.mark.parametrize(
    "sql",
    ["SELECT hidden()", "SELECT block()", "SELECT 1 === 2", "SELECT 1 FROM t WHERE id === 2",
     "SELECT query_to_xml('SELECT * FROM t', true, true, '')", "SELECT pg_read_file('x')",
     "SELECT nextval('s')", "SELECT sum(block()) OVER () FROM t"],
)  # fmt: skip
def test_what_hides_in_a_function_is_unknown(declared: PostgresLocalEngine, sql: str) -> None:
    declared.declare("CREATE SEQUENCE s")
    assert UNKNOWN in tables(declared, sql)


@pytest.mark.parametrize(
    "sql",
    ["INSERT INTO t VALUES (1)", "CREATE TABLE x ()", "SET timezone = 'UTC'", "SHOW timezone",
     "EXPLAIN SELECT 1", "WITH x AS (DELETE FROM t RETURNING id) SELECT * FROM x"],
)  # fmt: skip
def test_what_is_no_query_has_no_sources(declared: PostgresLocalEngine, sql: str) -> None:
    assert declared.statements.sources(sql) is None


@pytest.mark.parametrize(
    "sql",
    ["SELECT 1; SELECT * FROM t", "SELECT 1; END; DROP TABLE t; SELECT 1", "SELECT * FROM nothing",
     "SELECT", "SELECT 1 /*", "SELECT 1 END"],
)  # fmt: skip
def test_a_text_that_is_no_statement_raises_or_reads_nothing(
    declared: PostgresLocalEngine, sql: str
) -> None:
    if sql in ("SELECT", "SELECT 1 END"):
        assert tables(declared, sql) == set()
        return
    with pytest.raises(errors.ProgrammingError):
        declared.statements.sources(sql)
    assert ("TABLE", "public", "t") in declared.schema.snapshot(macros=False)


def test_changes_say_what_they_read(declared: PostgresLocalEngine) -> None:
    assert declared.statements.names_read("INSERT INTO t SELECT id, 'x' FROM other.t") == {"t"}
    assert declared.statements.names_read("DELETE FROM t USING w WHERE t.id = w.id") == {
        "t", "v", "w",
    }  # fmt: skip
    reach = statements(declared).reach(
        "MERGE INTO t USING v ON t.id = v.id WHEN MATCHED THEN DELETE"
    )
    assert reach.relations == {("public", "t"), ("public", "v")}
    assert not reach.read.only_selects


@pytest.mark.parametrize("sql", [
    "INSERT INTO t SELECT g, int4range(g, g + 1)::text FROM generate_series(1, 9) AS g",
    "INSERT INTO t (a) VALUES (upper(numrange(1.1, 2.2))::text)",
    "UPDATE t SET a = to_char(now(), 'YYYY') || repeat(a, 2) WHERE id = ANY (ARRAY[1, 2])",
    "UPDATE t SET a = to_tsvector('english', a)::text FROM w WHERE w.id = t.id",
    "INSERT INTO t (id) VALUES (tree())",
    "MERGE INTO t USING other.t AS o ON o.id = t.id WHEN MATCHED THEN UPDATE SET a = format('x')",
    "DELETE FROM t WHERE date '2026-01-01' + id > now()",
])  # fmt: skip
def test_what_depends_on_rows_alone(declared: PostgresLocalEngine, sql: str) -> None:
    assert statements(declared).depends_on_rows_alone(sql)


@pytest.mark.parametrize("sql", [
    "INSERT INTO t (a) SELECT relname FROM pg_class",
    "INSERT INTO t (a) SELECT column_name FROM information_schema.columns",
    "INSERT INTO t (a) SELECT pg_get_viewdef('w'::regclass)",
    "INSERT INTO t (a) VALUES (pg_get_expr(NULL, 0))",
    "INSERT INTO t (a) VALUES (current_setting('app.user'))",
    "INSERT INTO t (a) VALUES (current_query())",
    "INSERT INTO t (a) VALUES (format_type(23, NULL))",
    "INSERT INTO t (id) VALUES ('w'::regclass::oid::int)",
    "INSERT INTO t (a) SELECT id::oid::regclass::text FROM other.t",
    "INSERT INTO t (a) VALUES ((ARRAY['t']::regclass[])::text)",
    "INSERT INTO t (a) VALUES (pg_partition_root('t')::text)",
    "INSERT INTO t (id) SELECT hidden()",
    "INSERT INTO t (id) SELECT block()",
    "UPDATE t SET a = 'x' WHERE id === 1",
    "UPDATE t SET a = ctid::text",
    "CREATE TABLE u (a int)",
    "INSERT INTO nowhere VALUES (1)",
])  # fmt: skip
def test_what_may_read_the_schema(declared: PostgresLocalEngine, sql: str) -> None:
    assert not statements(declared).depends_on_rows_alone(sql)


def test_functions_say_what_they_are(declared: PostgresLocalEngine) -> None:
    reach = statements(declared).reach("SELECT random(), block(), lower(a), tree() FROM t")
    said = {(f.name, f.volatility, f.language, f.is_own) for f in reach.functions}
    assert {("random", "v", "internal", True), ("block", "v", "plpgsql", False),
            ("lower", "i", "internal", True), ("tree", "v", "sql", False)} <= said  # fmt: skip
    assert not reach.is_known


def test_it_leaves_nothing_and_works_in_a_dry_run(declared: PostgresLocalEngine) -> None:
    with declared.rehearsal() as connection:
        connection.execute("CREATE TABLE fresh (id int)")
        assert tables(declared, "SELECT * FROM fresh") == {("table", "public", "fresh")}
        with pytest.raises(errors.Error):
            declared.statements.sources("SELECT * FROM nothing")
        with pytest.raises(errors.Error):
            declared.statements.bind("SELECT * FROM nothing")
        declared.statements.require_syntax("SELECT * FROM nothing")
        assert connection.fetchall("SELECT count(*) FROM fresh") == [(0,)]
    left = "SELECT count(*) FROM pg_proc WHERE proname = 'louver_body'"
    assert declared.binder.fetchall(left) == [(0,)]


def test_a_node_that_is_not_known_makes_a_tree_unknown() -> None:
    assert node_tree.read("({QUERY :commandType 1 :rtable <>})").is_known
    assert not node_tree.read("({QUERY :commandType 1 :x {ORACLE :relid 5}})").is_known
    assert not node_tree.read("({QUERY :commandType 1").is_known
    assert not node_tree.read("}").is_known
    tree = '{RANGETBLENTRY :alias {ALIAS :aliasname :relid :colnames ("\\:relid" "7")} :relid 9}'
    assert node_tree.read(tree).relations == {9}


def test_every_kind_of_node_of_its_own_views_is_known(engine: PostgresLocalEngine) -> None:
    # PostgreSQL's own views use much of the language.
    trees = engine.binder.fetchall("SELECT ev_action::text FROM pg_rewrite")
    assert len(trees) > 100
    assert all(node_tree.read(tree).is_known for (tree,) in trees)


def test_syntax_and_binding(declared: PostgresLocalEngine) -> None:
    said = declared.statements
    said.require_syntax("SELECT * FROM nothing")
    said.require_syntax("CREATE TABLE t (id int)")
    with pytest.raises(errors.ProgrammingError) as error:
        said.require_syntax("SELECT * FORM t")
    assert error.value.sqlstate == "42601"
    assert "LINE 1: SELECT * FORM t\n                 ^" in error.value.message
    said.bind("SELECT $1 + id FROM t", [1])
    with pytest.raises(errors.ProgrammingError) as error:
        said.bind("SELECT idd FROM t")
    assert error.value.sqlstate == "42703"
    assert 'HINT:  Perhaps you meant to reference the column "t.id".' in error.value.message


def test_values_names_and_settings(declared: PostgresLocalEngine) -> None:
    said = declared.statements
    assert said.values(["1 AS a", "'x' || $1 AS b"], ["y"]).to_pylist() == [{"a": 1, "b": "xy"}]
    assert said.exact_value("1.50")[0]
    assert said.exact_value("'2000-01-01'::timestamp")[0]
    assert not said.exact_value("'a'::varchar")[0]
    assert said.has_function("block")
    assert not said.has_function("nothing")
    assert said.has_setting("timezone")
    assert said.setting("work_mem") is not None
    assert said.setting("no.thing") is None
    assert "pg_class" in said.system_names().views
    assert "pg_get_viewdef" in said.system_names().functions
    assert "lower" not in said.system_names().functions
    assert "int4pl" in said.own_functions()
    assert said.broken("no").code == "postgres.constraint"
