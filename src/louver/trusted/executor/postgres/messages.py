"""Errors that PostgreSQL has and that are found without it, in its words and with its SQLSTATE."""

from __future__ import annotations

from louver import errors
from louver.trusted.executor.local.postgres import failures

#: Of errors of Louver's own, as far as PostgreSQL has a counterpart.
_STATES = {
    "catalog.conflict": "40001", "server.conflict": "40001",
    "server.locked": "55P03", "transaction.aborted": "25P02",
    "transaction.read_only": "25006", "connection.read_only": "25006", "transaction.key": "23505",
    "setting.value": "22023", "setting.unknown": "42704", "interrupted": "57014",
    "sql.syntax": "42601", "disk.full": "53100", "server.busy": "53300", "server.lost": "08006",
    "server.unsure": "08007", "postgres.lost": "08006",
}  # fmt: skip
_NOT_SUPPORTED = "0A000"


def said(state: str, message: str, hint: str = "") -> errors.Error:
    """An error of PostgreSQL's."""
    return failures.said({"code": state, "message": message, "hint": hint})


def name_state(error: errors.Error) -> None:
    """Give an error of Louver's own the SQLSTATE that programs look for."""
    if not error.sqlstate:
        other = _NOT_SUPPORTED if isinstance(error, errors.NotSupportedError) else ""
        error.sqlstate = _STATES.get(error.code, other)
