"""`python -m tools.package FOLDER`: build the wheel, its bill of materials and the source
distribution into a folder, install the wheel into a new virtual environment, and print all sizes.

The environment contains the core dependencies only, in the versions of requirements.lock. It is
removed afterwards.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools import sbom

ROOT = sbom.ROOT
_MB = 1e6
_MOST_SHOWN = 8


def main(words: list[str]) -> int:
    """Build into the folder that is named."""
    if len(words) != 1:
        sys.stderr.write("usage: python -m tools.package FOLDER\n")
        return 2
    folder = Path(words[0])
    sbom.main([str(folder / "louver.cdx.json")])
    wheel = build_wheel(folder, "release", "--sbom-include", str(folder / "louver.cdx.json"))
    source = build_source(folder)
    with tempfile.TemporaryDirectory() as scratch:
        environment = install(wheel, Path(scratch) / "environment")
        sys.stdout.write(report(wheel, source, environment))
    return 0


def build_wheel(folder: Path, profile: str, *options: str) -> Path:
    """Build the wheel of this platform with a profile of Cargo.toml."""
    _maturin("build", "--profile", profile, "--out", str(folder), *options)
    return _newest(folder, "*.whl")


def build_source(folder: Path) -> Path:
    """Build the source distribution."""
    _maturin("sdist", "--out", str(folder))
    return _newest(folder, "*.tar.gz")


def install(package: Path, environment: Path, *extras: str) -> Path:
    """Install a package into a new virtual environment that sees no other packages."""
    python = environment / "bin" / "python"
    target = f"{package}[{','.join(extras)}]" if extras else str(package)
    _run(_tool("uv"), "venv", "--quiet", "--python", sys.executable, str(environment))
    lock = str(ROOT / "requirements.lock")
    pins = ("--constraint", lock, "--no-verify-hashes")
    _run(_tool("uv"), "pip", "install", "--quiet", "--python", str(python), *pins, target)
    return environment


def report(wheel: Path, source: Path, environment: Path) -> str:
    """The sizes as text: the packages, the environment, and its largest parts."""
    lines = [f"{_mb(path.stat().st_size)}  {path.name}" for path in (wheel, source)]
    lines.append(f"{_mb(size(environment))}  installed, without extras; of this:")
    (packages,) = environment.glob("lib/python*/site-packages")
    parts = sorted(((size(path), path.name) for path in packages.iterdir()), reverse=True)
    lines += [f"{_mb(count)}    {name}" for count, name in parts[:_MOST_SHOWN]]
    return "\n".join(lines) + "\n"


def size(path: Path) -> int:
    """The bytes of a file, or of all files below a folder."""
    if not path.is_dir():
        return path.lstat().st_size
    return sum(
        (Path(parent) / name).lstat().st_size
        for parent, _, names in os.walk(path)
        for name in names
    )


def _maturin(*words: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    _run(_tool("maturin"), *words, PATH=path)


def _run(*command: str, **environment: str) -> None:
    """Run quietly; what the program printed is shown if it fails."""
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"package: {' '.join(command)} failed\n{done.stdout}{done.stderr}")


def _tool(name: str) -> str:
    """A program that is installed beside the running Python, or on the PATH."""
    path = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if path is None:
        raise SystemExit(f"package: {name} is not installed. Run `make setup`.")
    return path


def _newest(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern), key=lambda path: path.stat().st_mtime_ns)


def _mb(count: int) -> str:
    return f"{count / _MB:7.1f} MB"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
