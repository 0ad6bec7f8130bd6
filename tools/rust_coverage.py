"""`python -m tools.rust_coverage`: run the unit tests of the crates and print the lines executed.

The compiler counts (`-C instrument-coverage`); llvm-profdata and llvm-cov of the compiler's LLVM
version read the counts. Rust's own component llvm-tools has them, and Debian's package `llvm-22`.
Nothing is fetched here: without them the crates are not measured, and the output says so.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: A folder with both programs, for those who keep them elsewhere.
FOLDER = "LLVM_TOOLS"
#: Only binds; the tests of Python run it.
_BINDING = "python"
_PROGRAMS = ("llvm-profdata", "llvm-cov")
_CARGO = ("cargo", "test", "--quiet", "--locked", "--profile", "quick", "--lib")


def main() -> int:
    """Measure and print; the exit code is that of the tests."""
    version = llvm_version()
    programs = find(version)
    if programs is None:
        sys.stdout.write(missing(version))
        return 0
    with tempfile.TemporaryDirectory(prefix="louver-coverage-") as folder:
        return _measure(*programs, Path(folder))


def llvm_version() -> str:
    """The major version of LLVM that the compiler was built with."""
    output = _output("rustc", "-vV")
    version = re.search(r"^LLVM version: (\d+)", output, re.MULTILINE)
    if version is None:
        raise SystemExit("coverage of Rust: `rustc -vV` names no version of LLVM")
    return version[1]


def find(version: str) -> tuple[str, str] | None:
    """llvm-profdata and llvm-cov of that version, or None."""
    component = Path(_output("rustc", "--print", "target-libdir").strip()).parent / "bin"
    folders = [component, Path(f"/usr/lib/llvm-{version}/bin")]
    if os.environ.get(FOLDER):
        folders.insert(0, Path(os.environ[FOLDER]))
    for folder in folders:
        profdata, cov = (shutil.which(name, path=str(folder)) for name in _PROGRAMS)
        if profdata and cov:
            return profdata, cov
    profdata, cov = (shutil.which(f"{name}-{version}") for name in _PROGRAMS)
    return (profdata, cov) if profdata and cov else None


def missing(version: str) -> str:
    """What to install, and from where."""
    return (
        f"coverage of Rust: not measured. llvm-profdata and llvm-cov of LLVM {version} are not "
        f"installed.\n  Install Debian's package llvm-{version}, or run `rustup component add "
        f"llvm-tools`, or set\n  {FOLDER} to the folder that has them; then run "
        "`make coverage-rust`.\n"
    )


def crates() -> list[str]:
    """The crates below rust/ that have tests of their own."""
    manifests = (ROOT / "rust").glob("*/Cargo.toml")
    return sorted(path.parent.name for path in manifests if path.parent.name != _BINDING)


def table(files: list[tuple[str, int, int]]) -> str:
    """A line for each crate, and the total, of (path, lines executed, lines)."""
    lines: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for path, covered, count in files:
        match = re.search(r"/rust/(\w+)/src/", path)
        for key in (f"rust/{match[1]}", "total") if match else ():
            lines[key][0] += covered
            lines[key][1] += count
    total = lines.pop("total", [0, 0])
    text = ["coverage of Rust by the unit tests of each crate\n"]
    text += [
        f"{100 * covered / max(count, 1):6.1f} %  {covered:6} of {count:6} lines  {name}\n"
        for name, (covered, count) in [*sorted(lines.items()), ("total", total)]
    ]
    return "".join(text)


def _measure(profdata: str, cov: str, folder: Path) -> int:
    environment = {
        **os.environ,
        "RUSTC_WORKSPACE_WRAPPER": str(ROOT / "tools/instrumented"),
        "LLVM_PROFILE_FILE": str(folder / "%p-%m.profraw"),
    }
    packages = [f"--package=louver-{name}" for name in crates()]
    tested = subprocess.run([*_CARGO, *packages], cwd=ROOT, env=environment, check=False)
    if tested.returncode:
        return tested.returncode
    command = [*_CARGO, *packages, "--no-run", "--message-format=json"]
    built = subprocess.run(
        command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    messages = map(json.loads, built.stdout.splitlines())
    objects = [path for message in messages if (path := message.get("executable"))]
    merged = str(folder / "all.profdata")
    counts = map(str, folder.glob("*.profraw"))
    subprocess.run([profdata, "merge", "-sparse", *counts, "-o", merged], check=True)
    others = [word for path in objects[1:] for word in ("-object", path)]
    export = [cov, "export", "-summary-only", f"-instr-profile={merged}", objects[0], *others]
    sys.stdout.write(table(_lines(_output(*export))))
    return 0


def _lines(exported: str) -> list[tuple[str, int, int]]:
    files = json.loads(exported)["data"][0]["files"]
    summaries = [(file["filename"], file["summary"]["lines"]) for file in files]
    return [(path, lines["covered"], lines["count"]) for path, lines in summaries]


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
