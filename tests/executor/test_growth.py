"""What the product keeps does not grow with the number of statements, whose values differ each
time: the ledger, the catalog, the pin, and what the process holds.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import louver
from louver.wire import control
from tests.generated import SOAK
from tests.inside import context_of

STATEMENTS = 480 if SOAK == 1 else 10_000 * SOAK
#: By the second half: an object in so many statements, a record of the ledger in so many.
OBJECTS_EACH, RECORDS_EACH = (2, 8) if SOAK == 1 else (100, 1_000)
RESIDENT_MIB = 48
pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
#: A statement and its values in round `n`; a row lives for a round.
FORMS: tuple[Callable[[int], tuple[str, tuple[object, ...]]], ...] = (
    lambda n: ("INSERT INTO t VALUES (?, ?, ?, ?)", (1000 + n, 31 * n, f"x{n}", n % 7)),
    lambda n: ("SELECT v, s FROM t WHERE k = ?", (1000 + n,)),
    lambda n: ("UPDATE t SET v = ?, s = ? WHERE k = ?", (17 * n, f"y{n}", 1000 + n)),
    lambda n: ("SELECT count(*) FROM t WHERE v > ? AND p < 3", (3 * n,)),
    lambda n: (f"SELECT s FROM t WHERE k = {1000 + n} AND v <> {n}", ()),
    # A text that is written out is a shape of its own, and of these some hundreds are remembered.
    lambda n: (f"UPDATE t SET s = ? WHERE v = {17 * n} AND p = {n % 7}", (f"z{n}",)),
    lambda n: (
        "INSERT INTO t VALUES (?, ?, ?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v",
        (1000 + n, 19 * n, "w", 1),
    ),
    lambda n: ("DELETE FROM t WHERE k = ?", (1000 + n,)),
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is kept."""

    objects: int
    records: int
    catalog_bytes: int
    pin_bytes: int
    resident_mib: int


def sizes(client: Any, state: Path) -> Sizes:
    context = context_of(client)
    gc.collect()
    (row,) = context.engine.query(control.CATALOG_READ).to_pylist()
    files = sum(path.stat().st_size for path in state.rglob("*") if path.is_file())
    (resident,) = re.findall(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return Sizes(
        len(gc.get_objects()), context.ledger.length, len(row["body"]), files, int(resident) // 1024
    )


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_statements_leave_nothing_behind(
    profile: str, tmp_path: Path, key_file: Path, own_state: Path
) -> None:
    url = f"duckdb:///{tmp_path}/t.duckdb"
    with louver.connect(url, keys=key_file, profile=profile) as client:
        client.execute("CREATE TABLE t (k BIGINT ENC PRIMARY KEY, v BIGINT ENC, s TEXT ENC, p INT)")
        client.execute("INSERT INTO t SELECT i, i * 10, 'v' || i, i % 7 FROM range(50) r(i)")
        rounds = STATEMENTS // len(FORMS)
        for number in range(rounds):
            if number == rounds // 2:
                before = sizes(client, own_state)
            for form in FORMS:
                sql, values = form(number)
                client.execute(sql, values)
        after = sizes(client, own_state)
        assert client.execute("SELECT count(*) FROM t").fetchall() == [(50,)]
    half = STATEMENTS // 2
    # The records of the ledger are counted by themselves, with what stands for each of them.
    records = after.records - before.records
    assert after.objects - before.objects <= half // OBJECTS_EACH + 8 * records
    assert after.resident_mib - before.resident_mib <= RESIDENT_MIB
    assert after.records - before.records <= half // RECORDS_EACH
    assert abs(after.catalog_bytes - before.catalog_bytes) <= 64
    assert abs(after.pin_bytes - before.pin_bytes) <= 64
