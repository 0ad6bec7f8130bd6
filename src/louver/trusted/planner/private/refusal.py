"""Errors for questions outside of the language."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from louver import errors
from louver.names import fold


def refuse(detail: str, instead: str) -> errors.Error:
    """The error for an unsupported private question, with an alternative."""
    return errors.make("provider.language", detail=detail, instead=instead)


def no_table(name: str, known: Iterable[str]) -> errors.Error:
    """The error for a table that no provider holds."""
    error = errors.make("table.missing", table=name)
    return _with_names(error, name, list(known), "The providers hold")


def no_column(table: str, name: str, known: Iterable[str]) -> errors.Error:
    """The error for a column that a table does not have."""
    error = errors.make("column.missing", table=table, column=name)
    return _with_names(error, name, list(known), "It has")


def _with_names(error: errors.Error, name: str, known: list[str], says: str) -> errors.Error:
    close = difflib.get_close_matches(fold(name), [fold(k) for k in known], n=1)
    match = next((k for k in known if close and fold(k) == close[0]), None)
    if match is not None:
        error.fix = f"Did you mean {match}?"
    elif known:
        error.fix = f"{says}: {', '.join(known[:20])}{', …' if len(known) > 20 else ''}."
    return error
