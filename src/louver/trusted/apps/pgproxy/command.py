"""`louver serve pg`: runs the front door, or writes its file of users."""

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

from louver import errors
from louver._rust import proxy
from louver.trusted.apps import terminal
from louver.trusted.apps.pgproxy import options as given

_LONGEST_NAME = 63


def run(options: argparse.Namespace) -> int:
    """Do it."""
    if options.add_user:
        return _add_user(options)
    addresses, certificate = given.addresses(options), given.certificate(options)
    given.require_pool(options)
    url = options.upstream or options.url
    if options.language not in (None, "postgres"):
        raise errors.make("serve.language", language=options.language)
    if not str(url or "").startswith("postgresql://"):
        raise errors.make("usage", detail="give the database with --upstream postgresql://…")
    # Arrow's own pools keep 300 kB for each thread that has used them, and so for each client.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    from louver.trusted.apps.pgproxy import server

    settings = server.Options(
        url, options.keys, addresses, options.profile, options.policy,
        Path(options.users) if options.users else None, certificate,
        tls_required=options.require_tls, most_clients=options.connections,
        patience_ms=int(options.drain * 1000), read_only=options.read_only,
        by_transaction=options.pool == "transaction", pool_size=options.pool_size,
        pool_patience_ms=int(options.pool_wait * 1000),
    )  # fmt: skip

    def ready(bound: Sequence[tuple[str, int]]) -> None:
        places = [f"{name}:{port}" for name, port in bound]
        places += [name for name, port in addresses if port is None]
        if options.json:
            terminal.out_json({"ok": True, "listen": places, "pid": os.getpid()})
            sys.stdout.flush()
        else:
            terminal.say(f"PostgreSQL's clients are served at {', '.join(places)}; Ctrl-C ends it")

    left = server.served(settings, ready)
    if left:
        terminal.say(f"{left} clients were still connected")
    return 0


def _add_user(options: argparse.Namespace) -> int:
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
    others = [other for other in lines if other.split(" ")[:1] != [name]]
    _replace(path, "\n".join([*others, line, ""]))
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
