"""Where a server is and who asks: URLs as libpq reads them, and the environment behind them.

A password is not part of a URL, which stands in lists of processes, logs and histories. It comes
from PGPASSWORD or the password file (PGPASSFILE, else ~/.pgpass), as with psql.
"""

from __future__ import annotations

import getpass
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote

from louver import errors

DEFAULT_PORT = 5432
#: Where servers put their sockets, by the distribution.
SOCKET_FOLDERS = ("/var/run/postgresql", "/tmp")  # noqa: S108 - PostgreSQL's own default
_PARAMETERS = frozenset(
    ("host", "port", "user", "dbname", "application_name", "connect_timeout", "lock_timeout")
)
_DEFAULT_TIMEOUT_S = 10
_DEFAULT_LOCK_MS = 10_000


@dataclass(frozen=True, slots=True)
class Target:
    """A database on a server, and the role that asks. ``host`` is a folder of sockets where it
    begins with a slash; ``lock_ms``: how long to wait for another transaction, in milliseconds.
    """

    host: str
    port: int
    user: str
    database: str
    application: str = "louver"
    timeout_s: int = _DEFAULT_TIMEOUT_S
    lock_ms: int = _DEFAULT_LOCK_MS
    password: str | None = field(default=None, repr=False)

    @property
    def address(self) -> str:
        """A stable name of the database."""
        name = quote(self.database, safe="")
        if self.host.startswith("/"):
            return f"postgresql:///{name}?host={quote(self.host)}&port={self.port}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"postgresql://{host}:{self.port}/{name}"


def target_of(url: str) -> Target:
    """What a URL names; ``url.format`` for one that cannot be read."""
    rest = url.partition("://")[2]
    if "#" in rest or "\0" in unquote(rest):
        raise _wrong("a character that no part of it can have")
    rest, _, query = rest.partition("?")
    authority, _, path = rest.partition("/")
    given = _parameters(query)
    who, at, where = authority.rpartition("@")
    if at and ":" in who:
        raise _wrong("it holds a password, which belongs into PGPASSWORD or ~/.pgpass")
    host, port = _host_and_port(where)
    user = given.get("user") or unquote(who) or os.environ.get("PGUSER") or getpass.getuser()
    host = given.get("host") or host or os.environ.get("PGHOST") or _default_host()
    port_text = given.get("port") or port or os.environ.get("PGPORT") or str(DEFAULT_PORT)
    name = given.get("dbname") or unquote(path) or os.environ.get("PGDATABASE") or user
    if "," in host or "," in port_text:
        raise _wrong("several hosts, of which only one is spoken to")
    number = _number("port", port_text, 65_535)
    return Target(
        host,
        number,
        user,
        name,
        given.get("application_name", "louver"),
        _number("connect_timeout", given.get("connect_timeout", str(_DEFAULT_TIMEOUT_S)), 3_600),
        _number("lock_timeout", given.get("lock_timeout", str(_DEFAULT_LOCK_MS)), 3_600_000),
        os.environ.get("PGPASSWORD") or _from_file(host, number, name, user),
    )


def _parameters(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise _wrong("what follows ? is not name=value") from None
    given = dict(pairs)
    if "password" in given:
        raise _wrong("it holds a password, which belongs into PGPASSWORD or ~/.pgpass")
    unknown = sorted(set(given) - _PARAMETERS)
    if unknown:
        known = ", ".join(sorted(_PARAMETERS))
        raise _wrong(f"{unknown[0]!r:.40} is none of the parameters {known}")
    return given


def _host_and_port(where: str) -> tuple[str, str]:
    if where.startswith("["):
        host, end, port = where[1:].partition("]")
        if not end or (port and not port.startswith(":")):
            raise _wrong("an address in brackets that does not end")
        return host, port[1:]
    host, _, port = where.partition(":")
    return unquote(host), port


def _number(name: str, text: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 9 and 0 < int(text) <= most):
        raise _wrong(f"{name} is not a number from 1 to {most}")
    return int(text)


def _default_host() -> str:
    for folder in SOCKET_FOLDERS:
        if any(Path(folder).glob(".s.PGSQL.*")):
            return folder
    return "localhost"


def _from_file(host: str, port: int, database: str, user: str) -> str | None:
    """The password of the first line of the password file that fits; a file that others may read
    is not used, as with psql.
    """
    path = Path(os.environ.get("PGPASSFILE") or Path.home() / ".pgpass")
    try:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            return None
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    identity = ("localhost" if host in SOCKET_FOLDERS else host, str(port), database, user)
    for line in lines:
        fields = _fields(line)
        if len(fields) == len(identity) + 1 and all(
            wanted in ("*", value) for wanted, value in zip(fields, identity, strict=False)
        ):
            return fields[-1]
    return None


def _fields(line: str) -> list[str]:
    """The fields of a line, between colons; a backslash makes the next character one of them."""
    if line.startswith("#"):
        return []
    fields, rest = [""], iter(line)
    for character in rest:
        if character == ":" and len(fields) < 5:
            fields.append("")
        else:
            fields[-1] += next(rest, "") if character == "\\" else character
    return fields


def _wrong(detail: str) -> errors.Error:
    return errors.make("url.format", detail=f"of postgresql://user@host:port/database, {detail}")
