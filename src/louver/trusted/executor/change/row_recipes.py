"""Which changes are decided row by row, and how: for one table, with expressions of a small grammar
over its columns, so that what a row becomes depends on nothing but the row.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import TokenType

from louver.names import fold
from louver.trusted.executor import constraint_check
from louver.trusted.executor.change import statement_parts
from louver.trusted.executor.context import Context
from louver.trusted.executor.dry_run import EXACT
from louver.trusted.executor.local import exact
from louver.trusted.executor.storage import ROW_ID
from louver.trusted.planner.ir import Plan, RowChange, Stretch
from louver.trusted.planner.split import table_scans
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.placeholders import is_placeholder
from louver.trusted.planner.sql.trees import parse
from louver.trusted.planner.write.reads import names_of
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.types import is_collated

#: What an expression may be made of: nothing that depends on more than the row and the time, which
#: both halves of the local engine tell alike.
_GRAMMAR = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Tuple, exp.And,
    exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is, exp.In,
    exp.Between, exp.Like, exp.ILike, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Add, exp.Sub, exp.Mul,
    exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.DPipe, exp.Cast, exp.TryCast, exp.DataType,
    exp.DataTypeParam, exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Upper, exp.Lower,
    exp.Length, exp.Abs, exp.Greatest, exp.Least, exp.Round, exp.Floor, exp.Ceil, exp.Sign,
    exp.Substring, exp.Left, exp.Right, exp.Replace, exp.Trim, exp.Concat, exp.Interval, exp.Var,
    exp.CurrentTimestamp, exp.CurrentDate,
)  # fmt: skip
_TEXTS = (TokenType.STRING, TokenType.IDENTIFIER)
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
#: Types, and beginnings of such, whose columns may be assigned to.
_PLAIN = (*EXACT, "VARCHAR", "DOUBLE", "FLOAT", "TIME", "TIMESTAMP WITH TIME ZONE")
_OF_PARTS = ("DECIMAL(", "ENUM(")


def recipe(
    context: Context, words: statement_parts.Words, table: Table, rows: Plan, assigned: Stretch
) -> RowChange | None:
    """How each row is decided; None where a change is not of the small grammar."""
    tree = parse(words.plain)
    if not isinstance(tree, exp.Update | exp.Delete) or not isinstance(tree.this, exp.Table):
        return None
    if not context.local.dialect.has_simple_terms:
        return None
    if table.column(ROW_ID) or any(is_collated(c.type) for c in table.columns):
        return None
    if _drawn(context, words.names()):
        return None
    alias = tree.this.alias
    names = _Names(table, fold(alias or table.name))
    where, returning = tree.args.get("where"), tree.args.get("returning")
    items = returning.expressions if returning else []
    starred = [item for item in items if isinstance(item, exp.Star)]
    if any(any(item.args.values()) for item in starred):
        return None
    # DuckDB names what else RETURNING gives by what it has bound.
    if not all(isinstance(item, exp.Star | exp.Column | exp.Alias) for item in items):
        return None
    given = [item.unalias() for item in items if item not in starred]
    parts = [*given, *([where.this] if where else [])]
    values = _assignments(tree, words, table, assigned) if isinstance(tree, exp.Update) else {}
    if values is None or not all(names.allow(part) for part in (*parts, *values.values())):
        return None
    stretches = _stretches(words, assigned)
    if stretches is None or _bound(words, stretches[1]):
        return None
    obeyed = _obeyed(context, table, set(values))
    pieces = _pieces(words, assigned) if values else []
    if obeyed is None or len(pieces) != len(values):
        return None
    required, checks, checked = obeyed
    (remote,) = rows.remotes
    return RowChange(
        isinstance(tree, exp.Delete),
        alias,
        stretches[0],
        tuple(zip(values, pieces, strict=True)),
        stretches[1],
        frozenset(names.read),
        required,
        checks,
        checked,
        table_scans.decided_by_codes(remote, where),
    )


def _drawn(context: Context, words: set[str]) -> bool:
    """Whether a macro may draw from a sequence, which only the binder has."""
    return bool(statement_parts.reached(context.catalog, words)[1])


class _Names:
    """Which columns of a table expressions read, under one name for its rows."""

    def __init__(self, table: Table, name: str) -> None:
        self._table, self._name = table, name
        self.read: set[str] = set()

    def allow(self, tree: exp.Expr) -> bool:
        """Whether an expression is of the grammar, and over this table's columns alone."""
        for node in tree.walk():
            if not isinstance(node, _GRAMMAR) or isinstance(node, exp.Star):
                return False
            if isinstance(node, exp.Var) and not isinstance(node.parent, exp.Interval):
                return False
            if isinstance(node, exp.Column) and not is_placeholder(node) and not self._reads(node):
                return False
        return True

    def _reads(self, node: exp.Column) -> bool:
        column = self._table.column(node.name)
        if column is None or node.args.get("db") or isinstance(node.this, exp.Star):
            return False
        if node.table and (fold(node.table) != self._name or self._table.column(node.table)):
            return False
        self.read.add(column.name)
        return not exact.may_change(column.type)


def _assignments(
    tree: exp.Update, words: statement_parts.Words, table: Table, assigned: Stretch
) -> dict[str, exp.Expr] | None:
    """The expression of each column that UPDATE sets; None for other forms."""
    results: dict[str, exp.Expr] = {}
    for item in tree.expressions:
        target = item.this if isinstance(item, exp.EQ) else None
        if not isinstance(target, exp.Column) or target.table:
            return None
        column = table.column(target.name)
        if column is None or column.expression or column.name in results:
            return None
        if column.type not in _PLAIN and not column.type.startswith(_OF_PARTS):
            return None
        results[column.name] = item.expression
    heads = [words.tokens[first - 2] for first, _ in _pieces(words, assigned)]
    same = [table.column(token.text) for token in heads]
    return results if [column.name for column in same if column] == list(results) else None


def _pieces(words: statement_parts.Words, assigned: Stretch) -> list[Stretch]:
    """The expressions of ``name = expression`` between commas; none in another form."""
    first, last = assigned
    commas, depth = [first - 1], 0
    for position in range(first, last):
        text = words.tokens[position].text
        depth += words.tokens[position].token_type not in _TEXTS and (
            (text in _OPENING) - (text in _CLOSING)
        )
        if depth == 0 and words.tokens[position].token_type == TokenType.COMMA:
            commas.append(position)
    pieces = [(a + 3, b) for a, b in zip(commas, [*commas[1:], last], strict=True)]
    fine = all(
        a < b and words.tokens[a - 1].token_type == TokenType.EQ and words.keyword(a) != "DEFAULT"
        for a, b in pieces
    )
    return pieces if fine else []


def _stretches(words: statement_parts.Words, assigned: Stretch) -> tuple[Stretch, Stretch] | None:
    """The tokens of the condition and those of RETURNING; None where the words are said twice."""
    end = len(words.tokens)
    spoken = [words.keyword(position) for position in range(end)]
    if any(spoken.count(word) > 1 for word in ("SET", "WHERE", "RETURNING")):
        return None
    where, returning = words.find("WHERE"), words.find("RETURNING")
    last = end if returning < 0 else returning
    if assigned[1] and assigned[1] != (last if where < 0 else where):
        return None
    condition = (where + 1, last) if where >= 0 else (0, 0)
    return condition, (returning + 1, end) if returning >= 0 else (0, 0)


def _bound(words: statement_parts.Words, stretch: Stretch) -> bool:
    """Whether a stretch has placeholders: columns of the answer would be named by their numbers."""
    tokens = words.tokens[slice(*stretch)]
    return any(statement_parts.parameter_of(token) is not None for token in tokens)


def _obeyed(
    context: Context, table: Table, changed: set[str]
) -> tuple[frozenset[str], tuple[str, ...], frozenset[str]] | None:
    """What new values must obey: the columns that take no NULL, conditions, and the columns that
    these read; None where a condition is not of the grammar, a column is computed, or rows are
    compared with others.
    """
    if not changed:
        return frozenset(), (), frozenset()
    known = constraint_check.rules(context, table)
    compared = {*known.key_columns(), *(name for key in known.foreign for name in key.columns)}
    if known.generated or not {fold(name) for name in compared}.isdisjoint(map(fold, changed)):
        return None
    declared = context.local.schema.constraints(*table.key)
    required = {fold(name) for c in declared if c.kind == "NOT NULL" for name in c.columns}
    checks, names = [], _Names(table, fold(table.name))
    for text in (c.expression for c in declared if c.kind == "CHECK"):
        own = _Names(table, fold(table.name))
        tree = parse(f"SELECT {text}")
        parts = tree.expressions if isinstance(tree, exp.Select) else []
        words = names_of(lexer.tokens(text))
        if len(parts) != 1 or not own.allow(parts[0]) or _drawn(context, words):
            return None
        if own.read & changed or not own.read:
            checks.append(text)
            names.read |= own.read
    needed = (name for name in changed if fold(name) in required)
    return frozenset(needed), tuple(checks), frozenset(names.read)
