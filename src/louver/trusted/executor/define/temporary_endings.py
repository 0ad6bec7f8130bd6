"""CREATE TEMP TABLE … ON COMMIT: what becomes of a temporary table when a transaction ends.

The local engine has transactions of its own, so it is not told; the tables are emptied or dropped
when the user's transaction has committed, or a statement outside of one has run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword, quoted
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import temporary_tables
from louver.trusted.planner.sql import lexer

_OPEN, _CLOSE = (TokenType.L_PAREN, TokenType.L_BRACKET), (TokenType.R_PAREN, TokenType.R_BRACKET)
_ACTIONS = (("PRESERVE", "ROWS"), ("DELETE", "ROWS"), ("DROP",))


@dataclass(slots=True)
class _Tables:
    """What is said of temporary tables, by folded name."""

    actions: dict[str, str] = field(default_factory=dict)
    is_awaited: bool = False


def create(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object], name: str
) -> Answer:
    """Run CREATE TEMP TABLE."""
    if not context.local.dialect.has_own_statements:
        return temporary_tables.create(context, text, tokens, parameters, name)
    clause = _clause(tokens)
    own, action = context.state.cache(_Tables), "PRESERVE"
    before = fold(name) in context.local.temporary.names
    if clause is not None:
        first, last = clause
        action = keyword(tokens[first + 2].text)
        # No placeholder precedes the clause, so both texts are alike up to there.
        start, end = tokens[first].start, tokens[last].end + 1
        home, plain = (f"{sql[:start]} {sql[end:]}" for sql in (text.home, text.plain))
        text = lexer.Text(home, plain, text.parameters)
        tokens = lexer.tokens(text.plain)
    said = {keyword(token.text) for token in tokens}
    if "REFERENCES" in said and (action != "PRESERVE" or own.actions):
        # PostgreSQL compares the clauses of both tables.
        statement = "REFERENCES of a TEMP table beside ON COMMIT"
        raise errors.make("sql.unsupported", statement=statement)
    answer = temporary_tables.create(context, text, tokens, parameters, name)
    if before and "EXISTS" in said:
        return answer
    own.actions.pop(fold(name), None)
    if action != "PRESERVE":
        own.actions[fold(name)] = action
        if not own.is_awaited:
            own.is_awaited = True
            context.state.lasting.append(lambda committed: _ended(context, committed=committed))
    return answer


def ran(context: Context) -> None:
    """After a change outside of a transaction, which is one by itself."""
    if not context.in_transaction and context.state.cache(_Tables).actions:
        _ended(context, committed=True)


def _ended(context: Context, *, committed: bool) -> None:
    own = context.state.cache(_Tables)
    own.actions = {
        name: action
        for name, action in own.actions.items()
        if name in context.local.temporary.names
    }
    for action, verb, behind in (("DELETE", "TRUNCATE", ""), ("DROP", "DROP TABLE", " CASCADE")):
        named = [name for name, wanted in own.actions.items() if wanted == action]
        if named and committed:
            listed = ", ".join(f"pg_temp.{quoted(name)}" for name in named)
            (text,) = lexer.split(f"{verb} {listed}{behind}")
            temporary_tables.change(context, text, lexer.tokens(text.plain), [])


def _clause(tokens: Sequence[Token]) -> tuple[int, int] | None:
    """The first and the last token of ON COMMIT …, which stands in front of a query."""
    depth, words = 0, [keyword(token.text) for token in tokens]
    for position, token in enumerate(tokens):
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth == 0 and token.token_type == TokenType.ALIAS:
            return None
        if depth == 0 and words[position : position + 2] == ["ON", "COMMIT"]:
            for action in _ACTIONS:
                last = position + 2 + len(action)
                if words[position + 2 : last] == [*action]:
                    return position, last - 1
    return None
