"""pg_cursors and pg_prepared_statements: what they say of a session is known here alone, so a query
of them has that, as constants, in the place of their names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlglot.tokens import Token, TokenType

from louver.names import fold, keyword
from louver.trusted.executor.context import Context
from louver.trusted.planner.sql import lexer

_NAMED = re.compile(r"\bpg_(?:cursors|prepared_statements)\b", re.IGNORECASE)
_COLUMNS = {
    "pg_cursors": "name text, statement text, is_holdable boolean, is_binary boolean,"
    " is_scrollable boolean, creation_time timestamptz",
    "pg_prepared_statements": "name text, statement text, prepare_time timestamptz,"
    " parameter_types regtype[], from_sql boolean",
}
#: Columns that the local engine's own plans would have to be counted for, or later releases have.
_UNKNOWN = frozenset(("generic_plans", "custom_plans", "result_types"))
_BEFORE = frozenset(("FROM", "JOIN", ","))
#: What may follow a source that has no alias.
_BEHIND = frozenset(
    ("", ")", ",", "WHERE", "GROUP", "HAVING", "WINDOW", "UNION", "INTERSECT", "EXCEPT", "ORDER",
     "ORDER BY", "GROUP BY", "LIMIT", "OFFSET", "FETCH", "JOIN", "INNER", "LEFT", "RIGHT", "FULL",
     "CROSS", "NATURAL", "ON", "USING")
)  # fmt: skip
_TEXTS = (TokenType.STRING, TokenType.IDENTIFIER)


@dataclass(slots=True)
class Listings:
    """What lists the rows of a view, by its name, once there are any."""

    by_view: dict[str, Callable[[Context], list[dict[str, object]]]] = field(default_factory=dict)


@dataclass(slots=True)
class Executed:
    """The EXECUTE that runs a query; "" of one that is run as it stands."""

    text: str = ""


def are_named(sql: str) -> bool:
    """Whether a text has one of the names at all."""
    return _NAMED.search(sql) is not None


def written_out(context: Context, text: lexer.Text, tokens: Sequence[Token]) -> lexer.Text:
    """A query with what its session's views hold; as it is, which is refused, where it could ask
    for more than is known, or the names may mean something else.
    """
    words = [fold(token.text) for token in tokens]
    places = [at for at, word in enumerate(words) if word in _COLUMNS]
    if keyword(tokens[0].text) != "SELECT" or text.parameters or not _UNKNOWN.isdisjoint(words):
        return text
    if not _COLUMNS.keys().isdisjoint(name for _, name in context.catalog.tables):
        return text
    sources = {at for at in places if _is_source(tokens, at)}
    aliases = {words[at] if _ends(tokens, at + 1) else _alias(tokens, at + 1) for at in sources}
    for at, word in enumerate(words):
        follows = words[at + 1] if at + 1 < len(words) else ""
        before = words[at - 1] if at else ""
        if word == "*" and before != "(":
            return text
        is_said = at in sources or before in ("as", ".", *_COLUMNS)
        if word in {*aliases, *_COLUMNS} and follows != "." and not is_said:
            # A whole row.
            return text
    if not sources:
        return text
    pieces, position = list[str](), 0
    for at in sorted(sources):
        first = at - 2 if words[at - 1] == "." else at
        rows = _rows(context, words[at], context.state.cache(Executed).text or text.home)
        pieces += [text.home[position : tokens[first].start], rows]
        pieces += [f" AS {words[at]}"] if _ends(tokens, at + 1) else []
        position = tokens[at].end + 1
    (result,) = lexer.split("".join([*pieces, text.home[position:]]))
    return result


def _is_source(tokens: Sequence[Token], at: int) -> bool:
    if tokens[at].token_type in _TEXTS:
        return False
    if tokens[at - 1].text == "." and fold(tokens[at - 2].text) == "pg_catalog":
        at -= 2
    return keyword(tokens[at - 1].text) in _BEFORE


def _ends(tokens: Sequence[Token], at: int) -> bool:
    """Whether no alias follows."""
    word = keyword(tokens[at].text) if at < len(tokens) else ""
    return word in _BEHIND and (at >= len(tokens) or tokens[at].token_type not in _TEXTS)


def _alias(tokens: Sequence[Token], at: int) -> str:
    return fold(tokens[at + 1 if keyword(tokens[at].text) == "AS" else at].text)


def _rows(context: Context, name: str, sql: str) -> str:
    """A query of the rows. Its types are objects of the schema, so the binder answers it; what was
    said stands there as hexadecimal digits, in which no name can be looked for.
    """
    listed = context.state.cache(Listings).by_view.get(name)
    rows = [] if listed is None else listed(context)
    if name == "pg_cursors":
        # The statement itself, which PostgreSQL shows to clients that can bind values.
        rows.append({
            "name": "", "statement": sql, "is_holdable": False, "is_binary": False,
            "is_scrollable": False, "creation_time": datetime.now(UTC).isoformat(),
        })  # fmt: skip
    digits = json.dumps(rows).encode().hex()
    return (
        f"(SELECT * FROM pg_catalog.json_to_recordset(pg_catalog.convert_from("
        f"pg_catalog.decode('{digits}', 'hex'), 'UTF8')::json) AS louver_said ({_COLUMNS[name]})"
        " WHERE 'text'::regtype IS NOT NULL)"
    )


def is_scrollable(context: Context, query: lexer.Text) -> bool | None:
    """Whether PostgreSQL lets a cursor that says nothing of it go back, as far as that is certain:
    of all rows of one table, in no order or in that of one column.
    """
    tokens = lexer.tokens(query.plain)
    words = [keyword(token.text) for token in tokens]
    if any(t.token_type == TokenType.L_PAREN for t in tokens) or "FROM" not in words:
        return None
    at = words.index("FROM") + 1
    stored, name = {name for _, name in context.catalog.tables}, fold(tokens[at].text)
    if name not in stored | context.local.temporary.names or words[:2] == ["SELECT", "DISTINCT"]:
        return None
    behind = words[at + 1 :]
    is_ordered = behind[:1] in (["ORDER"], ["ORDER BY"]) and len(behind) <= 3
    is_one = words[0] == "SELECT" and words.count("SELECT") == 1
    return True if is_one and (not behind or is_ordered) else None
