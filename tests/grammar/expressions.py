"""Expressions and conditions: a grammar of productions by family.

In a production, {family} stands for an expression of this family, {type:family} for one of its
types. Those behind "!" may fail for some values.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from tests.grammar.types import FAMILIES, Col, cast, literal

Scope = Sequence[tuple[str, Col]]
"""Columns, by what stands before their names."""

_ANY = (
    "CASE WHEN {bool} THEN {@} ELSE {@} END", "coalesce({@}, {@})", "nullif({@}, {@})",
    "CASE WHEN {bool} THEN {@} END", "if({bool}, {@}, {@})", "ifnull({@}, {@})", "({@})",
)  # fmt: skip
PRODUCTIONS: dict[str, tuple[str, ...]] = {
    "int": (
        "!{int} + {int}", "!{int} - {int}", "!{int} * {int}", "{int} % {int}", "!{int} // {int}",
        "!-{int}", "!abs({int})", "length({text})", "len({ints})", "len({texts})", "{int} & {int}",
        "{int} | {int}", "!({int})::{type:int}", "TRY_CAST({text} AS {type:int})", "sign({int})",
        "!({float})::{type:int}", "!({dec})::{type:int}", "({bool})::INTEGER", "year({date})",
        "month({ts})", "day({date})", "isodow({date})", "extract(quarter FROM {date})",
        "date_diff('day', {date}, {date})", "date_part('hour', {ts})", "bit_count({bit})",
        "greatest({int}, {int})", "least({int}, {int})", "strpos({text}, {text})", "ascii({text})",
        "unicode({text})", "({ints})[1]", "({ints})[-1]", "list_position({texts}, {text})",
        "({struct}).a", "({deep}).s.l[1]", "({map})[{text}]", "({union}).i", "({array})[2]",
        "octet_length({blob})",
        "cardinality({map})", "list_sum({ints})", "list_min({ints})", "list_unique({ints})",
        "xor({int}, {int})", "levenshtein({text}, {text})", "hash({text})", "epoch({date})",
        "list_reduce([1, 2, {int}::HUGEINT], lambda x, y: least(x, y))", "hour({time})",
        "dayofyear({date})", "week({date})", "array_length({array})", "ord({text})",
        "bit_length({text})",
        "instr({text}, 'a')", "json_array_length({json})", "TRY_CAST({json} AS INTEGER)",
        "datesub('month', {date}, {date})", "enum_code({mood})", "!{int} << 1", "{int} >> 2",
        "position('a' IN {text})", "!factorial(5)", "!gcd({int}::HUGEINT, {int}::HUGEINT)",
        "array_position({ints}, 1)",
    ),
    "bignum": ("({int})::BIGNUM", "!{bignum} + {bignum}", "!{bignum} - {bignum}", "!-{bignum}"),
    "float": (
        "{float} + {float}", "{float} - {float}", "{float} * {float}", "{float} / {float}",
        "-{float}", "abs({float})", "round({float}, 2)", "floor({float})", "ceil({float})",
        "trunc({float})", "({int})::DOUBLE", "!({float})::FLOAT", "({dec})::DOUBLE",
        "{int} / {int}",
        "!sqrt({float})", "!ln({float})", "exp({float})", "!pow({float}, 2)", "sin(1.5)", "pi()",
        "TRY_CAST({text} AS DOUBLE)", "({floats})[1]", "list_max(({floats})::DOUBLE[])",
        "epoch({ts})",
        "greatest({float}, {float})", "{dec} / {dec}",
        "!array_distance({floats}, [0, 1]::DOUBLE[2])",
        "julian({date})", "sign({float})", "fmod({float}, 3)", "cbrt({float})", "degrees({float})",
    ),
    "dec": (
        "!{dec} + {dec}", "!{dec} - {dec}", "!{dec} * {dec}", "!-{dec}", "!abs({dec})",
        "round({dec}, 1)", "!({int})::{type:dec}", "!({float})::{type:dec}", "({decs})[1]",
        "TRY_CAST({text} AS {type:dec})", "!({dec})::{type:dec}", "floor({dec})", "{dec} % {dec}",
        "!{dec} + {int}", "({unions}).n", "greatest({dec}, {dec})", "!{dec} * 2", "1.50",
        "trunc({dec})",
    ),
    "text": (
        "{text} || {text}", "upper({text})", "lower({text})", "substr({text}, 2, 3)",
        "trim({text})",
        "reverse({text})", "replace({text}, 'a', {text})", "({int})::VARCHAR", "({dec})::VARCHAR",
        "({date})::VARCHAR", "({ts})::VARCHAR", "({float})::VARCHAR", "({blob})::VARCHAR",
        "({uuid})::VARCHAR", "({mood})::VARCHAR", "({interval})::VARCHAR", "({bool})::VARCHAR",
        "concat({text}, {int}, {date})", "left({text}, 2)", "right({text}, 2)", "({text})[1]",
        "({text})[2:3]", "lpad({text}, 4, '*')", "repeat({text}, 2)", "md5({text})",
        "({ints})::VARCHAR",
        "({struct})::VARCHAR", "({map})::VARCHAR", "({union})::VARCHAR", "({bit})::VARCHAR",
        "typeof({*})", "format('{{}}-{{}}', {text}, {int})", "printf('%s', {text})",
        "regexp_replace({text}, '[a-c]', 'X')", "regexp_extract({text}, '([0-9]+)', 1)",
        "string_split({text}, ',')[1]", "array_to_string({texts}, '-')", "({texts})[1]",
        "({struct}).b",
        "({union}).s", "union_tag({union})::VARCHAR", "strftime({date}, '%Y/%m')",
        "dayname({date})",
        "concat_ws('-', {text}, {mood})", "translate({text}, 'ab', 'xy')", "({time})::VARCHAR",
        "({tstz})::VARCHAR", "({timetz})::VARCHAR", "({timens})::VARCHAR", "({enum})::VARCHAR",
        "({json})::VARCHAR", "({json}->>'$.a')", "hex({blob})", "base64({blob})", "sha256({text})",
        "({deep})::VARCHAR", "({maps})::VARCHAR", "({array})::VARCHAR",
        "split_part({text}, ',', 2)",
        "({bignum})::VARCHAR", "chr(65)", "strip_accents({text})", "nfc_normalize({text})",
        "starts_with({text}, 'a')::VARCHAR", "list_aggregate({texts}, 'min')",
        "to_json({*})::VARCHAR",
        "bar(1, 0, 10, 4)", "monthname({ts})", "({dates})::VARCHAR",
        "getvariable('v1')::VARCHAR", "url_encode({text})", "concat({json}, {text})",
    ),
    "blob": ("encode({text})", "{blob} || {blob}", "!unhex(hex({blob}))",
        "!({text})::VARCHAR::BLOB"),
    "bit": ("~{bit}", "bitstring('101', 4)", "!{bit} & {bit}", "({int})::BIT", "{bit} || {bit}"),
    "bool": (
        "{int} = {int}", "{int} < {int}", "{int} <> {int}", "{int} >= {int}", "{float} = {float}",
        "{float} > {float}", "{dec} <= {dec}", "!{dec} = {int}", "{text} = {text}",
        "{text} < {text}",
        "{text} LIKE 'a%'", "{text} NOT LIKE '%b%'", "{text} ILIKE 'A%'",
        "{text} IN ('a', 'b', {text})",
        "{int} IN (1, 2, 100)", "!{int} NOT IN (1, {int})", "{int} BETWEEN {int} AND {int}",
        "{date} BETWEEN {date} AND {date}", "{date} < {date}", "{ts} > {ts}", "!{ts} = {date}",
        "{*} IS NULL", "{*} IS NOT NULL", "NOT {bool}", "{bool} AND {bool}", "{bool} OR {bool}",
        "{bool} IS TRUE", "{bool} IS NOT FALSE", "{text} IS DISTINCT FROM {text}",
        "{bool} = {bool}",
        "{int} IS NOT DISTINCT FROM {int}", "{mood} = {mood}", "{mood} < 'ok'::mood",
        "{mood} IN ('sad', 'ok')",
        "{uuid} = {uuid}", "{blob} = {blob}", "{blob} < {blob}", "{interval} > {interval}",
        "{time} < {time}", "{timetz} = {timetz}", "{timens} = {timens}", "{tstz} <= {tstz}",
        "{bit} = {bit}", "{enum} = 'x'", "{ints} = {ints}", "{ints} < {ints}", "{texts} = {texts}",
        "list_contains({ints}, {int})", "{struct} = {struct}", "{map} = {map}", "{union} = {union}",
        "{array} = {array}", "{bignum} > {bignum}", "isnan({float})", "isinf({date})",
        "regexp_matches({text}, '^[a-z]')", "starts_with({text}, {text})", "contains({text}, 'a')",
        "suffix({text}, 'b')", "{int} = ANY({ints})", "{int} > ALL([1, 2])",
        "list_has_any({ints}, [1])",
        "{text} SIMILAR TO '[ab]+'", "{text} GLOB 'a*'", "{int}::BOOLEAN", "true",
        "{int} < {float}",
        "{text} ~ 'a.*'", "{text} IS NULL OR {text} = ''", "({int}, {text}) = ({int}, {text})",
        "({deep}).s.d = {date}", "({map})['a'] = 1", "map_contains({map}, 'a')",
        "json_valid({text})",
        "{json} = {json}", "list_bool_and([{bool}, {bool}])", "({structs})[1].v > 1",
        "{text} COLLATE NOCASE = 'B'",
        "{nocase} = 'b'", "{nocase} < {nocase}", "{nocase} IN ('A', 'b')", "{nocase} LIKE 'a%'",
        "m1({*})",
    ),
    "date": (
        "{date} + 1", "!{date} - 7", "!({ts})::DATE", "last_day({date})",
        "TRY_CAST({text} AS DATE)",
        "({deep}).s.d", "make_date(2020, 2, 3)", "greatest({date}, {date})", "({dates})[1][1]",
        "TRY_STRPTIME({text}, '%Y-%m-%d')::DATE",
    ),
    "time": ("!({ts})::TIME", "TRY_CAST({text} AS TIME)", "{time} + INTERVAL 1 HOUR",
        "({timetz})::TIME"),
    # DuckDB converts values of rows that a condition leaves out too, and fails at infinity.
    "timetz": ("TRY_CAST({tstz} AS TIMETZ)", "({time})::TIMETZ"),
    "timens": ("TRY_CAST({text} AS TIME_NS)",),
    "ts": (
        "!{date} + {interval}", "!{ts} + {interval}", "!{ts} - INTERVAL 1 MONTH",
        "date_trunc('month', greatest({ts}, {ts}))", "!({ts})::{type:ts}", "({date})::TIMESTAMP",
        "date_trunc('hour', least({ts}, {ts}))",
        "TRY_CAST({text} AS TIMESTAMP)", "time_bucket(INTERVAL 1 DAY, {ts})",
    ),
    "tstz": ("({ts})::TIMESTAMPTZ", "!{tstz} + INTERVAL 1 DAY",
        "date_trunc('day', greatest({tstz}, {tstz}))",
             "({date})::TIMESTAMPTZ"),
    "interval": (
        "!{ts} - {ts}", "{interval} + {interval}", "INTERVAL 3 DAY", "to_days(3)", "-{interval}",
        "age({ts}, {ts})", "!{interval} * 2", "TRY_CAST({text} AS INTERVAL)", "to_hours(5)",
    ),
    "uuid": ("TRY_CAST({text} AS UUID)", "({uuid})::VARCHAR::UUID"),
    "mood": ("TRY_CAST({text} AS mood)", "({moods})[1]", "enum_first(NULL::mood)::mood"),
    "enum": ("TRY_CAST({text} AS ENUM('x', 'y', 'ö'))",),
    "json": ("to_json({int})", "to_json({text})", "{json}->'$.a'", "json_object('k', {int})",
             "to_json({struct})", "TRY_CAST({text} AS JSON)", "json_array({text}, {bool})"),
    "ints": (
        "[{int}::INTEGER, 5]", "list_transform({ints}, lambda x: x // 2)", "({array})::INTEGER[]",
        "list_filter({ints}, lambda x: x > 1)", "list_sort({ints})", "list_reverse({ints})",
        "{ints} || {ints}", "list_distinct([1, 1])", "({ints})[1:2]",
        "[x for x in ({ints}) if x > 1]",
        "list_append({ints}, 3)", "generate_series(1, 3)::INTEGER[]",
        "list_reverse(list_sort({ints}))",
        "list_sort({ints}, 'DESC', 'NULLS LAST')",
        "list_slice({ints}, 1, 2)", "flatten([{ints}, {ints}])", "list_concat({ints}, [1])",
        "list_grade_up({ints})::INTEGER[]", "list_resize({ints}, 2)",
        "list_where([1, 2], [true, {bool}])", "list_apply({ints}, lambda x, i: i::INTEGER)",
    ),
    "texts": ("string_split({text}, ',')", "[{text}, {text}]",
        "list_transform({texts}, lambda x: upper(x))",
              "regexp_split_to_array({text}, 'b')", "list_filter({texts}, lambda x: x <> {text})",
              "map_keys({map})", "({ints})::VARCHAR[]", "list_prepend({text}, {texts})",
              "({maps})[1]"),
    "dates": ("[[{date}]]", "list_sort({dates})"),
    "decs": ("[1.5::DECIMAL(9,2)]", "list_reverse({decs})"),
    "moods": ("[{mood}]", "list_sort({moods})", "enum_range(NULL::mood)::mood[]"),
    "array": ("array_value(1::INTEGER, ({array})[1], 3)", "[1, 2, ({array})[1]]::INTEGER[3]"),
    "floats": ("array_value({float}::DOUBLE, 2::DOUBLE)", "[{float}, 1]::DOUBLE[2]"),
    "struct": ("{{'a': ({array})[1], 'b': {text}}}", "struct_pack(a := 1, b := {text})",
               "!row({int}, {text})::STRUCT(a INTEGER, b VARCHAR)"),
    "deep": ("{{'i': 1, 's': {{'d': {date}, 'l': [1::BIGINT]}}}}",),
    "structs": ("[{{'v': 1::UTINYINT}}]", "list_reverse({structs})"),
    "map": ("map_from_entries([('a', 1)])", "map(['a', 'b'], [1, ({array})[1]])",
            "map_concat({map}, {map})"),
    "maps": ("MAP {{1: {texts}}}",),
    "union": ("union_value(i := ({array})[1])::UNION(i INTEGER, s VARCHAR)",
        "({text})::UNION(i INTEGER, s VARCHAR)"),
    "nocase": ("({nocase})",),
    "unions": ("union_value(l := {ints})::UNION(n DECIMAL(9,2), l INTEGER[])",),
}  # fmt: skip
_NAMES = tuple(FAMILIES)
_PART = re.compile(r"\{(type:)?([a-z]+|\*)\}|\{\{|\}\}")


class Expressions:
    """Draws expressions over the columns of a scope."""

    def __init__(self, dice: Random, scope: Scope, safe: bool) -> None:
        self.dice = dice
        self.scope = scope
        #: whether nothing may fail
        self.safe = safe

    def any(self, depth: int = 2) -> str:
        """An expression of any family, often one that the scope has."""
        return self.of(self.family(), depth)

    def family(self) -> str:
        """A family: of a column of the scope, mostly."""
        if self.scope and self.dice.random() < 0.7:
            return self.dice.choice(self.scope)[1].family
        return self.dice.choice(_NAMES)

    def condition(self, depth: int = 2) -> str:
        """A condition."""
        return self.of("bool", max(depth, 1), leaf=False)

    def of(self, family: str, depth: int = 2, leaf: bool = True) -> str:
        """An expression of a family."""
        if leaf and (depth <= 0 or self.dice.random() < 0.45):
            return self._leaf(family)
        productions = PRODUCTIONS[family]
        if self.dice.random() < 0.08:
            production = self.dice.choice(_ANY).replace("@", family)
        else:
            production = self.dice.choice(productions)
        fails = production.startswith("!")
        text = _PART.sub(lambda match: self._part(match, depth - 1), production.lstrip("!"))
        if fails and self.safe:
            return f"TRY({text})"
        return f"({text})" if " " in production and not production.startswith("CASE") else text

    def _part(self, match: re.Match[str], depth: int) -> str:
        kind, family = match.groups()
        if family is None:
            return match[0][0]
        if kind:
            return self.dice.choice(FAMILIES[family])
        if family == "*":
            return self.any(depth)
        return self.of(family, depth)

    def _leaf(self, family: str) -> str:
        fitting = [entry for entry in self.scope if entry[1].family == family]
        if fitting and self.dice.random() < 0.8:
            return named(self.dice.choice(fitting))
        return self._constant(family)

    def _constant(self, family: str) -> str:
        """A value of a type that is said; more often of a usual one."""
        type_ = self.dice.choice(FAMILIES[family])
        if family == "int" and self.dice.random() < 0.7:
            return str(self.dice.choice((0, 1, 2, 3, 7, 100, "NULL::INTEGER")))
        text = literal(self.dice, type_, 0.05).removesuffix(f"::{type_}")
        return f"CAST({text} AS {cast(type_)})"


def named(entry: tuple[str, Col]) -> str:
    """A column as an expression names it."""
    alias, col = entry
    return f"{alias}.{col.name}" if alias else col.name
