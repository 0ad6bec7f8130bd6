"""What a key ring makes of values so that a server can compare them: codes, tokens and points.

Arrays are Arrow's; `table, column, generation` name a column's keys. A domain is a word of the
planner's for values that compare with each other. Wrong types and values raise ValueError.
"""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa

from louver.trusted.vault import native


class CodeKeys:
    """The part of `KeyRing` that makes codes."""

    __slots__ = ()
    _ring: Any
    _epochs: Any

    def eq_codes(
        self, table: int, column: int, generation: int, group: str, domain: str, values: pa.Array
    ) -> pa.Array:
        """Equality codes (spec/eq.md): int64, or 16 bytes of wide domains; NULL for NULL.

        Codes of a group's columns can be peeled to those of `eq_join_codes`; "" is no group.
        """
        id_ = (table, column, generation)
        return native.module().codes.eq_codes(self._ring, id_, group, domain, values)

    def eq_join_codes(self, group: str, domain: str, values: pa.Array) -> pa.Array:
        """The equality codes that all columns of a group share."""
        return native.module().codes.eq_join_codes(self._ring, group, domain, values)

    def ord_codes(
        self,
        table: int,
        column: int,
        generation: int,
        group: str,
        domain: str,
        low: int,
        bits: int,
        values: pa.Array,
    ) -> pa.Array:
        """Order codes (spec/ord.md) of values from `low` on, 2^bits of them.

        int64 up to 47 bits, else 16 bytes that compare as bytes; above 0, and NULL for NULL. Of
        strings the first eight bytes count (low 0, 64 bits). A value outside raises.
        """
        id_ = (table, column, generation)
        codes = native.module().codes
        return codes.ord_codes(self._ring, id_, group, domain, low, bits, values)

    def close_codes(
        self,
        table: int,
        column: int,
        generation: int,
        onion: str,
        codes: pa.Array,
        row_ids: pa.Array,
    ) -> pa.Array:
        """Codes of an onion (eq or ord) under the pads of their rows; NULL, as code 0, too."""
        id_, epochs = (table, column, generation), self._epochs
        return native.module().codes.close_codes(self._ring, id_, epochs, onion, codes, row_ids)

    def ore_seal(
        self,
        table: int,
        column: int,
        generation: int,
        domain: str,
        low: int,
        bits: int,
        values: pa.Array,
    ) -> pa.Array:
        """Order-revealing values (spec/ore.md); NULL is hidden among them, above all others."""
        id_ = (table, column, generation)
        return native.module().codes.ore_seal(self._ring, id_, domain, low, bits, values)

    def ore_token(
        self,
        table: int,
        column: int,
        generation: int,
        domain: str,
        low: int,
        bits: int,
        value: pa.Array,
    ) -> bytes:
        """What `ore_compare` compares with: the token of an array's one value."""
        id_ = (table, column, generation)
        codes = native.module().codes
        return cast(bytes, codes.ore_token(self._ring, id_, domain, low, bits, value))

    def join_points(
        self, table: int, column: int, generation: int, domain: str, values: pa.Array
    ) -> pa.Array:
        """Points of the adjustable join (spec/join.md); NULL for NULL."""
        id_ = (table, column, generation)
        return native.module().codes.join_points(self._ring, id_, domain, values)

    def join_delta(self, source: tuple[int, int, int], target: tuple[int, int, int]) -> bytes:
        """What `join_adjust` brings points of one column under another's key with.

        A column is (table, column, generation).
        """
        return cast(bytes, native.module().codes.join_delta(self._ring, source, target))

    def layer_key(self, table: int, column: int, generation: int, onion: str, row_id: int) -> bytes:
        """The 32 bytes by which a server opens the pads of an onion's codes, of all rows in the
        epoch of this one.
        """
        id_, epochs = (table, column, generation), self._epochs
        return cast(bytes, native.module().codes.layer_key(self._ring, id_, epochs, onion, row_id))

    def det_key(self, table: int, column: int, generation: int) -> bytes:
        """The 17 bytes by which a server peels equality codes to those of their group."""
        id_ = (table, column, generation)
        return cast(bytes, native.module().codes.det_key(self._ring, id_))
