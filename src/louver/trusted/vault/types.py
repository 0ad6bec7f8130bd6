"""Ranges of DuckDB's exact number types, and the types that a share can represent.

The secret-sharing scheme does not support types that are not named here: they are processed
locally.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal

from louver.names import fold

_INTEGERS = {
    "TINYINT": (-(1 << 7), (1 << 7) - 1),
    "SMALLINT": (-(1 << 15), (1 << 15) - 1),
    "INTEGER": (-(1 << 31), (1 << 31) - 1),
    "BIGINT": (-(1 << 63), (1 << 63) - 1),
    "HUGEINT": (-(1 << 127), (1 << 127) - 1),
    "UTINYINT": (0, (1 << 8) - 1),
    "USMALLINT": (0, (1 << 16) - 1),
    "UINTEGER": (0, (1 << 32) - 1),
    "UBIGINT": (0, (1 << 64) - 1),
    "UHUGEINT": (0, (1 << 128) - 1),
}
# Infinity is stored as the largest number of the type, and arithmetic must not treat it as one.
_MOMENTS = {
    "DATE": (-(1 << 31) + 2, (1 << 31) - 2),
    "TIMESTAMP": (-(1 << 63) + 2, (1 << 63) - 2),
    "TIMESTAMP_S": (-(1 << 63) + 2, (1 << 63) - 2),
    "TIMESTAMP_MS": (-(1 << 63) + 2, (1 << 63) - 2),
    "TIMESTAMP_NS": (-(1 << 63) + 2, (1 << 63) - 2),
    "TIMESTAMP WITH TIME ZONE": (-(1 << 63) + 2, (1 << 63) - 2),
}
_FIXED = frozenset(
    ("BOOLEAN", "FLOAT", "DOUBLE", "UUID", "TIME", "TIME WITH TIME ZONE", "INTERVAL")
)
_COLLATED = "VARCHAR COLLATE "
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


def decimal_scale(type_: str) -> int:
    """The scale of a DECIMAL, 0 for every other type."""
    match = _DECIMAL.fullmatch(type_)
    return int(match[2]) if match else 0


def decimal_width(type_: str) -> tuple[int, int] | None:
    """Width and scale of a DECIMAL; None for every other type."""
    match = _DECIMAL.fullmatch(type_)
    return (int(match[1]), int(match[2])) if match else None


def value_range(type_: str) -> tuple[int, int] | None:
    """Smallest and largest unscaled value of an exact type, or None for any other type."""
    match = _DECIMAL.fullmatch(type_)
    if match:
        limit = 10 ** int(match[1]) - 1
        return -limit, limit
    return _INTEGERS.get(type_) or _MOMENTS.get(type_)


#: Collations that need no extension.
_EVERYWHERE = frozenset(("nocase", "noaccent", "nfc", "c", "posix", "binary"))


def is_collated(type_: str) -> bool:
    """Whether a type has a collation; then it has no codes, since codes compare by bytes."""
    return type_.startswith(_COLLATED)


def is_everywhere(type_: str) -> bool:
    """Whether a type's collation is built into every DuckDB, including the server's."""
    parts = fold(type_.removeprefix(_COLLATED)).split(".")
    return is_collated(type_) and _EVERYWHERE.issuperset(parts)


def with_collation(collation: str) -> str:
    """The type of a column with a collation, in the local engine's syntax."""
    return _COLLATED + collation


def bare(type_: str) -> str:
    """A type without its collation."""
    return "VARCHAR" if is_collated(type_) else type_


def family(type_: str) -> str:
    """Types of one family can be compared and added directly: ``number`` for integers and decimals,
    otherwise the type itself.
    """
    return "number" if type_ in _INTEGERS or _DECIMAL.fullmatch(type_) else type_


def is_integer(type_: str) -> bool:
    """Whether the type is a whole-number type."""
    return type_ in _INTEGERS


def fits(low: int, high: int, type_: str) -> bool:
    """Whether every value of the interval is a value of the type."""
    limits = value_range(type_)
    return limits is not None and limits[0] <= low and high <= limits[1]


def is_moment(type_: str) -> bool:
    """Whether the type is a date, or a date with a time of day."""
    return type_ in _MOMENTS


def has_fixed_length(type_: str) -> bool:
    """Whether all values of the type have the same length when encrypted."""
    return can_share(type_) or type_ in _FIXED


def can_share(type_: str) -> bool:
    """Whether the secret-sharing scheme supports columns of this type."""
    return value_range(type_) is not None


_CODE_DOMAINS = {
    "BOOLEAN": "bool", "TINYINT": "int", "SMALLINT": "int", "INTEGER": "int", "BIGINT": "int",
    "UTINYINT": "int", "USMALLINT": "int", "UINTEGER": "int", "UBIGINT": "uint64",
    "HUGEINT": "int128", "UHUGEINT": "uint128", "DATE": "date", "TIME": "time",
    "TIMESTAMP": "ts", "TIMESTAMP_S": "ts_s", "TIMESTAMP_MS": "ts_ms", "TIMESTAMP_NS": "ts_ns",
    "TIMESTAMP WITH TIME ZONE": "tstz", "FLOAT": "float", "DOUBLE": "double",
    "VARCHAR": "text", "BLOB": "blob", "UUID": "uuid",
}  # fmt: skip
_WIDE = ("int128", "uint128", "text", "blob", "uuid")
_AS_WRITTEN = ("int", "text", "uuid")
_AS_SENT = ("bool", "date", "ts", "tstz")
UNORDERED = ("uuid", "blob")
"""Domains that have no order codes."""


def code_domain(type_: str) -> str | None:
    """The domain of a type's codes; values of two columns have equal codes under the same key only
    within one domain. None for types without codes.
    """
    match = _DECIMAL.fullmatch(type_)
    if match:
        return f"{'dec' if int(match[1]) <= 18 else 'bigdec'}{match[2]}"
    return _CODE_DOMAINS.get(type_)


def is_as_written(domain: str) -> bool:
    """Whether the compiled module reads a domain's values as PostgreSQL writes them."""
    return domain in _AS_WRITTEN or "dec" in domain


def is_as_sent(domain: str) -> bool:
    """Whether it reads them as clients send them: `is_as_written`, and values whose texts depend on
    settings.
    """
    return is_as_written(domain) or domain in _AS_SENT


def code_width(domain: str) -> int:
    """The bytes of an equality code: 8 (stored as BIGINT) or 16 (stored as UUID)."""
    return 16 if domain in _WIDE or domain.startswith("bigdec") else 8


# Types whose order codes are not computed from whole numbers: the bits of a floating-point number
# in IEEE order, the first eight bytes of a text, microseconds of a day.
_ORDER_BITS = {"BOOLEAN": 1, "FLOAT": 32, "DOUBLE": 64, "VARCHAR": 64, "TIME": 37}
MOST_ORDER_BITS = 64


def order_domain(type_: str) -> tuple[int, int] | None:
    """The lowest value of a type's order codes and their bits; None if it has none."""
    if type_ in _ORDER_BITS:
        return 0, _ORDER_BITS[type_]
    if type_ in _MOMENTS:
        # Infinity is the largest number of the type, and is ordered like any other.
        bits = 32 if type_ == "DATE" else 64
        return -(1 << bits - 1), bits
    limits = value_range(type_)
    return None if limits is None else interval_bits(*limits)


def interval_bits(low: int, high: int) -> tuple[int, int] | None:
    """The order domain of an interval of whole numbers; None if it is too large."""
    bits = max((high - low).bit_length(), 1)
    return (low, bits) if bits <= MOST_ORDER_BITS else None


def can_mask(type_: str) -> bool:
    """Whether columns of this type support masked sums."""
    return family(type_) == "number" and type_ != "UHUGEINT"


def sums_wide(type_: str) -> bool:
    """Whether a masked sum's limbs have 64 bits, not 60 (spec/sum.md)."""
    match = _DECIMAL.fullmatch(type_)
    return type_ == "HUGEINT" or (match is not None and int(match[1]) > 18)


# Python's own context rounds to 28 digits; DuckDB's decimals have up to 38, its sums a few more.
_EXACT = Context(prec=80)


def shifted(value: Decimal, places: int) -> Decimal:
    """A decimal times a power of ten, exactly."""
    return value.scaleb(places, _EXACT)
