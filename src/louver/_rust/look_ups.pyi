"""Rows by their keys, from the values of a statement to rows of Python's."""

from collections.abc import Sequence
from typing import Any, final

import pyarrow as pa

from louver._rust import Epochs, KeyRing
from louver._rust.postgres import Reply

@final
class Tags:
    def texts(self) -> list[str]: ...

@final
class Opened:
    def __len__(self) -> int: ...
    def raw(self) -> tuple[int, list[Any]] | None: ...
    def row_ids(self) -> pa.Array: ...
    def arrays(self) -> list[pa.Array]: ...
    def rows(self, columns: list[int]) -> list[tuple[Any, ...]] | None: ...

@final
class LookUp:
    """What is known of the answers of one query."""

    def __new__(
        cls,
        row: str,
        columns: list[tuple[str, tuple[int, int, int] | None, pa.DataType]],
        keys: list[tuple[str, list[str], list[int]]],
        most: int,
    ) -> LookUp: ...
    def tags(
        self, ring: KeyRing, values: Sequence[Sequence[tuple[object, ...]]]
    ) -> Tags | None: ...
    def open(self, ring: KeyRing, epochs: Epochs, reply: Reply, tags: Tags) -> Opened: ...
