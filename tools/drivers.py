"""`python -m tools.drivers FOLDER`: fetch and build what tests/front_door/drivers needs of other
languages, each by its own client and pinned by hash: PostgreSQL's drivers of Java, Go and Node. And
PgBouncer, if it is not installed, as Debian has signed it.

What has no tools here is left out, and its tests are skipped.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
SOURCES = _ROOT / "tests" / "front_door" / "drivers"
_JDBC = "org.postgresql:postgresql:42.7.14"
_JDBC_SHA256 = "73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c"
_PROGRAMS = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def java(folder: Path) -> None:
    """The JDBC driver as `driver.jar`, and the program's classes."""
    _run([
        "mvn", "--quiet", "--batch-mode", _COPY, f"-Dartifact={_JDBC}",
        f"-DoutputDirectory={folder}", "-Dmdep.stripVersion=true",
    ], folder)  # fmt: skip
    jar = folder / "postgresql.jar"
    if hashlib.sha256(jar.read_bytes()).hexdigest() != _JDBC_SHA256:
        raise SystemExit(f"drivers: {_JDBC} is not what is pinned")
    _run(["javac", "-d", str(folder), "-cp", str(jar), str(SOURCES / "java/Work.java")], folder)


def go(folder: Path) -> None:
    """The program, linked with its driver; go.sum has the hashes."""
    command = ["go", "build", "-mod=readonly", "-trimpath", "-o", str(folder / "work"), "."]
    _run(command, SOURCES / "go", GOTOOLCHAIN="local", GOFLAGS="-buildvcs=false")


def node(folder: Path) -> None:
    """The packages of package-lock.json, which has the hashes; none of their scripts runs."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(SOURCES / "node" / name, folder)
    _run(["npm", "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"], folder)


def pooler(folder: Path) -> None:
    """PgBouncer with its libraries, unpacked; nothing is installed."""
    if shutil.which("pgbouncer", path=_PROGRAMS) is not None:
        return
    _run(["apt-get", "--quiet=2", "download", "pgbouncer", "libevent-2.1-7", "libc-ares2"], folder)
    for package in sorted(folder.glob("*.deb")):
        _run(["dpkg-deb", "--extract", str(package), str(folder)], folder)


def pooler_command(folder: Path) -> list[str] | None:
    """What begins a command of PgBouncer, be it installed or below a folder of drivers; None where
    there is none.
    """
    installed = shutil.which("pgbouncer", path=_PROGRAMS)
    if installed is not None:
        return [installed]
    for program in folder.glob("pooler/usr/sbin/pgbouncer"):
        libraries = {str(path.parent) for path in folder.glob("pooler/usr/lib/*/*.so*")}
        return ["env", f"LD_LIBRARY_PATH={':'.join(sorted(libraries))}", str(program)]
    return None


#: What fetches each, and the programs that it and its tests need.
LANGUAGES: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "java": (java, ("java", "javac", "mvn")), "go": (go, ("go",)), "node": (node, ("node", "npm")),
    "pooler": (pooler, ("apt-get", "dpkg-deb")),
}  # fmt: skip


def main(words: Sequence[str]) -> int:
    """Those whose tools are here, each in a folder of its name, made anew."""
    for name, (fetch, tools) in LANGUAGES.items():
        missing = [tool for tool in tools if shutil.which(tool) is None]
        if missing:
            sys.stdout.write(f"drivers: {name} is left out: there is no {', '.join(missing)}\n")
            continue
        folder = Path(words[0]).resolve() / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            fetch(folder)
        except subprocess.CalledProcessError:
            if name != "pooler":
                raise
            sys.stdout.write("drivers: pooler is left out: apt-get does not find it\n")
            continue
        sys.stdout.write(f"drivers: {name}\n")
    return 0


def _run(command: Sequence[str], folder: Path, **more: str) -> None:
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, **more})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
