"""A provider computes for strangers what stands on its lists, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver import errors
from louver.untrusted.providers import expressions
from louver.untrusted.providers.sandbox import Limits, working
from louver.wire.questions import Order, Partial, Protocol, Shape, TableFacts
from tests.generated import cases
from tests.providers.prepared import stored

TABLES = (
    TableFacts("t", (("a", "INTEGER"), ("b", "VARCHAR"), ("d", "DATE"), ('we"ird', "INTEGER")), 3),
    TableFacts("u", (("a", "INTEGER"), ("c", "INTEGER")), 3),
)
COUNT = (Partial("count"),)


def of(text: str = "a", source: str = "t", where: str = "") -> Shape:
    return Shape(Protocol.SELECT, source, where, (text,), partials=COUNT)


PLAIN = """a | t.a | A | "a" | a+1 | CASE WHEN a=1 THEN 'x' ELSE b END | CASE a WHEN 1 THEN 2 END
date_trunc('month', d) | extract(hour FROM d) | CAST(a AS DECIMAL(10,2))
b LIKE '%a%b%c%d%' | b ILIKE '%a_%' | a::TEXT | -a | (a)
b LIKE 'x%' | b NOT LIKE 'x%' | b ILIKE 'a' ESCAPE '!' | b GLOB 'x*' | b SIMILAR TO 'x+'
"we""ird" | a IN (1,2,3) | a NOT IN (1) | a BETWEEN 1 AND 2 | NOT (a=1 AND b='x' OR a IS NULL)
d + INTERVAL 3 DAY | coalesce(a,1) | nullif(a,1) | ifnull(a,1) | TRUE | a -- x | a /* y */ | 'it''s'
substring(b from 1 for 2) | trim(b) | try_cast(b as int) | 1.5e3 | d >= DATE '2020-01-01' | 10 % 3
concat(b,'x') | a // 5 | if(a=1,2,3) | floor(a/10)::INT | year(d) | a IS NOT DISTINCT FROM 3
replace(b, 'ab', 'c') | regexp_extract(b, '[0-9]+') | round(a / 7, 2) | main.upper(b) | a ** 2
position('x' in b) | strftime(d, '%Y') | greatest(a, 1) | NULL::INTEGER | ';' | '--' | '/*'"""

STRANGE = """a; SELECT 1 | a; | a, b | a AS x | a FROM t | * | COLUMNS(*) | t.* | (SELECT 1)
read_csv('/etc/passwd') | read_text('/etc/passwd') | glob('/*') | getenv('HOME') | version()
current_setting('threads') | set_config('threads', '1') | getvariable('x') | current_user
random() | setseed(0.1) | now() | today() | current_date | CURRENT_TIMESTAMP | age(d) | uuid()
gen_random_uuid() | nextval('s') | currval('s') | txid_current() | pg_sleep(1) | error('x')
b ILIKE '%a%a%a%b' | b GLOB '*a*a*b' | b LIKE '%_a%_a%b' | b LIKE b | b ILIKE b || '%'
b LIKE '%a%a%b' ESCAPE '!' | b NOT ILIKE '%a%b' | repeat('x',1000000000)
b * 3 FROM t | range(10000000) | generate_series(1, 10) | unnest([1])
list_value(1) | [1,2] | [x for x in [1]] | {'a':1}
struct_pack(a:=1) | row(a,b) | (a,b) | MAP {1:2}
a::INT[] | a::ENUM('x') | a::JSON | a::STRUCT(x INT) | a::foo | a::BIT | a::VARIANT
sum(a) | count(*) | string_agg(b) | list(a) | sum(a) OVER () | row_number() OVER () | histogram(a)
nothing | rowid | t.rowid | louver_position | u.c | main.t.a
memory.main.t.a | t | ? | $1 | $x | :x
a COLLATE nocase | b[1] | b[1:2] | try(a)
a) FROM t -- | a UNION SELECT 1 | a ORDER BY a | a LIMIT 1
DISTINCT a | ALL a | x -> x | lambda x: x
a WHERE a | EXISTS (SELECT 1) | a IN (SELECT 1) | DEFAULT
replace(b,'a','aaaa') | replace(b,b,b) | replace(b,'a',b) | lpad(b,1000000000,'x') | rpad(b,9,'x')
format('{:1000000000}',a) | printf('%1000000000d',a) | pragma_version() | hash(a)
(a | a) | /* | 1) + (2
a USING SAMPLE 3 | a QUALIFY a | a GROUP BY a | a HAVING a | a WINDOW w AS ()
a AT TIME ZONE 'utc' | b.upper() | GROUPING(a) | a INTO x | query('SELECT 1') | query_table('t')
getenv ('HOME') | "getenv"('HOME')
GeTeNv('HOME') | sql_auto_complete('x') | json_serialize_sql('x')
in_search_path('x') | duckdb_settings()
write_log('x') | add_parquet_key('a','b') | current_query()
regexp_replace(b, '', 'aaaaaaa', 'g') | string_split(b, '')
array_agg(a) | bar(1,0,1,1000000000)"""


def cut(text: str) -> list[str]:
    return [cell for line in text.splitlines() for cell in line.split(" | ")]


@pytest.mark.parametrize("text", cut(PLAIN))
def test_plain_expressions_are_computed(text: str) -> None:
    expressions.check(of(text), TABLES)


@pytest.mark.parametrize("text", [*cut(STRANGE), "", " ", "a\0", "'" + "x" * 20_000 + "'"])
def test_strange_ones_are_refused(text: str) -> None:
    for shape in (
        of(text),
        of(where=text or " "),
        Shape(Protocol.SELECT, "t", partials=(Partial("sum", (text,)),)),
        Shape(Protocol.SELECT, "t", columns=("a",), orders=(Order(text),), limit=1),
    ):
        with pytest.raises(errors.Error) as caught:
            expressions.check(shape, TABLES)
        assert caught.value.code == "provider.refused"


def test_deep_and_long_ones_are_refused() -> None:
    for text in ("a" + "+a" * 5_000, "abs(" * 200 + "a" + ")" * 200, "a," * 5_000 + "a"):
        with pytest.raises(errors.Error) as caught:
            expressions.check(of(text), TABLES)
        assert caught.value.code == "provider.refused"
    many = Shape(Protocol.SELECT, "t", equal=("a",) * 300, partials=COUNT)
    with pytest.raises(errors.Error):
        expressions.check(many, TABLES)


SOURCES = {
    "t": ("t",),
    "T": ("t",),
    '"t"': ("t",),
    "t AS x": ("x",),
    "t JOIN u ON t.a = u.a": ("t", "u"),
    "t LEFT JOIN u USING (a)": ("t", "u"),
    "t RIGHT JOIN u ON t.a = u.a AND u.c > 3": ("t", "u"),
    "t FULL JOIN u ON t.a = u.a": ("t", "u"),
    "t AS x CROSS JOIN t AS y": ("x", "y"),
    "t, u": ("t", "u"),
}


@pytest.mark.parametrize("source", SOURCES)
def test_tables_and_joins_are_read(source: str) -> None:
    names = expressions.check(Shape(Protocol.SELECT, source, partials=COUNT), TABLES).names
    assert names == SOURCES[source]


NO_SOURCES = """x | t WHERE a | t; DROP TABLE t | t; | (SELECT * FROM t) | (SELECT * FROM t) AS s
read_csv('/etc/passwd') | '/etc/passwd' | "/etc/passwd" | 'data.parquet' | glob('/*') | range(10)
t NATURAL JOIN u | t ASOF JOIN u ON t.a>=u.a | t SEMI JOIN u USING (a) | t ANTI JOIN u USING (a)
t POSITIONAL JOIN u | t TABLESAMPLE 10% | information_schema.tables | duckdb_settings() | main.t
memory.main.t | t AS x(z) | VALUES (1) | (VALUES (1)) v | t JOIN LATERAL (SELECT 1) ON TRUE
t JOIN t ON TRUE | t, t | t AT (VERSION => 1) | sqlite_master | pragma_table_info('t') | t LIMIT 3
t JOIN u ON (SELECT TRUE) | t JOIN u USING (zz) | t JOIN u ON getenv('HOME') = 'x' | unnest([1])
t x, t y, t z, t a, t b, t c, t d, t e, t f | t JOIN u ON t.louver_position = u.louver_position
t UNION ALL SELECT 1 | query('SELECT 1') | query_table('t') | t PIVOT (sum(a) FOR b IN ('x'))
t ORDER BY a | t -- x WHERE | t JOIN u
WITH x AS (SELECT 1) SELECT 1 | t GROUP BY a | SHOW TABLES"""


@pytest.mark.parametrize("source", [*cut(NO_SOURCES), "", " "])
def test_other_sources_are_refused(source: str) -> None:
    if source == "t -- x WHERE":
        expressions.check(of(source=source), TABLES)
        return
    with pytest.raises(errors.Error) as caught:
        expressions.check(of(source=source), TABLES)
    assert caught.value.code == "provider.refused"


@pytest.mark.parametrize(
    "shape",
    [
        Shape(Protocol.SELECT, "t"),
        Shape(Protocol.SELECT, "t", columns=("a",)),
        Shape(Protocol.SELECT, "t", columns=("a",), limit=1_000_000),
        Shape(Protocol.SELECT, "t", columns=("a",), limit=1, partials=COUNT),
        Shape(Protocol.SELECT, "t", columns=("a",), limit=1, groups=("a",)),
        Shape(Protocol.SELECT, "t", partials=(Partial("string_agg", ("b",)),)),
        Shape(Protocol.SELECT, "t", partials=(Partial("sum(1) --", ("b",)),)),
        Shape(Protocol.SELECT, "t", partials=(Partial("sum", ()),)),
        Shape(Protocol.SELECT, "t", partials=(Partial("arg_max", ("a",)),)),
    ],
)
def test_shapes_that_are_none_are_refused(shape: Shape) -> None:
    with pytest.raises(errors.Error) as caught:
        expressions.check(shape, TABLES)
    assert caught.value.code == "provider.refused"


WORDS = st.sampled_from(
    "a b t . , ; ( ) ' \" -- /* */ SELECT FROM WHERE + = * 1 'x' AS getenv read_csv [ ] { } ? $1 "
    "UNION CASE WHEN END OVER \n".split(" ")
)


@settings(max_examples=cases(150), deadline=None)
@given(st.one_of(st.lists(WORDS, max_size=12).map(" ".join), st.text(max_size=20)))
def test_any_text_is_checked_or_refused(text: str) -> None:
    try:
        expressions.check(of(text), TABLES)
    except errors.Error as error:
        refused = error
    else:
        # What passes is one expression wherever it stands, and calls nothing but what is listed.
        # (A comment ends before what stands behind a text, which is on a line of its own.)
        words = re.sub(r"--[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL).replace("'", " ").split()
        assert not {"getenv", "read_csv", "FROM", "SELECT"} & set(words)
        return
    if refused.code != "provider.refused":
        raise refused


def test_the_database_itself_reaches_nothing(tmp_path: Path) -> None:
    loaded = stored(tmp_path, [])
    for sql in (
        "SELECT * FROM read_csv('/etc/passwd')",
        "COPY (SELECT 1) TO '/tmp/out.csv'",
        "ATTACH '/tmp/other.duckdb'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '1TB'",
        "CREATE TABLE louver_data.main.z AS SELECT 1",
        "DROP TABLE t",
    ):
        with (
            pytest.raises(errors.Error) as caught,
            working(loaded.database, tmp_path, Limits()) as work,
        ):
            work.run(sql)
        assert caught.value.code == "provider.refused"
