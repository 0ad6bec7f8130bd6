"""What all workers of a run share: one key file, whose primes were searched for once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

#: The environment variable that names the folder.
FOLDER = "LOUVER_TEST_FOLDER"


def make(folder: Path) -> None:
    """A key file, and a state directory that knows its primes."""
    from louver.trusted.vault import primes
    from louver.trusted.vault.keyring import KeyRing

    path = folder / "test.louverkey"
    KeyRing.create(path)
    keys = KeyRing.open(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOUVER_STATE_DIR", str(folder / "state"))
        primes.sdb_space(keys, None, 2048)
        primes.sdb_space(keys, None, 512)
        primes.hom_space(keys, None)


def one_thread() -> None:
    """From now on, a DuckDB of this process has one thread unless it is asked for more. The second
    costs a fifth of all processor time of tests, and finds little to do: the tables are small.
    """
    connect = duckdb.connect

    def on_one_thread(
        database: str | Path = ":memory:",
        read_only: bool = False,
        config: dict[str, Any] | None = None,
    ) -> duckdb.DuckDBPyConnection:
        return connect(database, read_only, {"threads": 1, **(config or {})})

    duckdb.connect = on_one_thread


def key_file() -> Path:
    """The key file of the run."""
    return _folder() / "test.louverkey"


def state(folder: Path) -> Path:
    """A state directory that knows the primes of this key file and nothing else."""
    return shutil.copytree(_folder() / "state", folder, dirs_exist_ok=True)


def _folder() -> Path:
    return Path(os.environ[FOLDER])
