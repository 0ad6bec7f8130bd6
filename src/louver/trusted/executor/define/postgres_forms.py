"""ALTER in languages that have several actions in one statement, and more kinds of objects.

A statement's effect is read off the columns before and after it, which tells a rename, a dropped
column and a new one apart only where all actions are of one sort.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor.context import Context
from louver.trusted.executor.schema import blocks, head, objects
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.vault.catalog import HomeObject

#: It gives the name of the private database, whose function of that name gives the server's.
_CURRENT_CATALOG = "CURRENT_CATALOG (write current_database() instead)"
_KINDS = ("SEQUENCE", "INDEX", "TYPE", "SCHEMA", "MACRO")
_OPEN, _CLOSE = (TokenType.L_PAREN, TokenType.L_BRACKET), (TokenType.R_PAREN, TokenType.R_BRACKET)
#: What a table can be told that Louver's own tables on the server would not follow, or that means
#: nothing on a database without rows.
_REFUSED = frozenset(
    ("ENABLE", "DISABLE", "OWNER", "INHERIT", "NO", "ATTACH", "DETACH", "OF", "NOT", "CLUSTER",
     "REPLICA", "FORCE", "VALIDATE")
)  # fmt: skip
#: Kinds of objects that may move to another schema.
_MOVED = ("TABLE", "VIEW", "SEQUENCE")
_TEMPORARY_FIRST = re.compile(r"\bsearch_path\W+pg_temp")
_ATTRIBUTES = frozenset(
    ("IMMUTABLE", "STABLE", "VOLATILE", "STRICT", "CALLED", "RETURNS", "NULL", "ON", "INPUT",
     "COST", "ROWS", "NOT", "LEAKPROOF", "PARALLEL", "SAFE", "UNSAFE", "RESTRICTED", "RESTRICT")
)  # fmt: skip
_ROWLESS = frozenset(
    ("SET DEFAULT", "DROP DEFAULT", "DROP NOT", "SET STATISTICS", "SET STORAGE", "SET COMPRESSION",
     "SET GENERATED", "SET INCREMENT", "SET MINVALUE", "SET MAXVALUE", "SET START", "SET CACHE",
     "SET CYCLE", "SET NO", "RESTART", "DROP IDENTITY", "ADD GENERATED")
)  # fmt: skip


def kinds(context: Context) -> Sequence[str]:
    """Kinds of objects beside tables and views that ALTER changes."""
    return _KINDS if context.local.dialect.prints_objects else ()


def require_new(context: Context, start: head.Head, sql: str, tokens: Sequence[Token]) -> None:
    """Refuse new objects whose rows, or whose reads, Louver would not know of."""
    if not context.local.dialect.prints_objects:
        return
    if start.temporary and start.kind not in ("TABLE", "VIEW", "SEQUENCE"):
        raise errors.make("sql.unsupported", statement=f"CREATE TEMP {start.kind}")
    _require_own_name(tokens)
    schema = start.target[0]
    implied = not schema and _TEMPORARY_FIRST.search(fold(context.local.path.text))
    if not start.temporary and (implied or schema.startswith("pg_temp")):
        # It would be kept as one that is not temporary, where nothing would find it.
        raise errors.make("sql.unsupported", statement="CREATE in pg_temp (write CREATE TEMP)")
    if start.kind == "TABLE":
        words = _outside(tokens[start.end :])
        refused = words & {"INHERITS", "PARTITION", "OF", "TABLESPACE", "USING"}
        if refused:
            raise errors.make("sql.unsupported", statement=f"CREATE TABLE with {min(refused)}")
    if start.kind == "MACRO":
        _require_function(sql, tokens)
    is_type = start.kind == "TYPE" and keyword(tokens[1].text) == "TYPE"
    if is_type and [keyword(t.text) for t in tokens[start.end :]][:1] != ["AS"]:
        raise errors.make("sql.unsupported", statement="CREATE TYPE of a base type")
    if start.kind == "TYPE" and not spoken().names_objects.isdisjoint(fold(t.text) for t in tokens):
        # A number that means another object in the next session.
        statement = "A type over one whose values are objects of the schema"
        raise errors.make("sql.unsupported", statement=statement)


def _require_own_name(tokens: Sequence[Token]) -> None:
    """Refuse what would have the private database's name in the rows: `effects` looks at queries
    and changes, not at defaults.
    """
    quotes = (TokenType.IDENTIFIER, TokenType.STRING)
    if any(keyword(t.text) == "CURRENT_CATALOG" and t.token_type not in quotes for t in tokens):
        raise errors.make("sql.unsupported", statement=_CURRENT_CATALOG)


def _outside(tokens: Sequence[Token]) -> set[str]:
    """The words that stand in no brackets, before a query."""
    words, depth = set(), 0
    for token in tokens:
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth == 0 and token.token_type == TokenType.ALIAS:
            break
        if depth == 0 and token.token_type not in (TokenType.IDENTIFIER, TokenType.STRING):
            # PARTITION BY is one token.
            words |= {*keyword(token.text).split()}
    return words


def _require_function(sql: str, tokens: Sequence[Token]) -> None:
    """Functions run locally, in a database without tables, and draw no numbers unseen."""
    words = [keyword(token.text) for token in tokens]
    at = words.index("LANGUAGE") + 1 if "LANGUAGE" in words else len(words)
    # A body without quotes is in SQL, which needs not be said.
    if words[at : at + 1] not in (["SQL"], []):
        raise errors.make("sql.unsupported", statement="CREATE FUNCTION in a language but SQL")
    objects.require_no_draws("MACRO", sql)


def require_kind(context: Context, start: head.Head, kind: str) -> None:
    """Refuse objects that come along with one which they are not: CREATE SCHEMA … CREATE TABLE."""
    if context.local.dialect.prints_objects and kind != start.kind:
        statement = f"CREATE {start.kind} with a {kind} in it (write a statement for each)"
        raise errors.make("sql.unsupported", statement=statement)


def require_body(context: Context, item: HomeObject) -> None:
    """Refuse a function that reads tables: the workspace, which has none, reads its body. As it is
    printed, what it names has no escapes; neither it nor a domain may draw from a sequence.
    """
    if not context.local.dialect.prints_objects:
        return
    objects.require_no_draws(item.kind, item.sql)
    if item.kind != "MACRO":
        return
    reader = context.local.apart()
    try:
        reader.execute("BEGIN")
        reader.execute("SET LOCAL check_function_bodies = on")
        reader.execute(item.sql)
    except errors.Error as error:
        statement = f"CREATE FUNCTION that reads tables ({error.message})"
        raise errors.make("sql.unsupported", statement=statement) from None
    finally:
        reader.close()


def require(context: Context, start: head.Head, tokens: Sequence[Token]) -> None:
    """Refuse forms whose effect could not be told from the objects before and after it."""
    if not context.local.dialect.prints_objects:
        return
    _require_own_name(tokens)
    blocks.settle(context)
    action = tokens[start.end :]
    words = [keyword(token.text) for token in action]
    if start.kind == "TYPE" and words[:2] != ["SET", "SCHEMA"]:
        from louver.trusted.executor.define import altered_types

        altered_types.require(tokens, actions(action))
    if start.kind == "TYPE" and words[:2] == ["ADD", "VALUE"] and context.in_transaction:
        # PostgreSQL forbids to use it before COMMIT.
        statement = "ALTER TYPE ADD VALUE within a transaction"
        raise errors.make("sql.unsupported", statement=statement)
    moves = words[:2] == ["SET", "SCHEMA"]
    if start.kind == "SCHEMA" or (moves and start.kind not in _MOVED):
        # Types are named in what is declared of columns and functions.
        statement = f"ALTER {start.kind}{' SET SCHEMA' if moves else ''}"
        raise errors.make("sql.unsupported", statement=statement)
    if start.kind == "MACRO":
        _require_attributes(words)
    if start.kind != "TABLE":
        return
    verbs = {keyword(part[0].text) for part in actions(action) if part}
    refused = verbs & _REFUSED
    if refused:
        raise errors.make("sql.unsupported", statement=f"ALTER TABLE {min(refused)}")
    parts = actions(action)
    if len(verbs) > 1:
        statement = "ALTER TABLE with actions of several sorts (write one statement for each)"
        raise errors.make("sql.unsupported", statement=statement)
    if len(parts) > 1 and TokenType.USING in {token.token_type for token in action}:
        statement = "ALTER TABLE with USING beside other actions (write one statement for each)"
        raise errors.make("sql.unsupported", statement=statement)


def require_moved(start: head.Head, tokens: Sequence[Token], change: objects.Change) -> None:
    """Refuse a move into a schema of the system, or out of one: what is there is not the user's."""
    words = [keyword(token.text) for token in tokens[start.end : start.end + 2]]
    if words == ["SET", "SCHEMA"] and (change.added or change.removed):
        statement = f"ALTER {start.kind} SET SCHEMA between your schemas and the system's"
        raise errors.make("sql.unsupported", statement=statement)


def _require_attributes(words: Sequence[str]) -> None:
    """Refuse changes of a function beside those of what PostgreSQL may expect of it."""
    behind = words[words.index(")") + 1 :] if ")" in words else words
    refused = [word for word in behind if not (word in _ATTRIBUTES or word.isdecimal())]
    if refused:
        raise errors.make("sql.unsupported", statement=f"ALTER FUNCTION {refused[0]}")


def require_temporary(context: Context, tokens: Sequence[Token]) -> None:
    """Refuse forms of temporary tables that would not come along to another local engine."""
    words = [keyword(token.text) for token in tokens]
    if not context.local.dialect.prints_objects or words[0] not in ("CREATE", "ALTER"):
        return
    if words[0] == "CREATE":
        return
    _, at = head.names(tokens, 4 if words[2:4] == ["IF", "EXISTS"] else 2)
    refused = {keyword(part[0].text) for part in actions(tokens[at:]) if part} & _REFUSED
    if refused:
        raise errors.make("sql.unsupported", statement=f"ALTER TABLE {min(refused)}")


def actions(action: Sequence[Token]) -> list[Sequence[Token]]:
    """The actions of ALTER TABLE, which commas divide."""
    parts, first, depth = [], 0, 0
    for position, token in enumerate(action):
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth == 0 and token.token_type == TokenType.COMMA:
            parts.append(action[first:position])
            first = position + 1
    return [*parts, action[first:]]


def asks_rows(action: Sequence[Token]) -> bool:
    """Whether any of the actions changes or tests what the rows hold."""
    return any(map(_asks_rows, actions(action)))


def _asks_rows(part: Sequence[Token]) -> bool:
    words = [keyword(token.text) for token in part]
    if words[:1] in (["RENAME"], ["DROP"], ["SET"], ["RESET"]):
        return False
    if words[:1] != ["ALTER"]:
        return True
    column = _of_column(part)
    return " ".join(column[:2]) not in _ROWLESS and column[:1] != ["RESTART"]


def _of_column(part: Sequence[Token]) -> list[str]:
    """The words of ALTER COLUMN behind the column's name."""
    words = [keyword(token.text) for token in part]
    _, at = head.names(part, 2 if words[1:2] == ["COLUMN"] else 1)
    return words[at:]


def _altered(action: Sequence[Token]) -> list[Sequence[Token]]:
    """The actions that alter a column."""
    return [part for part in actions(action) if part and keyword(part[0].text) == "ALTER"]


def computes_anew(action: Sequence[Token]) -> bool:
    """Whether a generated column gets other values in all rows, though it keeps its type."""
    if not spoken().prints_objects:
        return False
    return any(_of_column(part)[:2] == ["SET", "EXPRESSION"] for part in _altered(action))


def written_anew(action: Sequence[Token]) -> set[str]:
    """The columns, by folded names, that get other values or another type in all rows."""
    names = set()
    for part in _altered(action):
        words = _of_column(part)
        if words[:1] == ["TYPE"] or words[:2] in (["SET", "DATA"], ["SET", "EXPRESSION"]):
            name, _ = head.names(part, 2 if keyword(part[1].text) == "COLUMN" else 1)
            names.add(fold(name[0]))
    return names


def may_rename(action: Sequence[Token]) -> bool:
    """Whether columns of other names may be the same ones."""
    return not spoken().prints_objects or keyword(action[0].text) == "RENAME"


def number(context: Context, change: objects.Change, rows: pa.Table | None) -> None:
    """Have the sequences of new columns stand where the values of the rows end, which were drawn
    in the workspace.
    """
    sequences_added = [(fold(key[1]), fold(key[2])) for key in change.added if key[0] == "SEQUENCE"]
    if not sequences_added or rows is None or not rows.num_rows or not spoken().prints_objects:
        return
    known = context.local.schema.sequences()
    for state in (known[position] for position in sequences_added):
        last = state.start + (rows.num_rows - 1) * state.increment
        context.local.schema.catch_up(state, replace(state, last=last))
