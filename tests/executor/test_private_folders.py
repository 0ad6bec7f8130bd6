"""Folders that go with their process: what a killed one leaves is removed by the next."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from louver import private_folders

_PREFIX = "louver-test-"
_CHILD = """
import pathlib, sys
from louver import private_folders
folder = private_folders.new(sys.argv[1], pathlib.Path(sys.argv[2]))
(folder.path / "rows").write_text("canary")
print(folder.path, flush=True)
sys.stdin.read()
"""


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    own = private_folders.new(_PREFIX, tmp_path)
    (own.path / "rows").touch()
    other = tmp_path / f"{_PREFIX}of-no-process"
    other.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "lock").touch()
    (tmp_path / f"{_PREFIX}link").symlink_to(outside)
    with subprocess.Popen(
        [sys.executable, "-c", _CHILD, _PREFIX, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        left = Path(child.stdout.readline().decode().strip())
        assert left.stat().st_mode & 0o777 == 0o700
        private_folders.sweep(_PREFIX, tmp_path)
        assert (left / "rows").exists()
        child.kill()
        child.wait()
    assert (left / "rows").exists()
    private_folders.sweep(_PREFIX, tmp_path)
    assert not left.exists()
    assert (own.path / "rows").exists()
    assert other.exists()
    assert (outside / "lock").exists()
    own.remove()
    own.remove()
    assert not own.path.exists()


def test_the_first_call_of_a_process_sweeps(tmp_path: Path) -> None:
    for swept in (True, False):
        left = private_folders.new(_PREFIX, tmp_path)
        left.unlock()
        private_folders.sweep_once(_PREFIX, tmp_path)
        assert left.path.exists() is not swept
