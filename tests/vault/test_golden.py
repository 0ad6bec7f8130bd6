"""Every release opens what earlier ones wrote: one database and its key file per release."""

from __future__ import annotations

import datetime
import gzip
from decimal import Decimal
from pathlib import Path

import pytest

import louver
from tests import shared
from tools import golden

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
    read_and_write(GOLDEN / release, tmp_path, monkeypatch)


def test_the_next_release_has_its_files_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`python -m tools.golden` in a release is what this test reads in the next one."""
    monkeypatch.setenv("LOUVER_STATE_DIR", str(tmp_path / "state"))
    folder = tmp_path / "next"
    assert golden.main([str(folder)]) == 0
    assert golden.main([str(folder)]) == 1
    assert "do not change" in capsys.readouterr().err
    read_and_write(folder, tmp_path, monkeypatch)


def read_and_write(release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Another test may have gone on from the same database.
    monkeypatch.setenv("LOUVER_STATE_DIR", str(shared.state(tmp_path / "state")))
    database, keys = tmp_path / "golden.duckdb", tmp_path / "golden.louverkey"
    database.write_bytes(gzip.decompress((release / "database.gz").read_bytes()))
    keys.touch(mode=0o600)
    keys.write_bytes((release / "key.txt").read_bytes())
    with louver.connect(f"duckdb:///{database}", keys=keys) as connection:
        assert connection.execute("SELECT * FROM staff ORDER BY id").fetchall() == ROWS
        assert connection.execute("SELECT sum(salary) FROM staff").fetchall() == [(500,)]
        assert connection.execute("SELECT name FROM rich").fetchall() == [("Ada",)]
        levels = {row["kind"]: row["level"] for row in connection.leakage().arrow().to_pylist()}
        assert levels["sdb.sum"] == "plaintext"
        with pytest.raises(louver.IntegrityError):
            connection.execute("INSERT INTO staff VALUES (1, 'again', 1, NULL, NULL, NULL)")
        connection.execute("INSERT INTO staff VALUES (4, 'Edith', 7, NULL, NULL, NULL)")
        rows = connection.execute("SELECT name FROM staff WHERE salary > 6 ORDER BY id").fetchall()
        assert rows == [("Ada",), ("Edith",)]
