"""Random expressions of PostgreSQL's, without the brackets that would say what binds what."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

#: One row for each way in which the values of a column may be compared.
ROWS = """
CREATE TABLE r (
    a boolean, b boolean, c boolean, i integer, j integer, n numeric, f float8, s text, u text,
    d date, ts timestamp, tz timestamptz, v integer[], w integer[], k jsonb, date date, value text,
    year integer, "Key" integer
);
INSERT INTO r VALUES
    (true, false, true, 7, 2, 1.50, 0.25, 'ab', 'a%', '2020-02-29', '2020-02-29 23:00',
     '2020-03-01 00:30+02', '{1,2}', '{2}', '{"a": 1, "b": {"a": "x"}}', '2021-01-01', 'v', 3, 1),
    (false, true, true, -3, 5, -0.05, 2, 'b', '_', '1999-12-31', '1999-12-31 00:00:01',
     '1999-12-31 00:00:01+00', '{}', '{1,2}', '{"b": null}', '1970-01-01', 'w', 4, 2),
    (NULL, true, NULL, 0, 1, NULL, -1, '', NULL, '2020-01-01', NULL, '2020-01-01 00:00+00', '{3}',
     NULL, NULL, NULL, NULL, NULL, 3)
"""
COLUMNS = {
    "bool": "a b c TRUE FALSE (NULL::boolean)".split(),
    "int": 'i j year r.i 0 1 2 3 0x1F 1_0 0b11 "Key"'.split(),
    "number": "n f 1.5 .5 2. 1e1 1_0.2_5".split(),
    "text": "s u value r.s 'a' '%' E'a\\x62' U&'\\0061b' '''' $$a$$".split(),
    "day": "d date DATE'2020-02-01'".split() + ["date '2020-01-01'"],
    "time": ["ts", "timestamp '2020-02-01 00:00'"],
    "zoned": ["tz", "timestamptz '2020-02-01 00:00+00'"],
    "ints": ["v", "w", "ARRAY[1, 2]", "'{1}'::int[]"],
    "json": ["k", "'{\"a\": 2}'::jsonb"],
}
_COMPARISONS = ["=", "<", ">", "<=", ">=", "<>", "!="]
#: Forms of each type; a word in braces is an operand of that type.
FORMS: dict[str, list[str]] = {
    "bool": [
        "{bool} AND {bool}", "{bool} OR {bool}", "NOT {bool}", "{bool} IS NULL",
        "{bool} IS NOT NULL", "{bool} IS TRUE", "{bool} IS NOT FALSE", "{bool} IS UNKNOWN",
        "{bool} ISNULL", "{bool} NOTNULL", "{bool} IS DISTINCT FROM {bool}",
        "{bool} IS NOT DISTINCT FROM {bool}", "{int} IS DISTINCT FROM {int}", "{int} IS NULL",
        "{bool} IN ({bool}, {bool})", "{bool} NOT IN ({bool})", "{int} IN ({int}, {int})",
        "{bool} BETWEEN {bool} AND {bool}", "{int} NOT BETWEEN {int} AND {int}",
        "{int} BETWEEN SYMMETRIC {int} AND {int}", "{text} LIKE {text}", "{text} NOT LIKE {text}",
        "{text} ILIKE {text}", "{text} NOT ILIKE {text}", "{text} LIKE {text} ESCAPE '!'",
        "{text} SIMILAR TO {text}", "{text} ~ {text}", "{text} !~ {text}", "{text} ~* {text}",
        "{text} ~~ {text}", "{text} ^@ {text}", "{ints} @> {ints}", "{ints} <@ {ints}",
        "{ints} && {ints}", "{int} = ANY({ints})", "{int} <> ALL({ints})", "{int} < SOME({ints})",
        "{json} ? {text}", "{json} @> {json}", "{bool} = ANY(ARRAY[{bool}, {bool}])",
        "EXISTS(SELECT 1 WHERE {bool})", "CASE WHEN {bool} THEN {bool} ELSE {bool} END",
        "({int}, {int}) = ({int}, {int})", "{bool}::text::boolean", "starts_with({text}, {text})",
        "{bool} OPERATOR(pg_catalog.=) {bool}", "CAST({bool} AS boolean)",
        *(f"{{{kind}}} {sign} {{{kind}}}" for kind in ("bool", "int", "text", "number", "day")
          for sign in _COMPARISONS),
    ],
    "int": [
        *(f"{{int}} {sign} {{int}}" for sign in "+ - * / % & | # << >>".split() for _ in "12"),
        "- {int}", "+ {int}", "~ {int}", "@ {int}", "-{int}::bigint", "{int}::integer",
        "CAST({int} AS bigint)", "abs({int})", "mod({int}, {int})", "length({text})",
        "CASE {int} WHEN {int} THEN {int} END", "coalesce({int}, {int})", "{day} - {day}",
        "position({text} in {text})", "({json} ->> 'a')::int", "{ints}[1]", "({ints})[{int}]",
        "extract(year from {day})::int", "(SELECT {int})", "greatest({int}, {int})",
        "cardinality({ints})", "- {int} ^ {int}", "{int} ^ {int}", "|/ {int}", "ascii({text})",
    ],
    "number": [
        *(f"{{number}} {sign} {{number}}" for sign in "+ - * / ^".split()),
        "{number} + {int}", "{number}::numeric % {int}", "- {number}", "round({number})",
        "power({number}, {int})", "{number}::numeric(9,2)", "{int}::float8", "{number}::real",
        "{number}::float", "{number}::decimal", "sqrt(abs({number}))", "-{number}^{int}",
        "trunc({number})", "@ {number}",
    ],
    "text": [
        "{text} || {text}", "{text} || {text}", "{text} || {int}", "{int} || {text}",
        '{text} COLLATE "C"', '{text} || {text} COLLATE "C"', "{text}::varchar", "{int}::text",
        "{bool}::text", "upper({text})", "lower({text})", "substring({text} from {int} for {int})",
        "trim(both {text} from {text})", "{json} ->> {text}", "{json} #>> '{{a}}'",
        "CASE WHEN {bool} THEN {text} END", "{json} -> 'b' ->> {text}", "left({text}, {int})",
        "coalesce({text}, {text})", "replace({text}, {text}, {text})", "{text}::char(3)",
        "concat({text}, {int})", "overlay({text} placing {text} from {int})", "{text}::\"char\"",
        "to_char({day}, 'YYYY')", "repeat({text}, 2)", "nullif({text}, {text})",
    ],
    "day": ["{day} + {int}", "{day} - {int}", "{time}::date", "CAST({text} AS date)"],
    "time": [
        "{time} + interval '1 day'", "{zoned} AT TIME ZONE 'UTC'", "{day} + interval '1' hour",
        "{day}::timestamp", "{time} - interval '1 day 2 hours'", "{time} + {int} * interval '1 h'",
        "date_trunc('day', {time})", "{zoned} AT TIME ZONE {text} || {text}",
    ],
    "zoned": ["{time} AT TIME ZONE 'Europe/Paris'", "{time}::timestamptz", "{zoned} AT LOCAL"],
    "ints": [
        "{ints} || {ints}", "{ints} || {int}", "ARRAY[{int}, {int}]", "array_append({ints}, {int})",
        "ARRAY(SELECT {int})",
    ],
    "json": ["{json} -> {text}", "{json} || {json}", "{json} - {text}", "{json} #> '{{b}}'"],
}  # fmt: skip


def drawn(random: Random, kind: str = "", depth: int = 3) -> str:
    """An expression, mostly of a type."""
    kind = kind or random.choice(list(FORMS))
    if depth == 0 or random.random() < 0.15:
        return random.choice(COLUMNS[kind])
    form = random.choice(FORMS[kind])

    def operand(name: str) -> str:
        chosen = name if random.random() < 0.93 else random.choice(list(FORMS))
        text = drawn(random, chosen, depth - 1)
        return f"({text})" if random.random() < 0.2 else text

    text = _filled(form, operand)
    return text.replace(" ", "") if random.random() < 0.05 and "'" not in text else text


def _filled(form: str, operand: Callable[[str], str]) -> str:
    """A form with an operand in the place of each word in braces."""
    pieces, rest = [], form.replace("{{", "\0").replace("}}", "\1")
    while "{" in rest:
        before, _, behind = rest.partition("{")
        name, _, rest = behind.partition("}")
        pieces += [before, operand(name)]
    return "".join([*pieces, rest]).replace("\0", "{").replace("\1", "}")
