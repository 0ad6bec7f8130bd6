"""The part of the key ring that seals and opens tiles (spec/tile.md)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from louver import errors
from louver.trusted.vault import native
from louver.trusted.vault.code_keys import CodeKeys

Identity = tuple[int, int, int]
"""A table, a column, and the generation of its tiles' key."""


class TileKeys(CodeKeys):
    """What the key ring does with tiles."""

    __slots__ = ()

    _epochs: Any

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
