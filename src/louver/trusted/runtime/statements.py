"""Which handler runs which statement. What is not listed is refused, never passed through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sqlglot.tokens import Token

from louver import errors
from louver.names import fold, keyword
from louver.trusted.planner import lexer
from louver.trusted.runtime import (
    attaching,
    ddl,
    exporting,
    importing,
    maintenance,
    modify,
    prepared,
    queries,
    show,
    temporary,
)
from louver.trusted.runtime.answer import Answer
from louver.trusted.runtime.home import translated

if TYPE_CHECKING:
    from louver.trusted.runtime.session import Session

Handler = Callable[["Session", lexer.Text, Sequence[Token], list[object]], Answer]
select = queries.select


def transaction(
    session: Session, text: lexer.Text, found: Sequence[Token], parameters: list[object]
) -> Answer:
    """BEGIN, COMMIT, ROLLBACK and their other spellings."""
    words = [keyword(token.text) for token in found]
    read_only = words[-2:] == ["READ", "ONLY"]
    modes = words[:-2] if read_only or words[-2:] == ["READ", "WRITE"] else words
    if modes[1:] not in ([], ["TRANSACTION"], ["WORK"]) or (modes != words and not _begins(words)):
        with translated():
            session.home.schema.extract_statements(text.home)
        raise errors.make("sql.unsupported", statement=" ".join(words))
    if _begins(words):
        session.begin(read_only=read_only)
    elif words[0] in ("COMMIT", "END"):
        session.commit()
    else:
        session.rollback()
    return Answer()


def _begins(words: Sequence[str]) -> bool:
    return words[0] in ("BEGIN", "START")


_HANDLERS: dict[str, Handler] = {
    "SELECT": queries.select,
    "WITH": queries.select_or_modify,
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
    "CREATE": ddl.create,
    "ALTER": ddl.alter,
    "DROP": ddl.drop,
    "COMMENT": ddl.comment,
    "INSERT": modify.insert,
    "UPDATE": modify.change,
    "DELETE": modify.change,
    "MERGE": modify.change,
    "TRUNCATE": modify.truncate,
    "COPY": modify.copy,
    "BEGIN": transaction,
    "START": transaction,
    "COMMIT": transaction,
    "END": transaction,
    "ROLLBACK": transaction,
    "ABORT": transaction,
    "PREPARE": prepared.prepare,
    "EXECUTE": prepared.execute,
    "DEALLOCATE": prepared.deallocate,
    "CHECKPOINT": maintenance.checkpoint,
    "FORCE": maintenance.checkpoint,
    "VACUUM": maintenance.vacuum,
    "ANALYZE": maintenance.vacuum,
    "CALL": maintenance.call,
    "USE": maintenance.use,
    "EXPORT": exporting.export_database,
    "IMPORT": importing.import_database,
    "ATTACH": attaching.attach_statement,
    "DETACH": attaching.detach_statement,
}


#: Options of readers of CSV that make tables in the DuckDB that reads; at home they would go at
#: once.
_REJECTS = {"store_rejects", "rejects_table", "rejects_scan", "rejects_limit"}


def handler(found: Sequence[Token], session: Session | None = None) -> Handler:
    """The handler of a statement, by its first word, and by whether it changes a TEMP table."""
    if session is not None and temporary.is_target(session, found):
        return temporary.change
    word = keyword(found[0].text) if found else ""
    words = {fold(token.text) for token in found}
    if words & _REJECTS and (word == "COPY" or words & {"read_csv", "read_csv_auto"}):
        raise errors.make("sql.unsupported", statement="A table of rejected lines of a CSV file")
    known = _HANDLERS.get(word)
    if known is None:
        raise errors.make("sql.unsupported", statement=word or "an empty statement")
    return known
