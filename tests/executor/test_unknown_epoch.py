"""No row bears an epoch that the catalog does not know: no client could open it."""

from __future__ import annotations

from pathlib import Path

import pytest

import louver
from louver.trusted.executor import context
from louver.trusted.vault import catalog_store


def test_an_epoch_that_could_not_be_published_is_not_used(
    tmp_path: Path, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog_store, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(context, "_PATIENCE_S", 0.0)
    url = f"duckdb:///{tmp_path}/t.duckdb"
    with louver.connect(url, keys=key_file) as first, louver.connect(url, keys=key_file) as second:
        first.execute("CREATE TABLE t (a INTEGER ENC)")
        first.execute("BEGIN")
        first.execute("CREATE TABLE held (a INTEGER ENC)")  # until COMMIT no version is saved
        with pytest.raises(louver.OperationalError, match="Another client"):
            second.execute("INSERT INTO t VALUES (1)")
        first.execute("COMMIT")
        second.execute("INSERT INTO t VALUES (2)")
        assert second.execute("FROM t").fetchall() == first.execute("FROM t").fetchall() == [(2,)]
