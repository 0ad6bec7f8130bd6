"""The wheel and the source distribution, as users get them."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.sources import ROOT
from tools import package

#: The first Python block of the README, and what it prints.
_FIRST = re.compile(
    r"^```python\n((?:(?!```).*\n)*)```\n\n```\n((?:(?!```).*\n)*)```$", re.MULTILINE
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from what `make setup` compiled."""
    return package.build_wheel(tmp_path_factory.mktemp("wheel"), "quick")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return package.build_source(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return package.install(wheel, tmp_path_factory.mktemp("install") / "environment")


@pytest.mark.in_turn
def test_the_lines_of_the_readme_run_in_a_bare_environment(
    environment: Path, wheel: Path, source: Path, tmp_path: Path
) -> None:
    match = _FIRST.search((ROOT / "README.md").read_text("utf-8"))
    assert match is not None
    lines, expected = match.groups()
    assert len([line for line in lines.splitlines() if line and "import" not in line]) <= 6
    bare = {"HOME": str(tmp_path), "LANG": "C.UTF-8"}
    done = subprocess.run(
        [environment / "bin" / "python", "-c", lines], cwd=tmp_path, env=bare, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == expected
    command = subprocess.run(
        [environment / "bin" / "louver", "-u", "lake:///w", "-k", "my.louverkey", "SELECT 1"],
        cwd=tmp_path, env=bare, text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert command.returncode == 1
    assert "pip install 'louver[lake]'" in command.stderr
    sys.stdout.write(package.report(wheel, source, environment))


@pytest.mark.in_turn
def test_a_bare_environment_is_small(environment: Path, wheel: Path, source: Path) -> None:
    names = {path.name for path in environment.glob("lib/python*/site-packages/*")}
    assert {"duckdb", "louver", "numpy", "pyarrow", "pytz", "sqlglot"} <= names
    assert not names & {"grpc", "pandas", "pyiceberg", "requests", "sqlalchemy", "uvicorn"}
    assert wheel.stat().st_size < 10e6
    assert source.stat().st_size < 2e6
    assert package.size(environment) < 420e6


@pytest.mark.in_turn
def test_wheel_and_source_contain_the_same_modules(wheel: Path, source: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if name.startswith("louver/")}
    with tarfile.open(source) as archive:
        paths = [name.partition("/")[2] for name in archive.getnames()]
    sources = {path.removeprefix("src/") for path in paths if path.startswith("src/louver/")}
    # A file that git does not track yet is in the wheel only.
    listed = subprocess.run(["git", "ls-files", "src/louver"], cwd=ROOT, capture_output=True)
    tracked = {path.removeprefix("src/") for path in listed.stdout.decode().splitlines()}
    assert {name for name in shipped if not name.endswith(".so")} & tracked == sources
    assert "louver/errors.toml" in sources
    assert "louver/py.typed" in sources
    assert {"Cargo.lock", "LICENSE", "README.md", "pyproject.toml"} <= set(paths)
    assert not [path for path in paths if path.startswith(("tests/", "docs/", "bench/"))]


@pytest.mark.soak
def test_the_source_distribution_builds(source: Path, tmp_path: Path) -> None:
    environment = package.install(source, tmp_path / "environment")
    done = subprocess.run([environment / "bin" / "louver", "--version"], capture_output=True)
    assert done.returncode == 0
