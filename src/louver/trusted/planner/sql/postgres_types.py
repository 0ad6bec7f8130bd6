"""Types of PostgreSQL that have the values and the order of one that Louver has codes for.

The catalog calls such a type by the name that the vault knows (`vault.types`), which is DuckDB's;
any other by PostgreSQL's own. PostgreSQL's names have small letters, so none is taken for another.
A `numeric` without a scale has several forms of one value, `character(n)` is compared without its
blanks, and a time of day may be 24:00: these are sealed, and have no codes.
"""

from __future__ import annotations

import re

_NAMES = {
    "smallint": "SMALLINT", "integer": "INTEGER", "bigint": "BIGINT", "boolean": "BOOLEAN",
    "real": "FLOAT", "double precision": "DOUBLE", "text": "VARCHAR", "bytea": "BLOB",
    "uuid": "UUID", "date": "DATE", "timestamp without time zone": "TIMESTAMP",
    "timestamp with time zone": "TIMESTAMP WITH TIME ZONE", "character varying": "VARCHAR",
}  # fmt: skip
_NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)")
_PADDED = re.compile(r"character\((\d+)\)")
_VARYING = re.compile(r"character varying\(\d+\)")
_DECIMAL = re.compile(r"DECIMAL\((\d+), ?(\d+)\)")
_MOST_DIGITS = 38
#: The first of several PostgreSQL names of one type is what local tables are made with.
_OWN = {ours: own for own, ours in reversed(_NAMES.items())} | {
    "HUGEINT": "numeric(39,0)",
    # What files and frames have, which no column here is of.
    "TINYINT": "smallint", "UTINYINT": "smallint", "USMALLINT": "integer", "UINTEGER": "bigint",
    "UBIGINT": "numeric(20,0)", "TIMESTAMP_S": "timestamp", "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_NS": "timestamp", "JSON": "jsonb",
}  # fmt: skip


def catalog_type(declared: str) -> str:
    """The catalog's name of a type that PostgreSQL prints like this."""
    match = _NUMERIC.fullmatch(declared)
    if match and int(match[2]) <= int(match[1]) <= _MOST_DIGITS:
        return f"DECIMAL({match[1]},{match[2]})"
    if _VARYING.fullmatch(declared):
        return "VARCHAR"
    return _NAMES.get(declared, declared)


def blank_padded(name: str) -> int | None:
    """How many characters all texts of a type have, which blanks fill up; None of any other."""
    match = _PADDED.fullmatch(name)
    return int(match[1]) if match else None


def own_type(name: str) -> str:
    """PostgreSQL's name of one of the catalog's types."""
    match = _DECIMAL.fullmatch(name)
    return f"numeric({match[1]},{match[2]})" if match else _OWN.get(name, name)
