"""The files of a lake as the operator of its store sees them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from louver import errors
from louver.untrusted.engines.stored import FileTable, StoredFile
from louver.untrusted.lake.plan import plan
from louver.untrusted.lake.root import Root
from louver.untrusted.lake.warehouse import Warehouse
from louver.wire.prune import Everything


class WarehouseFiles:
    """The tables of a warehouse with their indexes and data files."""

    def __init__(self, directory: str, properties: Mapping[str, str]) -> None:
        """Open a warehouse that exists."""
        options = dict(properties)
        location = options.pop("warehouse", directory)
        if "://" not in location and not Path(location).is_dir():
            raise errors.make("database.io", place=location, detail="the directory does not exist")
        self._warehouse = Warehouse.open(location, options)

    def tables(self) -> Iterator[FileTable]:
        """Every table that has files."""
        for name in self._warehouse.tables():
            root = self._warehouse.root(name)
            if root is not None:
                columns = tuple(f.name for f in self._warehouse.table(name).schema().fields)
                yield FileTable(
                    name, root.rows, root.files, root.size, root.sequence, columns, _indexes(root)
                )

    def files(self, table: FileTable) -> list[StoredFile]:
        """The data files of a table."""
        root = self._warehouse.root(table.label)
        if root is None:
            return []
        entries = plan(self._warehouse.objects, root, Everything()).files
        return [StoredFile(entry.path, entry.rows, entry.size) for entry in entries]

    def read(self, file: StoredFile, size_bytes: int) -> bytes:
        """The first bytes of a file."""
        return self._warehouse.objects.read(file.path, 0, min(file.size_bytes, size_bytes))


def _indexes(root: Root) -> tuple[tuple[str, int, int], ...]:
    totals: dict[str, tuple[int, int]] = {}
    for part in root.parts:
        for segment in part.segments:
            count, size = totals.get(segment.index_id.hex(), (0, 0))
            totals[segment.index_id.hex()] = (count + part.count, size + segment.blob.length)
    return tuple((name, count, size) for name, (count, size) in totals.items())
