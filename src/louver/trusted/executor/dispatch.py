"""Which handler runs which statement. What is not listed is refused, never passed through."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor import attach, define, maintenance, prepared, show, transaction
from louver.trusted.executor import change as modify
from louver.trusted.executor import select as queries
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import temporary_tables
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken

Done = TypeVar("Done")
Handler = Callable[["Context", lexer.Text, Sequence[Token], list[object]], Answer]
select = queries.select


def control(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """BEGIN, COMMIT, ROLLBACK and their other spellings."""
    if spoken().has_own_statements:
        from louver.trusted.executor.postgres.control import control as own

        return own(context, text, tokens, parameters)
    words = [keyword(token.text) for token in tokens]
    read_only = words[-2:] == ["READ", "ONLY"]
    modes = words[:-2] if read_only or words[-2:] == ["READ", "WRITE"] else words
    if modes[1:] not in ([], ["TRANSACTION"], ["WORK"]) or (modes != words and not _begins(words)):
        context.local.statements.require_syntax(text.home)
        raise errors.make("sql.unsupported", statement=" ".join(words))
    if _begins(words):
        transaction.begin(context, read_only=read_only)
    elif words[0] in ("COMMIT", "END"):
        transaction.commit(context)
    else:
        transaction.rollback(context)
    return Answer()


def begin(context: Context) -> None:
    """BEGIN of which nothing more is said."""
    if not spoken().has_own_statements:
        transaction.begin(context)
        return
    from louver.trusted.executor.postgres.control import Modes
    from louver.trusted.executor.postgres.control import begin as own

    own(context, Modes())


def _begins(words: Sequence[str]) -> bool:
    return words[0] in ("BEGIN", "START")


def select_or_modify(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """WITH … may go on as a query or as a change."""
    word = queries.changes(tokens)
    if word:
        run = modify.insert if word == "INSERT" else modify.change
        return run(context, text, tokens, parameters)
    return queries.select(context, text, tokens, parameters)


def exported(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """EXPORT DATABASE and IMPORT DATABASE, which few sessions say and none needs to start."""
    from louver.trusted.executor import export_database, import_database

    if keyword(tokens[0].text) == "EXPORT":
        return export_database.export_database(context, text, tokens, parameters)
    return import_database.import_database(context, text, tokens, parameters)


_HANDLERS: dict[str, Handler] = {
    "SELECT": queries.select,
    "WITH": select_or_modify,
    "FROM": queries.select,
    "VALUES": queries.select,
    "TABLE": queries.select,
    "(": queries.select,
    "PIVOT": queries.select,
    "UNPIVOT": queries.select,
    "SUMMARIZE": queries.select,
    "EXPLAIN": show.explain,
    "SHOW": show.show,
    "DESCRIBE": show.schema,
    "DESC": show.schema,
    "PRAGMA": show.schema,
    "SET": show.setting,
    "RESET": show.setting,
    "CREATE": define.create,
    "ALTER": define.alter,
    "DROP": define.drop,
    "COMMENT": define.comment,
    "INSERT": modify.insert,
    "UPDATE": modify.change,
    "DELETE": modify.change,
    "MERGE": modify.change,
    "TRUNCATE": modify.truncate,
    "COPY": modify.copy,
    "BEGIN": control,
    "START": control,
    "COMMIT": control,
    "END": control,
    "ROLLBACK": control,
    "ABORT": control,
    "PREPARE": prepared.prepare,
    "EXECUTE": prepared.execute,
    "DEALLOCATE": prepared.deallocate,
    "CHECKPOINT": maintenance.checkpoint,
    "FORCE": maintenance.checkpoint,
    "VACUUM": maintenance.vacuum,
    "ANALYZE": maintenance.vacuum,
    "CALL": maintenance.call,
    "USE": maintenance.use,
    "EXPORT": exported,
    "IMPORT": exported,
    "ATTACH": attach.attach_statement,
    "DETACH": attach.detach_statement,
}


_REWORDED = ("CREATE", "DROP", "SELECT")
_REFUSED = {"INSTALL", "LOAD", "REINDEX", "GRANT", "REVOKE", "SAVEPOINT", "LOCK", "REFRESH"}
#: Options of readers of CSV that make tables in the DuckDB that reads; locally they would go at
#: once.
_REJECTS = {"store_rejects", "rejects_table", "rejects_scan", "rejects_limit"}

CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE", "WITH")
#: Changes that may run again, and the word of theirs that reads nothing.
_REPEATABLE = {
    "insert": "into", "update": "set", "delete": "from", "truncate": "table",
    "create": "table", "drop": "table", "comment": "table",
}  # fmt: skip
_READING = {"select", "from", "join", "using", "table", "pivot", "unpivot", "with"}


def handler(tokens: Sequence[Token], context: Context | None = None) -> Handler:
    """The handler of a statement, by its first word, and by whether it changes a TEMP table."""
    if spoken().has_own_statements:
        from louver.trusted.executor.postgres import language

        own = language.handler(tokens, control)
        if keyword(tokens[0].text if tokens else "") not in language.CHANGING:
            return own
    if (
        context is not None
        and context.has_temporary
        and temporary_tables.is_target(context, tokens)
    ):
        return temporary_tables.change
    if spoken().has_own_statements:
        return own
    word = keyword(tokens[0].text) if tokens else ""
    words = {fold(token.text) for token in tokens}
    if words & _REJECTS and (word == "COPY" or words & {"read_csv", "read_csv_auto"}):
        raise errors.make("sql.unsupported", statement="A table of rejected lines of a CSV file")
    known = _HANDLERS.get(word)
    if known is None:
        close = difflib.get_close_matches(word, _HANDLERS, n=1, cutoff=0.7)
        if close and word not in _REFUSED:
            raise errors.make("sql.word", word=tokens[0].text, close=close[0])
        raise errors.make("sql.unsupported", statement=word or "an empty statement")
    return known


def is_repeatable(context: Context, tokens: Sequence[Token]) -> bool:
    """Whether a statement is a change of its own that can run again: what it did is undone when it
    fails, and it reads nothing but its target. Files and data frames may be streams, which are
    used up.
    """
    verb, *words = (fold(t.text) for t in tokens if t.token_type != TokenType.STRING)
    if spoken().fails_whole and keyword(verb) in CHANGES:
        # All of it is one transaction, and there are neither files nor data frames.
        return not context.in_transaction
    own = _REPEATABLE.get(verb)
    if own is None or context.in_transaction or context.local.files.frames.known:
        return False
    if own in words:
        words.remove(own)
    macros = {fold(item.name) for item in context.catalog.objects if item.kind == "MACRO"}
    return not (_READING | macros).intersection(words)


def reworded(
    context: Context, text: lexer.Text, tokens: Sequence[Token]
) -> tuple[lexer.Text, Sequence[Token]]:
    """A statement without words that mean nothing here."""
    word = keyword(tokens[0].text) if tokens else ""
    if not spoken().has_own_statements or word not in _REWORDED:
        return text, tokens
    from louver.trusted.executor.postgres import language

    return language.reworded(context, text, tokens)


def permit(context: Context, text: lexer.Text, tokens: Sequence[Token]) -> None:
    """Before a statement runs: whether the session's user may run it."""
    if context.state.restricted:
        from louver.trusted.executor.postgres import rights

        rights.require(context, text, tokens)


def is_permitted(context: Context, text: lexer.Text) -> bool:
    """Whether it is known that the session's user may run a statement."""
    if not context.state.restricted:
        return True
    from louver.trusted.executor.postgres import rights

    return rights.is_permitted(context, text)


def admit(context: Context, text: lexer.Text, tokens: Sequence[Token]) -> None:
    """Before a statement runs: what its language forbids."""
    if spoken().has_own_statements:
        from louver.trusted.executor.postgres import language

        language.admit(context, text, tokens)


def deferring(context: Context, run: Callable[[], Done]) -> Done:
    """Run a statement; again where it breaks a key that its language checks later."""
    try:
        return run()
    except errors.IntegrityError as error:
        if not (spoken().has_own_statements and context.in_transaction):
            raise
        from louver.trusted.executor.postgres import deferrals

        return deferrals.again(context, error, run)


def seeing(
    context: Context, run: Callable[[], Done], handler: Handler | None = None, word: str = ""
) -> Done:
    """Run a statement of an open transaction on the state that it is to see; one that is known by
    its text has no ``handler``.
    """
    if not (context.in_transaction and (context.state.follows or context.state.follows_on)):
        return run()
    from louver.trusted.executor.postgres import language, snapshots

    reads = handler in (None, select, language.with_query)
    stays = handler is control or word in language.STAYING
    return snapshots.seeing(context, run, reads=reads, stays=stays)


def ran(context: Context, tokens: Sequence[Token], answer: Answer) -> None:
    """After a statement has run: what follows in its language."""
    if spoken().has_own_statements:
        from louver.trusted.executor.postgres import language

        language.ran(context, tokens, answer)


def unread(context: Context, text: lexer.Text, error: errors.Error) -> None:
    """Of a statement that cannot be cut into words: raises what its language says instead."""
    if spoken().has_own_statements:
        from louver.trusted.executor.postgres import language

        language.unread(context, text, error)


def failed(context: Context, error: errors.Error) -> None:
    """After a statement has failed, however early: what follows in its language."""
    if spoken().fails_whole:
        from louver.trusted.executor.postgres import language

        language.failed(context, error)
