"""What tests of the faces share: a key file for the whole run, connections, the command line."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import louver


@functools.cache
def key_file() -> str:
    """One key file for all tests, so that its primes are sought once."""
    path = Path(tempfile.mkdtemp(prefix="louver-test-")) / "test.louverkey"
    louver.KeyRing.create(path)
    return str(path)


def connection(url: str = "duckdb:///:memory:", **options: Any) -> louver.Connection:
    """A connection to a database in memory, unless told otherwise."""
    return louver.connect(url, keys=key_file(), **options)


def run(
    *arguments: str, folder: Path, stdin: str = "", code: int | None = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `louver` as a user does, in a folder of its own; check the exit code."""
    own = {
        "LOUVER_STATE_DIR": str(folder / "state"),
        "LOUVER_URL": f"duckdb:///{folder}/cloud.duckdb",
        "LOUVER_KEYS": key_file(),
        "COLUMNS": "100",
        **environment,
    }
    done = subprocess.run(
        [sys.executable, "-m", "louver.trusted.apps.cli", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        env={**os.environ, **own},
        check=False,
    )
    assert "Traceback" not in done.stderr
    if code is not None:
        assert done.returncode == code, done.stderr
    return done


def answers(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """What `--json` printed."""
    return [json.loads(line) for line in done.stdout.splitlines()]
