"""What tests of the interfaces share: a key file for the run, connections, the command line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import louver
from louver.trusted.apps import cli
from tests import shared


def key_file() -> str:
    """The key file of the run."""
    return str(shared.key_file())


def connection(url: str = "duckdb:///:memory:", **options: Any) -> louver.Connection:
    """A connection to a database in memory, unless told otherwise."""
    return louver.connect(url, keys=key_file(), **options)


@dataclass(frozen=True, slots=True)
class Done:
    """A command's exit code and what it wrote."""

    code: int
    stdout: str
    stderr: str


def run(
    *arguments: str,
    folder: Path,
    stdin: str = "",
    code: int = 0,
    process: bool = False,
    **environment: str,
) -> Done:
    """Run `louver` in a folder of its own and check its exit code.

    With ``process`` as users do, in a process of its own; else, far quicker, in this one.
    """
    own = {
        "LOUVER_STATE_DIR": str(shared.state(folder / "state")),
        "LOUVER_URL": f"duckdb:///{folder}/cloud.duckdb",
        "LOUVER_KEYS": key_file(),
        "COLUMNS": "100",
        **environment,
    }
    done = (_outside if process else _inside)(arguments, folder, stdin, own)
    assert "Traceback" not in done.stderr
    assert done.code == code, done.stderr or done.stdout
    return done


def _outside(
    arguments: Sequence[str], folder: Path, stdin: str, environment: dict[str, str]
) -> Done:
    done = subprocess.run(
        [sys.executable, "-m", "louver.trusted.apps.cli", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=600,
        cwd=folder,
        env={**os.environ, **environment},
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def _inside(
    arguments: Sequence[str], folder: Path, stdin: str, environment: dict[str, str]
) -> Done:
    out, talk = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(talk),
    ):
        patch.chdir(folder)
        patch.setattr(sys, "stdin", io.StringIO(stdin))
        for name, value in environment.items():
            patch.setenv(name, value)
        code = cli.main(arguments)
    return Done(code, out.getvalue(), talk.getvalue())


def answers(done: Done) -> list[dict[str, Any]]:
    """What `--json` printed."""
    return [json.loads(line) for line in done.stdout.splitlines()]
