"""BEGIN, COMMIT, ROLLBACK, savepoints and SET TRANSACTION, as PostgreSQL has them.

A statement without a transaction to end, or within one to begin, is a warning. `snapshots` says
what READ COMMITTED means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot.tokens import Token

from louver import errors
from louver.names import keyword
from louver.trusted.executor import savepoints, transaction
from louver.trusted.executor.answer import Answer, Notice
from louver.trusted.executor.context import Context
from louver.trusted.executor.postgres import cursors, deferrals, given, notify
from louver.trusted.executor.postgres.messages import said
from louver.trusted.executor.postgres.words import Words, refuse
from louver.trusted.planner.sql import lexer

_LEVELS = (
    ("SERIALIZABLE",), ("REPEATABLE", "READ"), ("READ", "COMMITTED"), ("READ", "UNCOMMITTED"),
)  # fmt: skip
_FOLLOWING = ("READ COMMITTED", "READ UNCOMMITTED")


@dataclass(frozen=True, slots=True)
class Modes:
    """What a transaction is asked to be; None where nothing is said."""

    level: str | None = None
    read_only: bool | None = None
    #: shown, and nothing else: a snapshot that no other transaction can fail is not waited for
    deferrable: bool | None = None

    def over(self, default: Modes) -> Modes:
        """These, and where nothing is said, others."""
        return Modes(
            default.level if self.level is None else self.level,
            default.read_only if self.read_only is None else self.read_only,
            default.deferrable if self.deferrable is None else self.deferrable,
        )


@dataclass(slots=True)
class Characteristics:
    """What transactions of the session are, where BEGIN does not say it, and the open one."""

    default: Modes = Modes("READ COMMITTED", read_only=False)
    open: Modes = Modes()
    #: what the default is once the open transaction is committed
    after: Modes = Modes("READ COMMITTED", read_only=False)
    #: what RESET goes back to
    startup: Modes = Modes("READ COMMITTED", read_only=False)


def control(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """Run one of these statements."""
    words = Words(context, text, tokens)
    verb = keyword(tokens[0].text)
    if verb in ("BEGIN", "START"):
        if verb == "START":
            words.needs("TRANSACTION")
        else:
            _ = words.takes("WORK") or words.takes("TRANSACTION")
        within = context.in_transaction
        begin(context, modes(words))
        if within:
            return _warned("25001", "there is already a transaction in progress")
    elif verb in ("COMMIT", "END"):
        return _end(context, words, committing=True)
    elif verb in ("ROLLBACK", "ABORT"):
        return _end(context, words, committing=False)
    elif verb == "SAVEPOINT":
        name = words.name()
        words.ends()
        _require_usable(context, "SAVEPOINT")
        transaction.fix(context)
        modes_now = context.state.cache(Characteristics).open
        savepoints.add(
            context,
            name,
            {
                given.Given: given.copied(context),
                Characteristics: modes_now,
                deferrals.Deferrals: deferrals.of(context).copied(),
            },
        )
    else:
        words.takes("SAVEPOINT")
        name = words.name()
        words.ends()
        _require_usable(context, "RELEASE SAVEPOINT")
        position = _position(context, name)
        before = context.state.savepoints[position].states[Characteristics]
        savepoints.release(context, position)
        _again(context, before)
        cursors.released(context, position)
        notify.released(context, position)
    return Answer()


def modes(words: Words) -> Modes:
    """Read transaction modes to the end of a statement."""
    modes = Modes()
    while not words.done:
        words.takes(",")
        if words.takes("ISOLATION", "LEVEL"):
            level = next((other for other in _LEVELS if words.takes(*other)), None)
            if level is None:
                words.wrong()
            modes = replace(modes, level=" ".join(level))
        elif words.takes("READ", "ONLY"):
            modes = replace(modes, read_only=True)
        elif words.takes("READ", "WRITE"):
            modes = replace(modes, read_only=False)
        elif words.takes("NOT", "DEFERRABLE"):
            modes = replace(modes, deferrable=False)
        elif words.takes("DEFERRABLE"):
            modes = replace(modes, deferrable=True)
        else:
            words.wrong()
    return modes


def set_modes(context: Context, modes: Modes) -> None:
    """SET TRANSACTION. That a transaction is SERIALIZABLE it says to the server when it begins, so
    that one in which nothing ran yet begins anew.
    """
    if not context.in_transaction:
        return
    _require_usable(context, "SET TRANSACTION")
    own, state = context.state.cache(Characteristics), context.state
    before, wanted = own.open, modes.over(own.open)
    relaxes = bool(before.read_only) and not wanted.read_only
    tried = not state.untried or bool(state.savepoints)
    if tried and (wanted.level != before.level or relaxes):
        what = "read-write mode" if relaxes else "ISOLATION LEVEL"
        raise said("25001", f"SET TRANSACTION {what} must be called before any query")
    if tried and modes.deferrable is not None:
        when = "cannot be called within a subtransaction"
        when = when if state.savepoints else "must be called before any query"
        raise said("25001", f"SET TRANSACTION [NOT] DEFERRABLE {when}")
    if not tried and (wanted.level == "SERIALIZABLE") != state.serializable:
        transaction.rollback(context)
        begin(context, wanted)
        return
    own.open, state.read_only = wanted, bool(wanted.read_only)
    state.follows_on = wanted.level in _FOLLOWING


def set_default(context: Context, modes: Modes, *, local: bool = False) -> None:
    """What transactions are from now on, where BEGIN does not say it; or only up to the end of the
    one that is open.
    """
    if modes.level == "SERIALIZABLE":
        # Statements outside of a transaction would have to be such transactions too.
        refuse("SERIALIZABLE as the default of a session")
    own = context.state.cache(Characteristics)
    if not local:
        own.after = modes.over(own.after)
    if not local or context.in_transaction:
        _apply_default(context, modes.over(own.default))


def take_default(context: Context, modes: Modes) -> None:
    """The same of modes that are all said; statements outside of transactions have them too."""
    context.state.cache(Characteristics).after = modes
    _apply_default(context, modes)


def _apply_default(context: Context, modes: Modes) -> None:
    context.state.cache(Characteristics).default = modes
    context.state.only_reads = bool(modes.read_only)


def reset_default(context: Context, field: str | None = None) -> None:
    """What transactions are, or one field of that, becomes what the session began with."""
    own = context.state.cache(Characteristics)
    if field is None:
        take_default(context, own.startup)
        return
    before: dict[str, Any] = {field: getattr(own.startup, field)}
    own.after = replace(own.after, **before)
    _apply_default(context, replace(own.default, **before))


def start(context: Context, modes: Modes) -> None:
    """What transactions are from the begin of the session on."""
    context.state.cache(Characteristics).startup = modes
    take_default(context, modes)


def _again(context: Context, modes: Modes) -> None:
    """What was said of the transaction since a savepoint ends with it."""
    context.state.cache(Characteristics).open = modes
    context.state.read_only = bool(modes.read_only)


def begin(context: Context, modes: Modes) -> None:
    """BEGIN with these modes."""
    if context.in_transaction:
        _require_usable(context, "BEGIN")
        if modes != Modes():
            set_modes(context, modes)
        return
    own = context.state.cache(Characteristics)
    wanted = modes.over(own.default)
    transaction.begin(
        context,
        read_only=bool(wanted.read_only),
        serializable=wanted.level == "SERIALIZABLE",
        follows=True,
    )
    own.open, context.state.untried = wanted, True
    context.state.follows_on = wanted.level in _FOLLOWING
    given.began(context)
    cursors.began(context)
    before = own.after = own.default

    def end(committed: bool) -> None:
        take_default(context, own.after if committed else before)

    context.state.endings.append(end)


def _end(context: Context, words: Words, *, committing: bool) -> Answer:
    _ = words.takes("WORK") or words.takes("TRANSACTION")
    if not committing and words.takes("TO"):
        words.takes("SAVEPOINT")
        name = words.name()
        words.ends()
        _undo_to(context, name)
        return Answer()
    chains = words.takes("AND", "CHAIN")
    if not chains:
        words.takes("AND", "NO", "CHAIN")
    if words.peek() in ("PREPARED", "TRANSACTION"):
        refuse("A transaction in two phases")
    words.ends()
    if not context.in_transaction:
        if chains:
            verb = "COMMIT" if committing else "ROLLBACK"
            raise said("25P01", f"{verb} AND CHAIN can only be used in transaction blocks")
        return _warned("25P01", "there is no transaction in progress")
    before = context.state.cache(Characteristics).open
    if committing:
        transaction.commit(context)
    else:
        transaction.rollback(context)
    if chains:
        begin(context, before)
    return Answer()


def _warned(sqlstate: str, message: str) -> Answer:
    return Answer(notices=[Notice.of(sqlstate, message, "WARNING")])


def outside(context: Context, statement: str) -> Answer:
    """The answer to a statement that means nothing outside of a transaction."""
    if context.in_transaction:
        return Answer()
    return _warned("25P01", f"{statement} can only be used in transaction blocks")


def _undo_to(context: Context, name: str) -> None:
    if not context.in_transaction:
        raise said("25P01", "ROLLBACK TO SAVEPOINT can only be used in transaction blocks")
    point = savepoints.undo_to(context, _position(context, name))
    given.restore(context, point.states[given.Given])
    deferrals.restore(context, point.states[deferrals.Deferrals])
    _again(context, point.states[Characteristics])
    cursors.undone_to(context, len(context.state.savepoints))
    notify.undone_to(context, len(context.state.savepoints))


def _position(context: Context, name: str) -> int:
    known = [point.name for point in context.state.savepoints]
    if name not in known:
        raise said("3B001", f'savepoint "{name}" does not exist')
    return len(known) - 1 - known[::-1].index(name)


def _require_usable(context: Context, statement: str) -> None:
    if context.state.aborted:
        raise errors.make("transaction.aborted")
    if not context.in_transaction:
        raise said("25P01", f"{statement} can only be used in transaction blocks")
