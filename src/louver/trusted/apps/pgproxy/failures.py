"""Louver's errors as PostgreSQL's clients receive them: SQLSTATE and fields of a message."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from louver import errors
from louver.trusted.executor.containment import translated
from louver.trusted.executor.postgres import messages

T = TypeVar("T")
P = ParamSpec("P")
Fields = dict[str, str | int]
"""What a client receives, by name: sqlstate, message, detail, hint, position, table, …"""
_STATES: tuple[tuple[type[errors.Error], str], ...] = (
    (errors.NotSupportedError, "0A000"), (errors.IntegrityError, "23000"),
    (errors.DataError, "22000"), (errors.ProgrammingError, "42000"),
    (errors.OperationalError, "58000"),
)  # fmt: skip
_CODES = {"leak.refused": "42501", "leak.flow": "42501", "parameter.count": "42P02"}
_OWN_WORDS = "Read the message; it is PostgreSQL's own."
#: What a message of a constraint names.
_NAMED = tuple(
    (name, re.compile(rf'\b{word} "([^"]+)"'))
    for name, word in (("constraint", "constraint"), ("table", "(?:relation|table)"),
                       ("column", "column"))
)  # fmt: skip
#: Addresses as errors name them, and sockets as the system does.
_ADDRESS = re.compile(r"postgresql://[^\s'\"]*[^\s'\".,:;)]|(?:/[^\s/'\"]+)*/\.s\.PGSQL\.\d+")
#: The context of an error that a client's own text explains; others are of texts of Louver's.
_OF_COPY = re.compile(r"^COPY ", re.MULTILINE)
_TOLD = ("schema", "table", "column", "constraint")


class Failed(errors.Error):
    """What the client receives. With ``ends`` its session is over."""

    def __init__(self, fields: Fields, *, ends: bool = False) -> None:
        super().__init__(str(fields.get("message")), code="protocol")
        self.sqlstate = str(fields.get("sqlstate"))
        self.fields, self.ends = fields, ends


class Reporting(Protocol):
    """Whose methods' errors clients receive."""

    #: the statement that runs
    text: str
    #: whether the values of rows that break a constraint are not shown
    hides_details: bool


S = TypeVar("S", bound=Reporting)


@contextmanager
def reported(text: Callable[[], str]) -> Iterator[None]:
    """Run something for a client; ``text`` gives its statement, which positions are in."""
    try:
        yield
    except Failed:
        raise
    except errors.Error as error:
        raise Failed(fields_of(error, text())) from None
    except UnicodeDecodeError:
        raise failed("22021", 'invalid byte sequence for encoding "UTF8"') from None
    except Exception as error:
        raise Failed(fields_of(translated(error), text())) from error


def reporting(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """A method whose errors clients receive."""

    def call(self: S, /, *given: P.args, **named: P.kwargs) -> T:
        try:
            with reported(lambda: self.text):
                return method(self, *given, **named)
        except Failed as failure:
            if self.hides_details and failure.sqlstate.startswith("23"):
                failure.fields.pop("detail", None)
                failure.fields.pop("context", None)
            raise

    return update_wrapper(call, method)


def failed(sqlstate: str, message: str, hint: str = "", *, ends: bool = False) -> Failed:
    """An error of the protocol's."""
    fields: Fields = {"sqlstate": sqlstate, "message": message}
    return Failed(fields | ({"hint": hint} if hint else {}), ends=ends)


def fields_of(error: errors.Error, text: str) -> Fields:
    """What clients receive of an error: PostgreSQL's own words, or Louver's with its code."""
    messages.name_state(error)
    fields = _fields_of(error, text)
    return {k: _nameless(v) if isinstance(v, str) else v for k, v in fields.items()}


def _nameless(text: str) -> str:
    """Without the address of the server behind: clients have no business there."""
    return _ADDRESS.sub("upstream", text)


def _fields_of(error: errors.Error, text: str) -> Fields:
    state = error.sqlstate or _CODES.get(error.code) or _state_of(error)
    said = error.said
    if said:
        results: Fields = {"sqlstate": state, "message": str(said.get("message") or "")}
        results["code"] = error.code
        for name in ("detail", "hint", *_TOLD):
            if said.get(name):
                results[name] = str(said[name])
        context = str(said.get("context") or "")
        if _OF_COPY.search(context):
            results["context"] = context
        position = int(str(said.get("position") or 0))
        if position and said.get("sql") == text:
            results["position"] = position
        return results
    if error.code.startswith("postgres.") and error.fix == _OWN_WORDS:
        return {"sqlstate": state, "code": error.code, **_parted(error.message)}
    hint = "" if error.fix == _OWN_WORDS else error.fix
    return {
        "sqlstate": state,
        "message": error.message or error.code,
        "hint": f"{hint} ({error.code})".strip(),
        "code": error.code,
    }


def _parted(text: str) -> Fields:
    """The fields of what PostgreSQL would say, from its text."""
    results: Fields = {}
    for name, mark in (("hint", "\nHINT:  "), ("detail", "\nDETAIL:  "), ("", "\nLINE ")):
        text, mark, rest = text.partition(mark)
        if mark and name:
            results[name] = rest
    for name, pattern in _NAMED:
        match = pattern.search(text)
        if match is not None:
            results[name] = match[1]
    return {"message": text, **results}


def _state_of(error: errors.Error) -> str:
    return next((state for kind, state in _STATES if isinstance(error, kind)), "XX000")
