"""TPC-H: all 22 queries over an encrypted lake equal plaintext DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import louver
from tests.lake.tables import known_key
from tests.tpc import harness
from tests.tpc.conftest import plain
from tests.tpc.sources import TPCH

__all__ = ["plain"]
ROWS_PER_FILE = 4_000


@pytest.fixture(scope="module")
def lake(
    plain: Callable[[str], harness.Plain],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Any]:
    """All of TPC-H's tables as files of a lake."""
    folder: Path = tmp_path_factory.mktemp("lake")
    key = folder / "lake.louverkey"
    known_key(key)
    con = louver.connect(f"lake:///{folder}/warehouse", keys=key)
    con.execute(f"SET lake_rows_per_file = {ROWS_PER_FILE}")
    harness.load(con, plain("tpch"))
    yield con
    con.close()


@pytest.mark.parametrize("number", TPCH.numbers)
def test_equal(plain: Callable[[str], harness.Plain], lake: Any, number: int) -> None:
    harness.check(lake, plain("tpch"), number)
