"""What a server of PostgreSQL stores of a plain column, by its type (docs/decisions/0031).

| type | stored as |
|---|---|
| PostgreSQL's own, with their lengths and digits, arrays of them included | itself |
| a domain | what the type is stored as that it is of in the end |
| an enumerated type | `text`: the labels |
| composites, ranges of users, and arrays of users' types | `bytea`: the binary form |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from louver import errors
from louver.trusted.executor.local.postgres import values
from louver.trusted.planner.sql.postgres_types import catalog_type, own_type

if TYPE_CHECKING:
    from louver.trusted.executor.local.postgres.connection import PostgresConnection

_TEXT, _BYTES = "VARCHAR", "BLOB"
#: What is below is PostgreSQL's own, and the same on every server.
_FIRST_OF_USERS = 16_384
#: Types whose binary form is their text, and those of whole rows of the system's tables.
_KIND = (
    "SELECT t.typtype::text, p.prosrc FROM pg_catalog.pg_type AS t LEFT JOIN pg_catalog.pg_proc"
    " AS p ON p.oid = t.typsend WHERE t.oid = $1::oid"
)
_TEXTS = frozenset({"enum_send", "textsend"})
#: The type whose empty value is such; its binary form, and what an array has of it.
_NOT_TAKEN, _EMPTY, _EMPTY_ELEMENT = "tsquery", b"\0\0\0\0", b"\0\0\0\4\0\0\0\0"


def stored_as(connection: PostgresConnection, type_: str) -> str:
    """The catalog's name of the type that a server stores for a type, by the catalog's name."""
    # The type that a domain is of in the end, with its modifier, is what an answer has.
    sql = f"SELECT NULL::{own_type(type_)} AS c LIMIT 0"
    (column,) = connection.run(sql)[1]
    ((kind, sends),) = connection.fetchall(_KIND, [str(column[1])])
    if column[1] < _FIRST_OF_USERS and kind != "c":
        ((_, name),) = connection.described([column])
        return catalog_type(name.removeprefix("pg_catalog."))
    return _TEXT if sends in _TEXTS else _BYTES


def as_stored(column: pa.ChunkedArray, type_: str) -> pa.ChunkedArray:
    """Values of a plain column as those of the type that it is stored as."""
    arrays = [_as_stored(chunk, type_) for chunk in column.chunks]
    return pa.chunked_array(arrays) if arrays else column


def require_received(column: pa.ChunkedArray) -> None:
    """Raise for values that PostgreSQL sends in binary form but does not take: no query would read
    the rows that they are in.
    """
    if not values.is_opaque(column.type) or not column.type.type_name.startswith(_NOT_TAKEN):
        return
    for chunk in column.chunks:
        given = [value for value in chunk.storage.to_pylist() if value is not None]
        if any(value == _EMPTY or _EMPTY_ELEMENT in value for value in given):
            detail = f"an empty {column.type.type_name} has no binary form that PostgreSQL reads"
            raise errors.make("postgres.value", detail=detail)


def is_same(type_: pa.DataType) -> bool:
    """Whether values of this type are stored as they are, whatever the column's type."""
    opaque = values.is_opaque(type_)
    return not (opaque or pa.types.is_time64(type_) or pa.types.is_uint32(type_))


def _as_stored(array: pa.Array, type_: str) -> pa.Array:
    if pa.types.is_uint32(array.type):
        binary = values.sent(array, values.OID)
        return pa.ExtensionArray.from_storage(_opaque("oid"), binary)
    if pa.types.is_time64(array.type):
        binary = values.sent(array, values.TIME)
        return pa.ExtensionArray.from_storage(_opaque("time without time zone"), binary)
    if type_ == _TEXT:
        return array.storage.cast(pa.string())
    if type_ == _BYTES:
        return array.storage
    kind = pa.opaque(array.type.storage_type, type_, values.VENDOR)
    return pa.ExtensionArray.from_storage(kind, array.storage)


def _opaque(name: str) -> pa.DataType:
    return pa.opaque(pa.binary(), name, values.VENDOR)
