"""Expressions that untrusted clients may use: every text of a shape, parsed by DuckDB's own parser.

A shape may come from any client. Each of its texts must parse, on its own, to one expression made
of nodes, operators and functions in the lists below, over the columns of the tables in its FROM
clause. Nothing in the lists reads a file, a setting or a clock, draws a random number, or makes a
value much larger than its input; everything else is refused. The same parser runs the text later,
so both interpret it alike.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import duckdb

from louver import errors
from louver.names import fold
from louver.wire.questions import Shape, TableFacts
from louver.wire.row_codec import carries

MAX_TEXT_CHARACTERS = 16_384
MAX_EXPRESSIONS = 256
MAX_TABLES = 8
MAX_LIMIT = 10_000
_MAX_NODES = 4_096
_MAX_DEPTH = 100
_MAX_ECHO = 80

#: Partial aggregates and their numbers of arguments.
PARTIALS: Mapping[str, tuple[int, ...]] = {
    "count": (0, 1),
    "sum": (1,),
    "min": (1,),
    "max": (1,),
    "arg_min": (2,),
    "arg_max": (2,),
    "product": (1,),
    "bool_and": (1,),
    "bool_or": (1,),
    "bit_and": (1,),
    "bit_or": (1,),
    "bit_xor": (1,),
}

FUNCTIONS = frozenset(
    # operators
    "+ - * / // % ** ^ || ~~ !~~ ~~* !~~* ~~~ & | << >> ~ @ xor"
    # numbers
    " abs add subtract multiply divide fdiv fmod mod ceil ceiling floor round round_even trunc sign"
    " pow power sqrt cbrt exp ln log log2 log10 sin cos tan cot asin acos atan atan2 sinh cosh tanh"
    " degrees radians pi even gcd lcm greatest least bit_count isnan isfinite isinf nullif ifnull"
    # texts
    " lower lcase upper ucase length len strlen char_length character_length bit_length trim ltrim"
    " rtrim substr substring left right reverse strpos instr position contains starts_with"
    " prefix suffix ends_with ^@ ascii ord unicode chr split_part strip_accents concat"
    " regexp_matches regexp_full_match regexp_extract replace translate md5 sha256 like_escape"
    " not_like_escape ilike_escape not_ilike_escape"
    # dates and times
    " date_part datepart date_trunc datetrunc date_diff datediff date_sub datesub date_add extract"
    " year month day hour minute second millisecond microsecond quarter week weekofyear weekday"
    " dayofweek dayofmonth dayofyear isodow isoyear yearweek decade century millennium era epoch"
    " epoch_ms epoch_us epoch_ns dayname monthname last_day make_date make_time make_timestamp"
    " strftime strptime try_strptime time_bucket to_years to_months to_weeks to_days to_hours"
    " to_minutes to_seconds to_milliseconds to_microseconds to_quarters to_decades".split()
)
_COMPARISONS = frozenset(
    "COMPARE_EQUAL COMPARE_NOTEQUAL COMPARE_LESSTHAN COMPARE_GREATERTHAN COMPARE_LESSTHANOREQUALTO"
    " COMPARE_GREATERTHANOREQUALTO COMPARE_DISTINCT_FROM COMPARE_NOT_DISTINCT_FROM".split()
)
_OPERATORS = frozenset(
    "OPERATOR_NOT OPERATOR_IS_NULL OPERATOR_IS_NOT_NULL OPERATOR_COALESCE OPERATOR_NULLIF"
    " COMPARE_IN COMPARE_NOT_IN".split()
)
_CONJUNCTIONS = frozenset(("CONJUNCTION_AND", "CONJUNCTION_OR"))
_JOINS = frozenset(("INNER", "LEFT", "RIGHT", "OUTER", "FULL"))

_PATTERNS = frozenset(
    "~~ !~~ ~~* !~~* ~~~ like_escape not_like_escape ilike_escape not_ilike_escape".split()
)
_MAX_PATTERN = 256
_MAX_TEXT = 1_024

Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Checked:
    """A shape that may be computed.

    Attributes:
        shape: as received.
        names: the names of the tables in its FROM clause, in order.
        joined: whether there are two or more tables.
    """

    shape: Shape
    names: tuple[str, ...]

    @property
    def joined(self) -> bool:
        """Whether there are two or more tables."""
        return len(self.names) > 1


def check(shape: Shape, tables: Iterable[TableFacts]) -> Checked:
    """The shape, if all of its texts are allowed to untrusted clients.

    Raises:
        errors.Error: `provider.refused`.
    """
    texts = _texts(shape)
    if len(texts) > MAX_EXPRESSIONS:
        raise refused("it has too many expressions")
    if not 0 <= shape.limit <= MAX_LIMIT:
        raise refused(f"it wants more than {MAX_LIMIT} rows")
    _check_partials(shape)
    with _database().cursor() as parser:
        reader = _Reader(parser, {fold(table.name): table for table in tables})
        reader.source(shape.source)
        for text in texts:
            reader.expression(text)
    return Checked(shape, tuple(reader.scope))


def refused(detail: str) -> errors.Error:
    """The error for expressions that are not allowed."""
    return errors.make("provider.refused", detail=detail)


def _texts(shape: Shape) -> list[str]:
    texts = [*shape.equal, *shape.groups, *shape.columns]
    texts += [text for text in (shape.where, shape.interval) if text]
    texts += [order.expression for order in shape.orders]
    for partial in shape.partials:
        texts += [*partial.arguments, *([partial.filter] if partial.filter else [])]
    return texts


def _check_partials(shape: Shape) -> None:
    for partial in shape.partials:
        known = PARTIALS.get(partial.function)
        if known is None:
            raise refused(f"it has the aggregate {_echo(partial.function)}")
        if len(partial.arguments) not in known:
            raise refused(f"{partial.function} has another number of arguments")
    if bool(shape.partials) == bool(shape.columns):
        raise refused("it has neither aggregates nor columns, or both")
    if shape.columns and (shape.groups or not shape.limit):
        raise refused("it has rows without a limit, or rows with groups")


@lru_cache(maxsize=1)
def _database() -> duckdb.DuckDBPyConnection:
    """An empty database, for its parser."""
    return duckdb.connect(
        ":memory:",
        config={
            "enable_external_access": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",
            "threads": "1",
            "lock_configuration": "true",
        },
    )


class _Reader:
    """Parses texts over the columns of `scope`: names of tables to names of columns."""

    def __init__(self, parser: duckdb.DuckDBPyConnection, tables: dict[str, TableFacts]) -> None:
        self._parser = parser
        self._tables = tables
        self.scope: dict[str, frozenset[str]] = {}
        self._nodes = 0
        self._kinds: dict[str, Callable[[Node], list[Any]]] = {
            "COLUMN_REF": self._column,
            "CONSTANT": _constant,
            "FUNCTION": _function,
            "CAST": _cast,
            "CASE": _case,
            "BETWEEN": lambda node: [node["input"], node["lower"], node["upper"]],
            "COMPARISON": _among(_COMPARISONS, lambda node: [node["left"], node["right"]]),
            "CONJUNCTION": _among(_CONJUNCTIONS, lambda node: node["children"]),
            "OPERATOR": _among(_OPERATORS, lambda node: node["children"]),
        }

    def source(self, text: str) -> None:
        """A FROM clause; its tables become the scope."""
        node = self._statement("SELECT 1 FROM", text)
        self._statement("SELECT (SELECT 1 FROM", text + "\n)")
        self._tree(node["from_table"], 0)

    def expression(self, text: str) -> None:
        """One expression."""
        node = self._statement("SELECT", text)
        if node["from_table"].get("type") != "EMPTY" or len(node["select_list"]) != 1:
            raise refused("one of its texts is not one expression")
        self._statement("SELECT (", text + "\n)")  # as it is used: a ; cannot end the statement
        self._expression(node["select_list"][0], 0)

    def _statement(self, before: str, text: str) -> Node:
        """The single plain SELECT that a text forms with the prefix."""
        if not text.strip() or len(text) > MAX_TEXT_CHARACTERS or "\0" in text:
            raise refused("one of its texts is empty or too long")
        try:
            rows = self._parser.execute(
                "SELECT json_serialize_sql(?)", [f"{before} {text}\n"]
            ).fetchall()
            parsed = json.loads(rows[0][0])
        except (duckdb.Error, ValueError, RecursionError) as error:
            raise refused(f"{_echo(text)} cannot be read") from error
        if parsed.get("error") is not False or len(parsed["statements"]) != 1:
            raise refused(f"{_echo(text)} cannot be read")
        statement = parsed["statements"][0]
        node: Node = statement["node"]
        plain: Node = {
            "type": "SELECT_NODE",
            "modifiers": [],
            "cte_map": {"map": []},
            "where_clause": None,
            "group_expressions": [],
            "group_sets": [],
            "aggregate_handling": "STANDARD_HANDLING",
            "having": None,
            "sample": None,
            "qualify": None,
        }
        rest = {key: node.get(key) for key in node if key not in ("select_list", "from_table")}
        if rest != plain or statement.get("named_param_map"):
            raise refused(f"{_echo(text)} is more than an expression")
        return node

    def _tree(self, node: Node, depth: int) -> None:
        """A tree of joins."""
        if depth > MAX_TABLES or node.get("sample") is not None:
            raise refused("its FROM clause contains more than tables and joins")
        if node.get("type") == "BASE_TABLE":
            self._table(node)
            return
        if (
            node.get("type") != "JOIN"
            or node.get("join_type") not in _JOINS
            or node.get("ref_type") not in ("REGULAR", "CROSS")
            or node.get("alias")
        ):
            raise refused("its FROM clause contains more than tables and joins")
        self._tree(node["left"], depth + 1)
        self._tree(node["right"], depth + 1)
        if node.get("condition") is not None:
            self._expression(node["condition"], 0)
        for name in node.get("using_columns") or ():
            self._known([name])

    def _table(self, node: Node) -> None:
        facts = self._tables.get(fold(node["table_name"]))
        plain = not node.get("column_name_alias") and node.get("at_clause") is None
        if facts is None or not plain or node["schema_name"] or node["catalog_name"]:
            raise refused(f"there is no table {_echo(node['table_name'])}")
        name = node.get("alias") or facts.name
        if fold(name) in (fold(other) for other in self.scope):
            raise refused(f"two tables are called {_echo(name)}")
        if len(self.scope) == MAX_TABLES:
            raise refused("its FROM clause names too many tables")
        self.scope[name] = frozenset(fold(column) for column, _ in facts.columns)

    def _expression(self, node: Any, depth: int) -> None:
        self._nodes += 1
        if self._nodes > _MAX_NODES or depth > _MAX_DEPTH:
            raise refused("its expressions are too large")
        kind = self._kinds.get(str(node.get("class"))) if isinstance(node, dict) else None
        if kind is None or node.get("alias"):
            what = node.get("class") if isinstance(node, dict) else "nothing"
            raise refused(f"it holds {_echo(fold(str(what)))}")
        text = _text_of([node], 0)
        if text is not None and len(text) > _MAX_TEXT:
            raise refused("it holds a long text")
        for child in kind(node):
            self._expression(child, depth + 1)

    def _column(self, node: Node) -> list[Any]:
        self._known(node["column_names"])
        return []

    def _known(self, names: list[str]) -> None:
        column = fold(names[-1])
        table = fold(names[0]) if len(names) == 2 else None
        for name, columns in self.scope.items():
            if len(names) <= 2 and table in (None, fold(name)) and column in columns:
                return
        raise refused(f"there is no column {_echo('.'.join(names))}")


def _among(
    kinds: frozenset[str], children: Callable[[Node], list[Any]]
) -> Callable[[Node], list[Any]]:
    """The children of a node whose type is one of `kinds`."""

    def read(node: Node) -> list[Any]:
        if node.get("type") not in kinds:
            raise refused(f"it holds {_echo(fold(str(node.get('type'))))}")
        return children(node)

    return read


def _constant(node: Node) -> list[Any]:
    kind = node["value"]["type"]["id"]
    if kind not in ("NULL", "DECIMAL") and not carries(kind):
        raise refused(f"it holds a constant of type {_echo(kind)}")
    return []


def _function(node: Node) -> list[Any]:
    name = fold(node["function_name"])
    plain = not any(node.get(key) for key in ("filter", "distinct", "export_state", "catalog"))
    if name not in FUNCTIONS or node["schema"] not in ("", "main") or not plain:
        raise refused(f"it calls {_echo(name)}")
    if node["order_bys"].get("orders"):
        raise refused(f"it sorts in {_echo(name)}")
    children: list[Any] = node["children"]
    if name in _PATTERNS:
        _check_pattern(name, children)
    if name == "replace":
        # A text must not grow by more than the length of a literal in the question.
        old, new = _text_of(children, 1), _text_of(children, 2)
        if old is None or new is None or len(new.encode()) > len(old.encode()):
            raise refused("it replaces a text by a longer one, or by one that is not written")
    return children


def _check_pattern(name: str, children: list[Any]) -> None:
    """Limit wildcards: DuckDB tries every position for each, nested, and cannot be interrupted.

    Only LIKE with % alone is linear; otherwise one wildcard is allowed at the end, and one
    elsewhere.
    """
    pattern = _text_of(children, 1)
    if pattern is None or len(pattern) > _MAX_PATTERN:
        raise refused("it has a pattern that is long, or not written in the question")
    wild = "*" if name == "~~~" else "%"
    if name in ("~~", "!~~") and "_" not in pattern and "\\" not in pattern:
        return
    if pattern.rstrip(wild).count(wild) > 1:
        raise refused("it has a pattern with several wildcards")


def _text_of(children: list[Any], at: int) -> str | None:
    """A constant text among arguments."""
    if at >= len(children) or children[at].get("class") != "CONSTANT":
        return None
    value = children[at]["value"].get("value")
    return value if isinstance(value, str) else None


def _cast(node: Node) -> list[Any]:
    kind = node["cast_type"]["id"]
    if kind != "DECIMAL" and not carries(kind):
        raise refused(f"it casts to {_echo(kind)}")
    return [node["child"]]


def _case(node: Node) -> list[Any]:
    branches = [node["else_expr"]]
    for branch in node["case_checks"]:
        branches += [branch["when_expr"], branch["then_expr"]]
    return branches


def _echo(text: str) -> str:
    """A client's text, shortened for an error message."""
    return "".join(c if c.isprintable() else "?" for c in text[:_MAX_ECHO])
