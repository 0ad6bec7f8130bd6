"""Metadata from machines that are not trusted: no class is loaded, no file outside is touched."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, NestedField

from louver import errors
from louver.untrusted.lake.catalogs import ObjectsIO, opened
from louver.untrusted.lake.objects import LocalObjects
from louver.untrusted.lake.warehouse import Warehouse

MARK = "louver_was_here"


def run_by_metadata(*_: object) -> None:
    """What a server would like a client to call."""
    raise SystemExit(MARK)


def alter(warehouse: Warehouse, change: Any) -> None:
    """Change the newest metadata of table t1 as whoever holds the files can."""
    path = Path(warehouse.pointer("t1"))
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("key", ["py-io-impl", "write.py-location-provider.impl", "PY-IO-IMPL"])
def test_properties_load_no_code(warehouse: Warehouse, key: str) -> None:
    warehouse.create_table("t1", [1])
    hostile = f"{__name__}.run_by_metadata"
    alter(warehouse, lambda content: content["properties"].update({key: hostile}))
    for attempt in (
        lambda: warehouse.table("t1"),
        lambda: warehouse.add_column("t1", 2),
        lambda: warehouse.catalog.load_table("louver.t1"),
    ):
        with pytest.raises(errors.VerificationError) as refused:
            attempt()
        assert refused.value.code == "lake.format"


def test_properties_set_here_load_no_code(warehouse: Warehouse) -> None:
    warehouse.create_table("t1", [1])
    table = warehouse.table("t1")
    with pytest.raises(errors.VerificationError), table.transaction() as transaction:
        transaction.set_properties({"py-io-impl": f"{__name__}.run_by_metadata"})


def test_a_log_deletes_nothing_outside(warehouse: Warehouse, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep me")
    warehouse.create_table("t1", [1])

    def hostile(content: dict[str, Any]) -> None:
        content["properties"]["write.metadata.previous-versions-max"] = "1"
        content["metadata-log"] = [
            {"timestamp-ms": 1, "metadata-file": f"{prefix}{precious}"}
            for prefix in ("", "file://", f"{warehouse.location}/../../")
        ]

    alter(warehouse, hostile)
    for column in (2, 3):
        warehouse.add_column("t1", column)
    assert precious.read_text() == "keep me"
    assert len(warehouse.table("t1").schema().fields) == 3


@pytest.mark.parametrize("path", ["{0}/../secret", "/etc/passwd", "file:///etc/passwd"])
def test_pointers_lead_nowhere_else(warehouse: Warehouse, tmp_path: Path, path: str) -> None:
    warehouse.create_table("t1", [1])
    (tmp_path / "secret").write_bytes(Path(warehouse.pointer("t1")).read_bytes())
    with sqlite3.connect(Path(warehouse.location) / "catalog.sqlite") as catalog:
        catalog.execute(
            "UPDATE iceberg_tables SET metadata_location = ?", (path.format(warehouse.location),)
        )
    catalog.close()
    with pytest.raises(errors.Error):
        warehouse.table("t1")


def test_files_are_written_whole_and_once(tmp_path: Path) -> None:
    objects = LocalObjects(tmp_path)
    io = ObjectsIO({"louver.objects": objects, "louver.location": "s3://bucket/lake"})
    output = io.new_output("s3://bucket/lake/louver/t1/metadata/a")
    stream = output.create(overwrite=True)
    stream.write(b"begun")
    del stream
    assert not output.exists(), "what was not ended is not there"
    failed = output.create()
    failed.write(b"half")
    failed.__exit__(KeyError, KeyError(), None)
    assert not output.exists()
    with output.create() as stream:
        stream.write(b"whole")
    assert len(output) == 5
    assert output.to_input_file().open().read() == b"whole"
    with pytest.raises(FileExistsError), output.create(overwrite=True) as stream:
        stream.write(b"again")
    with pytest.raises(FileNotFoundError):
        io.new_input("s3://bucket/lake/b").open()
    for outside in ("s3://bucket/other/x", "/etc/passwd", "s3://bucket/lakes/x"):
        for attempt in (io.new_input, io.new_output, io.delete):
            with pytest.raises(OSError, match="outside"):
                attempt(outside)
    with pytest.raises(OSError, match="inside"):
        io.delete("s3://bucket/lake/../x")
    io.delete("s3://bucket/lake/louver/t1/metadata/a")
    assert list(objects.list("")) == []


def test_other_kinds_of_catalogs_are_guarded_too(tmp_path: Path) -> None:
    objects = LocalObjects(tmp_path)
    catalog = opened("in-memory", {}, str(tmp_path), objects)
    catalog.create_namespace("louver")
    schema = Schema(NestedField(1, "c1", BinaryType(), required=False))
    table = catalog.create_table("louver.t1", schema, f"{tmp_path}/louver/t1")
    assert isinstance(table.io, ObjectsIO)
    path = Path(table.metadata_location)
    content = json.loads(path.read_text())
    content["properties"]["py-io-impl"] = f"{__name__}.run_by_metadata"
    path.write_text(json.dumps(content))
    with pytest.raises(errors.VerificationError):
        catalog.load_table("louver.t1")
