"""Keys choose rows by equalities that follow from others, or that each side of an OR states."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.executor.test_joined_changes import read
from tests.executor.test_keys_read import ROWS, filled

FOLLOWING = {
    "SELECT n.v FROM n, m, few WHERE n.k = m.k AND m.k = few.k AND few.v = 2": 1,
    "SELECT n.v FROM few, n WHERE (few.k = n.k AND few.v = 2 AND n.v > 1)"
    " OR (few.k = n.k AND few.v = 3 AND n.v < 9)": 2,
    "SELECT a.v FROM n a, n b, few WHERE a.k = few.k AND b.k = few.k AND few.v < 2": 2,
    "SELECT a.v FROM n a, n b, few WHERE a.k = few.k AND few.v < 2": ROWS,
    "SELECT n.v FROM few LEFT JOIN n ON n.k = few.k WHERE few.v = 2": 1,
    "SELECT n.v FROM n LEFT JOIN few ON n.k = few.k AND few.v = 2": ROWS,
    "SELECT n.v FROM few, n WHERE (few.k = n.k AND few.v = 2) OR n.v = 3": ROWS,
}


@pytest.mark.parametrize("sql", FOLLOWING)
def test_equalities_that_follow_choose_rows(key_file: Path, sql: str) -> None:
    twin = filled(key_file)
    twin.fill("CREATE TABLE m (k BIGINT ENC, w BIGINT ENC)",
              f"INSERT INTO m SELECT i, i FROM range({ROWS + 9}) r(i)")  # fmt: skip
    assert read(twin, sql)["n"][0] == FOLLOWING[sql]
    twin.close()
