"""Parse a text as one SELECT, and refuse what the language does not support."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError

from louver import errors
from louver.names import fold, keyword
from louver.trusted.planner.private import marks
from louver.trusted.planner.private.refusal import refuse
from louver.trusted.planner.sql import trees
from louver.trusted.planner.sql.trees import local_text

_PARTS = frozenset(
    ("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset")
)
_OTHER_PARTS = {
    "with_": ("WITH", "Write it as one SELECT over the providers' tables"),
    "distinct": ("DISTINCT", "Use GROUP BY, or ask without it and drop duplicates locally"),
    "qualify": ("QUALIFY", "Use GROUP BY with MAX, or ORDER BY with LIMIT"),
    "windows": ("WINDOW", "Use GROUP BY, or ORDER BY with LIMIT"),
    "sample": ("a sample", "Ask for the first rows with ORDER BY and LIMIT"),
    "pivots": ("PIVOT", "Use aggregates with FILTER (WHERE …)"),
}
_OTHER_NODES: tuple[tuple[type[exp.Expr], str, str], ...] = (
    (exp.Exists, "EXISTS", "Join the tables in FROM on a public condition"),
    (exp.Subquery, "a subquery", "Join the tables in FROM, or ask two questions"),
    (exp.Query, "a subquery", "Join the tables in FROM, or ask two questions"),
    (exp.Window, "a window function", "Use GROUP BY, or ORDER BY with LIMIT"),
    (exp.Collate, "COLLATE", "Compare and sort by lower(…), or by the text itself"),
    (exp.Lambda, "a lambda", "Use expressions of columns and pure functions"),
    (exp.Placeholder, "a placeholder of another style", "Use ?, $1 or :name"),
    (exp.Parameter, "a placeholder of another style", "Use ?, $1 or :name"),
)
_VOLATILE = frozenset(("random", "rand", "uuid", "gen_random_uuid", "uuidv4", "uuidv7", "nextval",
                       "setseed", "currval", "txid_current"))  # fmt: skip
_COMPARED = "a secret can only be compared with an expression of columns"
_IN_WHERE = "Compare it in WHERE: column = ?, column >= ?, column BETWEEN ? AND ?, column IN (?, ?)"


def read(plain: str) -> exp.Select:
    """The tree of a question; `plain` has identifiers instead of placeholders.

    Raises:
        sql.syntax: if it cannot be parsed; provider.language: if it is anything but one SELECT
            with the supported clauses.
    """
    try:
        statements = trees.parse_all(plain)
    except (SqlglotError, RecursionError) as error:
        detail = str(error).splitlines()[0] if isinstance(error, SqlglotError) else "too deep"
        raise errors.make("sql.syntax", detail=_without_positions(detail)) from None
    if len(statements) != 1 or statements[0] is None:
        raise refuse("it is not one statement", "Ask one question at a time")
    tree = statements[0]
    while isinstance(tree, exp.Paren | exp.Subquery) and len(list(tree.iter_expressions())) == 1:
        tree = tree.this
    if isinstance(tree, exp.SetOperation):
        kind = keyword(type(tree).__name__)
        raise refuse(kind, "Ask the questions one by one, or use OR and IN in WHERE")
    if not isinstance(tree, exp.Select):
        kind = keyword(type(tree).__name__)
        raise refuse(f"{kind} is not a question", "Use SELECT; a provider's data are read only")
    _require_parts(tree)
    return tree


def _require_parts(tree: exp.Select) -> None:
    for key, value in tree.args.items():
        if not value or key in _PARTS:
            continue
        detail, instead = _OTHER_PARTS.get(
            key, (f"{keyword(key.strip('_'))} in SELECT", "Use SELECT … FROM … WHERE … GROUP BY …")
        )
        raise refuse(detail, instead)
    for node in tree.walk():
        if node is tree:
            continue
        for kind, detail, instead in _OTHER_NODES:
            if isinstance(node, kind):
                raise refuse(detail, instead)
        if isinstance(node, exp.Func) and function_name(node) in _VOLATILE:
            raise refuse(
                f"{fold(local_text(node))} gives every provider another value",
                "Use functions whose value depends on their arguments alone",
            )
    _require_secrets_in_where(tree)


def _require_secrets_in_where(tree: exp.Select) -> None:
    """Secrets may occur in WHERE only."""
    for item in tree.expressions:
        if marks.has_secret(item):
            raise refuse(f"{_COMPARED}, and one stands in the select list", _IN_WHERE)
    for part, said in (
        ("group", "GROUP BY"), ("having", "HAVING"), ("order", "ORDER BY"),
        ("limit", "LIMIT"), ("offset", "OFFSET"),
    ):  # fmt: skip
        if marks.has_secret(tree.args.get(part)):
            raise refuse(f"{_COMPARED}, and one stands in {said}", _IN_WHERE)


def function_name(node: exp.Expr) -> str:
    """A function's name in lower case."""
    if isinstance(node, exp.Anonymous):
        return fold(node.name)
    return fold(node.sql_name()) if isinstance(node, exp.Func) else ""


def _without_positions(detail: str) -> str:
    """A parser's message without its quotation of the text, which may contain a secret."""
    return detail.split(". Line")[0].split("\n")[0][:80]
