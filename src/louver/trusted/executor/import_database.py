"""IMPORT DATABASE: read the files of EXPORT DATABASE in one transaction.

DuckDB's files do not record which columns are ENC. An export by Louver adds a file that does.
Without this file the policy decides, and without a policy every column is ENC.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor import define, transaction
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.schema import head
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.declarations import Declared
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.levels import LEVELS
from louver.trusted.vault.protection import FILES

PROTECTION = "protection.json"
"""The file added to DuckDB's export that lists the encrypted columns and their schemes."""
_VERSION = 1
_VERBS = frozenset(("CREATE", "COPY", "COMMENT", "ALTER", "INSERT"))
_Columns = Mapping[str, Declared]


def protection(tables: Sequence[Table]) -> str:
    """The text of the protection file of an export."""
    listed = [
        {
            "schema": table.schema,
            "name": table.name,
            "columns": [
                {"name": column.name, "scheme": column.scheme, "ceiling": column.ceiling}
                for column in table.columns
                if column.encrypted
            ],
        }
        for table in tables
    ]
    return json.dumps({"version": _VERSION, "tables": listed}, indent=1, ensure_ascii=False)


def import_database(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """IMPORT DATABASE 'folder', all or nothing."""
    if len(tokens) != 3 or tokens[2].token_type != TokenType.STRING:
        raise errors.make("sql.syntax", detail="write IMPORT DATABASE 'folder'")
    folder = Path(tokens[2].text)
    known = _protection(folder)
    statements = [
        statement
        for name in ("schema.sql", "load.sql")
        for statement in lexer.split(_read(folder / name))
    ]
    own = not context.in_transaction
    if own:
        transaction.begin(context)
    try:
        for statement in statements:
            _run(context, statement, folder, known)
    except BaseException:
        if own:
            transaction.rollback(context)
        else:
            context.state.aborted = True
        raise
    if own:
        transaction.commit(context)
    return Answer()


def _run(
    context: Context,
    text: lexer.Text,
    folder: Path,
    known: Mapping[tuple[str, str], _Columns],
) -> None:
    tokens = lexer.tokens(text.plain)
    words = lexer.words(tokens, 2)
    if words[0] not in _VERBS:
        raise errors.make("sql.unsupported", statement=f"{words[0]} in a file of IMPORT DATABASE")
    if words[0] == "COPY":
        text = _moved(text, tokens, folder)
    start = head.read(tokens) if words[0] == "CREATE" else None
    if start is not None and start.kind == "TABLE" and not start.temporary:
        schema, name = start.target
        given = known.get((schema or "main", name))
        define.create(context, text, tokens, [], _declared(context, given))
    else:
        context.run(text, [])


def _moved(text: lexer.Text, tokens: Sequence[Token], folder: Path) -> lexer.Text:
    """COPY with the path of the file in the import folder instead of its original path."""
    for before, token in pairwise(tokens):
        if keyword(before.text) == "FROM" and token.token_type == TokenType.STRING:
            path = str(folder / Path(token.text).name).replace("'", "''")
            sql = f"{text.plain[: token.start]}'{path}'{text.plain[token.end + 1 :]}"
            return lexer.Text(sql, sql, ())
    return text


def _declared(context: Context, given: _Columns | None) -> _Columns | None:
    """The declared protection of a table's columns; None if every column is ENC."""
    if given is None:
        return {} if context.policy.rules else None
    if context.policy.storage != FILES:
        return given
    return {name: Declared(other.column, "", other.ceiling) for name, other in given.items()}


def _protection(folder: Path) -> dict[tuple[str, str], _Columns]:
    """The protection of the columns of an export, by the folded names of its tables."""
    path = folder / PROTECTION
    if not path.exists():
        return {}
    try:
        body = json.loads(_read(path))
        if body["version"] != _VERSION:
            raise ValueError(f"version {body['version']}")
        return {
            (fold(table["schema"]), fold(table["name"])): {
                fold(column["name"]): _column(column) for column in table["columns"]
            }
            for table in body["tables"]
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise errors.make("load.file", path=str(path), detail=repr(error)) from None


def _column(item: Mapping[str, Any]) -> Declared:
    name, scheme, ceiling = (str(item[key]) for key in ("name", "scheme", "ceiling"))
    if ceiling not in LEVELS:
        raise ValueError(f"ceiling {ceiling}")
    return Declared(name, "" if scheme == FILES else scheme, ceiling)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise errors.make("load.file", path=str(path), detail=str(error)) from None
