"""A measurement in a process of its own, so that its peak memory and threads are its own.

`run("bench.load:louver_load", rows=1000)` starts `python -m bench.isolate`, which calls the
function with these arguments and prints what it returns as one JSON line.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STATUS = Path("/proc/self/status")
MARK = "bench.isolate: "


class MeasurementFailed(RuntimeError):
    """The process of a measurement ended without a result."""


def run(target: str, *, environment: dict[str, str] | None = None, **arguments: Any) -> Any:
    """Call `module:function` in a fresh process; its result with `peak_mib` added if a dict."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.isolate", target, json.dumps(arguments)],
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in reversed(done.stdout.splitlines()):
        if line.startswith(MARK):
            return json.loads(line.removeprefix(MARK))
    raise MeasurementFailed(f"{target} ended with {done.returncode}")


def peak_mib() -> float:
    """The highest resident memory of this process so far.

    Not ru_maxrss: Linux hands that on through exec, so a child starts with its parent's.
    """
    for line in STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise MeasurementFailed("this system does not tell the peak of a process's memory")


def reset_peak() -> None:
    """Forget the peak so far, so that `peak_mib` tells that of what follows."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def main() -> None:
    """Run what the command line names."""
    target, arguments = sys.argv[1], json.loads(sys.argv[2])
    module, _, function = target.partition(":")
    results = getattr(importlib.import_module(module), function)(**arguments)
    if isinstance(results, dict):
        results.setdefault("peak_mib", peak_mib())
    print(MARK + json.dumps(results), flush=True)


if __name__ == "__main__":
    main()
