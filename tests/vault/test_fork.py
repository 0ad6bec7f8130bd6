"""A copied database file: found out, and made a database of its own with `louver status --fork`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import louver
from louver import errors
from louver.trusted.apps import cli
from louver.trusted.client.connect import fork
from louver.trusted.vault.epochs import number_of
from louver.wire import control
from louver.wire.messages import Statement
from tests.inside import context_of

SETUP = """
CREATE TABLE t (id INTEGER PRIMARY KEY, a BIGINT ENC MAY REVEAL order, b VARCHAR ENC);
CREATE TABLE j (k BIGINT ENC MAY REVEAL equality WITH (join = 'people'), s BIGINT ENC USING sdb);
INSERT INTO t SELECT i, i * 7, 'b' || i FROM range(20) r(i);
INSERT INTO j SELECT i, i FROM range(5) r(i);
SELECT count(*) FROM t WHERE a > 30;
"""


@pytest.fixture
def pair(key_file: Path, own_state: Path, tmp_path: Path) -> tuple[str, str]:
    """The URLs of a database and of its copy."""
    prod, dev = tmp_path / "prod.duckdb", tmp_path / "dev.duckdb"
    with opened(url(prod), key_file) as connection:
        connection.execute(SETUP)
    shutil.copy(prod, dev)
    return url(prod), url(dev)


def url(path: Path) -> str:
    return f"duckdb:///{path}"


def opened(address: str, key_file: Path) -> Any:
    return louver.connect(address, keys=key_file)


def test_a_copy_is_refused_and_the_message_names_the_command(
    pair: tuple[str, str], key_file: Path
) -> None:
    prod, dev = pair
    with pytest.raises(errors.VerificationError) as caught:
        opened(dev, key_file)
    assert caught.value.code == "catalog.copied"
    assert "louver status --fork" in str(caught.value)
    with opened(prod, key_file) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchall() == [(20,)]


def test_both_go_on_working(
    pair: tuple[str, str], key_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a user does it: cp, louver status --fork, and writes on both sides in turn."""
    prod, dev = pair
    with opened(prod, key_file) as connection:
        before = connection.leakage().arrow().drop(["sequence"]).to_pylist()
    assert cli.main(["status", "--fork", "--url", dev, "--keys", str(key_file)]) == 0
    assert "database of its own" in capsys.readouterr().err
    with opened(dev, key_file) as connection:
        assert connection.leakage().arrow().drop(["sequence"]).to_pylist() == before
    for turn in range(3):
        for number, address in enumerate((prod, dev, dev, prod)):
            with opened(address, key_file) as connection:
                row = 1000 + 10 * turn + number
                connection.execute(f"INSERT INTO t VALUES ({row}, {row}, 'x')")
                connection.execute(f"UPDATE t SET b = 'y' WHERE id = {row}")
                rows = connection.execute(f"SELECT b, a FROM t WHERE a >= {row}").fetchall()
                assert ("y", row) in rows
                assert connection.execute("SELECT sum(s) FROM j").fetchall() == [(10,)]
    counts = []
    for address in pair:
        with opened(address, key_file) as connection:
            counts.append(connection.execute("SELECT count(*) FROM t").fetchone())
            again = connection.leakage().arrow().drop(["sequence"]).to_pylist()
            assert again[: len(before)] == before
    assert counts == [(26,), (26,)]


def test_no_pad_is_used_twice(pair: tuple[str, str], key_file: Path) -> None:
    """Both claim the same number of an epoch, with other random bits, so that equal rows under
    equal numbers have nothing in common.
    """
    fork(pair[1], key_file)
    stored, bits = [], []
    for address in pair:
        with opened(address, key_file) as connection:
            connection.execute("INSERT INTO t VALUES (777, 12345, 'the same')")
            context = context_of(connection)
            table = context.catalog.table("main", "t")
            server = context.backend.table(table)
            rows = context.engine.query(
                Statement(f"SELECT * FROM {server} ORDER BY row_id DESC LIMIT 1")
            ).to_pylist()
            stored.append(rows[0])
            bits.append(context.catalog.epochs.bits[number_of(rows[0]["row_id"])])
    assert stored[0]["row_id"] == stored[1]["row_id"]
    assert bits[0] != bits[1]
    plain = {"row_id", "id"}
    # An open layer shows equal values as equal, a tag equal keys; everything else differs.
    alike = [n for n in stored[0] if n not in plain and stored[0][n] == stored[1][n]]
    with opened(pair[0], key_file) as connection:
        table = context_of(connection).catalog.table("main", "t")
        opened_layers = {
            c.stored[name]
            for c in table.columns
            for name, state in c.layers.items()
            if state != "closed"
        }
    # A table that both have keeps the keys of its tags.
    assert set(alike) <= opened_layers | set(table.tags)


def test_join_groups_go_on(pair: tuple[str, str], key_file: Path) -> None:
    """New columns of a group join the old ones, in the copy too."""
    fork(pair[1], key_file)
    fork(pair[1], key_file)
    for address in pair:
        with opened(address, key_file) as connection:
            connection.execute(
                "CREATE TABLE k (k BIGINT ENC MAY REVEAL equality WITH (join = 'people'))"
            )
            connection.execute("INSERT INTO k VALUES (1), (2), (9)")
            rows = connection.execute("SELECT k.k FROM j JOIN k USING (k) ORDER BY 1").fetchall()
            assert rows == [(1,), (2,)]
            tables = context_of(connection).catalog.tables.values()
            groups = [c.group for t in tables for c in t.columns if t.name in "jk" and c.group]
            assert len(groups) == 2
            assert len(set(groups)) == 1


def test_a_database_that_was_moved_is_no_copy(pair: tuple[str, str], key_file: Path) -> None:
    prod, dev = (Path(address.removeprefix("duckdb:///")) for address in pair)
    prod.unlink()
    with opened(url(dev), key_file) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchall() == [(20,)]
    link = dev.with_name("link.duckdb")
    link.hardlink_to(dev)
    with opened(url(link), key_file) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchall() == [(20,)]


def test_a_forged_ledger_is_not_carried(pair: tuple[str, str], key_file: Path) -> None:
    import duckdb

    path = pair[1].removeprefix("duckdb:///")
    with duckdb.connect(path) as server:
        server.execute("UPDATE louver_ledger SET body = body || '\\x00'::BLOB WHERE sequence = 2")
        before = server.execute("FROM louver_catalog").fetchall()
    with pytest.raises(errors.VerificationError, match="entry 2"):
        fork(pair[1], key_file)
    with duckdb.connect(path) as server:
        assert server.execute("FROM louver_catalog").fetchall() == before
        server.execute("DELETE FROM louver_ledger WHERE sequence = 3")
    with pytest.raises(errors.VerificationError):
        fork(pair[1], key_file)


def test_a_fork_that_is_interrupted_changes_nothing(
    pair: tuple[str, str], key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from louver.untrusted.engines.duckdb import DuckDBEngine

    def fail(engine: DuckDBEngine) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(DuckDBEngine, "commit", fail)
        with pytest.raises(OSError, match="no space"):
            fork(pair[1], key_file)
    with pytest.raises(errors.VerificationError):
        opened(pair[1], key_file)
    fork(pair[1], key_file)
    for address in pair:
        with opened(address, key_file) as connection:
            assert connection.execute("SELECT count(*) FROM t").fetchall() == [(20,)]


def test_only_files_of_databases_are_forked(key_file: Path, tmp_path: Path) -> None:
    for address in ("duckdb:///:memory:", f"lake:///{tmp_path}/lake"):
        with pytest.raises(errors.Error):
            fork(address, key_file)
    assert control.CATALOG_REPLACE not in control.ALLOWED, "a server of lakes need not take it"
