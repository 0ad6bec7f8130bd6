"""The expressions supported by the flow rule; anything not listed depends on everything.

A function is listed if its value depends only on its arguments, a clock, a sequence or randomness:
not on the text of the statement, a setting, a variable or the schema.
"""

from __future__ import annotations

from functools import cache
from typing import TypeGuard

from sqlglot import exp

from louver.names import fold

#: Functions for which sqlglot has no node class.
FUNCTIONS = frozenset(
    "add age array_distance array_extract array_value bar base64 bin bit_count bitstring"
    " cardinality century damerau_levenshtein date_part date_sub"
    " datepart datesub decade divide element_at enum_code epoch_ns epoch_us era even fdiv fmod"
    " format_bytes formatreadablesize gamma gcd get_current_timestamp hamming hash ilike_escape"
    " isfinite isoyear jaccard jaro_similarity json_array_length json_valid json_value julian lcm"
    " lgamma like_escape list_aggregate list_bool_and list_element list_extract list_grade_up"
    " list_length"
    " list_position list_resize list_reverse list_slice list_sort list_sum list_unique list_value"
    " list_where"
    " make_timestamptz map_concat map_contains map_extract map_values"
    " md5_number md5_number_lower md5_number_upper microsecond millennium millisecond multiply"
    " nextafter nextval nfc_normalize not_ilike_escape not_like_escape now octet_length ord prefix"
    " printf"
    " regexp_split_to_array round_even row signbit strip_accents strlen struct_pack subtract"
    " suffix timezone"
    " to_centuries to_decades to_hours to_json to_microseconds to_millennia to_milliseconds"
    " to_minutes to_months to_quarters to_seconds to_weeks to_years transaction_timestamp"
    " try_strptime union_extract union_tag union_value url_decode url_encode uuidv4 uuidv7 weekday"
    " yearweek xor".split()
)
#: Aggregates for which sqlglot has no node class.
AGGREGATES = frozenset("arbitrary entropy favg fsum histogram mean product".split())
#: Table functions that read the user's files, never a table or the schema.
FILE_FUNCTIONS = frozenset(
    "read_csv read_csv_auto read_parquet parquet_scan read_json read_json_auto read_json_objects"
    " read_ndjson read_ndjson_auto read_text read_blob glob".split()
)
#: These, and those that generate numbers.
TABLE_FUNCTIONS = FILE_FUNCTIONS | frozenset("range generate_series repeat repeat_row".split())
#: The function that draws a number from a sequence.
DRAW = "nextval"
_NODES = (
    # values and operators
    "Literal Null Boolean HexString BitString Paren And Or Not Xor EQ NEQ LT LTE GT GTE NullSafeEQ"
    " NullSafeNEQ Add Sub Mul Div IntDiv Mod Neg Between In Is Like ILike SimilarTo Glob Escape"
    " Case If Try Cast TryCast DataType DataTypeParam ColumnDef GenerateSeries"
    " ExplodingGenerateSeries Interval"
    " IntervalSpan Var Tuple Array Struct"
    " PropertyEQ Identifier Bracket Slice Dot Alias DPipe Concat BitwiseAnd BitwiseOr"
    " BitwiseXor BitwiseNot BitwiseLeftShift BitwiseRightShift AtTimeZone Collate Any Ordered Order"
    # functions
    " Abs Acos ArrayAppend ArrayConcat ArrayContains ArrayDistinct ArrayMax ArrayMin ArrayOverlaps"
    " ArrayPosition ArrayPrepend ArraySize ArraySlice ArraySort ArrayToString Ascii Asin Atan"
    " Atan2 BitLength CastToStrType Cbrt Ceil"
    " Chr Coalesce ConcatWs Contains Cos Cosh Cot CurrentDate CurrentTime CurrentTimestamp DateAdd"
    " DateBin DateDiff DateFromParts DateSub Day DayOfMonth DayOfWeek DayOfWeekIso DayOfYear"
    " Dayname Decode Degrees Encode EndsWith Exp Extract Factorial Flatten Floor Format FromBase64"
    " Greatest"
    " Hex Hour IsInf IsNan JSONArray JSONExtract JSONExtractScalar JSONKeyValue JSONKeys JSONObject"
    " JSONPath JSONPathKey JSONPathRoot JSONPathSubscript JSONType JarowinklerSimilarity LastDay"
    " Least Left Length Levenshtein Ln Localtime Localtimestamp Log Lower MD5 Map MapFromEntries"
    " MapKeys Minute"
    " Month Monthname Nullif Pad Pi Pow Quarter Radians Rand RegexpExtract RegexpExtractAll"
    " RegexpFullMatch RegexpILike RegexpLike RegexpReplace Repeat Replace Reverse Right Round SHA"
    " SHA2 Second Sign Sin Sinh Split SplitPart Sqrt StartsWith StrPosition StrToTime StructExtract"
    " Substring Tan Tanh TimeFromParts TimeToStr TimeToUnix TimestampFromParts TimestampTrunc"
    " DateTrunc ToBase64 ToDays ToMap Translate Trim Trunc TsOrDsAdd Typeof Unhex Unicode"
    " UnixToTime"
    " Upper Uuid Week WeekOfYear Year"
).split()
_AGGREGATES = (
    "AnyValue ApproxDistinct ArgMax ArgMin ArrayAgg Avg BitwiseAndAgg BitwiseOrAgg BitwiseXorAgg"
    " Corr Count CountIf CovarPop CovarSamp First GroupConcat Last LogicalAnd LogicalOr Max Median"
    " Min Mode PercentileCont PercentileDisc Quantile Stddev StddevPop StddevSamp Sum Variance"
    " VariancePop"
).split()
#: The parts of an IN over a list.
_MEMBERS = {"this", "expressions"}
#: Nodes that may surround the arguments of an aggregate.
_WITHIN = ("Filter", "Where", "Distinct", "WithinGroup", "IgnoreNulls")


#: Functions that read only their arguments and the rows of the query.
_OF_ROWS = (
    "Columns CumeDist DenseRank Explode ExplodingGenerateSeries FirstValue GenerateSeries Lag"
    " LastValue Lead NthValue Ntile"
    " PercentRank Rank ReadCSV ReadParquet RowNumber Transform Unnest ArrayFilter List ArrayReverse"
    " ArrayAny ArrayAll Reduce"
).split()


@cache
def _classes(names: tuple[str, ...]) -> frozenset[type]:
    return frozenset(getattr(exp, name) for name in names if hasattr(exp, name))


def understood(node: exp.Expr) -> bool:
    """Whether a node's value is a function of its parts' values."""
    if isinstance(node, exp.Anonymous):
        name = fold(node.name)
        return name in FUNCTIONS or name in AGGREGATES or name in _quoted()
    if isinstance(node, exp.ObjectIdentifier):
        return _names_sequence(node)
    kind = type(node)
    return kind in _scalar() or kind in _aggregates() or kind in _within()


def variable_of(node: exp.Expr) -> str | None:
    """The folded name of the variable read by a call of getvariable; None for anything else."""
    if not isinstance(node, exp.Anonymous) or fold(node.name) != "getvariable":
        return None
    (name, *others) = node.expressions or (None,)
    if others or not isinstance(name, exp.Literal) or not name.is_string:
        return None
    return fold(name.name)


def aggregates(node: exp.Expr) -> bool:
    """Whether a node is an aggregate, which depends on many rows."""
    if isinstance(node, exp.Anonymous):
        return fold(node.name) in AGGREGATES
    return type(node) in _aggregates()


def needs_context(node: exp.Expr) -> bool:
    """Whether a node may read the statement's text, a setting, a variable or the schema."""
    if not isinstance(node, exp.Func) or understood(node):
        return isinstance(node, exp.Describe | exp.Summarize | exp.Command | exp.Show)
    if isinstance(node, exp.Anonymous):
        return fold(node.name) not in TABLE_FUNCTIONS
    return type(node) not in _of_rows()


@cache
def _of_rows() -> frozenset[type]:
    return _classes(tuple(_OF_ROWS))


@cache
def _quoted() -> frozenset[str]:
    """Names of functions that sqlglot knows, but does not recognize as DuckDB quotes them."""
    kinds = [kind for kind in _scalar() if issubclass(kind, exp.Func)]
    return frozenset(fold(name) for kind in kinds for name in kind.sql_names())


@cache
def _scalar() -> frozenset[type]:
    return _classes(tuple(_NODES))


@cache
def _aggregates() -> frozenset[type]:
    return _classes(tuple(_AGGREGATES))


@cache
def _within() -> frozenset[type]:
    return _classes(_WITHIN)


def compared_in_pairs(node: exp.Expr) -> list[tuple[exp.Expr, ...]]:
    """What a condition compares with each other: ``(a, b) = (u, v)`` and ``(a, b) IN ((u, v), …)``
    are made of ``a = u`` and ``b = v``; of any other one all parts are taken together.
    """
    if isinstance(node, exp.EQ):
        rows = [node.this.unnest(), node.expression.unnest()]
    elif isinstance(node, exp.In) and not set(filter(node.args.get, node.args)) - _MEMBERS:
        rows = [node.this.unnest(), *(member.unnest() for member in node.expressions)]
    else:
        return [(node,)]
    if not all(isinstance(row, exp.Tuple) for row in rows):
        return [(node,)]
    if len({len(row.expressions) for row in rows}) != 1:
        return [(node,)]
    return list(zip(*(row.expressions for row in rows), strict=True))


def is_draw(item: exp.Expr) -> bool:
    """Whether an item of a select list is an unchanged number drawn from a sequence."""
    node = item.unalias()
    if not isinstance(node, exp.Anonymous) or fold(node.name) != DRAW:
        return False
    return all(
        isinstance(part.this if _is_identified(part) else part, exp.Literal)
        for part in node.expressions
    )


def _is_identified(node: exp.Expr) -> bool:
    return isinstance(node, exp.Cast) and isinstance(node.args["to"], exp.ObjectIdentifier)


def _names_sequence(node: exp.ObjectIdentifier) -> bool:
    """Whether a type is that of the sequence which `nextval('s'::regclass)` names."""
    cast = node.parent
    if node.name != "REGCLASS" or not isinstance(cast, exp.Cast):
        return False
    call = cast.parent
    named = isinstance(cast.this, exp.Literal) and cast.this.is_string
    return named and isinstance(call, exp.Anonymous) and fold(call.name) == DRAW


def query_compared(node: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """What a condition looks for in the rows of a query, and that query: of IN, and of equality
    with its only value.
    """
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        return node.this, node.args["query"]
    if not isinstance(node, exp.EQ):
        return None
    sides = node.this, node.expression
    return next(((a, b) for a, b in (sides, sides[::-1]) if isinstance(b, exp.Subquery)), None)


def reads_one_by_one(node: exp.Expr | None) -> TypeGuard[exp.Select]:
    """Whether a query returns rows of its source, one for each that satisfies its condition."""
    known = {"expressions", "from_", "where"}
    return isinstance(node, exp.Select) and not set(filter(node.args.get, node.args)) - known


def is_numbering(node: exp.Expr) -> bool:
    """Whether a condition selects the first rows of each group: row numbers against constants."""
    if isinstance(node, exp.Qualify | exp.Paren):
        return is_numbering(node.this)
    if not isinstance(node, exp.EQ | exp.LT | exp.LTE) or not isinstance(node.this, exp.Window):
        return False
    numbers = (exp.RowNumber, exp.Rank, exp.DenseRank)
    return isinstance(node.this.this, numbers) and isinstance(node.expression, exp.Literal)


def may_be_several(node: exp.Expr) -> bool:
    """Whether an item of a select list may be several columns."""
    nodes = node.find_all(exp.Star, exp.Columns)
    return any(not isinstance(part.parent, exp.Count) for part in nodes)
