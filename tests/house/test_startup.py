"""What a small command loads: the time of its start is the time of its imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests import shared

#: Packages that take long to load and that a statement without rows of a lake does not need.
HEAVY = {
    "fsspec", "grpc", "louver.untrusted.servers", "moto", "pandas", "polars", "prompt_toolkit",
    "pyarrow.dataset", "pyarrow.parquet", "pyiceberg", "requests", "starlette", "uvicorn",
}  # fmt: skip
#: Measured: 313 modules of Louver's own, parts of the compiled one among them. Another costs about
#: half a millisecond.
MOST_MODULES = 313

SCRIPT = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from louver.trusted.apps import cli
cli.main()
"""


def loaded(folder: Path, *words: str) -> set[str]:
    """The modules that a process of the command line imports."""
    environment = {
        **os.environ, "LOUVER_KEYS": str(shared.key_file()), "LOUVER_STATE_DIR": str(folder),
        "LOUVER_URL": f"duckdb:///{folder}/cloud.duckdb",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words],
        capture_output=True, text=True, env=environment, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "1" in done.stdout
    return set(done.stderr.split())


def test_a_small_statement_loads_no_heavy_package(tmp_path: Path) -> None:
    for words in (("select 1",), ("sql", "SELECT 'x1'", "--csv")):
        modules = loaded(tmp_path, *words)
        assert {"duckdb", "pyarrow", "louver.trusted.executor.session"} <= modules
        heavy = HEAVY - {"pyarrow.dataset"} if "--csv" in words else HEAVY
        assert not {name for name in modules if name in heavy}
        assert len([name for name in modules if name.startswith("louver.")]) <= MOST_MODULES


def test_the_version_loads_next_to_nothing(tmp_path: Path) -> None:
    modules = loaded(tmp_path, "--version")
    assert not {"duckdb", "numpy", "pyarrow", "sqlglot"} & modules


def test_data_frames_are_hidden_from_processes_of_the_command_line_alone(tmp_path: Path) -> None:
    script = (
        "from louver.trusted.apps import cli, startup\n"
        "cli.main(['key', 'new', 'k'])\n"
        "import pandas\n"
        "import sys\n"
        "[sys.modules.pop(name) for name in list(sys.modules) if name.startswith('pandas')]\n"
        "startup.hide_data_frames()\n"
        "try:\n    import pandas\n"
        "except ModuleNotFoundError:\n    pass\nelse:\n    sys.exit('pandas is in sight')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
