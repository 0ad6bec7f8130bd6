"""Warehouses for tests."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from louver.untrusted.lake.warehouse import Warehouse
from tests.lake import fakes

fakes.install()


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse.open(str(tmp_path / "lake"))


@pytest.fixture
def iceberg() -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with its Iceberg extension, as somebody without keys has it."""
    connection = duckdb.connect()
    for name in ("avro", "iceberg"):
        package = importlib.util.find_spec(f"duckdb_extension_{name}")
        assert package is not None
        assert package.submodule_search_locations
        (file,) = Path(package.submodule_search_locations[0]).rglob(f"{name}.duckdb_extension")
        connection.execute(f"LOAD '{file}'")
    connection.execute("SET unsafe_enable_version_guessing = true")
    yield connection
    connection.close()
