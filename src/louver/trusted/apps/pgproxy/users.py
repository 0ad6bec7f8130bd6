"""The file of users: who may connect, and what each may do.

Behind a user's verifier the word ``rights=`` has what the user may do, each grant percent-encoded,
with ``;`` between; without the word, the user may do everything.
"""

from __future__ import annotations

import argparse
import fcntl
import getpass
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote

from louver import errors
from louver._rust import proxy
from louver.names import keyword
from louver.trusted.apps import terminal
from louver.trusted.executor.local.postgres.role_rights import Grant, Rights, parsed

_LONGEST_NAME = 63
_RIGHTS = "rights"
NOTHING, EVERYTHING = "NOTHING", "EVERYTHING"


def rights(user: str, words: Sequence[tuple[str, str]]) -> Rights | None:
    """What a user may do, by the words of its line; None where that is everything.

    Raises:
        errors.Error: `rights.text` for words that are not known, by which no client is let in.
    """
    results = None
    for key, value in words:
        if key != _RIGHTS:
            raise errors.make("rights.text", text=f"{key}=…", detail=f"the word is not {_RIGHTS}=")
        texts = [part for part in value.split(";") if part]
        results = Rights(user, tuple(map(_decoded, texts)))
    return results


def _decoded(part: str) -> Grant:
    try:
        return _parsed(unquote(part, errors="strict"))
    except UnicodeDecodeError:
        raise errors.make("rights.text", text=part, detail="it is not UTF-8") from None


def _parsed(text: str) -> Grant:
    try:
        return parsed(text)
    except ValueError as error:
        raise errors.make("rights.text", text=text, detail=str(error)) from None


def grant(options: argparse.Namespace) -> int:
    """Write what a user may do besides; the first time, instead of everything."""
    name, text = options.grant
    path = Path(options.users or "")
    if not options.users or not path.exists():
        raise errors.make("usage", detail="--grant needs --users FILE")
    with _alone(path):
        given = _granted(path, name, text)
    terminal.say(f"{path}: {name} may do {_listed(given)}")
    return 0


def _granted(path: Path, name: str, text: str) -> list[str]:
    """Write what a user may do; the word for it, if it is not everything."""
    lines = path.read_text("utf-8").splitlines()
    at = next((n for n, line in enumerate(lines) if line.split()[:1] == [name]), None)
    if at is None:
        raise errors.make("usage", detail=f"{path} has no user {name}; --add-user adds it")
    words, comment = _words(lines[at])
    before = [word for word in words if word.startswith(f"{_RIGHTS}=")]
    others = [word for word in words if word not in before]
    if keyword(text.strip()) == EVERYTHING:
        given = []
    elif keyword(text.strip()) == NOTHING:
        given = [f"{_RIGHTS}="]
    else:
        known = before[0].partition("=")[2].split(";") if before else []
        parts = [*filter(None, known), quote(str(_parsed(text)), safe="(),")]
        given = [f"{_RIGHTS}={';'.join(dict.fromkeys(parts))}"]
    lines[at] = " ".join([*others, *given, *comment])
    _replace(path, "\n".join([*lines, ""]))
    return given


def _listed(given: Sequence[str]) -> str:
    if not given:
        return "everything"
    parts = [unquote(part) for part in given[0].partition("=")[2].split(";") if part]
    return "; ".join(parts) or "nothing"


def _words(line: str) -> tuple[list[str], list[str]]:
    """The words of a line, and its comment."""
    words = line.split()
    at = next((n for n, word in enumerate(words) if word.startswith("#")), len(words))
    return words[:at], words[at:]


def add(options: argparse.Namespace) -> int:
    """Write a user with a password that is read from the terminal or stdin."""
    name = options.add_user
    if not options.users:
        raise errors.make("usage", detail="--add-user needs --users FILE")
    if len(name.encode()) > _LONGEST_NAME:
        raise errors.make("usage", detail="the name of a user has 63 bytes at most")
    if not name or any(character.isspace() or character == "#" for character in name):
        raise errors.make("usage", detail="the name of a user has neither blanks nor #")
    try:
        line = f"{name} {proxy.verifier(_password(name))}"
    except ValueError as error:
        raise errors.make("serve.users", path=options.users, detail=str(error)) from None
    path = Path(options.users)
    with _alone(path):
        is_new = _write(path, name, line)
    terminal.say(f"{path}: {name} {'may connect' if is_new else 'has a new password'}")
    return 0


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One writer at a time, so that none undoes what another one has added. The file itself is
    replaced, and so the lock is on another one, which stays.
    """
    lock = path.with_name(f".{path.name}.lock")
    try:
        number = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise errors.make("serve.users", path=path, detail=str(error)) from None
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def _write(path: Path, name: str, line: str) -> bool:
    """Write a user's line; whether the user is new."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    others = [other for other in lines if other.split()[:1] != [name]]
    # A new password does not give back what the user may not do.
    words = [word for other in lines if other.split()[:1] == [name] for word in other.split()[2:]]
    _replace(path, "\n".join([*others, " ".join([line, *words]), ""]))
    return len(others) == len(lines)


def _password(name: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    first = getpass.getpass(f"Password of {name}: ")
    if getpass.getpass("Once more: ") != first:
        raise errors.make("usage", detail="the passwords differ")
    return first


def _replace(path: Path, text: str) -> None:
    """The file as a whole, which no one else can read at any time."""
    number, temporary = tempfile.mkstemp(dir=path.parent, prefix=".users-")
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
