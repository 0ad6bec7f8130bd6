"""A database beside plaintext DuckDB, whose tiles have few rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from louver.trusted.vault import tile_forms
from tests.twin import Twin


@pytest.fixture(params=["sealed", "cryptdb"])
def twin(request: pytest.FixtureRequest, key_file: Path, tmp_path: Path) -> Iterator[Twin]:
    twin = Twin(tmp_path / "t.duckdb", key_file, request.param)
    yield twin
    twin.close()


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_forms, "ROWS", 8)
