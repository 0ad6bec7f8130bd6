"""connect(): from a URL and a key file to a connection."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

from louver import errors
from louver.names import fold
from louver.trusted.client.dbapi import Connection
from louver.trusted.executor.containment import guarded
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.server_storage import ServerStorage
from louver.trusted.executor.session import Session
from louver.trusted.executor.storage import Storage
from louver.trusted.vault.keyring import KeyRing
from louver.trusted.vault.pin import Pins
from louver.untrusted.engines.duckdb import MEMORY, DuckDBEngine, place_of
from louver.untrusted.engines.engine import Engine
from louver.wire.tap import Tap

LAKES = ("lake", "lake+http", "lake+https")
PROVIDERS = "providers"
#: Kinds of machines that Louver knows; those but the first need later releases.
SCHEMES = (
    "duckdb", "postgresql", "postgres", "spark", *LAKES, PROVIDERS, "duckdb+http",
)  # fmt: skip


@guarded
def connect(
    url: str = "duckdb:///:memory:",
    keys: str | os.PathLike[str] | KeyRing | None = None,
    profile: str | None = None,
    policy: str | os.PathLike[str] | None = None,
) -> Connection:
    """Connect to a database that you do not trust.

    Args:
        url: ``duckdb:///relative/file``, ``duckdb:////absolute/file``, ``duckdb:///:memory:``,
            ``lake:///directory``, ``lake+http://host:port``, or ``providers://a:7001,b:7001`` for
            private questions to public data.
        keys: the key file (``louver key new FILE`` makes one), or an open `KeyRing`; providers
            need none.
        profile: what a bare ENC means: ``sealed`` (the default), ``cryptdb`` or ``sdb``.
        policy: a TOML file with ceilings and schemes per table and column.
    """
    errors.refuse_keys(url, _named(keys), profile, policy)
    if is_providers(url):
        from louver.trusted.client import connect_providers

        return connect_providers.connect(url)
    return Connection(open_session(url, keys, profile, policy))


def open_session(
    url: str,
    keys: str | os.PathLike[str] | KeyRing | None,
    profile: str | None = None,
    policy: str | os.PathLike[str] | None = None,
    *,
    tapped: bool = False,
    modulus_bits: int = 2048,
) -> Session:
    """A session; ``tapped`` puts a recorder between client and server."""
    errors.refuse_keys(url, _named(keys), profile, policy)
    if is_providers(url):
        statement = "Private data beside providers:// in one session"
        raise errors.make("sql.unsupported", statement=statement)
    is_lake = _is_lake(url)
    path = "" if is_lake else file_of(url)
    ring = open_keys(keys)
    rules = Policy(profile or "sealed") if policy is None else Policy.read(policy, profile)
    storage: Callable[[Session], Storage] = ServerStorage
    engine: Engine
    if is_lake:
        from louver.trusted.client import connect_lake as lakes

        lake = lakes.connected(url, ring)
        engine, storage = lake.engine, lake.storage
    else:
        engine = DuckDBEngine(path)
    if tapped:
        engine = Tap(engine)
    try:
        return Session(engine, ring, rules, modulus_bits=modulus_bits, storage=storage)
    except BaseException:
        engine.close()
        raise


def _named(keys: str | os.PathLike[str] | KeyRing | None) -> object:
    """What names a key file; nothing for a ring that is open."""
    return None if isinstance(keys, KeyRing) else keys


def open_keys(keys: str | os.PathLike[str] | KeyRing | None) -> KeyRing:
    """The key ring of a path, or the one that is given."""
    if isinstance(keys, KeyRing):
        return keys
    if keys is None or not os.fspath(keys):
        raise errors.make("key.unset")
    return KeyRing.open(Path(keys).expanduser())


def is_providers(url: str) -> bool:
    """Whether a URL names providers of public data."""
    return fold(url.partition("://")[0]) == PROVIDERS


def _is_lake(url: str) -> bool:
    # What lakes need takes a while to load, so nobody else waits for it.
    return fold(url.partition("://")[0]) in LAKES


def file_of(url: str) -> str:
    """The database file of a ``duckdb://`` URL."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise errors.make("url.format", detail=f"{url!r:.80} has no ://")
    scheme = fold(scheme)
    if scheme not in SCHEMES:
        raise errors.make("url.scheme", scheme=f"{scheme!r:.40}")
    if scheme != "duckdb":
        raise errors.make("url.unsupported", scheme=scheme)
    if not rest.startswith("/"):
        raise errors.make("url.format", detail="duckdb:///file does not take a host")
    name = unquote(rest[1:])
    if not name or "\0" in name or name.endswith("/"):
        raise errors.make("url.format", detail="a file name must follow duckdb:///")
    return MEMORY if name == MEMORY else name


def make_keys(path: str | os.PathLike[str], comment: str = "") -> str:
    """Make a key file; its public id."""
    return KeyRing.create(path, comment)


def accept(url: str, keys: str | os.PathLike[str] | KeyRing | None) -> None:
    """Forget what was seen at a place: the user vouches for what lies there now."""
    errors.refuse_keys(url, _named(keys))
    if _is_lake(url):
        from louver.trusted.client import connect_lake as lakes

        place = lakes.place_of(url)
        Pins(open_keys(keys)).forget(place)
        return
    path = file_of(url)
    if path == MEMORY:
        return
    if Path(path).exists():
        DuckDBEngine(path).close()  # an error where it is no database
    Pins(open_keys(keys)).forget(place_of(path))
