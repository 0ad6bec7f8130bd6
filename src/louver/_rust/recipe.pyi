"""All stored columns of some rows in one call; a step is what one scheme makes, without keys."""

from collections.abc import Sequence
from typing import final

import pyarrow as pa

from louver._rust import Epochs, KeyRing
from louver._rust.postgres import SealedRow

@final
class Step:
    """What one scheme makes of the columns that it reads."""

@final
class Recipe:
    """The steps of a table, in the order in which their columns are stored."""

    def __new__(
        cls, row_id: str, parts: list[tuple[Step, list[int], list[str | None]]]
    ) -> Recipe: ...
    def seal(
        self,
        ring: KeyRing,
        epochs: Epochs,
        columns: list[pa.Array | pa.ChunkedArray],
        row_ids: pa.Array | pa.ChunkedArray,
    ) -> pa.RecordBatch: ...

@final
class RowForm:
    """How the rows of a table are sealed from raw values: days, microseconds and unscaled numbers
    are whole numbers, UUIDs bytes.
    """

    def __new__(
        cls, recipe: Recipe, reads: list[pa.DataType], plain: list[tuple[str, pa.DataType]]
    ) -> RowForm: ...
    def seal(
        self,
        ring: KeyRing,
        epochs: Epochs,
        reads: Sequence[object],
        plain: Sequence[object],
        row_id: int,
    ) -> SealedRow | None: ...

def seal_row(
    ring: KeyRing,
    epochs: Epochs,
    recipe: Recipe,
    columns: list[pa.Array | pa.ChunkedArray],
    plain: list[tuple[str, pa.Array | pa.ChunkedArray]],
    row_id: int,
) -> SealedRow | None: ...
def sealed_step(id: tuple[int, int, int]) -> Step: ...
def sum_step(id: tuple[int, int, int]) -> Step: ...
def text_step(id: tuple[int, int, int]) -> Step: ...
def eq_step(
    id: tuple[int, int, int], group: str, domain: str, joined: bool, closed: bool
) -> Step: ...
def ord_step(
    id: tuple[int, int, int], group: str, domain: str, low: int, bits: int, closed: bool
) -> Step: ...
def tag_step(label: str, domains: list[str]) -> Step: ...
def key_tags(
    ring: KeyRing,
    label: str,
    domains: list[str],
    columns: list[pa.Array | pa.ChunkedArray],
) -> pa.Array: ...
