"""Attached DuckDB files: which may be attached, and which statements may name them.

A file is the user's plaintext. Only the client reads it: nothing is written into it, and nothing
that is stored may need it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor import schema_queries, select
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.attached import schemas_of
from louver.trusted.executor.local.local import File
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.write.reads import reached
from louver.trusted.vault.catalog import DATABASE

_RESERVED = frozenset(("main", "temp", "system", "information_schema", "pg_catalog", DATABASE))
_MAGIC, _MAGIC_AT = b"DUCK", 8
_OPTIONS = frozenset(("READ_ONLY", "READ_ONLY TRUE", "TYPE DUCKDB"))
_READS = frozenset(
    ("SELECT", "FROM", "VALUES", "TABLE", "(", "PIVOT", "UNPIVOT", "SUMMARIZE", "EXPLAIN", "SHOW")
    + ("DESCRIBE", "DESC", "PREPARE")
)
_CHANGES = frozenset(("INSERT", "UPDATE", "DELETE", "MERGE", "COPY"))
_DEFINES = frozenset(("CREATE", "DROP", "ALTER", "COMMENT"))
_ATTACHING = frozenset(("ATTACH", "DETACH"))
_BEFORE_TARGET = frozenset(("INTO", "FROM", "OR", "REPLACE", "IGNORE", "ONLY"))


def attach(context: Context, location: str, name: str) -> None:
    """Attach a file, read only, to the local DuckDB."""
    errors.refuse_keys(location)
    _require_outside(context, "ATTACH")
    require_free(context, name)
    path = os.path.abspath(os.path.expanduser(location))
    _require_database(path)
    if any(_is_of(other, path) for other in (context, *context.attached.values())):
        raise errors.make("attach.same", url=location)
    context.local.attach(name, path)
    context.state.origins.files = context.local.files.tables
    _forget(context)


def detach(context: Context, name: str) -> None:
    """Let go of a file."""
    _require_outside(context, "DETACH")
    context.local.detach(name)
    _forget(context)


def require_free(context: Context, name: str) -> None:
    """Refuse a name that means something else."""
    wanted = fold(name)
    taken = wanted in context.attached or wanted in context.local.files.known
    taken = taken or wanted in _RESERVED or wanted.startswith("louver_") or not wanted
    if taken or wanted in schemas_of(context.catalog):
        raise errors.make("attach.name", name=name)


def name_of(path: str) -> str:
    """The name of a file that is attached without one, as DuckDB makes it."""
    return Path(path).name.split(".")[0]


def require_options(options: Sequence[Token]) -> None:
    """Refuse what a file cannot be attached with: these tokens, with the brackets around them."""
    inner = " ".join(keyword(token.text) for token in options[1:-1])
    if options and {part.strip() for part in inner.split(",")} - _OPTIONS:
        statement = "ATTACH of a file with options other than READ_ONLY"
        raise errors.make("sql.unsupported", statement=statement)


def _require_outside(context: Context, verb: str) -> None:
    if context.in_transaction:
        raise errors.make("sql.unsupported", statement=f"{verb} of a file within a transaction")


def _require_database(path: str) -> None:
    """Refuse what is not a DuckDB file: DuckDB would make one, or load an extension to read it."""
    head = b""
    if Path(path).is_file():
        try:
            with Path(path).open("rb") as file:
                head = file.read(_MAGIC_AT + len(_MAGIC))
        except OSError as error:
            raise errors.make("attach.file", path=path, detail=error.strerror or "") from None
    if head[_MAGIC_AT:] != _MAGIC:
        missing = (
            "the file does not exist" if not Path(path).exists() else "it is not a DuckDB file"
        )
        raise errors.make("attach.file", path=path, detail=missing)


def _is_of(context: Context, path: str) -> bool:
    """Whether a file is the one that a session's server keeps its data in."""
    own = context.engine.address.partition(":")[2]
    return Path(own).is_file() and os.path.samefile(own, path)


def _forget(context: Context) -> None:
    """Names mean something else than before."""
    context.local.forget_types()
    context.state.flows.clear()


def require_readable(context: Context, tokens: Sequence[Token]) -> None:
    """Refuse a statement that names an attached file otherwise than to read it."""
    files = context.local.files
    if not tokens or keyword(tokens[0].text) in _ATTACHING:
        return
    if len(tokens) == 2 and tokens[1].token_type == TokenType.STRING:
        # What stands behind the word of a command is one token, as in CALL f().
        tokens = [tokens[0], *lexer.tokens(tokens[1].text)]
    said, words = files.said(tokens), {fold(token.text) for token in tokens}
    by_text = not words.isdisjoint(spoken().takes_names) or _calls(context, tokens, words)
    if by_text:
        said += files.known
    if _makes_schema(tokens):
        # DuckDB could not tell a schema and a file of one name apart.
        said += words & files.known.keys()
    for name in said:
        if name in files.lost:
            raise errors.make("attach.lost", name=name, path=files.known[name].path)
        if not only_reads(tokens, name):
            raise errors.make("attach.read_only", name=name)
        _require_own(context, files.known[name], tokens, None if by_text else words)


def _makes_schema(tokens: Sequence[Token]) -> bool:
    words = lexer.words(tokens, 4)
    return words[:2] == ["CREATE", "SCHEMA"] or words == ["CREATE", "OR", "REPLACE", "SCHEMA"]


def only_reads(tokens: Sequence[Token], name: str, *, dotted: bool = True) -> bool:
    """Whether a statement reads what has a folded name, or is in a file of this name, and stores
    nothing that will need it.
    """
    verb, at = keyword(tokens[0].text), 0
    if verb == "WITH":
        verb = select.changes(tokens) or "SELECT"
        at = next((i for i, t in enumerate(tokens) if keyword(t.text) == verb), 0)
    if verb in _READS:
        return True
    if verb == "CREATE":
        start = _outermost(tokens, "AS")
        table = any(keyword(token.text) == "TABLE" for token in tokens[1:5])
        before = [fold(token.text) for token in tokens[:start]]
        return table and start > 0 and name not in before
    if verb not in _CHANGES:
        return False
    at += 1
    while at < len(tokens) and keyword(tokens[at].text) in _BEFORE_TARGET:
        at += 1
    if at >= len(tokens) or fold(tokens[at].text) != name:
        return True
    if dotted and (at + 1 >= len(tokens) or tokens[at + 1].text != "."):
        return True
    return verb == "COPY" and _outermost(tokens, "TO") > 0


def _outermost(tokens: Sequence[Token], wanted: str) -> int:
    """The place of a word outside of brackets; 0 where there is none."""
    depth = 0
    for position, token in enumerate(tokens):
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            continue
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and keyword(token.text) == wanted:
            return position
    return 0


def _calls(context: Context, tokens: Sequence[Token], words: set[str]) -> bool:
    """Whether a statement calls a macro, or reads a view, that takes names as texts."""
    verb, kinds = keyword(tokens[0].text), lexer.words(tokens, 5)
    if verb in _DEFINES and not (verb == "CREATE" and "TABLE" in kinds):
        return False
    return not reached(context.catalog, words)[0].isdisjoint(spoken().takes_names)


def _require_own(
    context: Context, file: File, tokens: Sequence[Token], words: set[str] | None
) -> None:
    """Refuse macros of a file, and views that may read what stands outside of it: there DuckDB
    finds this database's tables first, of which only those are read that a statement names.
    Without ``words``, as where names are texts, any of the file's may be meant.
    """
    called = (
        set(file.macros)
        if words is None
        else {
            fold(token.text)
            for token, after in pairwise(tokens)
            if after.text == "(" and fold(token.text) in file.macros
        }
    )
    here = {fold(item.name) for item in context.catalog.objects if item.kind != "SCHEMA"}
    here |= {name for _, name in context.catalog.tables} | context.local.temporary.names
    for view in file.views if words is None else file.views.keys() & words:
        inner = file.views[view]
        if (
            view in file.foreign
            or inner & here
            or schema_queries.describes(context.local, set(inner))
        ):
            called.add(view)
    if called:
        raise errors.make("attach.object", name=file.name, object=min(called))
