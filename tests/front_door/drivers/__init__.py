"""Programs of other languages' drivers, each of which prints what it sees: through a front door
that is what it sees of PostgreSQL.

`make drivers` fetches them (tools/drivers.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.sources import ROOT

_FETCHED = Path(sys.prefix) / "drivers"
_PATIENCE_S = 120


@dataclass(frozen=True, slots=True)
class Target:
    """What a program connects to by TCP, and what follows the types of its columns there."""

    port: int
    database: str
    user: str
    enc: str


def fetched(language: str) -> Path:
    """The folder of a driver; skips where it has not been fetched, but in CI."""
    folder = _FETCHED / language
    if not folder.exists():
        if os.environ.get("CI"):
            pytest.fail(f"make drivers has not fetched {language}")
        pytest.skip(f"make drivers has not fetched {language}")
    return folder


def transcript(language: str, target: Target) -> list[str]:
    """What the program prints."""
    folder = fetched(language)
    done = subprocess.run(
        _command(language, folder, target), capture_output=True, text=True, timeout=_PATIENCE_S,
        check=False, env={**os.environ, "NODE_PATH": str(folder / "node_modules")},
    )  # fmt: skip
    assert not done.returncode, done.stdout[-1000:] + done.stderr[-2000:]
    return done.stdout.splitlines()


def _command(language: str, folder: Path, target: Target) -> list[str]:
    address = f"127.0.0.1:{target.port}/{target.database}?sslmode=disable"
    if language == "java":
        classes = f"{folder / 'postgresql.jar'}{os.pathsep}{folder}"
        return ["java", "-cp", classes, "Work", f"jdbc:postgresql://{address}", target.user,
                target.enc]  # fmt: skip
    if language == "go":
        return [str(folder / "work"), f"postgres://{target.user}@{address}", target.enc]
    program = ROOT / "tests/front_door/drivers/node/work.js"
    return ["node", "--no-deprecation", str(program), str(target.port), target.database,
            target.user, target.enc]  # fmt: skip
