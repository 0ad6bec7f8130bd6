"""Statements tried on the target in a transaction that is undone: in which order they run, and what
of them is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from louver import errors
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.postgres.declarations import Form
from louver.trusted.executor.local.postgres.plaintext import Item, Plaintext
from louver.trusted.planner.sql import lexer

_POINT = "louver_trial"


@dataclass(slots=True)
class Tried:
    """Statements in an order in which they run, and what does not: its name, and why."""

    ordered: list[Item] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)


def say(context: Context, sql: str) -> Answer:
    """Run a statement as a user's."""
    (text,) = lexer.split(sql)
    return context.run(text, [])


def run(
    context: Context, source: Plaintext, items: Sequence[Item], forms: Mapping[int, Form],
    *, leaves: bool, every: bool,
) -> Tried:  # fmt: skip
    """Try all of them, as often as something more runs; where ``leaves``, tables are then tried
    without some of their constraints and defaults.
    """
    with undone(context):
        return attempt(context, source, items, forms, leaves=leaves, every=every)


@contextmanager
def undone(context: Context, begin: str = "BEGIN") -> Iterator[None]:
    """A user's transaction that is undone at the end."""
    say(context, begin)
    try:
        yield
    finally:
        with suppress(errors.Error):
            say(context, "ROLLBACK")


def attempt(
    context: Context, source: Plaintext, items: Sequence[Item], forms: Mapping[int, Form],
    *, leaves: bool, every: bool,
) -> Tried:  # fmt: skip
    """The same within the open transaction, in which what runs stays."""
    tried = Tried()
    waiting = _passes(context, items, tried)
    if leaves:
        waiting = _reduced_all(context, source, waiting, forms, tried)
    for item, error in waiting.items():
        if item.kind == "COMMENT":
            continue  # of what is refused itself
        if not every and item.kind in ("VIEW", "FUNCTION", "TYPE", "SEQUENCE", "SCHEMA"):
            leaves_it = f"{item.label} (needs what was not chosen)"
            tried.refused += [(leaves_it, _why(error))] if leaves else []
            continue
        tried.refused.append((item.label, _why(error)))
        if leaves and item.kind == "TABLE":
            raise error
    return tried


def _passes(context: Context, items: Sequence[Item], tried: Tried) -> dict[Item, errors.Error]:
    """Run what can be run; the others with their errors."""
    waiting, failures = list(items), dict[Item, errors.Error]()
    while waiting:
        failures = {}
        for item in waiting:
            error = _error(context, item)
            if error is None:
                tried.ordered.append(item)
            else:
                failures[item] = error
        if len(failures) == len(waiting):
            break
        waiting = list(failures)
    return failures


def _error(context: Context, item: Item) -> errors.Error | None:
    """Run one statement, or say why not; a failure leaves no trace."""
    say(context, f"SAVEPOINT {_POINT}")
    try:
        say(context, item.sql)
    except errors.Error as error:
        say(context, f"ROLLBACK TO {_POINT}")
        if isinstance(error, errors.OperationalError):
            raise  # another client was faster, or the server is gone: nothing is refused
        return error
    finally:
        if context.in_transaction and not context.state.aborted:
            say(context, f"RELEASE {_POINT}")
    return None


def _reduced_all(
    context: Context, source: Plaintext, waiting: dict[Item, errors.Error],
    forms: Mapping[int, Form], tried: Tried,
) -> dict[Item, errors.Error]:  # fmt: skip
    """Tables without what is refused of them, then what waited for these."""
    for item in [item for item in waiting if item.kind == "TABLE"]:
        reduced, left = _reduced(context, source, item, forms[item.oid])
        if reduced is not None and _error(context, reduced) is None:
            tried.ordered.append(reduced)
            why = _why(waiting.pop(item))
            tried.refused += [(f"{kind} {item.name}.{name}", why) for kind, name in left]
    return _passes(context, list(waiting), tried)


def _reduced(
    context: Context, source: Plaintext, item: Item, form: Form
) -> tuple[Item | None, list[tuple[str, str]]]:
    """A table's statement with as many constraints and defaults as run, and what is left."""
    table = next(table for table in source.tables if table.oid == item.oid)
    left = source.pieces(table)

    def without(pieces: Sequence[tuple[str, str]]) -> Item:
        names = {kind: {n for k, n in pieces if k == kind} for kind in ("constraint", "default")}
        smaller = replace(
            form,
            constraints=form.constraints | names["constraint"],
            defaults=form.defaults | names["default"],
        )
        return replace(item, sql=source.table_text(table, smaller))

    def runs(candidate: Item) -> bool:
        say(context, f"SAVEPOINT {_POINT}_more")
        error = _error(context, candidate)
        say(context, f"ROLLBACK TO {_POINT}_more")
        say(context, f"RELEASE {_POINT}_more")
        return error is None

    if not runs(without(left)):
        return None, left
    for piece in list(left):
        fewer = [other for other in left if other != piece]
        if runs(without(fewer)):
            left = fewer
    return without(left), left


def _why(error: errors.Error) -> str:
    """The first line of an error."""
    return str(error).partition("\n")[0]
