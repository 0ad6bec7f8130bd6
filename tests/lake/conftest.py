"""Warehouses for tests."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from louver.trusted.lake.store import LakeStore
from louver.trusted.vault.catalog import Table
from louver.untrusted.lake.warehouse import Warehouse
from tests.lake.services import Running, serving
from tests.lake.tables import new_store, new_table, once, rows


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a warehouse, a key and pins lie that the tests of a module share."""
    return tmp_path_factory.mktemp("served")


@dataclass(frozen=True)
class Filled:
    """A store that works on the warehouse itself, and its table t5: 1,000 rows in ten files."""

    store: LakeStore
    table: Table


@pytest.fixture(scope="module")
def filled(folder: Path) -> Filled:
    """What is served."""
    store = new_store(folder)
    table = new_table(store)
    store.append(table, once(rows(0, 1_000)), 100)
    return Filled(store, table)


@pytest.fixture(scope="module")
def service(folder: Path, filled: Filled) -> Iterator[Running]:
    yield from _served(folder, "--requests", "16")


@pytest.fixture(scope="module")
def hasty(folder: Path, filled: Filled) -> Iterator[Running]:
    """A service that waits for nobody; for tests of that alone, for a machine may stand still."""
    looks = "from louver.untrusted.servers import prune; prune.LEAST_LOOK_SECONDS = 1.0"
    yield from _served(folder, "--requests", "16", "--idle-seconds", "1", before=looks)


def _served(folder: Path, *options: str, before: str = "") -> Iterator[Running]:
    (folder / "lake").mkdir(exist_ok=True)
    with serving(folder / "lake", *options, before=before) as running:
        yield running
    assert running.code == 0
    assert running.output == "trusted: []\n", "nothing is logged, and no trusted code was loaded"
