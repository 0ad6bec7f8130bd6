"""Where a server is and who asks: URLs as libpq reads them, and the environment behind them.

A password is not part of a URL, which stands in lists of processes, logs and histories. It comes
from PGPASSWORD or the password file (PGPASSFILE, else ~/.pgpass), as with psql.
"""

from __future__ import annotations

import getpass
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote

from louver.untrusted.engines.postgres.encryption import PARAMETERS, Encryption, encryption_of
from louver.untrusted.engines.postgres.wrong_url import wrong

DEFAULT_PORT = 5432
#: Where servers put their sockets, by the distribution.
SOCKET_FOLDERS = ("/var/run/postgresql", "/tmp")  # noqa: S108 - PostgreSQL's own default
_PARAMETERS = frozenset(
    (
        "host", "port", "user", "dbname", "application_name", "connect_timeout", "lock_timeout",
        "target_session_attrs", *PARAMETERS,
    )
)  # fmt: skip
_ATTRIBUTES = ("any", "primary", "read-write")
_MOST_HOSTS = 16
_DEFAULT_TIMEOUT_S = 10
_DEFAULT_LOCK_MS = 10_000


@dataclass(frozen=True, slots=True)
class Host:
    """A server, by a name or address, or by a folder of sockets, which begins with a slash."""

    name: str
    port: int
    encryption: Encryption = field(default_factory=Encryption)
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Target:
    """A database and the role that asks. Of several ``hosts`` the first is taken that answers, and
    is what ``attributes`` says: any, a primary, or one that is read-write. ``lock_ms``: how long to
    wait for another transaction, in milliseconds.
    """

    hosts: tuple[Host, ...]
    user: str
    database: str
    application: str = "louver"
    timeout_s: int = _DEFAULT_TIMEOUT_S
    lock_ms: int = _DEFAULT_LOCK_MS
    attributes: str = "any"

    @property
    def address(self) -> str:
        """A stable name of the database."""
        return self.address_of(self.hosts)

    def address_of(self, hosts: Sequence[Host]) -> str:
        """The database at some of the hosts."""
        name = quote(self.database, safe="")
        if len(hosts) == 1 and hosts[0].name.startswith("/"):
            return f"postgresql:///{name}?host={quote(hosts[0].name)}&port={hosts[0].port}"
        return f"postgresql://{','.join(map(_written, hosts))}/{name}"


def target_of(url: str) -> Target:
    """What a URL names; ``url.format`` for one that cannot be read."""
    rest = url.partition("://")[2]
    if "#" in rest or "\0" in unquote(rest):
        raise wrong("a character that no part of it can have")
    rest, _, query = rest.partition("?")
    authority, _, path = rest.partition("/")
    given = _parameters(query)
    who, at, where = authority.rpartition("@")
    if at and ":" in who:
        raise wrong("it holds a password, which belongs into PGPASSWORD or ~/.pgpass")
    user = given.get("user") or unquote(who) or os.environ.get("PGUSER") or getpass.getuser()
    name = given.get("dbname") or unquote(path) or os.environ.get("PGDATABASE") or user
    attributes = given.get("target_session_attrs", "any")
    if attributes not in _ATTRIBUTES:
        raise wrong(f"target_session_attrs is one of {', '.join(_ATTRIBUTES)}")
    return Target(
        _hosts(where, given, name, user),
        user,
        name,
        given.get("application_name", "louver"),
        _number("connect_timeout", given.get("connect_timeout", str(_DEFAULT_TIMEOUT_S)), 3_600),
        _number("lock_timeout", given.get("lock_timeout", str(_DEFAULT_LOCK_MS)), 3_600_000),
        attributes,
    )


def _hosts(where: str, given: dict[str, str], database: str, user: str) -> tuple[Host, ...]:
    pairs = [_host_and_port(part) for part in where.split(",")]
    names = given.get("host") or ",".join(name for name, _ in pairs)
    names = names if names.strip(",") else os.environ.get("PGHOST") or _default_host()
    ports = given.get("port") or ",".join(port for _, port in pairs)
    ports = ports if ports.strip(",") else os.environ.get("PGPORT") or str(DEFAULT_PORT)
    listed, numbers = names.split(","), ports.split(",")
    numbers = numbers * len(listed) if len(numbers) == 1 else numbers
    if len(numbers) != len(listed):
        raise wrong("it has another number of ports than of hosts")
    if len(listed) > _MOST_HOSTS or not all(listed):
        raise wrong(f"a host without a name, or more hosts than {_MOST_HOSTS}")
    hosts = []
    for name, text in zip(listed, numbers, strict=True):
        port = _number("port", text or str(DEFAULT_PORT), 65_535)
        password = os.environ.get("PGPASSWORD") or _from_file(name, port, database, user)
        hosts.append(Host(name, port, encryption_of(name, given), password))
    return tuple(hosts)


def _written(host: Host) -> str:
    name = quote(host.name, safe="") if host.name.startswith("/") else host.name
    return f"[{name}]:{host.port}" if ":" in name else f"{name}:{host.port}"


def _parameters(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise wrong("what follows ? is not name=value") from None
    given = dict(pairs)
    if "password" in given:
        raise wrong("it holds a password, which belongs into PGPASSWORD or ~/.pgpass")
    unknown = sorted(set(given) - _PARAMETERS)
    if unknown:
        known = ", ".join(sorted(_PARAMETERS))
        raise wrong(f"{unknown[0]!r:.40} is none of the parameters {known}")
    return given


def _host_and_port(where: str) -> tuple[str, str]:
    if where.startswith("["):
        host, end, port = where[1:].partition("]")
        if not end or (port and not port.startswith(":")):
            raise wrong("an address in brackets that does not end")
        return host, port[1:]
    host, _, port = where.partition(":")
    return unquote(host), port


def _number(name: str, text: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 9 and 0 < int(text) <= most):
        raise wrong(f"{name} is not a number from 1 to {most}")
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
