"""Codes, tokens and points: values in representations that a server can compare; and tiles.

Arrays are Arrow's; `table, column, generation` identify a column's keys. A domain is the planner's
name for values that are comparable with each other. Wrong types and values raise ValueError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import pyarrow as pa

from louver import errors
from louver.trusted.vault import native
from louver.trusted.vault.recipes import Recipe


class CodeKeys:
    """The part of `KeyRing` that computes codes."""

    __slots__ = ()
    _ring: Any
    _epochs: Any

    def seal_rows(
        self, recipe: Recipe, columns: Sequence[pa.Array], row_ids: pa.Array
    ) -> pa.RecordBatch:
        """What a recipe makes of the columns that it reads, behind the row ids."""
        return recipe.handle.seal(self._ring, self._epochs, columns, row_ids)

    def seal_row(
        self, recipe: Recipe, columns: Sequence[pa.Array], plain: Sequence[tuple[str, pa.Array]],
        row_id: int,
    ) -> Any | None:  # fmt: skip
        """The same of one row, with what is stored as it is, as a statement takes it; None where a
        plain value is of a type that it does not take.
        """
        seal = native.module().recipe.seal_row
        return seal(self._ring, self._epochs, recipe.handle, columns, plain, row_id)

    def seal_raw(self, recipe: Recipe, values: Sequence[object], row_id: int) -> Any | None:
        """The same of the raw values of all declared columns, for a recipe with such a form; None
        where one is not taken.
        """
        reads, plain = ([values[position] for position in positions] for positions in recipe.places)
        return recipe.form.seal(self._ring, self._epochs, reads, plain, row_id)

    def eq_codes(
        self, table: int, column: int, generation: int, group: str, domain: str, values: pa.Array
    ) -> pa.Array:
        """Equality codes (spec/eq.md): int64, or 16 bytes for wide domains; NULL for NULL.

        The server can adjust codes of a group's columns to `eq_join_codes`; "" means no group.
        """
        id_ = (table, column, generation)
        return native.module().codes.eq_codes(self._ring, id_, group, domain, values)

    def eq_join_codes(self, group: str, domain: str, values: pa.Array) -> pa.Array:
        """The equality codes that all columns of a group share."""
        return native.module().codes.eq_join_codes(self._ring, group, domain, values)

    def key_tags(self, label: str, domains: Sequence[str], columns: Sequence[pa.Array]) -> pa.Array:
        """The tags (spec/key.md, 16 bytes) of a key by the values of its columns, a domain for
        each; NULL where one is.
        """
        return native.module().recipe.key_tags(self._ring, label, domains, columns)

    def look_up_tags(self, look_up: Any, values: Sequence[Sequence[tuple[object, ...]]]) -> Any:
        """The tags of the values of a statement: for each key of a look-up a list, of a value for
        each of its columns. None where a value is not taken as it is.
        """
        return look_up.tags(self._ring, values)

    def direct(self, kind: Callable[..., Any], session: Any, *given: Any) -> Any:
        """What runs a statement for a client of the front door, without Python: a ``kind`` of
        these, with what it is made of (`louver._rust.proxy.Read` and `Write`).
        """
        return kind(session, self._ring, self._epochs, *given)

    def look_up_rows(self, look_up: Any, reply: Any, tags: Any) -> Any | None:
        """The opened rows of a reply that have these tags; None where a value was altered or moved,
        and where the reply is another one than the look-up knows.
        """
        try:
            return look_up.open(self._ring, self._epochs, reply, tags)
        except (ValueError, native.module().VerifyError):
            return None

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
        """Order codes (spec/ord.md) for the 2^bits values from `low` on.

        int64 up to 47 bits, otherwise 16 bytes that compare bytewise; greater than 0, and NULL for
        NULL. For strings the first eight bytes count (low 0, 64 bits). Values outside raise.
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
        """Codes of an onion (eq or ord) encrypted with their rows' pads; NULL, as code 0, too."""
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
        """Order-revealing ciphertexts (spec/ore.md); NULL is hidden among them, above all."""
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
        """The token that `ore_compare` compares with, for an array with one value."""
        id_ = (table, column, generation)
        codes = native.module().codes
        return cast(bytes, codes.ore_token(self._ring, id_, domain, low, bits, value))

    def layer_key(self, table: int, column: int, generation: int, onion: str, row_id: int) -> bytes:
        """The 32 bytes with which a server removes the pads of an onion's codes, for all rows in
        the epoch of this row.
        """
        id_, epochs = (table, column, generation), self._epochs
        return cast(bytes, native.module().codes.layer_key(self._ring, id_, epochs, onion, row_id))

    def det_key(self, table: int, column: int, generation: int) -> bytes:
        """The 17 bytes with which a server adjusts equality codes to those of their group."""
        id_ = (table, column, generation)
        return cast(bytes, native.module().codes.det_key(self._ring, id_))


Identity = tuple[int, int, int]
"""A table, a column, and the generation of its tiles' key."""


class TileKeys(CodeKeys):
    """The part of `KeyRing` that seals and opens tiles (spec/tile.md)."""

    __slots__ = ()

    def seal_tiles(
        self, identity: Identity, form: Any, values: pa.Array, first: int, rows: int
    ) -> pa.Array:
        """The values of consecutive rows, which begin at ``first``, so many ``rows`` in a tile."""
        seal = native.module().tiles.seal
        sealed: pa.Array = seal(self._ring, identity, self._epochs, form, values, first, rows)
        return sealed

    def open_tiles(
        self, identity: Identity, form: Any, sealed: pa.Array, firsts: pa.Array,
        type: pa.DataType,  # noqa: A002 - the field's term
        slots: list[int] | None = None,
    ) -> tuple[pa.Array, list[int]]:  # fmt: skip
        """Values as one array of a type, and how many rows each tile has; ``slots`` chooses rows:
        row r of tile t is 1024·t + r, ascending. VerificationError names the first row of a tile
        that was altered or moved.
        """
        compiled = native.module()
        own = self._ring, identity, self._epochs, form
        try:
            opened: tuple[pa.Array, list[int]] = compiled.tiles.open(
                *own, sealed, firsts, type, slots
            )
        except compiled.VerifyError as error:
            row = getattr(error, "row_id", None)
            raise errors.make(
                "value.tampered", table=f"table {identity[0]}", column=f"column {identity[1]}",
                row=str(error) if row is None else row,
            ) from error  # fmt: skip
        return opened
