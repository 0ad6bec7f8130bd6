"""SQL over encrypted data: query data on machines you do not trust.

The public face. Names are loaded when they are first used, so that a server process that
imports `louver.untrusted` never loads anything of `louver.trusted`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from louver.errors import (
    CatalogError,
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    KeyFileError,
    LeakageRefused,
    LeakageWarning,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    VerificationError,
    Warning,  # noqa: A004  (PEP 249 fixes the name)
)

if TYPE_CHECKING:
    from louver.trusted.client.connect import connect
    from louver.trusted.client.dbapi import Connection, Cursor
    from louver.trusted.client.relation import Relation
    from louver.trusted.client.typecodes import (
        BINARY,
        DATETIME,
        NUMBER,
        ROWID,
        STRING,
        Binary,
        Date,
        DateFromTicks,
        Time,
        TimeFromTicks,
        Timestamp,
        TimestampFromTicks,
    )
    from louver.trusted.vault.keyring import KeyRing

__version__ = "0.1.0"

#: PEP 249: the version of the interface.
apilevel = "2.0"
#: PEP 249: threads may share the module; a connection takes one statement at a time.
threadsafety = 1
#: PEP 249: placeholders are ``?``; ``$1`` and ``:name`` work as well.
paramstyle = "qmark"

_CLIENT = "louver.trusted.client"
_PLACES = {
    "connect": f"{_CLIENT}.connect",
    "Connection": f"{_CLIENT}.dbapi",
    "Cursor": f"{_CLIENT}.dbapi",
    "Relation": f"{_CLIENT}.relation",
    "KeyRing": "louver.trusted.vault.keyring",
    **dict.fromkeys(
        (
            "STRING",
            "BINARY",
            "NUMBER",
            "DATETIME",
            "ROWID",
            "Date",
            "Time",
            "Timestamp",
            "DateFromTicks",
            "TimeFromTicks",
            "TimestampFromTicks",
            "Binary",
        ),
        f"{_CLIENT}.typecodes",
    ),
}

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "CatalogError",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "KeyFileError",
    "KeyRing",
    "LeakageRefused",
    "LeakageWarning",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Relation",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "VerificationError",
    "Warning",
    "__version__",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]


def __getattr__(name: str) -> Any:
    module = _PLACES.get(name)
    if module is None:
        raise AttributeError(f"module 'louver' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
