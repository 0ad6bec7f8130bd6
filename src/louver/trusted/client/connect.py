"""connect(): from a URL and a key file to a connection."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from louver import errors
from louver.names import fold
from louver.trusted import backends
from louver.trusted.client.dbapi import Connection
from louver.trusted.executor import carried_ledger
from louver.trusted.executor.containment import guarded
from louver.trusted.executor.context import Context
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.server_storage import ServerStorage
from louver.trusted.executor.session import Session
from louver.trusted.executor.storage import Parts, Storage
from louver.trusted.vault.catalog import DUCKDB
from louver.trusted.vault.catalog_store import CatalogStore
from louver.trusted.vault.keyring import KeyRing
from louver.trusted.vault.pin import Pins
from louver.untrusted.engines.engine import Engine
from louver.wire.tap import Tap

PROVIDERS = "providers"
#: Kinds of machines that need later releases.
_LATER = ("spark", "duckdb+http")


@guarded
def connect(
    url: str = "duckdb:///:memory:",
    keys: str | os.PathLike[str] | KeyRing | None = None,
    profile: str | None = None,
    policy: str | os.PathLike[str] | None = None,
    *,
    read_only: bool = False,
    language: str | None = None,
) -> Connection:
    """Connect to a database that you do not trust.

    Args:
        url: ``duckdb:///relative/file``, ``duckdb:////absolute/file``, ``duckdb:///:memory:``,
            ``postgresql://user@host/database``, ``lake:///directory``, ``lake+http://host:port``,
            or ``providers://a:7001,b:7001`` for private questions to public data.
        keys: the key file (``louver key new FILE`` makes one), or an open `KeyRing`; providers
            need none.
        profile: what a bare ENC means: ``sealed`` (the default), ``cryptdb`` or ``sdb``.
        policy: a TOML file with ceilings and schemes per table and column.
        read_only: write neither to the database nor to its ledger. A statement that would change
            the database raises ``connection.read_only``; a query that would reveal something that
            is not in the ledger yet raises ``ledger.read_only``. Nothing is sent for either.
        language: the SQL of a database that is created: ``duckdb``; behind ``postgresql://`` it is
            ``postgres``, or ``duckdb`` where that is given. A database that is there has one
            already, and another one raises ``language.other``.

    Raises:
        errors.Error: ``url.*``, ``key.*``, ``policy.*``, ``profile.unknown`` for arguments that
            cannot be used; ``database.*``, ``catalog.*`` and ``ledger.*`` for a database that is
            not there, or is not what this key has last seen there.
    """
    errors.refuse_keys(url, _named(keys), profile, policy)
    if is_providers(url):
        from louver.trusted.client import connect_providers

        return connect_providers.connect(url)
    session = open_session(url, keys, profile, policy, read_only=read_only, language=language)
    return Connection(session)


def open_session(
    url: str,
    keys: str | os.PathLike[str] | KeyRing | None,
    profile: str | None = None,
    policy: str | os.PathLike[str] | None = None,
    *,
    tapped: bool = False,
    modulus_bits: int = 2048,
    read_only: bool = False,
    language: str | None = None,
) -> Session:
    """A session; ``tapped`` puts a recorder between client and server."""
    errors.refuse_keys(url, _named(keys), profile, policy)
    if is_providers(url):
        statement = "Private data beside providers:// in one session"
        raise errors.make("sql.unsupported", statement=statement)
    scheme = scheme_of(url)
    module = backends.engine(scheme)
    address = module.place_of_url(url)
    if read_only:
        _require_there(address)
    ring = open_keys(keys)
    rules = Policy(profile or "sealed") if policy is None else Policy.read(policy, profile)
    # A file that is opened for reading may be read by others at once.
    file = read_only and bool(address) and backends.named(scheme).storage == "server"
    engine: Engine = module.open_url(url, read_only=True) if file else module.open_url(url)
    try:
        storage = _storage(url, ring, engine)
    except BaseException:
        engine.close()
        raise
    if tapped:
        engine = Tap(engine)
    if read_only:
        from louver.untrusted.engines.read_only import ReadOnlyEngine

        engine = ReadOnlyEngine(engine)
    try:
        return Session(
            engine,
            ring,
            rules,
            modulus_bits=modulus_bits,
            storage=storage,
            opener=opened_to_read if read_only else opened,
            writable=not read_only,
            language=language or "",
        )
    except BaseException:
        engine.close()
        raise


def opened(url: str, keys: object, profile: str) -> Context:
    """What ATTACH opens."""
    if not isinstance(keys, str | os.PathLike | KeyRing):
        raise errors.make("key.unset")
    return open_session(url, keys, profile, language=DUCKDB).context


def opened_to_read(url: str, keys: object, profile: str) -> Context:
    """What ATTACH opens on a connection that only reads."""
    if not isinstance(keys, str | os.PathLike | KeyRing):
        raise errors.make("key.unset")
    return open_session(url, keys, profile, read_only=True, language=DUCKDB).context


def _require_there(address: str) -> None:
    """Refuse to read a database that would be created by opening it: in memory, or at a path where
    there is nothing. ``address`` has the path behind a colon, if it has one.
    """
    path = address.partition(":")[2]
    # Behind two slashes a host may follow, or nothing, as with a server's socket.
    local = path.startswith("/") and not path.startswith("//")
    if not address or (local and not Path(path).exists()):
        raise errors.make("database.missing", place=address or "memory")


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


def _storage(url: str, ring: KeyRing, engine: Engine) -> Callable[[Parts], Storage]:
    """What keeps the tables of an engine: SQL on its server, or files of a lake."""
    if backends.named(engine.backend).storage == "server":
        return ServerStorage
    # What lakes need takes a while to load, so no one else waits for it.
    from louver.trusted.client import connect_lake

    return connect_lake.storage(url, ring, engine)


def scheme_of(url: str) -> str:
    """The kind of machine that a URL names."""
    scheme, separator, _ = url.partition("://")
    if not separator:
        raise errors.make("url.format", detail=f"{url!r:.80} has no ://")
    scheme = fold(scheme)
    if scheme in (*_LATER, PROVIDERS):
        raise errors.make("url.unsupported", scheme=scheme)
    if scheme not in backends.ENGINES:
        raise errors.make("url.scheme", scheme=f"{scheme!r:.40}")
    return scheme


def make_keys(path: str | os.PathLike[str], comment: str = "") -> str:
    """Make a key file; its public id."""
    return KeyRing.create(path, comment)


def fork(url: str, keys: str | os.PathLike[str] | KeyRing | None) -> str:
    """Make a copied database one of its own, with what the original had revealed; its new id."""
    errors.refuse_keys(url, _named(keys))
    module = backends.engine(scheme_of(url))
    if not module.place_of_url(url) or backends.named(scheme_of(url)).storage != "server":
        raise errors.make("sql.unsupported", statement="Forking anything but a database file")
    module.require_database(url)
    ring, engine = open_keys(keys), module.open_url(url)
    try:
        embedded = backends.named(engine.backend).embedded
        store = CatalogStore(engine, ring, embedded=embedded)
        return store.fork(lambda old, new: carried_ledger.carry(engine, ring, old, new)).database_id
    finally:
        engine.close()


def accept(url: str, keys: str | os.PathLike[str] | KeyRing | None) -> None:
    """Forget what was seen at a place: the user vouches for what lies there now."""
    errors.refuse_keys(url, _named(keys))
    module = backends.engine(scheme_of(url))
    qualified_name = module.place_of_url(url)
    if qualified_name:
        module.require_database(url)
        Pins(open_keys(keys)).forget(qualified_name)
