"""Types of PostgreSQL as types of the local engine that hold the same values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from louver.names import quoted
from louver.trusted.backends.postgres_plain.expressions import MOST_DIGITS

_NUMERIC = 1700
_MODIFIER_OFFSET = 4
_WIDEST = 38
_PADDED = 1042
_TEXTS = (25, 1043, _PADDED, 19)
_BY_NUMBER = {
    16: "BOOLEAN", 21: "SMALLINT", 23: "INTEGER", 20: "BIGINT", 26: "UINTEGER", 700: "FLOAT",
    701: "DOUBLE", 17: "BLOB", 2950: "UUID", 1082: "DATE", 1114: "TIMESTAMP",
    1184: "TIMESTAMP WITH TIME ZONE", 1083: "TIME", 1186: "INTERVAL",
    **dict.fromkeys(_TEXTS, "VARCHAR"),
}  # fmt: skip
_INTEGERS = frozenset(("SMALLINT", "INTEGER", "BIGINT"))
#: Values that the local type has no place for, as a condition on a column.
_ODD = {
    "DECIMAL": ("NaN", "{0} = 'NaN'"),
    "TIME": ("24:00:00", "{0} = '24:00:00'"),
    "TIMESTAMP": ("after the year 294246", "{0} > '294246-12-31' AND isfinite({0})"),
    "INTERVAL": (
        "without end, or of very many hours",
        "NOT isfinite({0}) OR abs(extract(hour FROM {0})) > 2500000",
    ),
}


@dataclass(frozen=True, slots=True)
class LocalType:
    """A type of the local engine; how the server is asked for its values; which of these it cannot
    hold; and the kind by which expressions know it.
    """

    name: str
    request: str = "{0}"
    odd: tuple[str, str] | None = None
    kind: str | None = None


def local_type(column: dict[str, Any], *, as_text: bool) -> LocalType | None:
    """The local type of a column of the server's catalog; None where there is none."""
    number, written = column["type"], LocalType("VARCHAR", "{0}::text")
    if column["kind"] == "e":
        path = f"{quoted(column['type_schema'])}.{quoted(column['type_name'])}"
        return LocalType(path, "{0}::text")
    if not column["is_deterministic"]:
        return LocalType("VARCHAR") if as_text else None
    if number == _NUMERIC:
        return _decimal(column["modifier"]) or (written if as_text else None)
    name = _BY_NUMBER.get(number) if column["kind"] == "b" else None
    if name is None:
        return written if as_text else None
    if name == "VARCHAR":
        kind: str | None = "bytes" if column["is_bytewise"] else "text"
        # Blanks at the end of these count in no comparison, and are not brought along.
        kind = None if number == _PADDED else kind
        return LocalType(name, "{0}" if number == 25 else "{0}::text", kind=kind)
    if name in ("TIME", "UUID"):
        return LocalType(name, "{0}::text", _ODD.get(name))
    if name == "INTERVAL":
        return LocalType(name, odd=_ODD[name])
    kind = "number" if name in _INTEGERS else {"DATE": "date", "DOUBLE": "double"}.get(name)
    return LocalType(name, odd=_ODD.get(name.split()[0]), kind=kind)


def _decimal(modifier: int) -> LocalType | None:
    if modifier < _MODIFIER_OFFSET:
        return None
    width, scale = divmod(modifier - _MODIFIER_OFFSET, 1 << 16)
    if not 0 <= scale <= width <= _WIDEST:
        return None
    kind = "number" if width <= MOST_DIGITS else None
    return LocalType(f"DECIMAL({width},{scale})", odd=_ODD["DECIMAL"], kind=kind)
