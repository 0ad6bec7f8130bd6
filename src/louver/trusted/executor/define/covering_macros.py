"""Macros whose names DuckDB calls without their being written: `+`, `list_value` for `[1]`.

Which names a statement depends on is read off its words. So a macro that covers a function of
DuckDB's own may compute with its arguments, and read nothing else. What a generated column calls
stays as it is, for its values are stored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold
from louver.trusted.executor.context import Context
from louver.trusted.executor.schema import head
from louver.trusted.planner.sql import lexer, trees
from louver.trusted.planner.write import grammar
from louver.trusted.planner.write.reads import names_of, reached

_WORD = re.compile(r"\w+")


def require(context: Context, start: head.Head, sql: str, tokens: Sequence[Token]) -> None:
    """Refuse a macro that would change statements which do not name it."""
    name = start.target[1]
    for table in context.catalog.tables.values():
        for column in table.columns if table.has_generated else ():
            words = names_of(lexer.tokens(column.expression))
            if name in reached(context.catalog, words)[0]:
                statement = f"A macro {name}, which the generated column {column.name} calls,"
                raise errors.make("sql.unsupported", statement=statement)
    covers = name in context.local.statements.own_functions()
    if covers and not (_WORD.fullmatch(name) and _computes(start, sql, tokens)):
        statement = f"A macro {name}, which covers a function of DuckDB's and reads more than its "
        statement += "arguments (give it another name)"
        raise errors.make("sql.unsupported", statement=statement)


def _computes(start: head.Head, sql: str, tokens: Sequence[Token]) -> bool:
    """Whether a macro is one expression of its arguments alone."""
    rest = tokens[start.end :]
    end = next((i for i, t in enumerate(rest) if t.token_type == TokenType.R_PAREN), 0)
    inner, names = rest[1:end], {fold(token.text) for token in rest[1:end:2]}
    listed = all(token.token_type == TokenType.COMMA for token in inner[1::2])
    if not listed or rest[end + 1].token_type != TokenType.ALIAS:
        return False
    tree = trees.parse(f"SELECT {sql[rest[end + 1].end + 1 :]}")
    if not isinstance(tree, exp.Select) or set(filter(tree.args.get, tree.args)) != {"expressions"}:
        return False
    if len(tree.expressions) != 1 or isinstance(tree.expressions[0], exp.Alias):
        return False
    return all(_is_computed(node, names) for node in tree.expressions[0].walk())


def _is_computed(node: exp.Expr, names: set[str]) -> bool:
    if isinstance(node, exp.Column):
        return not node.table and fold(node.name) in names
    return grammar.understood(node) and fold(node.name) != grammar.DRAW
