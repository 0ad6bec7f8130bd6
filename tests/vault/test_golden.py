"""Every release opens what earlier ones wrote: one database and its key file per release."""

from __future__ import annotations

import datetime
import gzip
from decimal import Decimal
from pathlib import Path

import pytest

import louver
from tests import shared

GOLDEN = Path(__file__).parents[1] / "golden"
ROWS = [
    (1, "Ada", 9000, datetime.date(1815, 12, 10), Decimal("0.125"), ["a", "b"]),
    (2, "Grace", -8500, datetime.date(1906, 12, 9), None, []),
    (3, None, 0, None, Decimal("-12.500"), None),
]


@pytest.mark.parametrize("release", sorted(path.name for path in GOLDEN.iterdir()))
def test_an_earlier_release_is_read_and_written(
    release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another test may have gone on from the same database.
    monkeypatch.setenv("LOUVER_STATE_DIR", str(shared.state(tmp_path / "state")))
    database, keys = tmp_path / "golden.duckdb", tmp_path / "golden.louverkey"
    database.write_bytes(gzip.decompress((GOLDEN / release / "database.gz").read_bytes()))
    keys.touch(mode=0o600)
    keys.write_bytes((GOLDEN / release / "key.txt").read_bytes())
    with louver.connect(f"duckdb:///{database}", keys=keys) as connection:
        assert connection.execute("SELECT * FROM staff ORDER BY id").fetchall() == ROWS
        assert connection.execute("SELECT sum(salary) FROM staff").fetchall() == [(500,)]
        assert connection.execute("SELECT name FROM rich").fetchall() == [("Ada",)]
        levels = {row["kind"]: row["level"] for row in connection.leakage().to_pylist()}
        assert levels["sdb.sum"] == "plaintext"
        with pytest.raises(louver.IntegrityError):
            connection.execute("INSERT INTO staff VALUES (1, 'again', 1, NULL, NULL, NULL)")
        connection.execute("INSERT INTO staff VALUES (4, 'Edith', 7, NULL, NULL, NULL)")
        found = connection.execute("SELECT name FROM staff WHERE salary > 6 ORDER BY id").fetchall()
        assert found == [("Ada",), ("Edith",)]
