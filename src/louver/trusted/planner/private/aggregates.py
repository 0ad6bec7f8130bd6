"""Aggregates as partial results computed by providers, and the local expressions over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from louver.names import keyword
from louver.trusted.planner.private import functions, histogram, marks
from louver.trusted.planner.private.parse import function_name
from louver.trusted.planner.private.question import MERGED
from louver.trusted.planner.private.refusal import refuse
from louver.trusted.planner.private.schema import Schema
from louver.trusted.planner.sql import trees
from louver.trusted.planner.sql.trees import local_text
from louver.trusted.vault.types import decimal_scale, is_integer, value_range
from louver.wire.questions import Partial

_KINDS: dict[type[exp.Expr], str] = {
    exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max",
    exp.ArgMin: "arg_min", exp.ArgMax: "arg_max", exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or", exp.BitwiseAndAgg: "bit_and", exp.BitwiseOrAgg: "bit_or",
    exp.BitwiseXorAgg: "bit_xor", exp.CountIf: "count_if", exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp", exp.StddevPop: "stddev_pop", exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
}  # fmt: skip
_NAMES = {"mean": "avg", "product": "product", "histogram": "histogram"}
_OTHERS = frozenset(
    """any_value approx_count_distinct approx_quantile approx_top_k arbitrary arg_max_null
    arg_max_nulls_last arg_min_null arg_min_nulls_last array_agg bitstring_agg corr covar_pop
    covar_samp entropy favg first fsum geomean group_concat histogram_exact kahan_sum kurtosis
    kurtosis_pop last list listagg mad median mode quantile quantile_cont quantile_disc regr_avgx
    regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
    reservoir_quantile sem skewness string_agg sum_no_overflow sumkahan weighted_avg""".split()
)
_SAID = {"ARRAY_AGG": "LIST (ARRAY_AGG)", "LISTAGG": "STRING_AGG"}
_WHOLE = 19
"""The most digits of a decimal whose square is still a decimal."""
_ALLOWED = (
    "Use COUNT, SUM, AVG, STDDEV, VARIANCE, MIN, MAX, ARG_MIN, ARG_MAX, PRODUCT, BOOL_AND, BOOL_OR,"
    " BIT_AND, BIT_OR, BIT_XOR, COUNT_IF or HISTOGRAM(x, [bounds])"
)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node calls an aggregate, supported by the language or not."""
    if isinstance(node, exp.Filter | exp.AggFunc | exp.IgnoreNulls | exp.WithinGroup):
        return True
    return isinstance(node, exp.Anonymous) and function_name(node) in {*_NAMES, *_OTHERS}


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression contains an aggregate."""
    return any(is_aggregate(part) for part in node.walk())


@dataclass(slots=True)
class Partials:
    """The distinct partial results of a statement, and the local expressions over them.

    ``counted``: sums arrive without an indication whether anything was added, so each is sent with
    a count.
    """

    schema: Schema
    source: str
    counted: bool
    results: list[Partial] = field(default_factory=list)
    keys: dict[int, int] = field(default_factory=dict)
    floating: bool = False

    def add(self, function: str, *arguments: str, filter_: str = "") -> int:
        """The position of a partial result, which is added if it is new."""
        partial = Partial(function, arguments, filter_)
        if partial in self.results:
            return self.results.index(partial)
        self.results.append(partial)
        return len(self.results) - 1

    @property
    def additive(self) -> bool:
        """Whether shares of all of them can be added up."""
        return not self.floating and all(p.function in ("count", "sum") for p in self.results)

    def type_of(self, sql: str) -> str:
        """DuckDB's type of an expression over the tables of the statement."""
        return self.schema.describe(f"SELECT {sql} FROM {self.source}")[0][1]

    def local(self, node: exp.Expr) -> exp.Expr:
        """An aggregate as an expression over the columns ``p<i>`` of `MERGED`."""
        condition = ""
        if isinstance(node, exp.Filter):
            condition = local_text(node.expression.this)
            node = node.this
        kind = _kind(node)
        arguments = _arguments(node, kind)
        for part in (*arguments, *([condition] if condition else [])):
            if part and has_aggregate(trees.parse_one(part)):
                raise refuse("an aggregate inside an aggregate", "Ask two questions")
        return exp.Var(this=f"({_MAKERS[kind](self, arguments, condition)})")

    def total(self, argument: str, condition: str) -> str:
        """SUM."""
        type_ = self.type_of(argument)
        position = self.add("sum", argument, filter_=condition)
        if not summable(type_):
            self.floating = True
        if not self.counted:
            return merged(position)
        count = self.add("count", argument, filter_=condition)
        return f"CASE WHEN {merged(count)} > 0 THEN {merged(position)} END"


def merged(position: int) -> str:
    """The name of a partial result, merged over all parts, in the finishing statement.

    Always qualified: in ORDER BY, a bare name would mean a column alias chosen by the user.
    """
    return f"{MERGED}.p{position}"


def summable(type_: str) -> bool:
    """Whether sums over a type are exact, so that shares of them add up."""
    return type_ == "BOOLEAN" or (
        value_range(type_) is not None
        and (is_integer(type_) or type_.startswith("DECIMAL"))
        and type_ != "UHUGEINT"
    )


def _kind(node: exp.Expr) -> str:
    kind = _KINDS.get(type(node))
    if kind is None and isinstance(node, exp.Anonymous):
        kind = _NAMES.get(function_name(node))
    if kind is not None:
        return kind
    inner = node.this if isinstance(node, exp.IgnoreNulls | exp.WithinGroup) else node
    name = local_text(inner).partition("(")[0]
    raise refuse(
        f"the aggregate {_SAID.get(name, name)}, which cannot be computed from partial results",
        _ALLOWED,
    )


def _arguments(node: exp.Expr, kind: str) -> list[str]:
    """An aggregate's arguments as SQL; refuses DISTINCT, ORDER BY and lists of several rows."""
    if node.args.get("count"):
        raise refuse(
            f"{kind}(…, n), a list of several rows",
            "Ask for the rows: SELECT … WHERE … ORDER BY … LIMIT n",
        )
    parts = list(node.expressions) if isinstance(node, exp.Anonymous) else []
    if not parts:
        parts = [p for p in (node.args.get("this"), node.args.get("expression")) if p is not None]
        parts += node.expressions if not isinstance(node, exp.Anonymous) else []
    for part in parts:
        if isinstance(part, exp.Distinct):
            raise refuse(
                f"{keyword(kind)}(DISTINCT …)",
                "GROUP BY the expression and count the groups of the result",
            )
        if isinstance(part, exp.Order):
            raise refuse("ORDER BY inside an aggregate", _ALLOWED)
    if kind == "histogram" and len(parts) != 2:
        raise refuse("HISTOGRAM without bounds", "Write HISTOGRAM(x, [10, 20, 30]), or GROUP BY x")
    if kind == "count" and parts and isinstance(parts[0], exp.Star):
        parts = []
    return [local_text(part) for part in parts]


def _and(*conditions: str) -> str:
    given = [condition for condition in conditions if condition]
    return given[0] if len(given) == 1 else " AND ".join(f"({c})" for c in given)


def _count(partials: Partials, arguments: list[str], condition: str) -> str:
    return merged(partials.add("count", *arguments, filter_=condition))


def _sum(partials: Partials, arguments: list[str], condition: str) -> str:
    return partials.total(arguments[0], condition)


def _count_if(partials: Partials, arguments: list[str], condition: str) -> str:
    counted = f"CASE WHEN {arguments[0]} THEN 1 WHEN NOT ({arguments[0]}) THEN 0 END"
    return partials.total(counted, condition)


def _average(partials: Partials, arguments: list[str], condition: str) -> str:
    argument = arguments[0]
    type_ = partials.type_of(argument)
    if type_ not in ("FLOAT", "DOUBLE", "UHUGEINT") and not summable(type_):
        raise refuse(f"AVG over {type_}", f"Average a number, such as epoch({argument})")
    total = partials.add("sum", argument, filter_=condition)
    count = partials.add("count", argument, filter_=condition)
    if not summable(type_):
        partials.floating = True
        return f"CASE WHEN {merged(count)} > 0 THEN {merged(total)} / {merged(count)} END"
    narrow = type_ in ("TINYINT", "UTINYINT", "SMALLINT") or (
        decimal_scale(type_) <= 4 and type_.startswith("DECIMAL") and _digits(type_) <= 4
    )
    wide = "false" if narrow else "true"
    return f"{functions.AVERAGE}(CAST({merged(total)} AS VARCHAR), {merged(count)}, {wide})"


def _digits(type_: str) -> int:
    return int(type_.removeprefix("DECIMAL(").partition(",")[0])


def _spread(function: str, free: int) -> Callable[[Partials, list[str], str], str]:
    def make(partials: Partials, arguments: list[str], condition: str) -> str:
        argument = arguments[0]
        type_ = partials.type_of(argument)
        if type_ in ("FLOAT", "DOUBLE"):
            raise refuse(
                f"a variance over {type_}, of which sums are not exact",
                f"Use a decimal: CAST({argument} AS DECIMAL(18, 4))",
            )
        if is_integer(type_) and type_ not in ("HUGEINT", "UHUGEINT"):
            square = f"CAST({argument} AS HUGEINT) * CAST({argument} AS HUGEINT)"
        elif type_.startswith("DECIMAL") and _digits(type_) <= _WHOLE:
            square = f"({argument}) * ({argument})"
        else:
            raise refuse(f"a variance over {type_}", f"Cast it: CAST({argument} AS DECIMAL(18, 2))")
        total = partials.add("sum", argument, filter_=condition)
        squares = partials.add("sum", square, filter_=condition)
        count = partials.add("count", argument, filter_=condition)
        sums = f"CAST({merged(total)} AS VARCHAR), CAST({merged(squares)} AS VARCHAR)"
        return f"{function}({sums}, {merged(count)}, {free})"

    return make


def _arg(extreme: str) -> Callable[[Partials, list[str], str], str]:
    def make(partials: Partials, arguments: list[str], condition: str) -> str:
        wanted, by = arguments
        key = partials.add(
            extreme, by, filter_=_and(f"{marks.bracketed(wanted)} IS NOT NULL", condition)
        )
        position = partials.add(f"arg_{extreme}", wanted, by, filter_=condition)
        partials.keys[position] = key
        return merged(position)

    return make


def _plain(function: str) -> Callable[[Partials, list[str], str], str]:
    def make(partials: Partials, arguments: list[str], condition: str) -> str:
        return merged(partials.add(function, arguments[0], filter_=condition))

    return make


def _histogram(partials: Partials, arguments: list[str], condition: str) -> str:
    bins = histogram.bins(partials.schema, partials.source, arguments[0], arguments[1])
    positions = [
        partials.add("count", filter_=_and(within, condition)) for within in bins.conditions
    ]
    return bins.map([merged(position) for position in positions])


_MAKERS: dict[str, Callable[[Partials, list[str], str], str]] = {
    "count": _count,
    "sum": _sum,
    "avg": _average,
    "count_if": _count_if,
    "stddev_samp": _spread(functions.DEVIATION, 1),
    "stddev_pop": _spread(functions.DEVIATION, 0),
    "var_samp": _spread(functions.VARIANCE, 1),
    "var_pop": _spread(functions.VARIANCE, 0),
    "arg_max": _arg("max"),
    "arg_min": _arg("min"),
    "histogram": _histogram,
    **{
        name: _plain(name)
        for name in (
            "min", "max", "product", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor"
        )
    },
}  # fmt: skip
