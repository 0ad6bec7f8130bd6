"""Foreign keys that are DEFERRABLE, and SET CONSTRAINTS.

Every statement is checked as if none were deferred. One that breaks a key which is deferred at that
time runs again without it, and then all such keys are checked when the transaction commits, or when
SET CONSTRAINTS … IMMEDIATE is said. So a transaction that never breaks one costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from louver import errors
from louver.names import fold
from louver.trusted.executor import constraint_check, references, storage, transaction
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.local import ForeignKey
from louver.trusted.executor.postgres.words import Words, refuse
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Table

Done = TypeVar("Done")
BROKEN = "23503"


@dataclass(slots=True)
class Deferrals:
    """What SET CONSTRAINTS has said in the open transaction: of all keys, and later of some by
    their paths; and whether some may be broken.
    """

    every: bool | None = None
    named: dict[str, bool] = field(default_factory=dict)
    pending: bool = False

    def copied(self) -> Deferrals:
        """The same, to go back to."""
        return Deferrals(self.every, dict(self.named), self.pending)


def of(context: Context) -> Deferrals:
    """Those of the session."""
    return context.state.cache(Deferrals)


def restore(context: Context, before: Deferrals) -> None:
    """Go back with a savepoint; what was broken before stays to be checked."""
    own = of(context)
    own.every, own.named = before.every, dict(before.named)
    own.pending |= before.pending


def again(context: Context, error: errors.Error, run: Callable[[], Done]) -> Done:
    """Run a statement once more without the keys that are deferred, as it broke some key."""
    state = context.state
    deferred = frozenset(key.path for _, key in _keys(context) if _is_deferred(context, key))
    if not deferred or error.sqlstate != BROKEN or not context.in_transaction:
        raise error
    state.aborted = False
    try:
        _defer(context, deferred)
        done = run()
    finally:
        _defer(context, frozenset())
    _await(context)
    of(context).pending = True
    return done


def change(context: Context, text: lexer.Text, words: Words) -> None:
    """SET CONSTRAINTS ALL | name, … DEFERRED | IMMEDIATE; what is unknown is PostgreSQL's error."""
    with context.local.rehearsal() as connection:
        connection.execute(text.home)
    words.needs("CONSTRAINTS")
    names: list[tuple[str, str]] = []
    if not words.takes("ALL"):
        names.append(_named(words))
        while words.takes(","):
            names.append(_named(words))
    is_deferred = words.takes("DEFERRED")
    if not context.in_transaction:
        return
    if is_deferred and context.local.temporary.deferrable()[0]:
        refuse("SET CONSTRAINTS … DEFERRED beside TEMP tables with DEFERRABLE rules")
    own = of(context)
    chosen = {
        key.path
        for table, key in _keys(context)
        if not names or any(_is(table, key, *name) for name in names)
    }
    _await(context)
    if names:
        own.named |= dict.fromkeys(chosen, is_deferred)
    else:
        own.every, own.named = is_deferred, {}
    if not is_deferred:
        _require(context, chosen)
        own.pending &= bool(names)


def _named(words: Words) -> tuple[str, str]:
    name = words.name()
    return (name, words.name()) if words.takes(".") else ("", name)


def _is(table: Table, key: ForeignKey, schema: str, name: str) -> bool:
    return key.name == name and (not schema or fold(table.schema) == fold(schema))


def _keys(context: Context) -> Iterator[tuple[Table, ForeignKey]]:
    """All keys that may be deferred, with their tables."""
    for table in list(context.catalog.tables.values()):
        for key in constraint_check.rules(context, table).foreign:
            if key.is_deferrable:
                yield table, key


def _is_deferred(context: Context, key: ForeignKey) -> bool:
    own = of(context)
    default = key.is_deferred if own.every is None else own.every
    return own.named.get(key.path, default)


def _defer(context: Context, paths: frozenset[str]) -> None:
    """Leave some keys out of what is checked; plans that were made under others are forgotten."""
    context.state.deferred = paths
    context.local.forget_types()


def _await(context: Context) -> None:
    """Check what is pending at the end of the transaction."""
    state = context.state
    if not state.checks:
        state.checks.append(lambda: _require_or_undo(context))
        state.endings.append(lambda _: restore(context, Deferrals()))
        state.endings.append(lambda _: setattr(of(context), "pending", False))


def _require_or_undo(context: Context) -> None:
    try:
        _require(context)
    except BaseException:
        transaction.rollback(context)
        raise


def _require(context: Context, paths: set[str] | None = None) -> None:
    """Raise where a row refers to nothing."""
    if not of(context).pending:
        return
    tables = {
        table.id: table for table, key in _keys(context) if paths is None or key.path in paths
    }
    for table in tables.values():
        rows = storage.whole(context.storage, table)
        references.require_parents(context, table, rows, rows.slice(0, 0))
