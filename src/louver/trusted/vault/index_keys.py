"""The index of a lake on the trusted side (spec/eds.md): keys of a table, maps of values.

Arrays are Arrow's. The work is done in Rust, where the secrets stay.
"""

from __future__ import annotations

from typing import Any, NoReturn, cast

import pyarrow as pa

from louver import errors
from louver.trusted.vault import native

#: What is known about a column in a file: a range, that it has no value, or nothing.
RANGE, NO_VALUE, ANY_VALUE = 0, 1, 2

Buffer = bytes | memoryview


class LakeKeys:
    """The keys of one lake table; use `KeyRing.lake_table`. Cannot be pickled."""

    __slots__ = ("native",)

    def __init__(self, handle: Any) -> None:
        """Wrap a handle of the compiled module; its functions take the handle as `native`."""
        self.native = handle

    def __repr__(self) -> str:
        return repr(self.native)

    def __reduce__(self) -> NoReturn:
        raise TypeError("keys of a lake cannot be pickled or copied")

    def index_id(self, column_id: int, generation: int, spec: bytes) -> bytes:
        """The public name of an index: 16 bytes that reveal neither table nor column."""
        return cast(bytes, self.native.index_id(column_id, generation, spec))

    def segment(
        self,
        column_id: int,
        generation: int,
        spec: bytes,
        lows: pa.Array,
        highs: pa.Array,
        states: pa.Array,
    ) -> bytes:
        """A new segment for 1 to 32,768 files: mapped uint64 bounds and a uint8 state for each.

        States are `RANGE`, `NO_VALUE` (no token matches the file) and `ANY_VALUE` (every token
        does); the last two ignore the bounds.
        """
        result = self.native.segment(column_id, generation, spec, lows, highs, states)
        return cast(bytes, result)

    def token(
        self,
        column_id: int,
        generation: int,
        spec: bytes,
        low: int,
        high: int,
        sides: bool = False,
    ) -> bytes:
        """A token for an inclusive range of mapped values; equal ranges have equal tokens.

        With `sides` the server learns which sub-tokens are for lower bounds, which avoids false
        positives.
        """
        return cast(bytes, self.native.token(column_id, generation, spec, low, high, sides))

    def opened(self, token: bytes) -> list[int]:
        """The filter positions that a token opens, ascending."""
        return cast(list[int], self.native.opened(token))

    def check(
        self, column_id: int, generation: int, segment: Buffer, token: bytes | None = None
    ) -> None:
        """Check the tags of the parts of a segment that a token reads, or of the whole segment.

        VerificationError if the segment was altered or belongs to another index.
        """
        try:
            self.native.check(column_id, generation, segment, token)
        except native.module().VerifyError as error:
            raise _tampered(f"the index of column {column_id}", error) from error

    def sign(self, purpose: str, context: bytes, data: Buffer) -> bytes:
        """HMAC-SHA256 of context and data under a key of this table and purpose: 32 bytes."""
        return cast(bytes, self.native.sign(purpose, context, data))

    def verify(self, purpose: str, context: bytes, data: Buffer, tag: bytes) -> None:
        """Check the result of `sign` in constant time; VerificationError if it differs."""
        try:
            self.native.verify(purpose, context, data, tag)
        except native.module().VerifyError as error:
            raise _tampered(purpose, error) from error


def mappable(duckdb_type: str, letters: bool = False) -> bool:
    """Whether files can be skipped by values of this type, given by its DuckDB name."""
    return cast(bool, native.module().mappable(duckdb_type, letters))


def map_bounds(
    array: pa.Array | pa.ChunkedArray, duckdb_type: str, letters: bool = False
) -> tuple[int | None, int | None, int]:
    """Least and greatest mapped value, None if there is no value, and the number of NULLs.

    ValueError for a type without a map, and for arrays of another type. `letters` maps VARCHAR
    by twelve letters instead of eight bytes.
    """
    bounds = native.module().map_bounds(array, duckdb_type, letters)
    return cast(tuple[int | None, int | None, int], bounds)


def map_values(
    array: pa.Array | pa.ChunkedArray, duckdb_type: str, letters: bool = False
) -> pa.Array:
    """The mapped values as uint64, NULL for NULL; the map is monotonic."""
    return native.module().map_values(array, duckdb_type, letters)


def _tampered(what: str, error: Exception) -> errors.Error:
    return errors.make("lake.tampered", path=what, detail=str(error))
