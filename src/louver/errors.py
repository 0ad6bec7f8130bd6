"""One tree for every error that Louver raises, each with a code, a cause and a fix.

The tree is PEP 249's with four classes of our own. Errors are made in one way:

    raise errors.make("key.mode", path=path, mode="0644")

The code names a row of errors.toml, which holds the texts; the page docs/reference/errors.md is
generated from the same rows.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from louver.names import fold

#: Read with the module: an error can be reported when no more files can be opened.
_TEXTS = Path(__file__).with_name("errors.toml").read_bytes()

#: A key as it is written in its file, or most of one.
_KEY = re.compile(r"LOUVER-KEY-[0-9a-z]{10,}", re.IGNORECASE)
#: A character as a URL may write it.
_QUOTED = re.compile(r"%([0-9A-Fa-f]{2})")


class Warning(Exception):  # noqa: A001  (PEP 249 fixes the name)
    """PEP 249: an important notice, such as data truncated while inserting."""


class LeakageWarning(UserWarning):
    """A notice of what a server is shown, or is about to be; Python's own `warnings` filter it."""


class Error(Exception):
    """The root of all errors: `code` for programs; message, `cause` and `fix` for people."""

    #: What the command line returns for this class of errors.
    exit_code = 1

    def __init__(
        self,
        message: str = "",
        *,
        code: str = "error",
        cause: str = "",
        fix: str = "",
        detail: str = "",
    ) -> None:
        # Anyone who makes an error quotes what was given; a key that was given is never quoted.
        message, cause, fix, detail = map(_without_keys, (message, cause, fix, detail))
        super().__init__(message)
        self.message = message
        self.code = code
        self.cause = cause
        self.fix = fix
        self.detail = detail
        #: SQLSTATE, where PostgreSQL as the local engine raised it
        self.sqlstate = ""
        #: what that said, by the names of the fields of its message, and the text it was given
        self.said: dict[str, object] = {}
        #: whether it was worded for the local engine, which has not met the key itself
        self.is_reworded = False

    def __str__(self) -> str:
        return f"{self.message}\n  fix: {self.fix}" if self.fix else self.message

    def as_dict(self) -> dict[str, object]:
        """The one JSON shape in which the command line and the servers report an error."""
        return {"ok": False, "code": self.code, "error": self.message, "fix": self.fix}


class InterfaceError(Error):
    """PEP 249: the interface was used wrongly, not the database."""


class DatabaseError(Error):
    """PEP 249: something about the database."""


class DataError(DatabaseError):
    """PEP 249: a value that cannot be processed: out of range, division by zero."""


class OperationalError(DatabaseError):
    """PEP 249: the world outside: files, locks, disks, connections."""


class IntegrityError(DatabaseError):
    """PEP 249: a constraint would no longer hold."""


class InternalError(DatabaseError):
    """PEP 249: Louver or the database found itself in a state that must not be."""


class ProgrammingError(DatabaseError):
    """PEP 249: the statement is wrong: syntax, names, parameters."""


class NotSupportedError(DatabaseError):
    """PEP 249: the statement is right, but this cannot be done."""


class VerificationError(DatabaseError):
    """What the server returned is not what was stored there: it was altered or rolled back."""


class CatalogError(DatabaseError):
    """The client-side catalog cannot be read or does not fit the database."""


class KeyFileError(OperationalError):
    """The key file is missing, unsafe, damaged or the wrong one."""


class LeakageRefused(NotSupportedError):
    """The statement would show a server more than a ceiling allows; nothing was sent."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """All about one code. `message`, `cause` and `fix` are templates for `str.format`."""

    code: str
    cls: type[Error]
    message: str
    cause: str
    fix: str
    #: fixes of DuckDB's errors by what their messages hold; the first that matches counts
    fixes: tuple[tuple[str, str], ...] = ()


class _Registry(Mapping[str, ErrorRow]):
    """The rows of errors.toml; parsed at the first access, so that imports stay fast."""

    @cached_property
    def _rows(self) -> dict[str, ErrorRow]:
        import tomllib

        tables = tomllib.loads(_TEXTS.decode())
        return {
            code: ErrorRow(
                code,
                globals()[row["class"]],
                row["message"],
                row["cause"],
                row["fix"],
                tuple((pattern, fix) for pattern, fix in row.get("fixes", ())),
            )
            for code, row in tables.items()
        }

    def __getitem__(self, code: str) -> ErrorRow:
        return self._rows[code]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


#: Every code that can be raised, in the order of the reference page.
ERRORS: Mapping[str, ErrorRow] = _Registry()


class _Fields(dict[str, object]):
    """A forgotten field must not hide the error that is being reported."""

    def __missing__(self, key: str) -> str:
        return f"<{key}>"


def make(code: str, /, *, detail: str = "", **fields: object) -> Error:
    """The error of this code, its texts filled in; the caller raises it.

    `detail` is a cause in somebody else's words (an operating system, a parser). It must not
    hold a key or another person's data: it is shown and may be logged.
    """
    row = ERRORS[code]
    filled = _Fields(fields, detail=detail)
    return row.cls(
        row.message.format_map(filled),
        code=code,
        cause=row.cause.format_map(filled),
        fix=row.fix.format_map(filled),
        detail=detail,
    )


def refuse_keys(*values: object) -> None:
    """Refuse arguments that hold a key where they should name its file, however a URL writes it."""
    for value in values:
        if isinstance(value, str | bytes | os.PathLike):
            text = os.fsdecode(value)
            unquoted = _QUOTED.sub(lambda match: chr(int(match[1], 16)), text)
            if _KEY.search(text) or _KEY.search(unquoted):
                raise make("key.text")
        elif isinstance(value, Iterable):
            refuse_keys(*value)


def _without_keys(text: str) -> str:
    return _KEY.sub("LOUVER-KEY-…", text)


def warn(text: str) -> None:
    """Give a `LeakageWarning` at the user's own line: the first above that is not Louver's."""
    ours, depth, frame = os.path.dirname(__file__), 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(ours):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(text, LeakageWarning, stacklevel=depth)


#: DuckDB's exceptions that sit too high in its own tree to tell us a class.
_DUCKDB_CLASSES: dict[str, type[Error]] = {
    "DependencyException": ProgrammingError,
    "FatalException": InternalError,
    "PermissionException": OperationalError,
    "SequenceException": DataError,
}
_PEP_249: dict[str, type[Error]] = {
    cls.__name__: cls
    for cls in (
        DataError,
        OperationalError,
        IntegrityError,
        InternalError,
        ProgrammingError,
        NotSupportedError,
        DatabaseError,
    )
}


def from_duckdb(error: BaseException) -> Error:
    """DuckDB's exception as ours: its message, its PEP 249 class, the code `duckdb.<kind>`.

    Classes are recognised by name, so that this module does not load DuckDB.
    """
    name = type(error).__name__
    if name == "InterruptException" or "INTERRUPT Error" in str(error):
        return make("interrupted")
    kind = fold(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.removesuffix("Exception")))
    code = f"duckdb.{kind}" if f"duckdb.{kind}" in ERRORS else "duckdb.error"
    row = ERRORS[code]
    bases = (base.__name__ for base in type(error).__mro__)
    classes = (_PEP_249[base] for base in bases if base in _PEP_249)
    cls = _DUCKDB_CLASSES.get(name) or next(classes, row.cls)
    message = str(error)
    # Where no pattern matches, DuckDB's message says all there is to say.
    fix = next((fix for pattern, fix in row.fixes if re.search(pattern, message)), "")
    return cls(message, code=code, cause=row.cause, fix=fix, detail=message)


def explain(code: str) -> dict[str, Any]:
    """One row of the registry as plain data, for the reference page and `--json`."""
    row = ERRORS[code]
    return {
        "code": code,
        "class": row.cls.__name__,
        "message": row.message,
        "cause": row.cause,
        "fix": row.fix,
    }
