"""Run the statements of a text and print their answers."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from louver.trusted.apps import formats, terminal

if TYPE_CHECKING:
    from louver.trusted.client.dbapi import Connection
    from louver.trusted.client.relation import Relation


def statements(text: str) -> list[str]:
    """The statements of a text, as written."""
    from louver.trusted.planner.sql import lexer

    return [part.home for part in lexer.split(text)]


def shown(
    connection: Connection, statement: str, options: argparse.Namespace
) -> tuple[Relation, dict[str, float]]:
    """Run one statement and print its answer. Returns the relation and the times of its steps."""
    # Imported here: `louver --help` needs no relation.
    from louver.trusted.client.relation import answer_of

    start = time.perf_counter()
    relation = connection.sql(statement).execute()
    answer = answer_of(relation)
    spent = (time.perf_counter() - start) * 1000
    columns = list(zip(relation.columns, relation.types, strict=True))
    if options.json:
        body: dict[str, object] = {"ok": True}
        if answer.rows is not None:
            body["columns"] = [{"name": name, "type": type_} for name, type_ in columns]
            body["rows"] = terminal.rows_json(relation.fetchall())
        else:
            body["affected"] = max(answer.affected, 0)
        if answer.notices:
            body["notices"] = answer.notices
        terminal.out_json(body)
    elif answer.rows is None:
        if answer.affected >= 0:
            terminal.say(f"{answer.affected:,} row{'' if answer.affected == 1 else 's'}")
    elif options.form == "csv":
        formats.write_csv(relation)
    elif options.form:
        formats.write(options.form, columns, relation.texts())
    elif relation.columns[:1] == ["explain_key"]:
        for _, value in relation.fetchall():
            terminal.out(value)
    else:
        relation.show(max_rows=options.rows or max(1, len(relation)))
    for notice in () if options.json else answer.notices:
        terminal.note(notice)
    return relation, {**answer.times_ms, "all": spent}
