"""What CONTRIBUTING and RELEASING say is so, and the tools that they name."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.sources import ROOT
from tools import python_coverage, rust_coverage

GUIDES = ("CONTRIBUTING.md", "RELEASING.md")
TARGET = re.compile(r"^([a-z][\w-]*):", re.MULTILINE)


def targets() -> set[str]:
    return set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))


def read(guide: str) -> str:
    return (ROOT / guide).read_text(encoding="utf-8")


@pytest.mark.parametrize("guide", GUIDES)
def test_only_targets_that_exist_are_named(guide: str) -> None:
    named = set(re.findall(r"(?:^    |`)make ([\w-]+)", read(guide), re.MULTILINE))
    assert {"test", "lint"} <= named
    assert named <= targets()


@pytest.mark.parametrize("guide", GUIDES)
def test_files_and_modules_that_are_named_exist(guide: str) -> None:
    text = read(guide)
    links = set(re.findall(r"\]\((?!https?:)([^)#]+)\)", text))
    assert "CHANGELOG.md" in links
    assert {link for link in links if not (ROOT / link).exists()} == set()
    modules = set(re.findall(r"python -m (tools\.\w+)", text))
    files = {f"{module.replace('.', '/')}.py" for module in modules}
    assert {path for path in files if not (ROOT / path).exists()} == set()


def test_releasing_names_where_the_version_and_the_golden_files_are() -> None:
    text = read("RELEASING.md")
    version = tomllib.loads(read("pyproject.toml"))["project"]["version"]
    for path in ("pyproject.toml", "Cargo.toml", "src/louver/__init__.py"):
        assert f"`{path}`" in text
        assert f'version = "{version}"' in read(path) or f'"{version}"' in read(path)
    folder = re.search(r"tools\.golden (\S+)/[\d.]+$", text, re.MULTILINE)
    assert folder is not None
    assert (ROOT / folder[1] / version / "database.gz").exists()


def test_hooks_are_local_and_call_what_make_lint_calls() -> None:
    text = read(".pre-commit-config.yaml")
    assert re.findall(r"repo: (\S+)", text) == ["local"]
    assert "://" not in text
    makefile = (
        read("Makefile").replace("$(BIN)/", ".venv/bin/").replace("$(RUN)", ".venv/bin/python")
    )
    entries = re.findall(r"entry: (.+)", text)
    assert len(entries) >= 6
    assert [entry for entry in entries if f"\t{entry}\n" not in makefile] == []


def test_the_files_that_are_traced_exist() -> None:
    assert [path.stem for path in python_coverage.files()] == list(python_coverage.FILES)


def test_coverage_of_python_is_added_up_by_folder() -> None:
    def lines(covered: int, count: int) -> dict[str, dict[str, int]]:
        return {"summary": {"covered_lines": covered, "num_statements": count}}

    text = python_coverage.table(
        {
            "src/louver/trusted/vault/a.py": lines(1, 2),
            "src/louver/trusted/vault/schemes/b.py": lines(2, 2),
            "src/louver/errors.py": lines(5, 10),
            "src/louver/trusted/__init__.py": lines(0, 0),
        }
    )
    assert re.search(r" 75\.0 % +3 of +4 lines  trusted/vault\n", text)
    assert re.search(r" 50\.0 % +5 of +10 lines  louver\n", text)
    assert re.search(r" 57\.1 % +8 of +14 lines  total\n$", text)


def test_coverage_of_rust_is_added_up_by_crate() -> None:
    assert {"primitives", "trusted", "untrusted"} <= set(rust_coverage.crates())
    assert "python" not in rust_coverage.crates()
    text = rust_coverage.table(
        [("/x/rust/trusted/src/a.rs", 3, 4), ("/x/rust/trusted/src/b/c.rs", 0, 2),
         ("/x/registry/src/d.rs", 9, 9)]
    )  # fmt: skip
    assert re.search(r" 50\.0 % +3 of +6 lines  rust/trusted\n", text)
    assert re.search(r" 50\.0 % +3 of +6 lines  total\n$", text)


def test_tools_of_llvm_are_found_or_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    version = rust_coverage.llvm_version()
    assert version.isdecimal()
    for name in ("llvm-profdata", "llvm-cov"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv(rust_coverage.FOLDER, str(tmp_path))
    tools = rust_coverage.find(version)
    assert tools == (str(tmp_path / "llvm-profdata"), str(tmp_path / "llvm-cov"))
    monkeypatch.setattr(rust_coverage, "find", lambda version: None)
    assert rust_coverage.main() == 0
    output = capsys.readouterr().out
    assert "not measured" in output
    assert f"llvm-{version}" in output
    assert "coverage-rust" in output
    assert "coverage-rust" in targets()


def test_the_wrapper_adds_one_option() -> None:
    wrapper = ROOT / "tools/instrumented"
    done = subprocess.run(
        [wrapper, "echo", "--crate-name", "a b"], check=True, capture_output=True, text=True
    )
    assert done.stdout == "--crate-name a b -C instrument-coverage\n"
