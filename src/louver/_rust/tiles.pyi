"""Columns in tiles (`spec/tile.md`): up to `ROWS` values in one message."""

from typing import Final, final

import pyarrow as pa

from louver._rust import Epochs, KeyRing

ROWS: Final[int]

@final
class Form:
    """How the tiles of a column are sealed: packed numbers, or byte strings in units."""

    @staticmethod
    def packed(base: int, bits: int, nulls: bool) -> Form: ...
    @staticmethod
    def bounds(low: int, high: int, nulls: bool) -> Form: ...
    @staticmethod
    def units(unit: int, limit: int) -> Form: ...
    @property
    def packing(self) -> tuple[int, int, bool] | None: ...
    @property
    def sizes(self) -> tuple[int, int] | None: ...

def unit(values: pa.Array | pa.ChunkedArray, limit: int, rows: int = 1024) -> int: ...
def seal(
    ring: KeyRing,
    id: tuple[int, int, int],
    epochs: Epochs,
    form: Form,
    values: pa.Array | pa.ChunkedArray,
    first: int,
    rows: int = 1024,
) -> pa.Array: ...
def open(
    ring: KeyRing,
    id: tuple[int, int, int],
    epochs: Epochs,
    form: Form,
    sealed: pa.Array | pa.ChunkedArray,
    firsts: pa.Array | pa.ChunkedArray,
    type: pa.DataType,
    slots: list[int] | None = None,
) -> tuple[pa.Array, list[int]]: ...
def all_rows(
    ids: pa.Array | pa.ChunkedArray, firsts: pa.Array | pa.ChunkedArray, counts: list[int]
) -> bool: ...
