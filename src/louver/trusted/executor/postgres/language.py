"""Which handler runs which statement in PostgreSQL's language. What is not listed is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor import change as modify
from louver.trusted.executor import define, maintenance
from louver.trusted.executor import select as queries
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import temporary_endings
from louver.trusted.executor.postgres import (
    admitted,
    cursors,
    deferrals,
    dropping,
    explain,
    given,
    lock_clause,
    messages,
    noticing,
    notify,
    prepared,
    server_calls,
    setting,
    several,
    table_locks,
    temporary_draws,
    truncating,
    vacuuming,
)
from louver.trusted.executor.postgres.messages import said
from louver.trusted.executor.postgres.words import Words, refuse
from louver.trusted.executor.settings import change_path
from louver.trusted.planner.sql import lexer

Handler = Callable[["Context", lexer.Text, Sequence[Token], list[object]], Answer]
_CHANGED_WHOLE = ("ALTER", "DROP", "TRUNCATE")
_DEFINITIONS = frozenset(("CREATE", "ALTER", "DROP"))
#: Statements that may be of temporary tables, which other handlers change.
CHANGING = _DEFINITIONS | {"INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "TRUNCATE", "COMMENT"}
_TRANSACTIONS = frozenset((
    "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE",
))  # fmt: skip
_LOCKING = ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "MERGE")
#: Statements that read nothing by themselves; those within them are looked at.
STAYING = frozenset((
    "SET", "RESET", "SHOW", "PREPARE", "EXECUTE", "DEALLOCATE", "DECLARE", "FETCH", "MOVE", "CLOSE",
))  # fmt: skip
#: What is below is PostgreSQL's own.
_IS_SYSTEMS = "SELECT pg_catalog.to_regclass($1)::oid < 16384"
_IS_SCHEMA = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1"
#: Statements that PostgreSQL knows, and why they are not run.
_REFUSED = {
    "COPY": "COPY by itself (use Cursor.copy for STDIN and STDOUT; files are the server's)",
    "CLUSTER": "CLUSTER",
    "GRANT": "GRANT",
    "REVOKE": "REVOKE",
    "DO": "DO",
    "CALL": "CALL",
    "REFRESH": "REFRESH",
    "REASSIGN": "REASSIGN",
    "SECURITY": "SECURITY LABEL",
    "IMPORT": "IMPORT FOREIGN SCHEMA",
    "LOAD": "LOAD",
}


def handler(tokens: Sequence[Token], control: Handler) -> Handler:
    """The handler of a statement by its first word; ``control`` runs what begins and ends
    transactions.
    """
    word = keyword(tokens[0].text) if tokens else ""
    if word == "SELECT" and server_calls.is_call(tokens):
        return server_calls.call
    if word == "SELECT" and _sets(tokens):
        from louver.trusted.executor.postgres import setting_calls

        return setting_calls.call
    if word == "SELECT" and lock_clause.locks(tokens):
        from louver.trusted.executor.postgres import row_locks

        return row_locks.select
    if word in _LOCKING and lock_clause.within(tokens):
        from louver.trusted.executor.postgres import locking_queries

        return locking_queries.run
    return control if word in _TRANSACTIONS else _HANDLERS.get(word, _unknown)


def _sets(tokens: Sequence[Token]) -> bool:
    """Whether a query is one that changes settings (`setting_calls`)."""
    if not any(fold(token.text) == "set_config" for token in tokens):
        return False
    from louver.trusted.executor.postgres import setting_calls

    return setting_calls.is_call(tokens)


def is_known(tokens: Sequence[Token]) -> bool:
    """Whether a statement begins with a word that some handler is for."""
    word = keyword(tokens[0].text) if tokens else ""
    return word in _TRANSACTIONS or word in _HANDLERS


def reworded(
    context: Context, text: lexer.Text, tokens: Sequence[Token]
) -> tuple[lexer.Text, Sequence[Token]]:
    """CREATE and DROP INDEX without CONCURRENTLY: no client waits for a local index. And CREATE
    TABLE … AS EXECUTE with the query that it means, SELECT INTO as CREATE TABLE AS, and a query of
    what is of this session alone with that.
    """
    words = [keyword(token.text) for token in tokens[:4]]
    if words[:1] == ["SELECT"]:
        return _selecting(context, text, tokens)
    if words[:1] == ["CREATE"] and "TABLE" in words:
        return _executing(context, text, tokens)
    if "INDEX" not in words or words[-1:] == ["INDEX"]:
        return text, tokens
    at = words.index("INDEX") + 1
    if words[at] != "CONCURRENTLY" or tokens[at].token_type == TokenType.IDENTIFIER:
        return text, tokens
    statement = f"{words[0]} INDEX CONCURRENTLY"
    if context.in_transaction and not context.state.aborted:
        raise said("25001", f"{statement} cannot run inside a transaction block")
    if words[0] == "DROP" and any(token.token_type == TokenType.COMMA for token in tokens):
        raise said("0A000", f"{statement} does not support dropping multiple objects")
    start, end = tokens[at].start, tokens[at].end + 1
    # No placeholder precedes the word, so both texts are alike up to there.
    blank = " " * (end - start)
    home, plain = (sql[:start] + blank + sql[end:] for sql in (text.home, text.plain))
    context.state.cache(several.Concurrently).text = plain
    text = lexer.Text(home, plain, text.parameters)
    return text, lexer.tokens(text.plain)


def _selecting(
    context: Context, text: lexer.Text, tokens: Sequence[Token]
) -> tuple[lexer.Text, Sequence[Token]]:
    from louver.trusted.executor.postgres import catalog_word, select_into, session_views, sizes

    before = text
    if catalog_word.is_named(text.home):
        text = catalog_word.written_out(text, tokens)
    elif select_into.may_be(text.home):
        text = select_into.written_out(text, tokens)
    elif session_views.are_named(text.home):
        text = session_views.written_out(context, text, tokens)
    elif sizes.are_named(text.home):
        text = sizes.written_out(context, text, tokens)
    return text, tokens if text is before else lexer.tokens(text.plain)


def _executing(
    context: Context, text: lexer.Text, tokens: Sequence[Token]
) -> tuple[lexer.Text, Sequence[Token]]:
    depth = 0
    for position, token in enumerate(tokens[:-2]):
        depth += (token.text == "(") - (token.text == ")")
        following = tokens[position + 1]
        if depth or token.token_type != TokenType.ALIAS or keyword(following.text) != "EXECUTE":
            continue
        # What follows such a word may be one token to the lexer.
        behind = text.home[following.start :]
        words = Words(context, lexer.Text(behind, behind, ()), lexer.tokens(behind))
        query = "" if text.parameters else prepared.query_of(context, words)
        ending = words.rest()
        # Without data PostgreSQL counts rows here, as it does not of a query that is written out.
        if not query or keyword(" ".join(ending.split())) not in ("", "WITH DATA"):
            break
        sql = f"{text.home[: following.start]}{query}\n{ending}".rstrip()
        text = lexer.Text(sql, sql, ())
        return text, lexer.tokens(sql)
    return text, tokens


def admit(context: Context, text: lexer.Text, tokens: Sequence[Token]) -> None:
    """Before a statement runs: refuse what would act on the private PostgreSQL alone."""
    word = keyword(tokens[0].text) if tokens else ""
    if word in _CHANGED_WHOLE and deferrals.of(context).pending:
        # PostgreSQL asks this of the tables with such rows only.
        words = " ".join(keyword(token.text) for token in tokens[:2])
        refuse(
            f"{words} while rows of a deferred key are to be checked (SET CONSTRAINTS ALL"
            " IMMEDIATE checks them)"
        )
    if word in _DEFINITIONS:
        _require_query_within(context, text, tokens)
        noticing.note(context, text, tokens)
    if word not in STAYING | _TRANSACTIONS and context.has_temporary:
        temporary_draws.require(context, tokens)
    if not (server_calls.is_call(tokens) or _sets(tokens)):
        admitted.require(context, text, tokens, locking=True, running=True)


def ran(context: Context, tokens: Sequence[Token], answer: Answer) -> None:
    """After a statement has run: the search path may name a schema that is there now."""
    words = [keyword(token.text) for token in tokens[:4]]
    if words[0] in _DEFINITIONS:
        remarks = context.state.cache(noticing.Remarks)
        answer.notices, remarks.notices = [*remarks.notices, *answer.notices], []
    if words[0] not in _TRANSACTIONS | {"SET", "SHOW", "RESET"}:
        context.state.untried = False
    if words[0] in CHANGING and context.has_temporary:
        temporary_endings.ran(context)
    if words[0] in _DEFINITIONS and "SCHEMA" in words and given.PATH in given.of(context).effective:
        change_path(context)


def unread(context: Context, text: lexer.Text, error: errors.Error) -> None:
    """Of a statement that Louver cannot cut into words: raises what PostgreSQL says."""
    try:
        if error.code == "sql.syntax" and not context.state.aborted:
            context.local.statements.bind(text.home)
    except errors.Error as own:
        failed(context, own)
        raise own from None
    failed(context, error)


def failed(context: Context, error: errors.Error) -> None:
    """Any error ends a transaction, and bears an SQLSTATE."""
    messages.name_state(error)
    context.state.aborted, context.state.untried = context.in_transaction, False


def _require_query_within(context: Context, text: lexer.Text, tokens: Sequence[Token]) -> None:
    """The query of CREATE TABLE … AS is held to the same as one by itself."""
    words = [keyword(token.text) for token in tokens]
    if words[0] != "CREATE" or "TABLE" not in words[:5] or "SCHEMA" in words[:2]:
        return
    depth = 0
    for position, token in enumerate(tokens[:-1]):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and words[position] == "AS":
            end = tokens[-1].end + 1
            if words[-1] == "DATA":
                end = tokens[-3 if words[-2] == "NO" else -2].start
            following = words[position + 1]
            if following == "EXECUTE":
                refuse("CREATE TABLE AS EXECUTE")
            if text.parameters:
                refuse("CREATE TABLE AS with placeholders")
            admitted.require_query(context, text.home[tokens[position + 1].start : end])
            return


def _reindex(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """REINDEX of a table or an index: what it names must exist, and nothing is left to do."""
    words = Words(context, text, tokens)
    options = words.brackets()
    kind = words.peek()
    if kind not in ("TABLE", "INDEX", "SCHEMA"):
        context.local.statements.require_syntax(text.home)
        refuse("REINDEX of a database")
    words.token()
    concurrently = words.takes("CONCURRENTLY")
    if concurrently and context.in_transaction:
        raise said("25001", "REINDEX CONCURRENTLY cannot run inside a transaction block")
    if kind == "SCHEMA":
        if not {"VERBOSE", "CONCURRENTLY"}.issuperset(map(keyword, options)):
            refuse("REINDEX SCHEMA with this option")
        return _reindexed(context, words)
    name = words.rest()
    with context.local.rehearsal() as connection:
        if not concurrently or connection.fetchone(_IS_SYSTEMS, [name]) != (True,):
            connection.execute(f"REINDEX {kind} {name}")
            return Answer()
    raise said("0A000", "cannot reindex system catalogs concurrently")


def _reindexed(context: Context, words: Words) -> Answer:
    """REINDEX SCHEMA, which PostgreSQL does in transactions of its own."""
    name = words.name()
    words.ends()
    if context.in_transaction:
        raise said("25001", "REINDEX SCHEMA cannot run inside a transaction block")
    with context.local.rehearsal() as connection:
        if connection.fetchone(_IS_SCHEMA, [name]) is None:
            raise said("3F000", f'schema "{name}" does not exist')
    return Answer()


def _unknown(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """PostgreSQL's own error for what it cannot read; what it can is refused."""
    context.local.statements.require_syntax(text.home)
    word = keyword(tokens[0].text) if tokens else ""
    refuse(_REFUSED.get(word, word or "An empty statement"))


def with_query(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """WITH … may go on as a query or as a change."""
    word = queries.changes(tokens)
    if not word:
        return queries.select(context, text, tokens, parameters)
    run = modify.insert if word == "INSERT" else modify.change
    return run(context, text, tokens, parameters)


_HANDLERS: dict[str, Handler] = {
    "SELECT": queries.select,
    "WITH": with_query,
    "VALUES": queries.select,
    "TABLE": queries.select,
    "(": queries.select,
    "EXPLAIN": explain.explain,
    "SHOW": setting.show,
    "SET": setting.change,
    "RESET": setting.change,
    "DISCARD": setting.discard,
    "CREATE": several.create,
    "ALTER": several.alter,
    "DROP": dropping.drop,
    "COMMENT": define.comment,
    "INSERT": modify.insert,
    "UPDATE": modify.change,
    "DELETE": modify.change,
    "MERGE": modify.change,
    "TRUNCATE": truncating.truncate,
    "LOCK": table_locks.lock,
    "PREPARE": prepared.prepare,
    "EXECUTE": prepared.execute,
    "DEALLOCATE": prepared.deallocate,
    "DECLARE": cursors.declare,
    "FETCH": cursors.fetch,
    "MOVE": cursors.fetch,
    "CLOSE": cursors.close,
    "LISTEN": notify.listen,
    "UNLISTEN": notify.unlisten,
    "NOTIFY": notify.notify,
    "CHECKPOINT": maintenance.checkpoint,
    "VACUUM": vacuuming.vacuum,
    "ANALYZE": vacuuming.vacuum,
    "REINDEX": _reindex,
}
