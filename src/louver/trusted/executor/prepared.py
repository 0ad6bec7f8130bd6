"""PREPARE, EXECUTE and DEALLOCATE: named statements of a session, on the client only.

EXECUTE is the statement that was prepared, run with its values as with any other parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword, own_schemas, quoted
from louver.trusted.executor import constraint_check, federation, settings
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.planner.sql import lexer, trees
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.sql.resolver import pivots
from louver.trusted.planner.write import grammar

Values = dict[str, str]
"""The expressions that EXECUTE gives, by the folded name or the number of their placeholder."""
#: What a constant is made of.
_CONSTANT = {
    exp.Select, exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.Paren, exp.Cast, exp.TryCast,
    exp.DataType, exp.DataTypeParam, exp.Interval, exp.Var, exp.Array, exp.Struct, exp.PropertyEQ,
    exp.Identifier, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.DPipe,
}  # fmt: skip
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


def prepare(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """PREPARE name AS statement."""
    _require_syntax(context, text)
    start = tokens[0].end + 1
    words = lexer.tokens(text.plain[start:])
    if len(words) < 3 or keyword(words[1].text) != "AS":
        raise errors.make("sql.syntax", detail="write PREPARE name AS statement")
    # No placeholder precedes the statement, so both texts begin alike.
    (inner,) = lexer.split(text.home[start + words[1].end + 1 :])
    _bind(context, text, inner, words[0].text)
    context.state.prepared[fold(words[0].text)] = inner, context.catalog.path
    return Answer()


def _require_syntax(context: Context, text: lexer.Text) -> None:
    """DuckDB's own error where it cannot read the statement."""
    context.local.statements.require_syntax(text.home)


def _bind(context: Context, text: lexer.Text, inner: lexer.Text, name: str) -> None:
    """Refuse what cannot be run, with DuckDB's own errors where it does not bind."""
    tokens = lexer.tokens(inner.plain)
    context.require_known(tokens)
    if federation.mentions(context, tokens) or pivots(tokens) or keyword(tokens[0].text) == "COPY":
        return
    with constraint_check.rehearsal(context) as connection:
        connection.execute(text.home)
        connection.execute(f"DEALLOCATE {quoted(name)}")


def execute(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """EXECUTE name [(value, … | name := value, …)]: names mean what they meant at PREPARE."""
    words = lexer.tokens(text.plain[tokens[0].end + 1 :])
    _, path = context.state.prepared.get(fold(words[0].text) if words else "", (None, ()))
    if path is context.catalog.path or path == context.catalog.path or not words:
        return context.run(*resolved(context, text, tokens))
    before = context.catalog.path
    try:
        settings.change_path(context, _set_path(path))
        return context.run(*resolved(context, text, tokens))
    finally:
        settings.change_path(context, _set_path(before))


def _set_path(path: Sequence[str]) -> str:
    schemas = ",".join(map(quoted, path))
    if not own_schemas().path_is_all:
        schemas = spoken().string(schemas)
    return f"SET search_path = {schemas}" if path else "RESET search_path"


def resolved(
    context: Context, text: lexer.Text, tokens: Sequence[Token]
) -> tuple[lexer.Text, list[object]]:
    """The statement that an EXECUTE means, and the values of its placeholders."""
    if text.parameters:
        detail = "EXECUTE takes no placeholders; run the statement itself with these values"
        raise errors.make("parameter.kind", detail=detail)
    _require_syntax(context, text)
    rest = text.plain[tokens[0].end + 1 :]
    words = lexer.tokens(rest)
    inner, path = context.state.prepared.get(fold(words[0].text), (None, ()))
    if inner is None:
        raise errors.make("prepared.missing", name=words[0].text)
    if path != context.catalog.path:
        raise errors.make("prepared.path", name=words[0].text)
    given = _arguments(rest, words[2:-1])
    _require_all(words[0].text, inner, given)
    return _filled(context, inner, given)


def _arguments(sql: str, words: Sequence[Token]) -> Values:
    """The expressions between the brackets, by what they are for."""
    results: Values = {}
    depth = first = 0
    for position, token in enumerate([*words, None]):
        text = "," if token is None else token.text
        plain = token is None or token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)
        depth += plain * ((text in _OPENING) - (text in _CLOSING))
        if position > first and plain and text == "," and depth == 0:
            named = position - first > 2 and words[first + 1].text == ":="
            key = fold(words[first].text) if named else str(len(results) + 1)
            begin = words[first + 2 * named].start
            results[key] = sql[begin : words[position - 1].end + 1]
            first = position + 1
    return results


def _require_all(name: str, inner: lexer.Text, given: Values) -> None:
    """Every placeholder takes one value, and every value is for a placeholder."""
    wanted = list(dict.fromkeys(fold(str(key)) for key in inner.parameters))
    missing = [key for key in wanted if key not in given]
    excess = [key for key in given if key not in wanted]
    if missing:
        raise errors.make("prepared.values", name=name, missing=", ".join(missing))
    if excess:
        raise errors.make("prepared.excess", name=name, excess=", ".join(excess))


def _filled(context: Context, inner: lexer.Text, given: Values) -> tuple[lexer.Text, list[object]]:
    """The statement with its values. One that Python cannot hold stands in the text instead."""
    values: dict[str, object] = {}
    texts: dict[str, str] = {}
    for key, expression in given.items():
        if context.state.origins.is_secret and _reads_variable(expression):
            # The flow rule sees where it goes.
            texts[key] = f"({expression})"
            continue
        exact, value = context.local.statements.exact_value(expression)
        if exact:
            values[key] = value
        else:
            texts[key] = f"({expression})"
    if texts:
        # Placeholders are counted from one: those that stay have other numbers then.
        left = sorted((key for key in values if key.isdigit()), key=int)
        numbers = {key: str(position) for position, key in enumerate(left, 1)}
        texts |= {key: f"${number}" for key, number in numbers.items()}
        values = {numbers.get(key, key): value for key, value in values.items()}
        inner = _with_texts(inner, texts)
    return inner, [values[fold(str(key))] for key in inner.parameters]


def _reads_variable(expression: str) -> bool:
    """Whether a value comes from a variable. While something is kept that depends on encrypted
    columns, only constants are known not to; what calls anything else is refused.
    """
    tree = trees.parse(f"SELECT {expression}")
    if tree is None:
        raise errors.make(
            "sql.unsupported", statement="EXECUTE with a value that cannot be evaluated"
        )
    nodes = [node for node in tree.walk() if type(node) not in _CONSTANT]
    if any(grammar.variable_of(node) is None for node in nodes):
        raise errors.make("sql.unsupported", statement="EXECUTE with a value that is computed")
    return bool(nodes)


def _with_texts(inner: lexer.Text, texts: Mapping[str, str]) -> lexer.Text:
    (filled,) = lexer.split(lexer.filled(inner.home, texts))
    return filled


def deallocate(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """DEALLOCATE [PREPARE] name; as in DuckDB, of what is not there nothing is said."""
    _require_syntax(context, text)
    context.state.prepared.pop(fold(tokens[-1].text), None)
    return Answer()
