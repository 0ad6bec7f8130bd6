"""What the tests of the house look at: the files of this repository, as git sees them."""

from __future__ import annotations

import ast
import functools
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Where people write; elsewhere lie locks, licences and what machines made.
CODE = ("src", "rust", "tests", "bench", "fuzz", "examples", "docs", "tools", ".ci")


@functools.cache
def repository_files() -> tuple[Path, ...]:
    """Every file that is, or could be, committed: tracked and untracked, but not ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    names = sorted(set(done.stdout.decode().split("\0")) - {""})
    return tuple(path for name in names if (path := ROOT / name).is_file())


def sources(*suffixes: str, under: tuple[str, ...] = CODE) -> list[Path]:
    """The files below some folders whose names end in one of the suffixes."""
    return [
        path
        for path in repository_files()
        if path.suffix in suffixes and path.relative_to(ROOT).parts[0] in under
    ]


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a Python file, the module first. They are parsed once for all tests of the
    house, and dropped after the last of them.
    """
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def name(path: Path) -> str:
    """A path as it is written in messages."""
    return str(path.relative_to(ROOT))
