"""A database file that is open for reading: several readers, no write, and who holds a file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import louver
from louver import errors

SETUP = """
CREATE TABLE t (id INTEGER, a BIGINT ENC MAY REVEAL equality);
INSERT INTO t SELECT i, i FROM range(20) r(i);
SELECT count(*) FROM t WHERE a = 3;
SELECT id, a FROM t;
"""
READER = """
import sys, louver
con = louver.connect(sys.argv[1], keys=sys.argv[2], read_only=True)
print(con.execute("SELECT count(*), sum(a) FROM (SELECT id, a FROM t)").fetchall(), flush=True)
sys.stdin.readline()
"""
WRITER = """
import sys, louver
con = louver.connect(sys.argv[1], keys=sys.argv[2])
print("open", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def address(tmp_path: Path, key_file: Path, own_state: Path) -> str:
    address = f"duckdb:///{tmp_path / 'shared.duckdb'}"
    with louver.connect(address, keys=key_file) as connection:
        connection.execute(SETUP)
        connection.execute("SELECT count(*), sum(a) FROM (SELECT id, a FROM t)")
    return address


def child(tmp_path: Path, program: str, address: str, key_file: Path) -> subprocess.Popen[str]:
    script = tmp_path / "client_of_it.py"
    script.write_text(program)
    process = subprocess.Popen(
        [sys.executable, str(script), address, str(key_file)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().strip()
    return process


def test_several_processes_read_at_once_from_a_medium_that_cannot_be_written(
    address: str, key_file: Path, tmp_path: Path
) -> None:
    file = Path(address.removeprefix("duckdb:///"))
    file.chmod(0o400)
    before = file.read_bytes()
    readers = [child(tmp_path, READER, address, key_file) for _ in range(2)]
    try:
        with louver.connect(address, keys=key_file, read_only=True) as connection:
            rows = connection.execute("SELECT id, a FROM t").fetchall()
            assert sorted(rows) == [(i, i) for i in range(20)]
            assert connection.execute("SELECT count(*) FROM t WHERE a = 3").fetchall() == [(1,)]
            connection.execute("BEGIN")
            connection.execute("SELECT id, a FROM t")
            connection.execute("ROLLBACK")
    finally:
        for reader in readers:
            reader.communicate("\n", timeout=60)
    assert [reader.returncode for reader in readers] == [0, 0]
    assert file.read_bytes() == before
    assert not list(file.parent.glob("*.wal"))


def test_the_holder_of_a_file_is_named(address: str, key_file: Path, tmp_path: Path) -> None:
    writer = child(tmp_path, WRITER, address, key_file)
    try:
        for read_only in (False, True):
            with pytest.raises(errors.OperationalError) as caught:
                louver.connect(address, keys=key_file, read_only=read_only)
            assert caught.value.code == "database.locked"
            text = str(caught.value)
            assert re.search(rf"process {writer.pid} \(\S+ client_of_it\.py\)", text), text
    finally:
        writer.communicate("\n", timeout=60)
