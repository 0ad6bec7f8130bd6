"""Expressions of a PostgreSQL catalog, as the local engine reads them: default deny."""

from __future__ import annotations

import pytest

from louver.trusted.backends.postgres_plain import expressions

KINDS = {
    "n": "number", "x": "text", "b": "bytes", "d": "date", "f": "double", "j": None, "A b": "text",
}  # fmt: skip
CONDITIONS = {
    "(n >= (0)::numeric)": '("n" >= 0)',
    "((n >= 1) AND (n <= 5))": '(("n" >= 1) AND ("n" <= 5))',
    "(n > '-5'::integer)": '("n" > (-5))',
    "(n > 0.5)": '("n" > 0.5)',
    "(f >= (0)::double precision)": '("f" >= CAST(0 AS DOUBLE PRECISION))',
    "((x)::text <> ''::text)": "(\"x\" <> '')",
    "(x = ANY (ARRAY['a'::text, 'it''s'::text]))": "(\"x\" IN ('a', 'it''s'))",
    "((x)::text = ANY ((ARRAY['a'::character varying])::text[]))": "(\"x\" IN ('a'))",
    "((x)::text <> ALL ((ARRAY['a'::character varying])::text[]))": "(NOT (\"x\" IN ('a')))",
    '(length("A b") > 2)': '(length("A b") > 2)',
    "(b > 'a'::text)": "(\"b\" > 'a')",
    "(d > '2020-01-01'::date)": "(\"d\" > DATE '2020-01-01')",
    "(j IS NOT NULL)": '(NOT ("j" IS NULL))',
    # What may mean something else, or nothing, here.
    "(x > 'a'::text)": None,
    "(x >= b)": None,
    "((n / 2) > 1)": None,
    "(x ~ '^a'::text)": None,
    "(x ~~ 'a%'::text)": None,
    "(lower(x) = 'a'::text)": None,
    "(j = j)": None,
    "(n = 'a'::text)": None,
    "(unknown > 1)": None,
    "((n)::text = '1'::text)": None,
    "(x = 'a\\b'::text)": None,
    "(d > 'infinity'::date)": None,
    "(d > now())": None,
    "(n > ( SELECT 1))": None,
    "(n = 1); DROP TABLE t": None,
    "(f = '1e400'::double precision)": None,
    "((n)::integer = 1)": None,
}
DEFAULTS = {
    ("'x'::text", "VARCHAR"): "'x'",
    ("'it''s'::character varying", "VARCHAR"): "'it''s'",
    ("0", "INTEGER"): "0",
    ("'-5'::integer", "BIGINT"): "-5",
    ("(0)::numeric", "DECIMAL(5,2)"): "0",
    ("1.5", "DECIMAL(5,2)"): "1.5",
    ("true", "BOOLEAN"): "true",
    ("now()", "TIMESTAMP WITH TIME ZONE"): "now()",
    ("CURRENT_DATE", "DATE"): "current_date",
    ("'2020-01-01'::date", "DATE"): "'2020-01-01'",
    ("gen_random_uuid()", "UUID"): "uuid()",
    ("now()", "TIMESTAMP"): None,
    ("'a'::text || 'b'::text", "VARCHAR"): None,
    ("'now'::date", "DATE"): None,
    ("'x\\y'::text", "VARCHAR"): None,
    ("random()", "DOUBLE"): None,
    ("'x'::text", "INTEGER"): None,
    ("(1 + 1)", "INTEGER"): None,
    ("'xyz'::character varying(2)", "VARCHAR"): None,
}
VIEWS = {
    " SELECT t.n,\n    t.x AS y\n   FROM public.t\n  WHERE (t.n > 1);": (
        'SELECT "t"."n", "t"."x" AS "y" FROM "main"."t" WHERE ("t"."n" > 1)'
    ),
    ' SELECT a.n\n   FROM (public.t a\n     LEFT JOIN "S"."U" u ON ((u.n = a.n)));': (
        'SELECT "a"."n" FROM ("main"."t" AS "a" LEFT JOIN "S"."U" AS "u" ON ("u"."n" = "a"."n"))'
    ),
    " SELECT upper(x) AS upper FROM public.t;": None,
    " SELECT DISTINCT n FROM public.t;": None,
    " SELECT n FROM public.t ORDER BY n DESC;": None,
    " SELECT n FROM public.t LIMIT 1;": None,
    " SELECT count(*) AS count FROM public.t;": None,
    " SELECT n FROM public.t WHERE (x > 'a'::text);": None,
    " SELECT n FROM elsewhere.t;": None,
    " SELECT n FROM t;": None,
    " SELECT n FROM public.t UNION SELECT n FROM public.t;": None,
    " WITH c AS (SELECT 1 AS n) SELECT n FROM c;": None,
    " SELECT n FROM (SELECT n FROM public.t) s;": None,
    " SELECT n FROM generate_series(1, 2) g(n);": None,
    " SELECT n FROM public.t a JOIN public.t b USING (n);": None,
    " SELECT n FROM public.t, LATERAL (SELECT 1) s;": None,
    " SELECT n FROM public.t ANTI JOIN public.u ON (u.n = t.n);": None,
    " SELECT n FROM (public.t semi JOIN public.u ON ((u.n = semi.n)));": None,
    " SELECT n FROM public.t ASOF JOIN public.u ON (u.n >= t.n);": None,
    " SELECT n FROM public.t TABLESAMPLE bernoulli (10);": None,
    " SELECT n FROM ONLY public.t;": None,
}


@pytest.mark.parametrize(("text", "expected"), CONDITIONS.items())
def test_conditions(text: str, expected: str | None) -> None:
    assert expressions.condition(text, KINDS) == expected


@pytest.mark.parametrize(("given", "expected"), DEFAULTS.items())
def test_defaults(given: tuple[str, str], expected: str | None) -> None:
    assert expressions.default(*given, is_enum=False) == expected


@pytest.mark.parametrize(("text", "expected"), VIEWS.items())
def test_views(text: str, expected: str | None) -> None:
    assert expressions.view(text, KINDS, {"public": "main", "S": "S"}) == expected
