"""What rows that were written add to the catalog, and what of that makes a version, which shows."""

from __future__ import annotations

from typing import cast

import pytest

from louver.trusted.executor.state import Growth
from louver.trusted.vault.catalog import Catalog, Column, Table


@pytest.mark.parametrize(
    ("change", "makes_a_version"),
    [
        ({"seen": ["a", "b"]}, False),
        ({"has_null": True}, False),
        ({"has_null": True, "ceiling": "equality"}, True),
        ({"maximum": 1 << 40}, True),
    ],
)
def test_a_value_that_is_new_makes_no_version(
    change: dict[str, object], makes_a_version: bool
) -> None:
    """Also where a table has grown by what another client has noted already."""
    catalogs = list[Catalog]()
    for own in (False, True):
        column = Column(
            "x", "BIGINT", 1, True, "rnd", str(change.get("ceiling", "access")),
            minimum=-(1 << 32), maximum=(1 << 32) - 1, seen=["a"],
        )  # fmt: skip
        for name, value in change.items() if own else ():
            setattr(column, name, value)
        table = Table("main", "t", 1, [column], row_count=4, counted=False)
        catalogs.append(Catalog("0" * 32, tables={table.key: table}))
    newest, written = catalogs
    assert Growth(tables={1}).into(newest, written) == makes_a_version
    (columns,) = (table.columns for table in newest.tables.values())
    assert columns[0].seen == [*dict.fromkeys(("a", *cast(list[str], change.get("seen", []))))]
