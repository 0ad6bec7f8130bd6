"""What the private PostgreSQL says of a statement, as Louver's errors: its own words."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from louver import errors
from louver._rust import postgres
from louver.names import keyword

#: By the first two characters of SQLSTATE.
_CODES = {
    "0A": "postgres.feature", "21": "postgres.statement", "22": "postgres.data",
    "23": "postgres.constraint", "25": "postgres.transaction", "26": "postgres.statement",
    "2B": "postgres.dependency", "2D": "postgres.transaction", "34": "postgres.statement",
    "3B": "postgres.transaction", "3D": "postgres.statement", "3F": "postgres.statement",
    "40": "postgres.transaction", "42": "postgres.statement", "44": "postgres.constraint",
    "53": "postgres.resources", "54": "postgres.resources", "55": "postgres.transaction",
    "58": "postgres.resources", "XX": "postgres.internal",
}  # fmt: skip
_INTERRUPTED = "57014"
_LOST = "57P"


class translated:  # noqa: N801 - reads as a verb where it is used
    """The private server's failures as Louver's errors; ``sql`` is the text that it was given."""

    def __init__(self, sql: str = "") -> None:
        self._sql = sql

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, postgres.ServerError):
            raise said(error.args[0], self._sql) from None
        if isinstance(error, postgres.ConnectionLost):
            raise errors.make("postgres.lost", detail=str(error)) from None
        if isinstance(error, (postgres.ProtocolError, postgres.Refused)):
            raise errors.make("internal", detail=str(error)) from None
        if isinstance(error, ValueError):
            raise errors.make("postgres.value", detail=str(error)) from None


def said(fields: dict[str, Any], sql: str = "") -> errors.Error:
    """The error of what the server said; ``sqlstate`` and the names that it gave are on it."""
    state = str(fields.get("code") or "")
    if state == _INTERRUPTED:
        return errors.make("interrupted")
    message = str(fields.get("message") or "")
    if state.startswith(_LOST):
        return errors.make("postgres.lost", detail=message)
    lines = [message, *_place(sql, int(fields.get("position") or 0))]
    more = ((name, fields.get(name)) for name in ("detail", "hint"))
    lines += [f"{keyword(name)}:  {text}" for name, text in more if text]
    failure = errors.make(_CODES.get(state[:2], "postgres.error"), detail="\n".join(lines))
    failure.sqlstate = state
    failure.said = {**fields, "sql": sql}
    return failure


def _place(sql: str, position: int) -> list[str]:
    """The line that a position (in characters, from 1) is in, marked as psql does."""
    if not 0 < position <= len(sql) + 1:
        return []
    before = sql[: position - 1]
    start = before.rfind("\n") + 1
    line = sql[start:].partition("\n")[0]
    head = f"LINE {before.count(chr(10)) + 1}: "
    return [head + line, " " * (len(head) + position - 1 - start) + "^"]
