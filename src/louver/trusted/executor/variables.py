"""SET VARIABLE and RESET VARIABLE: values that stay on the user's machine, with the session."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor import federation, select
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.planner.sql import lexer, trees
from louver.trusted.planner.write import information_flow
from louver.trusted.planner.write.reads import Reads, Secrets
from louver.trusted.vault.catalog import Catalog


def named(text: lexer.Text, tokens: Sequence[Token]) -> str:
    """The folded name of the variable that a SET or RESET is about; "" where it is a setting."""
    words = _words(text, tokens)
    if len(words) < 2 or keyword(words[0].text) != "VARIABLE" or words[1].text in ("=", "TO"):
        return ""
    return fold(words[1].text)


def _words(text: lexer.Text, tokens: Sequence[Token]) -> list[Token]:
    return lexer.tokens(text.plain[tokens[0].end + 1 :])


def change(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """Run SET VARIABLE name = expression, or RESET VARIABLE name."""
    home, name = context.local, named(text, tokens)
    home.statements.require_syntax(text.home)
    if keyword(tokens[0].text) == "RESET":
        home.drop_variable(name)
        _keep(context, name, frozenset())
        return Answer()
    start = tokens[0].end + 1
    words = _words(text, tokens)
    query = _value(text, start + words[2].end + 1, words[3:])
    inner = lexer.tokens(query.plain)
    catalog = federation.catalog_of(context, inner)
    reads = Reads(catalog, trees.parse(query.plain), inner, None, context.state.origins)
    secrets = information_flow.of_query(reads).secrets
    answer = select.select(context, query, lexer.tokens(query.plain), parameters)
    if answer.rows is None or answer.rows.shape != (1, 1):
        raise errors.make("sql.syntax", detail="SET VARIABLE takes one value")
    home.set_variable(name, answer.rows, answer.columns[0][1])
    _keep(context, name, secrets, catalog)
    return Answer()


def _value(text: lexer.Text, start: int, words: Sequence[Token]) -> lexer.Text:
    """The query of the value. As in DuckDB, a word by itself is a text."""
    word = words[0].text if len(words) == 1 else ""
    bare = word and words[0].token_type in (TokenType.VAR, TokenType.IDENTIFIER)
    if bare and not word.startswith(lexer.PARAMETER_PREFIX):
        sql = "SELECT '" + word.replace("'", "''") + "'"
        return lexer.Text(sql, sql, ())
    # No placeholder precedes the value, so both texts begin alike.
    return lexer.Text(
        f"SELECT {text.home[start:]}", f"SELECT {text.plain[start:]}", text.parameters
    )


def _keep(context: Context, name: str, secrets: Secrets, catalog: Catalog | None = None) -> None:
    """What depended on the variable is judged anew; constants made of it are computed anew."""
    if context.state.origins.keep(catalog or context.catalog, name, secrets):
        context.state.flows.clear()
    context.local.forget_types()
