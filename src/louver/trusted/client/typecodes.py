"""PEP 249's type objects and constructors, and DuckDB's names of Arrow types."""

from __future__ import annotations

import datetime

import pyarrow as pa

from louver.names import keyword


class TypeObject:
    """A group of SQL types; equal to each of its type codes in `Cursor.description`."""

    def __init__(self, name: str, *families: str) -> None:
        self.name = name
        self.families = frozenset(families)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return base_of(other) in self.families
        return self is other

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"louver.{self.name}"


def base_of(type_: str) -> str:
    """The name of a DuckDB type without its parameters: ``DECIMAL(9,2)`` is ``DECIMAL``."""
    if type_.endswith("]"):
        return "LIST"
    return keyword(type_.split("(", 1)[0].strip())


STRING = TypeObject("STRING", "VARCHAR", "CHAR", "TEXT", "STRING", "UUID", "ENUM", "JSON", "BIT")
BINARY = TypeObject("BINARY", "BLOB", "BYTEA", "VARBINARY")
NUMBER = TypeObject(
    "NUMBER", "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT",
    "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "BIGNUM", "FLOAT", "DOUBLE", "DECIMAL",
)  # fmt: skip
DATETIME = TypeObject(
    "DATETIME", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS",
    "TIMESTAMP WITH TIME ZONE", "TIME WITH TIME ZONE", "TIME_NS", "INTERVAL",
)  # fmt: skip
ROWID = TypeObject("ROWID")

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes
DateFromTicks = datetime.date.fromtimestamp
TimestampFromTicks = datetime.datetime.fromtimestamp


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802 - PEP 249's name
    """The local time of day ``ticks`` seconds after the epoch."""
    return datetime.datetime.fromtimestamp(ticks).time()


_NAMES = {
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "large_string": "VARCHAR",
    "binary": "BLOB",
    "large_binary": "BLOB",
    "date32[day]": "DATE",
}


def duckdb_type(type_: pa.DataType) -> str:
    """DuckDB's name of an Arrow type."""
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"{duckdb_type(type_.value_type)}[]"
    if pa.types.is_timestamp(type_):
        return "TIMESTAMP WITH TIME ZONE" if type_.tz else "TIMESTAMP"
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision},{type_.scale})"
    return _NAMES.get(str(type_), "VARCHAR")
