"""Failures of a server as Louver's errors, by SQLSTATE."""

from __future__ import annotations

import re
from typing import Any

from louver import errors
from louver._rust import postgres

#: By the longest beginning that fits.
_CODES = {
    "08": "server.lost", "57P01": "server.lost", "57P02": "server.lost", "57P03": "server.busy",
    "57P05": "server.lost", "0A": "server.statement", "22": "server.value",
    "23": "server.constraint", "25006": "connection.read_only", "25P02": "transaction.aborted",
    "25P03": "server.lost", "26": "server.lost", "28": "server.denied", "3D": "server.denied",
    "40001": "server.conflict", "40P01": "server.conflict", "55P03": "server.locked",
    "42": "server.statement", "42501": "server.denied", "42P07": "server.exists",
    "42P06": "server.exists", "42710": "server.exists", "42P01": "server.schema",
    "42703": "server.schema", "3F000": "server.schema", "53": "server.busy", "53100": "disk.full",
    "57014": "interrupted", "54": "server.statement", "XX": "database.io", "58": "database.io",
}  # fmt: skip
_LONGEST = 5
_OF_VALUES = re.compile("22[0-9A-Z]{3}")


class translated:  # noqa: N801 - reads as a verb where it is used
    """A server's failures as Louver's. ``unsure``: whether what was sent may have been done where
    the connection was lost.
    """

    def __init__(self, address: str, *, unsure: bool = False) -> None:
        self._address = address
        self._unsure = unsure

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, postgres.ServerError):
            failure = said(error.args[0], self._address)
            if self._unsure and failure.code == "server.lost":
                # It may have gone after a COMMIT that is in the same round trip.
                failure = errors.make("server.unsure", place=self._address, detail=failure.detail)
            raise failure from error
        if isinstance(error, postgres.ConnectionLost):
            code = "server.unsure" if self._unsure else "server.lost"
            raise errors.make(code, place=self._address, detail=str(error)) from error
        if isinstance(error, postgres.TlsError):
            raise errors.make("server.tls", place=self._address, detail=str(error)) from error
        if isinstance(error, postgres.Refused):
            raise errors.make("server.denied", place=self._address, detail=str(error)) from error
        if isinstance(error, postgres.ProtocolError):
            raise errors.make("reply.format", detail=str(error)) from error
        if isinstance(error, ValueError):
            raise errors.make("server.value", place=self._address, detail=str(error)) from error


def said(fields: dict[str, Any], address: str) -> errors.Error:
    """The error of what a server said."""
    state = str(fields.get("code") or "")
    detail = str(fields.get("message") or "no message")
    if fields.get("detail"):
        detail += f": {fields['detail']}"
    if state == "0A000" and "cached plan must not change" in detail:
        # The table was made anew by another client: in a transaction the session cannot ask again.
        state = "40001"
    code = next(
        (_CODES[state[:n]] for n in range(_LONGEST, 1, -1) if state[:n] in _CODES), "server.error"
    )
    failure = errors.make(code, place=address, state=state, detail=detail)
    if _OF_VALUES.fullmatch(state):
        # What is wrong with a value is known by its SQLSTATE to those who ask.
        failure.sqlstate = state
    return failure
