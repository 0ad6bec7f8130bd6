"""Encrypted data files of a lake (`spec/lake-files.md`)."""

from typing import Any, Final, final

import pyarrow as pa

from louver._rust import LakeKeys

ROW_GROUP_ROWS: Final[int]

def write_parquet(
    keys: LakeKeys, file_id: bytes, table: pa.Table, level: int = 1
) -> tuple[bytes, bytes, int]: ...

@final
class ParquetFile:
    """One encrypted file to be read: its footer first, then what is needed of it."""

    def __new__(
        cls, keys: LakeKeys, file_id: bytes, key_metadata: bytes, size: int
    ) -> ParquetFile: ...
    def tail_length(self) -> int: ...
    def open(self, tail: bytes) -> int: ...
    @property
    def columns(self) -> list[int]: ...
    @property
    def row_groups(self) -> list[int]: ...
    def ranges(
        self, columns: list[int], row_groups: list[int] | None = None
    ) -> list[tuple[int, int]]: ...
    def read(
        self,
        columns: list[int],
        parts: list[tuple[int, Any]],
        row_groups: list[int] | None = None,
    ) -> pa.RecordBatchReader: ...
