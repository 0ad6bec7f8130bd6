"""How statements of PostgreSQL's language are cut up, and which of them have no tree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlglot import exp
from sqlglot.tokens import TokenType

from louver import errors
from louver.trusted.planner.sql import dialect, lexer, trees
from louver.trusted.planner.sql.dialect import DUCKDB, speaking
from louver.trusted.vault.catalog import Catalog, Column, HomeObject, Table

POSTGRES = dialect.named("postgres") or DUCKDB
P = lexer.PARAMETER_PREFIX


@pytest.fixture(autouse=True)
def language() -> Iterator[None]:
    with speaking(POSTGRES):
        yield


#: Texts, with the keys of their placeholders.
PLACED = {
    "SELECT $1,$2": (1, 2), "VALUES ($2,$1)": (2, 1), "SELECT a$1, $1a": (1,), "SELECT é$1": (),
    "SELECT '$1', \"$2\", E'\\'$3', $4": (4,), "SELECT $$ $1 $$, $2": (2,),
    "SELECT $a$ $$ $1 $a$, $2": (2,), "SELECT a$b$, $1, $b$ $2 $b$": (1,), "-- $1\nSELECT $2": (2,),
    "SELECT /* $1 /* */ $2 */ $3": (3,), "SELECT a ? b, a ?| b, x[1:n], :name, c::int": (),
    "SELECT E'a'\n 'b\\'$1', $2": (2,), "SELECT E'a' -- $1\n '\\'$3' , $2": (2,),
    "SELECT 'a\\', $1": (1,), "SELECT U&'\\0061', $1": (1,), "SELECT e1, $1": (1,),
    "SELECT name'$1', $2": (2,), "SELECT \"a\"\"$1\", $2": (2,),
}  # fmt: skip


@pytest.mark.parametrize("sql", PLACED)
def test_placeholders(sql: str) -> None:
    (text,) = lexer.split(sql)
    assert text.parameters == PLACED[sql]
    assert text.home == sql
    assert text.plain.count(P) == len(PLACED[sql])


@pytest.mark.parametrize("end", ["''", "E''", "''''", "'a'", "'a'''", '""', "$$$$"])
def test_a_placeholder_may_stand_before_an_empty_string(end: str) -> None:
    """Which the text ends with."""
    sql = f"SELECT $1, {end}"
    assert lexer.tokens(sql)[-1].end == len(sql) - 1


def test_names_make_no_placeholder() -> None:
    (text,) = lexer.split("SELECT :a, x[1:a]", frozenset({"a"}))
    assert text.parameters == ()
    assert text.home == "SELECT :a, x[1:a]"


#: Texts of several statements.
CUT = {
    "SELECT ';'; SELECT 2": ["SELECT ';'", "SELECT 2"],
    "SELECT E'\\';'; SELECT 2": ["SELECT E'\\';'", "SELECT 2"],
    "SELECT '\\'; SELECT 2": ["SELECT '\\'", "SELECT 2"],
    "DO $x$ begin; end $x$; COMMIT": ["DO $x$ begin; end $x$", "COMMIT"],
    "SELECT a$x$;b$x$": ["SELECT a$x$", "b$x$"],
    'SELECT "a;b"; /* ; /* ; */ */ TABLE t -- ;': ['SELECT "a;b"', "/* ; /* ; */ */ TABLE t -- ;"],
    "SELECT U&\"d!;\" UESCAPE '!'; SELECT 1": ["SELECT U&\"d!;\" UESCAPE '!'", "SELECT 1"],
}  # fmt: skip


@pytest.mark.parametrize("sql", CUT)
def test_statements_are_cut(sql: str) -> None:
    assert [text.home for text in lexer.split(sql)] == CUT[sql]


STRING, NAME, NUMBER = TokenType.STRING, TokenType.IDENTIFIER, TokenType.NUMBER
#: What a literal, or a name, says.
SAID = {
    "E'a\\'b\\n\\x41\\101\\u00e9\\U0001F600\\q'": (STRING, "a'b\nAAé😀q"),
    "e'\\xc3\\xa9\\uD83D\\uDE00'''": (STRING, "é😀'"),
    "'a\\n'": (STRING, "a\\n"), "U&'d\\0061\\+01F600\\\\'''": (STRING, "da😀\\'"),
    "U&'d!0061' UESCAPE '!'": (STRING, "da"), "u&\"st\\0061ff\"": (NAME, "staff"),
    "U&\"a\"\"!0062\"  uescape  '!'": (NAME, 'a"b'), "U&'\\D83D\\DE00'": (STRING, "😀"),
    "0x1F": (NUMBER, "31"), "0X_1f": (NUMBER, "31"), "0o17": (NUMBER, "15"), "0B1_1": (NUMBER, "3"),
    "1_000": (NUMBER, "1000"), "1_0.2_5e1_0": (NUMBER, "10.25e10"), "007": (NUMBER, "007"),
    '"a""B"': (NAME, 'a"B'),
}  # fmt: skip


@pytest.mark.parametrize("sql", SAID)
def test_words_say_what_they_mean(sql: str) -> None:
    first, *_, last = lexer.tokens(f"SELECT {sql} FROM t")[1:]
    assert (first.token_type, first.text) == SAID[sql]
    assert (first.start, first.end) == (7, 6 + len(sql))
    assert last.text == "t"


@pytest.mark.parametrize(
    "sql",
    ["E'\\u12'", "E'\\xff'", "U&'\\12'", "U&'\\D83D'", "U&\"\\+110000\"", "U&'a' UESCAPE '1'",
     "E'a'\n'\\'b'"],
)  # fmt: skip
def test_what_cannot_be_decoded_is_refused(sql: str) -> None:
    with pytest.raises(errors.Error) as caught:
        lexer.tokens(f"SELECT {sql}")
    assert caught.value.code == "sql.syntax"


#: Statements that have no tree.
NO_TREE = """
SAVEPOINT s; RELEASE s; RELEASE SAVEPOINT s; ROLLBACK TO s; ROLLBACK TO SAVEPOINT s; ROLLBACK
COMMIT; COMMIT AND CHAIN; END; ABORT; BEGIN; START TRANSACTION ISOLATION LEVEL SERIALIZABLE
COMMIT PREPARED 'x'; ROLLBACK PREPARED 'x'; PREPARE TRANSACTION 'x'; LISTEN a; UNLISTEN *
UNLISTEN a; NOTIFY a; NOTIFY a, 'x'; DECLARE c CURSOR FOR SELECT 1; FETCH c; FETCH ALL FROM c
MOVE c; MOVE 3 c; CLOSE c; CLOSE ALL; DO $$begin end$$; DO LANGUAGE plpgsql 'x'; CALL p(1)
LOCK TABLE t; LOCK t; SET a = 1; SET LOCAL a TO b; SHOW a; RESET ALL; DISCARD ALL; CHECKPOINT
EXPLAIN SELECT 1; PREPARE p AS SELECT 1; EXECUTE p(1); DEALLOCATE p; COPY t FROM STDIN
COPY t TO '/x'; VACUUM t; ANALYZE t; REINDEX TABLE t; CLUSTER t; TRUNCATE t; LOAD 'x'
REFRESH MATERIALIZED VIEW v; GRANT SELECT ON t TO u; REASSIGN OWNED BY a TO b
SECURITY LABEL ON TABLE t IS 'x'; COMMENT ON TABLE t IS 'x'; ALTER TABLE t ADD a int; DROP TABLE t
CREATE RULE r AS ON SELECT TO t DO INSTEAD SELECT 1; CREATE INDEX i ON t (a)
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE SEQUENCE s
CREATE TYPE e AS (a int); SELECT * FROM t FOR UPDATE; SELECT * FROM t FOR UPDATE SKIP LOCKED
SELECT * FROM t FOR NO KEY UPDATE; SELECT * FROM t FOR SHARE OF t NOWAIT; SELECT 1 INTO t
SELECT a INTO TEMP t FROM u; INSERT INTO t OVERRIDING SYSTEM VALUE VALUES (1)
INSERT INTO t (a) OVERRIDING USER VALUE SELECT 1
WITH x AS (INSERT INTO t VALUES (1) RETURNING a) SELECT * FROM x
WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x; DELETE FROM t WHERE CURRENT OF c
SELECT * FROM t ORDER BY a USING <; SELECT * FROM t JOIN u USING (a) AS j
SELECT * FROM t SEMI JOIN u ON a; SELECT * FROM t ANTI JOIN u ON a; SELECT * FROM t ASOF JOIN u ON a
SELECT * FROM t PIVOT; SELECT a QUALIFY FROM t; SELECT a GLOB; SELECT x[1]; SELECT a::int[1]
SELECT f(a => 1); SELECT f(a := 1); SELECT 'a' 'b'
SELECT mytype 'x'; SELECT interval(3) '1'; SELECT a::interval(3); SELECT int '1'::text
SELECT n'a'; SELECT @ a; SELECT |/ a; SELECT a OPERATOR(pg_catalog.+) b; SELECT a == b
SELECT a||-b; SELECT a*@b; SELECT a<#>b; SELECT a @@ b; SELECT a <-> b; SELECT a ~~ b
SELECT ~ a + b; SELECT a ~ b || c; SELECT a IS JSON; SELECT a < b = c
SELECT "Sum"(a) FROM t; SELECT "A", a FROM t; WITH "T" AS (SELECT 1) SELECT * FROM t
SELECT t.a FROM "T" AS t; SELECT U&"\\0041", a FROM t; SELECT lower(a -> b)
"""


@pytest.mark.parametrize("sql", [s.strip() for s in NO_TREE.replace("\n", ";").split(";") if s])
def test_what_is_not_certain_has_no_tree(sql: str) -> None:
    assert trees.parse(sql) is None


def catalog_of(*names: str) -> Catalog:
    """A catalog of tables, views and their columns: `schema.table.column`, or `schema.view`."""
    catalog = Catalog("x")
    for name in names:
        schema, relation, *column = name.split(".")
        if not column:
            catalog.objects.append(HomeObject("VIEW", schema, relation, ""))
            continue
        known = [t for t in catalog.tables.values() if (t.schema, t.name) == (schema, relation)]
        table = known[0] if known else Table(schema, relation, 1)
        table.columns.append(Column(column[0], "text", len(table.columns) + 1))
        catalog.tables[schema, relation] = table
    return catalog


#: What there was, what there is, and the names of a scope that are one without their capitals.
MERGED: dict[tuple[tuple[str, ...], tuple[str, ...]], set[str]] = {
    ((), ("public.t.a", "public.t.A")): {"a", "A"},
    (("public.t.a",), ("public.T.a",)): {"t", "T"},
    (("public.v",), ("public.t.a", "public.V")): {"v", "V"},
    ((), ("public.t.a", "Public.u.a")): {"public", "Public"},
    ((), ("public.t.a", "public.T")): {"t", "T"},
    (("public.t.a",), ("public.t.a", "public.u.A", "other.T", "public.A.t")): set(),
    ((), ("public.t.ä", "public.t.Ä")): set(),
}


@pytest.mark.parametrize(("before", "after"), MERGED)
def test_names_that_differ_by_capitals_are_refused(
    before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    names = MERGED[before, after]
    if not names:
        POSTGRES.require_names(catalog_of(*before), catalog_of(*after))
        return
    DUCKDB.require_names(catalog_of(*before), catalog_of(*after))
    with pytest.raises(errors.Error) as caught:
        POSTGRES.require_names(catalog_of(*before), catalog_of(*after))
    assert caught.value.code == "table.capitals"
    assert all(name in caught.value.message.split() for name in names)


#: Statements that have one, with its kind.
TREES: dict[str, type[exp.Expr]] = {
    f"VALUES ({P}0,{P}1)": exp.Values, "TABLE t": exp.Select, "SELECT FROM t": exp.Select,
    "SELECT * FROM ONLY t": exp.Select, "SELECT DISTINCT ON (a) a FROM t": exp.Select,
    "(SELECT 1) UNION ALL SELECT 2 ORDER BY 1": exp.Union, "SELECT 1 LIMIT ALL": exp.Select,
    "SELECT * FROM t FETCH FIRST 1 ROW WITH TIES": exp.Select,
    "INSERT INTO t DEFAULT VALUES": exp.Insert,
    'INSERT INTO "S"."T" (a) VALUES (1)': exp.Insert, 'SELECT "T"."A" FROM "T"': exp.Select,
    "INSERT INTO t AS x VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2 RETURNING a": exp.Insert,
    "UPDATE ONLY t SET (a, b) = (1, 2) FROM u WHERE t.a = u.a": exp.Update,
    "DELETE FROM t USING u WHERE t.a = u.a RETURNING *": exp.Delete,
    "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE": exp.Merge,
    "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x": exp.Insert,
    "CREATE TABLE t AS SELECT 1": exp.Create, "CREATE VIEW v AS SELECT 1": exp.Create,
    "SELECT a ? 'b', c AT TIME ZONE 'UTC', i <-1, j*-1 FROM t NATURAL JOIN u": exp.Select,
    "a IS DISTINCT FROM b = c": exp.NullSafeNEQ, "close > 1": exp.GT, "a + 1_000": exp.Add,
}  # fmt: skip


@pytest.mark.parametrize("sql", TREES)
def test_what_is_certain_has_a_tree(sql: str) -> None:
    assert type(trees.parse(sql)) is TREES[sql]
