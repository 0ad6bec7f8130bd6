"""Trees of PostgreSQL's expressions mean what PostgreSQL reads, or there is none."""

from __future__ import annotations

from sqlglot import exp

from louver._rust import postgres
from louver.trusted.planner.sql import dialect, lexer, trees
from louver.trusted.planner.sql.dialect import DUCKDB, speaking
from tests.generated import cases, generator
from tests.postgres.conftest import Open
from tests.postgres.expressions import ROWS, drawn

POSTGRES = dialect.named("postgres") or DUCKDB
#: Errors of a text that the server does not run at all: which reading fails does not matter.
UNREAD = "42"
_BINDING = (
    exp.Binary, exp.Unary, exp.Predicate, exp.Between, exp.In, exp.Is, exp.AtTimeZone, exp.Cast,
    exp.Case, exp.Collate,
)  # fmt: skip
_WHOLE = (exp.Paren, exp.Dot, exp.Any, exp.All, exp.Exists, exp.Escape)


def in_brackets(tree: exp.Expr) -> str:
    """An expression with brackets around everything that has operands."""
    whole = exp.Paren(this=tree.copy())
    for node in reversed(list(whole.find_all(*_BINDING))):
        if not isinstance(node, _WHOLE) and not isinstance(node.parent, exp.Paren | exp.Escape):
            node.replace(exp.Paren(this=node.copy()))
    return str(whole.sql("postgres"))


def answer(session: postgres.Session, expression: str) -> str:
    """The type and the values of an expression, or the code of its error."""
    sql = f"SELECT pg_typeof(x)::text, x::text FROM (SELECT {expression} AS x FROM r) q"
    try:
        ((_, _, columns),) = session.run([(sql, [])])
    except postgres.ServerError as error:
        return str(error.args[0]["code"])
    return repr([column.to_pylist() for column in columns])


def expression_of(text: str) -> exp.Expr | None:
    """The tree of an expression, as the planner sees it."""
    with speaking(POSTGRES):
        (statement,) = lexer.split(f"SELECT {text} AS x FROM r")
        tree = trees.parse(statement.plain)
    items = tree.expressions if isinstance(tree, exp.Select) else []
    return items[0].this if items else None


def test_random_expressions_are_read_as_the_server_reads_them(open_session: Open) -> None:
    session = open_session()
    session.run([(sql, []) for sql in ROWS.split(";")])
    random = generator("precedence of PostgreSQL")
    ran = compared = 0
    for _ in range(cases(1500)):
        text = drawn(random)
        tree = expression_of(text)
        own = answer(session, text)
        ran += not own.startswith(UNREAD)
        if tree is None or own.startswith(UNREAD):
            continue
        compared += 1
        printed = in_brackets(tree)
        assert answer(session, printed) == own, f"{text}\n{printed}"
    assert ran > cases(300)
    assert compared > ran / 3
