"""What the numbers were measured on, and how busy it was."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("duckdb", "pyarrow", "sqlglot", "gmpy2", "cryptography", "numpy")


def describe() -> dict[str, Any]:
    """Processor, memory, system, versions and the revision that was measured."""
    return {
        "processor": _field(Path("/proc/cpuinfo"), "model name") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "ifma": "avx512ifma" in _field(Path("/proc/cpuinfo"), "flags").split(),
        "memory_gib": round(_memory_kib() / 2**20, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": dict(_versions()),
        "revision": _revision(),
    }


def _versions() -> Iterator[tuple[str, str]]:
    """Packages that are installed: not every section needs all of them."""
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            yield name, metadata.version(name)


def load_average() -> float:
    """The mean number of running processes of the last minute: 0 on a quiet machine."""
    return round(os.getloadavg()[0], 2)


def _memory_kib() -> int:
    return int((_field(Path("/proc/meminfo"), "MemTotal") or "0 kB").split()[0])


def _field(path: Path, name: str) -> str:
    """The first value of a `name: value` line; empty where there is none."""
    if not path.exists():
        return ""
    for line in path.read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _revision() -> str:
    """The commit, with a + where files differ from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "rust")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if changed else "")
