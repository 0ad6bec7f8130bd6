"""DECLARE, FETCH, MOVE and CLOSE: cursors over answers that are complete when they are declared.

So a cursor moves either way, and sees what its query saw. One that is not declared WITH HOLD ends
with its transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa
from sqlglot.tokens import Token

from louver import errors
from louver.names import keyword
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.postgres import admitted, lock_clause
from louver.trusted.executor.postgres.messages import said
from louver.trusted.executor.postgres.session_views import Listings, is_scrollable
from louver.trusted.executor.postgres.words import Words, refuse
from louver.trusted.executor.row_writer import Removed
from louver.trusted.planner.sql import lexer

_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE", "(")
_ALL = 1 << 62


@dataclass(slots=True)
class Cursor:
    """Rows, and where it stands: on row ``at`` from 1 on, before the first, or behind the last."""

    rows: pa.Table
    columns: list[tuple[str, str]]
    hold: bool
    forward_only: bool
    #: how many savepoints there were; None of one whose transaction was committed
    depth: int | None
    at: int = 0
    #: whether a FETCH of it has failed, after which PostgreSQL runs it no more
    failed: bool = False
    #: what its query raises
    failure: errors.Error | None = None
    #: of one that locks rows: see `Answer.alive`
    alive: Callable[[int], list[int]] | None = None
    #: what pg_cursors says: the statement, when it ran, its options, whether it can go back
    statement: str = ""
    declared: str = ""
    options: frozenset[str] = frozenset()
    scrolls: bool | None = None

    def move(self, direction: str, count: int) -> pa.Table:
        """Move, and what was passed: FETCH gives it, MOVE counts it."""
        size = self.rows.num_rows
        if self.forward_only:
            self._require_forward(direction, count)
        if direction == "ABSOLUTE":
            target = count if count >= 0 else size + 1 + count
            return self._to(max(0, min(target, size + 1)))
        if direction == "RELATIVE":
            return self._to(max(0, min(self.at + count, size + 1)))
        if direction == "BACKWARD":
            count = -count
        if count == 0:
            return self.rows.slice(self.at - 1, 1) if 0 < self.at <= size else self.rows.slice(0, 0)
        if count > 0:
            first = self.at
            self.at = min(self.at + count, size + 1)
            return self.rows.slice(first, min(count, max(size - first, 0)))
        last = self.at - 1
        self.at = max(self.at + count, 0)
        first = max(self.at, 1)
        passed = list(range(last, first - 1, -1))
        return self.rows.take(pa.array([row - 1 for row in passed], pa.int64()))

    def move_over(self, direction: str, count: int, numbers: Sequence[int]) -> pa.Table:
        """The same of one that locks rows: those ahead that are not among the ``numbers`` are left
        out, since the cursor's own transaction has changed them.
        """
        size = self.rows.num_rows
        if len(numbers) == max(size - self.at, 0):
            return self.move(direction, count)
        self._require_forward(direction, count)
        if direction != "FORWARD" or count < 1:
            refuse("FETCH ABSOLUTE and RELATIVE of a cursor whose rows have changed")
        chosen = numbers[:count]
        self.at = chosen[-1] + 1 if len(chosen) == count else size + 1
        return self.rows.take(pa.array(chosen, pa.int64()))

    def _require_forward(self, direction: str, count: int) -> None:
        """Raise where PostgreSQL would go back: to read the row again that it is on, too."""
        within = 0 < self.at <= self.rows.num_rows
        if direction == "ABSOLUTE":
            goes_back = count < 0 or (self.at > 0 and count <= self.at)
        elif direction == "BACKWARD":
            goes_back = count > 0 or (count == 0 and within)
        else:
            goes_back = count < 0 or (count == 0 and within)
        if goes_back:
            self.failed = True
            hint = "Declare it with SCROLL option to enable backward scan."
            raise said("55000", "cursor can only scan forward", hint)

    def _to(self, target: int) -> pa.Table:
        self.at = target
        within = 0 < target <= self.rows.num_rows
        return self.rows.slice(target - 1, 1) if within else self.rows.slice(0, 0)


@dataclass(slots=True)
class Cursors:
    """The session's cursors by name."""

    open: dict[str, Cursor] = field(default_factory=dict)


def declare(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """DECLARE name [options] CURSOR [WITH | WITHOUT HOLD] FOR query."""
    words, own = Words(context, text, tokens), context.state.cache(Cursors).open
    name, forward_only, options = words.name(), False, set[str]()
    while not words.takes("CURSOR"):
        if words.takes("NO", "SCROLL"):
            forward_only = True
            continue
        option = words.peek()
        if option not in ("BINARY", "INSENSITIVE", "ASENSITIVE", "SCROLL"):
            words.wrong()
        options.add(option)
        words.token()
    hold = words.takes("WITH", "HOLD")
    if not hold:
        words.takes("WITHOUT", "HOLD")
    words.needs("FOR")
    if words.peek() not in _QUERIES:
        words.wrong()
    (inner,) = lexer.split(words.rest())
    cut = lexer.tokens(inner.plain)
    if not (hold or context.in_transaction):
        # What is wrong with the query comes first.
        admitted.require(context, inner, cut, locking=True)
        context.local.statements.bind(inner.home, parameters)
        raise said("25P01", "DECLARE CURSOR can only be used in transaction blocks")
    if name in own:
        raise said("42P03", f'cursor "{name}" already exists')
    if hold and lock_clause.locks(cut):
        raise said("0A000", "DECLARE CURSOR WITH HOLD ... FOR UPDATE is not supported")
    if lock_clause.locks(cut):
        _require_options(options)
        forward_only = True
    admitted.require(context, inner, cut, locking=True)
    failure, answer = None, Answer()
    try:
        answer = context.run(inner, parameters)
        if answer.rows is None:
            words.wrong()
        if not answer.columns:
            refuse("A cursor of a query without columns")
    except errors.DataError as error:
        # PostgreSQL computes nothing before FETCH.
        if not context.in_transaction:
            raise
        context.local.statements.bind(inner.home, parameters)
        failure, context.state.aborted = error, False
    depth = len(context.state.savepoints) if context.in_transaction else None
    context.state.cache(Listings).by_view["pg_cursors"] = _listed
    rows = pa.table({}) if answer.rows is None else answer.rows
    own[name] = Cursor(
        rows, answer.columns, hold, forward_only, depth, failure=failure, alive=answer.alive,
        statement=text.home, declared=datetime.now(UTC).isoformat(), options=frozenset(options),
        scrolls=True if "SCROLL" in options else not forward_only and is_scrollable(context, inner),
    )  # fmt: skip
    if answer.alive is not None:
        context.state.cache(Removed).is_asked = True
    return Answer()


def _require_options(options: Collection[str]) -> None:
    """Raise for options that a cursor which locks rows cannot have."""
    if "SCROLL" in options:
        raise said("0A000", "DECLARE SCROLL CURSOR ... FOR UPDATE is not supported")
    if "INSENSITIVE" in options:
        raise said("42P11", "DECLARE INSENSITIVE CURSOR ... FOR UPDATE is not valid")


def fetch(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """FETCH or MOVE [direction] [FROM | IN] name."""
    words = Words(context, text, tokens)
    direction, count = _direction(words)
    _ = words.takes("FROM") or words.takes("IN")
    name = words.name()
    words.ends()
    cursor = context.state.cache(Cursors).open.get(name)
    if cursor is None:
        raise said("34000", f'cursor "{name}" does not exist')
    if cursor.failed:
        raise said("55000", f'portal "{name}" cannot be run')
    if cursor.failure is not None:
        cursor.failed = True
        raise cursor.failure
    if cursor.alive is None:
        rows = cursor.move(direction, count)
    else:
        rows = cursor.move_over(direction, count, cursor.alive(cursor.at))
    if keyword(tokens[0].text) == "MOVE":
        return Answer(affected=rows.num_rows)
    return Answer(rows, cursor.columns, rows.num_rows)


Use = tuple[str, str, int]
"""What a statement does with a cursor: its verb, the cursor's name, and how many rows ahead FETCH
and MOVE go: 0 for all, and -1 where they go another way.
"""


def use_of(context: Context, text: lexer.Text, tokens: Sequence[Token]) -> Use | None:
    """What a statement does with a cursor; None of another, and of one that is wrong."""
    verb = keyword(tokens[0].text)
    words, ahead = Words(context, text, tokens), 0
    try:
        if verb in ("FETCH", "MOVE"):
            direction, count = _direction(words)
            _ = words.takes("FROM") or words.takes("IN")
            ahead = count if direction == "FORWARD" and count > 0 else -1
            ahead = 0 if ahead == _ALL else ahead
        elif verb not in ("DECLARE", "CLOSE"):
            return None
        return verb, words.name(), ahead
    except errors.Error:
        return None


def _direction(words: Words) -> tuple[str, int]:
    for word, direction in _SHORT.items():
        if words.peek() == word:
            words.token()
            return direction
    count = words.number()
    if count is not None:
        return "FORWARD", count
    for word in ("ABSOLUTE", "RELATIVE"):
        if words.takes(word):
            count = words.number()
            if count is None:
                words.wrong()
            return word, count
    for word in ("FORWARD", "BACKWARD"):
        if words.takes(word):
            if words.takes("ALL"):
                return word, _ALL
            count = words.number()
            return word, 1 if count is None else count
    return "FORWARD", 1


_SHORT = {
    "NEXT": ("FORWARD", 1), "PRIOR": ("BACKWARD", 1), "FIRST": ("ABSOLUTE", 1),
    "LAST": ("ABSOLUTE", -1), "ALL": ("FORWARD", _ALL),
}  # fmt: skip


def _listed(context: Context) -> list[dict[str, object]]:
    """The rows of pg_cursors."""
    own = context.state.cache(Cursors).open
    if any(cursor.scrolls is None for cursor in own.values()):
        refuse("A query of pg_cursors beside a cursor that says neither SCROLL nor NO SCROLL")
    return [
        {
            "name": name, "statement": cursor.statement, "is_holdable": cursor.hold,
            "is_binary": "BINARY" in cursor.options, "is_scrollable": cursor.scrolls,
            "creation_time": cursor.declared,
        }
        for name, cursor in own.items()
    ]  # fmt: skip


def close(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """CLOSE name | ALL."""
    words = Words(context, text, tokens)
    if words.takes("ALL"):
        words.ends()
        close_all(context)
        return Answer()
    name = words.name()
    words.ends()
    if context.state.cache(Cursors).open.pop(name, None) is None:
        raise said("34000", f'cursor "{name}" does not exist')
    return Answer()


def close_all(context: Context) -> None:
    """Forget all cursors."""
    context.state.cache(Cursors).open.clear()


def began(context: Context) -> None:
    """A transaction has begun, with which cursors end."""

    def end(committed: bool) -> None:
        own = context.state.cache(Cursors)
        own.open = {
            name: cursor
            for name, cursor in own.open.items()
            if cursor.depth is None or (committed and cursor.hold)
        }
        for cursor in own.open.values():
            cursor.depth = None
        removed = context.state.cache(Removed)
        removed.is_asked, removed.by_table = False, {}

    context.state.endings.append(end)


def undone_to(context: Context, depth: int) -> None:
    """Of a transaction that went back to so many savepoints, later cursors are gone."""
    own = context.state.cache(Cursors)
    own.open = {
        name: cursor
        for name, cursor in own.open.items()
        if cursor.depth is None or cursor.depth < depth
    }


def released(context: Context, depth: int) -> None:
    """Of a transaction in which a savepoint that had so many before it is released, cursors that
    were declared since belong to what is around it.
    """
    for cursor in context.state.cache(Cursors).open.values():
        if cursor.depth is not None:
            cursor.depth = min(cursor.depth, depth)
