"""DROP and COMMENT ON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot.tokens import Token

from louver.trusted.executor import constraint_check, settings
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.define import comments, head, objects, temporary_objects
from louver.trusted.planner.sql import lexer

if TYPE_CHECKING:
    from louver.trusted.executor.session import Session


def drop(
    session: Session, text: lexer.Text, found: Sequence[Token], parameters: list[object]
) -> Answer:
    """Run a DROP statement: at home, then on the server, then in the hall."""
    start = head.read(found)
    try:
        return _drop(session, text, start)
    finally:
        if start.kind == "SCHEMA":
            # DuckDB takes a schema that goes out of the search path.
            settings.change_path(session)


def _drop(session: Session, text: lexer.Text, start: head.Head) -> Answer:
    macros = start.kind in ("MACRO", "SCHEMA")
    local = objects.has_temporary(session)
    if start.conditional or local:
        removed = _removed(session, text.home, macros=macros)
        if start.conditional and not removed:
            return Answer()
        local = local and temporary_objects.are(removed)
    with temporary_objects.changing(session, local) as catalog:
        change = objects.run(session, text.home, macros=macros)
        objects.forget(session, catalog, change.removed)
        objects.refresh(session, catalog, change.altered)
        comments.keep(session, catalog)
    return Answer()


def _removed(session: Session, sql: str, *, macros: bool) -> list[objects.Key]:
    """What a statement removes. DuckDB says so, for it knows what a name means: that of a schema,
    with the database's name before it, or of another kind, which is an error.
    """
    with constraint_check.rehearsal(session):
        return objects.run(session, sql, macros=macros).removed


def comment(
    session: Session, text: lexer.Text, found: Sequence[Token], parameters: list[object]
) -> Answer:
    """Run COMMENT ON: comments stay at home, for they may speak of the data."""
    temporary_objects.refuse_comment(session, text)
    with session.writing(schema_changed=True) as catalog:
        objects.run(session, text.home)
        comments.keep(session, catalog, anew=True)
    return Answer()
