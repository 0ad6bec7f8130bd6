"""`louver inspect` where tables are files: what these show without the key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from louver.trusted.apps import terminal

if TYPE_CHECKING:
    from louver.untrusted.engines.stored import FileTable, StoredFiles


def lines(
    stored: StoredFiles, tables: Sequence[FileTable], files: int, most_bytes: int
) -> Iterator[str]:
    """Tables, their columns, and their first files."""
    for table in tables:
        yield (
            f"{terminal.styled(terminal.clean(table.label), 'bold')}: {table.rows:,} rows in"
            f" {table.files:,} files of {table.size_bytes:,} bytes, snapshot {table.snapshot}"
        )
        yield f"  columns {', '.join(map(terminal.clean, table.columns))}, all binary"
        for index_id, count, size in table.indexes:
            yield f"  index {index_id}: {count:,} files, {size:,} bytes"
        for file in stored.files(table)[:files]:
            yield f"  {file.path}: {file.rows:,} rows, {file.size_bytes:,} bytes"
            dump = terminal.hex_lines(stored.read(file, most_bytes), most_bytes)
            yield from (f"    {line}" for line in dump)
        yield ""


def as_json(stored: StoredFiles, tables: Sequence[FileTable], files: int) -> list[dict[str, Any]]:
    """The same as plain data."""
    return [
        {
            "table": table.label,
            "rows": table.rows,
            "files": table.files,
            "bytes": table.size_bytes,
            "columns": list(table.columns),
            "indexes": [
                {"id": index_id, "files": count, "bytes": size}
                for index_id, count, size in table.indexes
            ],
            "first_files": [
                {"path": file.path, "rows": file.rows, "bytes": file.size_bytes}
                for file in stored.files(table)[:files]
            ],
        }
        for table in tables
    ]
