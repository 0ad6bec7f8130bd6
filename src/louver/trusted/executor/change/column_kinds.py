"""Which values of Python's a column of PostgreSQL's takes as they are, by its declared type: those
that no setting, no rounding and no cast makes another value of.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from uuid import UUID

from louver.trusted.planner.sql.postgres_types import catalog_type
from louver.trusted.vault.types import decimal_width

_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,36})(?:\.([0-9]{1,37}))?")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LENGTH = re.compile(r"(character|character varying)\((\d+)\)")


@dataclass(frozen=True, slots=True)
class Kind:
    """What a column takes: values of one of Python's types; numbers and UUIDs also as the texts
    that PostgreSQL prints of them.
    """

    type: type
    #: all digits of a decimal, and those behind the point
    digits: tuple[int, int] | None = None
    #: characters of a text, which blanks fill up where it is ``padded``
    longest: int | None = None
    padded: bool = False
    #: whether a time stamp has a zone
    has_zone: bool = False

    @property
    def adds(self) -> bool:
        """Whether sums of values are exact."""
        return self.type is int or self.digits is not None

    def takes(self, value: object) -> bool:
        """Whether a value is stored as it is."""
        if self.digits is not None:
            return _is_decimal(value, *self.digits)
        if type(value) is not self.type:
            is_text = self.type is UUID and type(value) is str
            return is_text and _UUID.fullmatch(str(value)) is not None
        if isinstance(value, str):
            fits = self.longest is None or len(value) <= self.longest
            return fits and "\0" not in value and (value.isascii() or _is_unicode(value))
        return not isinstance(value, datetime) or self.has_zone == (value.tzinfo is not None)

    def for_module(self) -> object:
        """The same for the compiled module: a name, a decimal's digits behind the point, or a
        text's length with whether it is filled up.
        """
        if self.digits is not None:
            return self.digits[1]
        if self.longest is not None:
            return self.longest, self.padded
        return "moment" if self.has_zone else self.type.__name__


#: By the catalog's name of a type.
_KINDS: Mapping[str, Kind] = {
    "SMALLINT": Kind(int), "INTEGER": Kind(int), "BIGINT": Kind(int), "VARCHAR": Kind(str),
    "BOOLEAN": Kind(bool), "BLOB": Kind(bytes), "UUID": Kind(UUID), "DATE": Kind(date),
    "DOUBLE": Kind(float), "TIMESTAMP": Kind(datetime),
    "TIMESTAMP WITH TIME ZONE": Kind(datetime, has_zone=True),
}  # fmt: skip


@lru_cache(256)
def kind_of(declared: str) -> Kind | None:
    """The kind of a column whose type PostgreSQL prints like this; None of one that only the engine
    knows.
    """
    length = _LENGTH.fullmatch(declared)
    if length is not None:
        return Kind(str, longest=int(length[2]), padded=length[1] == "character")
    name = catalog_type(declared)
    digits = decimal_width(name)
    return _KINDS.get(name) if digits is None else Kind(Decimal, digits=digits)


def _is_decimal(value: object, width: int, scale: int) -> bool:
    """Whether all digits of a number have a place."""
    most: int = 10 ** (width - scale)
    if type(value) is str:
        match = _NUMBER.fullmatch(value)
        return match is not None and len(match[2] or "") <= scale and int(match[1]) < most
    if type(value) is int:
        return abs(value) < most
    if type(value) is not Decimal:
        return False
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or not -scale <= exponent <= 0:
        return False
    return abs(value) < most


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
