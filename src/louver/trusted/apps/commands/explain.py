"""Show the plan of a statement and what a query would newly reveal, without running it.

Nothing is run, sent or recorded. Lines that begin with + are facts that the server would learn;
lines that begin with = are facts that it knows already. A private question to providers needs no
values for its placeholders.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from louver import errors
from louver.trusted.apps import terminal
from louver.trusted.apps.cli_connection import database, opened
from louver.trusted.client.inside import session_of

if TYPE_CHECKING:
    from louver.trusted.client.dbapi import Connection


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("text", metavar="SQL", help="a query, or another statement")
    parser.add_argument(
        "--format",
        choices=("text", "json", "mermaid"),
        default="text",
        help="how to print the plan (default: text)",
    )
    parser.add_argument("--no-leakage", action="store_true", help="print only the plan")


def run(options: argparse.Namespace) -> int:
    """Do it."""
    import json

    with opened(options, providers=True) as connection:
        form = "json" if options.json else options.format
        leakage = not options.no_leakage
        text = explained(connection, options.text, _values(options), leakage=leakage, form=form)
    if options.json:
        terminal.out_json({"ok": True, **json.loads(text)})
    else:
        terminal.out(text)
    return 0


def explained(
    connection: Connection,
    text: str,
    values: dict[str, object] | None = None,
    *,
    leakage: bool = True,
    form: str = "text",
) -> str:
    """The plan as text; leakage is estimated for queries only, not for changes."""
    from louver.trusted.executor.parameters import split
    from louver.trusted.executor.show import is_query
    from louver.trusted.planner.sql import lexer

    texts = split(text, values)
    if len(texts) != 1:
        raise errors.make("sql.syntax", detail="explain takes one statement")
    session = session_of(connection)
    leakage = leakage and is_query(lexer.tokens(texts[0].plain))
    bound = session.bound(texts[0], values)
    return str(session.explained(texts[0], bound, leakage=leakage, form=form))


def _values(options: argparse.Namespace) -> dict[str, object] | None:
    """Dummy values for the placeholders of a private question; its plan depends on none."""
    from louver.trusted.client.connect import is_providers
    from louver.trusted.planner.sql import lexer

    if not is_providers(database(options)):
        return None
    keys = (key for text in lexer.split(options.text) for key in text.parameters)
    return dict.fromkeys(map(str, keys)) or None
