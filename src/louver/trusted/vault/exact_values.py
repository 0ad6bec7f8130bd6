"""A constant's value in a column's domain, and the boundary that a comparison of order draws."""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver.trusted.vault.catalog import Column
from louver.trusted.vault.types import shifted
from louver.wire.messages import Constant

Exact = Fraction | float | str | bytes | None
#: More than any column of numbers with a scale holds.
_BEYOND = Decimal(10) ** 60
_DAY_US = 86_400_000_000
# What one unit of a type is in units of the finest type that it compares with.
_UNITS_US = {"date": _DAY_US, "ts": 1, "ts_s": 1_000_000, "ts_ms": 1_000}
_INTEGERS = {
    "bool": (0, 1), "int": (-(1 << 63), (1 << 63) - 1), "uint64": (0, (1 << 64) - 1),
    "int128": (-(1 << 127), (1 << 127) - 1), "uint128": (0, (1 << 128) - 1),
    "date": (-(1 << 31), (1 << 31) - 1),
}  # fmt: skip
_ARROW = {
    "bool": pa.bool_(), "int": pa.int64(), "uint64": pa.uint64(), "date": pa.date32(),
    "ts": pa.timestamp("us"), "ts_s": pa.timestamp("s"), "ts_ms": pa.timestamp("ms"),
    "ts_ns": pa.timestamp("ns"), "tstz": pa.timestamp("us", "UTC"), "time": pa.time64("us"),
}  # fmt: skip


def exact(values: pa.Array, domain: str) -> Exact:
    """A value of DuckDB's as an exact number in units of a domain, or as text or bytes."""
    storage = values.storage if isinstance(values, pa.ExtensionArray) else values
    kind = storage.type
    if not storage[0].is_valid:
        return None
    if domain in ("double", "float"):
        return float(storage[0].as_py())
    if pa.types.is_date32(kind):
        return Fraction(_raw(storage, pa.int32()) * _DAY_US, _UNITS_US[domain])
    if pa.types.is_timestamp(kind):
        unit = {"s": 1_000_000, "ms": 1_000, "us": 1}.get(kind.unit, 0)
        number = _raw(storage, pa.int64())
        return Fraction(number * unit, _UNITS_US[domain]) if unit and domain in _UNITS_US else (
            Fraction(number)
        )  # fmt: skip
    if pa.types.is_time64(kind):
        return Fraction(_raw(storage, pa.int64()))
    value = storage[0].as_py()
    if isinstance(values.type, pa.OpaqueType) and isinstance(value, str):
        value = _unbounded(value)
    if pa.types.is_fixed_size_binary(kind) and domain not in ("uuid", "blob"):
        value = int.from_bytes(value, "little", signed=domain != "uint128")
    if isinstance(value, bool | int | Decimal):
        shift: int = 10 ** _scale(domain)
        return Fraction(value) * shift
    return value if isinstance(value, str | bytes) else None


def _unbounded(text: str) -> Decimal:
    """A number of any length, as PostgreSQL writes it. Infinity and NaN lie beyond all columns:
    NaN is above every other value there.
    """
    number = Decimal(text)
    if number.is_finite():
        return number
    return -_BEYOND if number == Decimal("-Infinity") else _BEYOND


def exact_whole(value: int, domain: str) -> Exact:
    """The same of a whole number."""
    return float(value) if domain in ("double", "float") else Fraction(value * 10 ** _scale(domain))


def _raw(storage: pa.Array, type_: pa.DataType) -> int:
    return int(storage.view(type_)[0].as_py())


def _scale(domain: str) -> int:
    return int(domain.removeprefix("big")[3:]) if "dec" in domain else 0


def native(codes: pa.Array) -> Constant:
    """The first code of an array as it is bound."""
    code = codes[0].as_py()
    if isinstance(code, bytes):
        return str(uuid.UUID(bytes=code))
    return None if code is None else int(code)


def among(codes: pa.Array, constants: Sequence[Constant]) -> pa.Array:
    """Which codes are one of some that are bound; NULL is none of them."""
    wide = pa.types.is_fixed_size_binary(codes.type)
    if len(codes) == 1:
        code = native(codes)
        return pa.array([code is not None and code in constants], pa.bool_())
    wanted = [uuid.UUID(str(c)).bytes if wide else c for c in constants if c is not None]
    return pc.is_in(codes, pa.array(wanted, codes.type), skip_nulls=True)


def boundary(column: Column, domain: str, value: Exact, sign: str) -> Exact:
    """The largest value of the column's order domain on the lower side of a comparison; None where
    there is none.
    """
    strict = sign in ("<", ">=")
    low, high = column.low or 0, (column.low or 0) + (1 << column.bits) - 1
    if isinstance(value, Fraction):
        whole = math.floor(value)
        edge = whole - 1 if strict and whole == value else whole
        return None if edge < low else Fraction(min(edge, high))
    if isinstance(value, float) and strict:
        if value == -math.inf:
            return None
        return math.inf if math.isnan(value) else _below(value, domain)
    return value


def _below(value: float, domain: str) -> float:
    """The next smaller value of a domain of floating point numbers."""
    kind = np.float32 if domain == "float" else np.float64
    return float(np.nextafter(kind(value), kind(-math.inf)))


def in_domain(value: Exact, domain: str) -> pa.Array | None:
    """One value as an array that the key ring takes; None where the domain does not hold it."""
    if isinstance(value, float):
        return pa.array([value], pa.float32() if domain == "float" else pa.float64())
    if isinstance(value, str):
        return pa.array([value], pa.string())
    if isinstance(value, bytes):
        kind = pa.binary(16) if domain == "uuid" else pa.binary()
        return pa.array([value], kind)
    if value is None or value.denominator != 1:
        return None
    number = int(value)
    if "dec" in domain:
        big = domain.startswith("big")
        if abs(number) >= 10 ** (38 if big else 18):
            return None
        scaled = shifted(Decimal(number), -_scale(domain))
        return pa.array([scaled], pa.decimal128(38 if big else 18, _scale(domain)))
    low, high = _INTEGERS.get(domain, (-(1 << 63), (1 << 63) - 1))
    if not low <= number <= high:
        return None
    if domain in ("int128", "uint128"):
        raw = number.to_bytes(16, "little", signed=domain == "int128")
        return pa.array([raw], pa.binary(16))
    if domain == "bool":
        return pa.array([bool(number)])
    width = {"date": pa.int32(), "uint64": pa.uint64()}.get(domain, pa.int64())
    return pa.array([number], width).view(_ARROW[domain])
