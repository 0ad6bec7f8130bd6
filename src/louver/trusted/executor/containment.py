"""What holds of every statement, however it ends: nothing but `louver.Error` leaves it, and the
session is as fit for the next one as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, Protocol, TypeVar

import duckdb
import pyarrow as pa

from louver import errors, extras
from louver.trusted.executor.local.engine import LocalEngine
from louver.trusted.planner.sql.dialect import Dialect, speaking, spoken
from louver.trusted.vault.catalog import Catalog

T = TypeVar("T")
P = ParamSpec("P")
#: What a face passes on beside `louver.Error`: the end of an iteration, and that who reads the
#: standard output has left, which programs wait for.
_PASSED = (errors.Error, StopIteration, BrokenPipeError)
_ENDS = (errors.Error, BrokenPipeError)
_SPECIAL = {
    "__enter__", "__exit__", "__iter__", "__next__", "__len__", "__getitem__", "__contains__",
    "__arrow_c_stream__", "_repr_html_",
}  # fmt: skip
_OURS = str(Path(__file__).parents[2])


class Recoverable(Protocol):
    """What can be made fit for the next statement."""

    @property
    def dialect(self) -> Dialect:
        """The language of its statements."""

    def recover(self) -> None:
        """Let no local engine stay in a transaction, or broken."""


@contextmanager
def contained(session: Recoverable) -> Iterator[None]:
    """Run a statement, in the session's language. One that fails may leave a local engine in a
    transaction of its own making, or unable to go on: that is mended before the error is passed on.
    """
    with speaking(session.dialect):
        try:
            yield
        except BaseException as error:
            session.recover()
            if isinstance(error, _ENDS) or not isinstance(error, Exception):
                raise
            raise translated(error) from None


def face(cls: type[T]) -> type[T]:
    """A class of the public face: nothing but `louver.Error` leaves its methods and properties,
    which read texts in the language of its objects' session (``_dialect``).
    """
    for name, value in list(vars(cls).items()):
        if name.startswith("_") and name not in _SPECIAL:
            continue
        if isinstance(value, property) and value.fget is not None:
            setattr(cls, name, property(_method(value.fget), doc=value.__doc__))
        elif isinstance(value, staticmethod):
            setattr(cls, name, staticmethod(guarded(value.__func__)))
        elif callable(value) and not isinstance(value, type):
            setattr(cls, name, _method(value))
    return cls


def guarded(function: Callable[P, T]) -> Callable[P, T]:
    """A function of the public face: nothing but `louver.Error` leaves it."""

    @wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> T:
        try:
            return function(*given, **named)
        except _PASSED:
            raise
        except Exception as error:
            if _ran_nothing(error):
                raise
            raise translated(error) from None

    return call


def _method(function: Callable[P, T]) -> Callable[P, T]:
    """The same for a method. A session that speaks what is spoken already enters nothing."""

    @wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> T:
        dialect = given[0]._dialect  # type: ignore[attr-defined]
        entered = None if dialect is spoken() else speaking(dialect)
        try:
            if entered is None:
                return function(*given, **named)
            with entered:
                return function(*given, **named)
        except _PASSED:
            raise
        except Exception as error:
            if _ran_nothing(error):
                raise
            raise translated(error) from None

    return call


def _ran_nothing(error: Exception) -> bool:
    """Whether a function was called with other arguments than it has."""
    trace = error.__traceback__
    return isinstance(error, TypeError) and trace is not None and trace.tb_next is None


def recovered(local: LocalEngine, catalog: Catalog) -> None:
    """No instance stays in a transaction, and one that DuckDB has given up, as it does after an
    error of its own, is made anew; so is one that was not built to its end.
    """
    if local.state == "broken" or not local.is_fit():
        local.renew(catalog)


def translated(error: Exception) -> errors.Error:
    """An exception of a library, or of a mistake of Louver's, without its text and its values:
    only DuckDB's messages are known to be fit to be shown.
    """
    if isinstance(error, duckdb.Error):
        return errors.from_duckdb(error)
    if isinstance(error, RecursionError):
        nested = "A statement that is nested as deeply as this one"
        return errors.make("sql.unsupported", statement=nested)
    if isinstance(error, pa.ArrowMemoryError | MemoryError):
        return errors.make("memory.full")
    if isinstance(error, OSError) and not isinstance(error, pa.ArrowException):
        return errors.make("database.io", place=_named(error), detail=error.strerror or "")
    if isinstance(error, ModuleNotFoundError) and error.name:
        return extras.missing(error.name)
    if isinstance(error, pa.ArrowException):
        return errors.make("value.form")
    return errors.make("internal", detail=f"{type(error).__name__} {_place(error.__traceback__)}")


def _named(error: OSError) -> str:
    """The file that an operating system's error is about, where it names one."""
    return str(error.filename) if error.filename else "or a file that it needs"


def _place(trace: TracebackType | None) -> str:
    """The innermost line of Louver's that an exception came from."""
    results = ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(_OURS):
            results = f"at {Path(code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return results
