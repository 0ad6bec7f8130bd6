"""Failures of the DuckDB that stands for the server, as Louver's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from louver import errors
from louver.names import fold

_FULL = re.compile(r"No space left on device|Disk quota exceeded|File too large|disk is full")
_LOCKED = re.compile(r"Could not set lock on file|with a different configuration than existing")
_HOLDER = re.compile(r"lock is held in (?P<program>[^()\n]*?) ?\(PID (?P<pid>\d+)\)")
#: Of two transactions with the same key, the later one hears of it at its commit.
_LATE_CONSTRAINT = re.compile(r"Failed to commit: .*constraint violation")
_NO_DATABASE = re.compile(r"Cannot open file|not a valid DuckDB database|Is a directory")
#: How a failure's text begins that Arrow hands on: its kind, which DuckDB names a class after.
_KIND = re.compile(r"([A-Za-z]+(?: [A-Za-z]+)*) Error: ")
_CLASSES = {
    fold(name.removesuffix("Exception")): getattr(duckdb, name)
    for name in dir(duckdb)
    if name.endswith("Exception")
}
#: A failure of a reply's rows arrives as Arrow's, the rest as DuckDB's.
_SERVER_ERRORS = (duckdb.Error, RuntimeError, pa.ArrowException, OSError)


class translated:  # noqa: N801 - reads as a verb where it is used
    """DuckDB's exceptions as Louver's."""

    def __init__(self, path: str) -> None:
        self._place = path or "in memory"

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, _SERVER_ERRORS):
            raise translate(error, self._place) from error


def translate(error: Exception, path: str) -> BaseException:
    """An exception of DuckDB's about the database at a path, as Louver's."""
    # A function that fails adds a trace of Python's frames, which tells users nothing.
    text = str(error).partition("\n\nAt:\n")[0]
    if "Query interrupted" in text:
        # So DuckDB reports a signal whose handler raised.
        return KeyboardInterrupt()
    if _LOCKED.search(text):
        return errors.make("database.locked", place=path, holder=_holder(text), detail=text)
    if _FULL.search(text):
        return errors.make("disk.full", place=path, detail=text)
    if _LATE_CONSTRAINT.search(text):
        return errors.from_duckdb(duckdb.ConstraintException(text))
    if _NO_DATABASE.search(text):
        return errors.make("database.io", place=path, detail=text)
    return errors.from_duckdb(error if isinstance(error, duckdb.Error) else _as_duckdb(error))


def _as_duckdb(error: Exception) -> Exception:
    """What Arrow hands on, as DuckDB would have raised it; anything else as it is."""
    match = _KIND.match(str(error))
    kind = fold(match[1].replace(" ", "")) if match else ""
    return _CLASSES[kind](str(error)) if kind in _CLASSES else error


def _holder(text: str) -> str:
    """The process that has a file open, as far as DuckDB and the operating system tell: its number
    and its command, of whose arguments only a script's name is repeated.
    """
    match = _HOLDER.search(text)
    if match is None:
        return "this process, which has opened it otherwise" if "config" in text else "a process"
    command = match["program"].rpartition("/")[2] or "unknown command"
    try:
        arguments = Path(f"/proc/{match['pid']}/cmdline").read_bytes().split(b"\0")
    except OSError:
        arguments = []
    if len(arguments) > 1 and arguments[1] and not arguments[1].startswith(b"-"):
        script = arguments[1].decode(errors="replace").rpartition("/")[2]
        command += f" {script:.60}" if script.isprintable() else ""
    return f"process {match['pid']} ({command})"


@contextmanager
def quietly() -> Iterator[None]:
    """Whatever fails at the server, fails without a word."""
    try:
        yield
    except _SERVER_ERRORS:
        return
