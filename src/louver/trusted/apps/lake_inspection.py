"""`louver inspect` of a lake: what its files show without the key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from louver import errors
from louver.trusted.apps import terminal
from louver.untrusted.lake.plan import plan
from louver.untrusted.lake.root import Root
from louver.untrusted.lake.warehouse import Warehouse
from louver.wire.prune import Everything, FileEntry


def seen(warehouse: Warehouse, name: str | None) -> Iterator[tuple[str, Root, list[FileEntry]]]:
    """Every table that has files, or the table of this name: its root and all of its files."""
    names = warehouse.tables()
    if name is not None and name not in names:
        raise errors.make("table.missing", table=name)
    for table in names if name is None else [name]:
        root = warehouse.root(table)
        if root is not None:
            yield table, root, list(plan(warehouse.objects, root, Everything()).files)


def lines(warehouse: Warehouse, name: str | None, files: int, most_bytes: int) -> Iterator[str]:
    """Tables, their columns, and their first files."""
    for table, root, entries in seen(warehouse, name):
        columns = [field.name for field in warehouse.table(table).schema().fields]
        yield (
            f"{terminal.styled(terminal.clean(table), 'bold')}: {root.rows:,} rows in"
            f" {root.files:,} files of {root.size:,} bytes, snapshot {root.sequence}"
        )
        yield f"  columns {', '.join(terminal.clean(column) for column in columns)}, all binary"
        for index_id, count, size in indexes(root):
            yield f"  index {index_id}: {count:,} files, {size:,} bytes"
        for entry in entries[:files]:
            yield f"  {entry.path}: {entry.rows:,} rows, {entry.size:,} bytes"
            data = warehouse.objects.read(entry.path, 0, min(entry.size, most_bytes))
            yield from (f"    {line}" for line in terminal.hex_lines(data, most_bytes))
        yield ""


def as_json(warehouse: Warehouse, name: str | None, files: int) -> list[dict[str, Any]]:
    """The same as plain data."""
    return [
        {
            "table": table,
            "rows": root.rows,
            "files": root.files,
            "bytes": root.size,
            "columns": [field.name for field in warehouse.table(table).schema().fields],
            "indexes": [
                {"id": index_id, "files": count, "bytes": size}
                for index_id, count, size in indexes(root)
            ],
            "first_files": [
                {"path": entry.path, "rows": entry.rows, "bytes": entry.size}
                for entry in entries[:files]
            ],
        }
        for table, root, entries in seen(warehouse, name)
    ]


def indexes(root: Root) -> list[tuple[str, int, int]]:
    """For each index its id, the number of files that it covers, and its size in bytes."""
    totals: dict[str, tuple[int, int]] = {}
    for part in root.parts:
        for segment in part.segments:
            count, size = totals.get(segment.index_id.hex(), (0, 0))
            totals[segment.index_id.hex()] = (count + part.count, size + segment.blob.length)
    return [(name, count, size) for name, (count, size) in totals.items()]
