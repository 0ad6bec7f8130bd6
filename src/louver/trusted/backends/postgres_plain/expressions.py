"""Expressions of a PostgreSQL catalog in the local engine's words: default deny. What is not known
to mean the same in both is None, and stays behind.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError

from louver.names import quoted
from louver.trusted.backends import comparisons
from louver.trusted.planner.sql import trees

Kinds = Mapping[str, str | None]
"""Of the columns in sight, by name, the kind of their values."""
MOST_DIGITS = 30
"""Of decimals that are compared; a comparison of longer ones might be of floating point numbers."""
_others = itertools.count()
_ORDERED = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)
_DAY = re.compile(r"(?!0000)\d{4}-\d\d-\d\d")
_WHOLE = re.compile(r"-?\d{1,18}")
_NUMBER = re.compile(r"\d{1,28}(?:\.\d{1,8})?")
_TEXT_TYPES = frozenset(("TEXT", "VARCHAR", "BPCHAR", "CHAR"))
_NUMBER_TYPES = frozenset(("DECIMAL", "INT", "BIGINT", "SMALLINT", "NUMERIC"))
_STRING = r"'(?:[^'\\]|'')*'"
#: A length in a cast would cut the text off.
_DEFAULT_STRING = re.compile(rf"({_STRING})(?:::[^'(]+)?")
_DEFAULT_NUMBER = re.compile(
    r"\(?'?(-?\d+(?:\.\d+)?)'?\)?(?:::(?:smallint|integer|bigint|numeric|double precision|real))?"
)
_CALLS = {
    ("now()", "TIMESTAMP WITH TIME ZONE"): "now()",
    ("CURRENT_TIMESTAMP", "TIMESTAMP WITH TIME ZONE"): "now()",
    ("CURRENT_DATE", "DATE"): "current_date",
    ("gen_random_uuid()", "UUID"): "uuid()",
    ("uuidv4()", "UUID"): "uuid()",
}


def condition(text: str, kinds: Kinds) -> str | None:
    """A condition on columns: comparisons of whole and decimal numbers, texts, dates."""
    tree = trees.parse(text)
    return None if tree is None else _condition(tree, kinds)


def default(text: str, type_: str, *, is_enum: bool) -> str | None:
    """A default of a column of a local type."""
    if (text, type_) in _CALLS:
        return _CALLS[text, type_]
    if text in ("true", "false") and type_ == "BOOLEAN":
        return text
    if match := _DEFAULT_STRING.fullmatch(text):
        day = _DAY.fullmatch(match[1][1:-1])
        if type_ in ("VARCHAR", "UUID") or is_enum or (type_ == "DATE" and day):
            return match[1]
    number = _DEFAULT_NUMBER.fullmatch(text)
    numeric = type_ in ("SMALLINT", "INTEGER", "BIGINT", "DOUBLE") or type_.startswith("DECIMAL")
    return number[1] if number and numeric else None


def view(text: str, kinds: Kinds, schemas: Mapping[str, str]) -> str | None:
    """A query that only chooses rows and columns of tables that are joined; ``schemas``: the local
    names of the server's schemas.
    """
    tree = trees.parse(text.rstrip("; \n"))
    if not isinstance(tree, exp.Select):
        return None
    allowed = {"kind", "expressions", "from", "from_", "joins", "where"}
    if any(value for name, value in tree.args.items() if name not in allowed):
        return None
    if not all(_is_column(part) for part in tree.expressions):
        return None
    for table in tree.find_all(exp.Table):
        said = {name for name, value in table.args.items() if value}
        if not said <= {"this", "db", "alias", "joins"} or table.db not in schemas:
            return None
        table.set("db", exp.to_identifier(schemas[table.db], quoted=True))
    for name in tree.find_all(exp.Identifier):
        name.set("quoted", True)
    source = tree.args.get("from") or tree.args.get("from_")
    joins = _joins(source.this) if source is not None else None
    if joins is None:
        return None
    holders = [*joins, *(tree.args.get("joins") or ()), tree.args.get("where")]
    for holder in holders:
        if isinstance(holder, exp.Join) and not _is_known_join(holder):
            return None
        key = "this" if isinstance(holder, exp.Where) else "on"
        if holder is not None and holder.args.get(key) is not None:
            written = _condition(holder.args[key], kinds)
            if written is None:
                return None
            holder.set(key, trees.parse_one(written))
    return trees.local_text(tree)


def _joins(source: exp.Expr) -> list[exp.Join] | None:
    """The joins of a source, which the server writes in brackets; None of other sources."""
    own = list(source.args.get("joins") or ())
    if isinstance(source, exp.Table):
        return own
    if not isinstance(source, exp.Subquery) or source.alias:
        return None
    inner = _joins(source.this)
    return None if inner is None else inner + own


def _is_known_join(join: exp.Join) -> bool:
    """An inner, outer or cross join of tables by a condition; the parsers know more words, of which
    each engine reads some as names.
    """
    said = {name for name, value in join.args.items() if value} - {"this", "on", "kind", "side"}
    known = join.kind in ("", "INNER", "CROSS") and join.side in ("", "LEFT", "RIGHT", "FULL")
    return isinstance(join.this, exp.Table) and known and not said


def _is_column(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, exp.Alias) else node
    return isinstance(inner, exp.Column) and isinstance(inner.this, exp.Identifier)


def _condition(tree: exp.Expr, kinds: Kinds) -> str | None:
    listed = tree.transform(_with_lists)

    def operand(node: exp.Expr) -> tuple[str, str] | None:
        known = _operand(node, kinds)
        # The order of other texts is their collation's; that of bytes is the same in both engines.
        return (known[0], "text") if known and known[1] == "bytes" else known

    for node in listed.find_all(*_ORDERED):
        sides = [node.this, node.args.get("expression"), node.args.get("low")]
        known = [_operand(side, kinds) for side in sides if isinstance(side, exp.Expr)]
        if any(side is not None and side[1] == "text" for side in known):
            return None
    try:
        return comparisons.rendered(listed, operand)
    except SqlglotError:
        return None


def _with_lists(node: exp.Expr) -> exp.Expr:
    """`= ANY (ARRAY[…])` as IN, `<> ALL (ARRAY[…])` as NOT IN."""
    if not isinstance(node, exp.EQ | exp.NEQ):
        return node
    right, array = node.expression, None
    if isinstance(node, exp.EQ) and isinstance(right, exp.Any):
        array = right.this
    if isinstance(node, exp.NEQ) and isinstance(right, exp.Anonymous) and right.name == "ALL":
        (array,) = right.expressions
    while isinstance(array, exp.Paren | exp.Cast):
        array = array.this
    if not isinstance(array, exp.Array):
        return node
    listed = exp.In(this=node.this, expressions=array.expressions)
    return exp.Not(this=listed) if isinstance(node, exp.NEQ) else listed


def _operand(node: exp.Expr, kinds: Kinds) -> tuple[str, str] | None:
    if isinstance(node, exp.Paren):
        return _operand(node.this, kinds)
    if isinstance(node, exp.Column):
        if node.name not in kinds:
            return None
        path = ".".join(quoted(part.name) for part in node.parts)
        # Values of other types are compared with nothing; they may be NULL.
        return path, kinds[node.name] or f"other {next(_others)}"
    if isinstance(node, exp.Length):
        inner = _operand(node.this, kinds)
        return (f"length({inner[0]})", "number") if inner and inner[1] in _TEXTS else None
    if isinstance(node, exp.Neg):
        inner = _operand(node.this, kinds)
        literal = isinstance(node.this, exp.Literal) and inner and inner[1] == "number"
        return (f"(-{inner[0]})", "number") if literal and inner else None
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        return _cast(node, kinds)
    if isinstance(node, exp.Literal) and node.is_string:
        value = node.name.replace("'", "''")
        return (f"'{value}'", "bytes") if "\\" not in value else None
    if isinstance(node, exp.Literal) and _NUMBER.fullmatch(node.name):
        return node.name, "number"
    return None


_TEXTS = ("text", "bytes")


def _cast(node: exp.Cast, kinds: Kinds) -> tuple[str, str] | None:
    name, inner = node.to.this.name, _operand(node.this, kinds)
    if inner is None:
        return None
    if name in _TEXT_TYPES and not node.to.expressions:
        return inner if inner[1] in _TEXTS else None
    if not isinstance(node.this, exp.Literal | exp.Paren | exp.Neg):
        return None
    if name in _NUMBER_TYPES and node.this.is_string and _WHOLE.fullmatch(node.this.name):
        return f"({node.this.name})", "number"
    if name == "DATE" and node.this.is_string:
        day = _DAY.fullmatch(node.this.name)
        return (f"DATE '{node.this.name}'", "date") if day else None
    if inner[1] != "number" or node.find(exp.Column) is not None:
        return None
    if name == "DOUBLE":
        return f"CAST({inner[0]} AS DOUBLE PRECISION)", "double"
    return inner if name in _NUMBER_TYPES and "." not in inner[0] else None
