"""The bill of materials names everything that a user of the wheel runs, with its licence."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tests.house.test_dependencies import LOCKS, RULES, allowed, locked, output
from tests.sources import ROOT
from tools import sbom

MIT = "License :: OSI Approved :: MIT License"


@cache
def bill() -> dict[str, Any]:
    return sbom.bill()


def listed(kind: str) -> dict[tuple[str, str], dict[str, Any]]:
    parts = [part for part in bill()["components"] if part["purl"].startswith(f"pkg:{kind}/")]
    return {(part["name"], part["version"]): part for part in parts}


@cache
def linked() -> set[tuple[str, str]]:
    """What Cargo's own graph links: normal dependencies of the binding, not through macros."""
    wanted = ["--offline", "--locked", "--format-version=1", f"--filter-platform={host()}"]
    manifest = "--manifest-path=rust/python/Cargo.toml"
    graph = json.loads(output("cargo", "metadata", manifest, *wanted))
    packages = {package["id"]: package for package in graph["packages"]}
    nodes = {node["id"]: node for node in graph["resolve"]["nodes"]}
    reached: set[str] = set()
    waiting = [graph["resolve"]["root"]]
    while waiting:
        here = waiting.pop()
        macro = any("proc-macro" in target["kind"] for target in packages[here]["targets"])
        if here in reached or macro:
            continue
        reached.add(here)
        waiting += [
            needed["pkg"]
            for needed in nodes[here]["deps"]
            if any(kind["kind"] is None for kind in needed["dep_kinds"])
        ]
    return {(packages[name]["name"], packages[name]["version"]) for name in reached}


def host() -> str:
    lines = output("rustc", "-vV").splitlines()
    return next(line.removeprefix("host: ") for line in lines if line.startswith("host: "))


def test_every_linked_crate_is_listed_with_its_licence_and_checksum() -> None:
    crates = listed("cargo")
    assert len(crates) > 60
    assert {("louver-trusted", "0.1.0"), ("louver-untrusted", "0.1.0")} <= set(crates)
    assert set(crates) <= linked()
    # The metadata also has optional edges of features that the wheel does not enable.
    for name, version in linked() - set(crates):
        wanted = ("--package", "louver-python", "--edges", "normal", "--invert")
        users = output("cargo", "tree", "--quiet", "--locked", *wanted, f"{name}@{version}")
        assert not users, f"{name} {version} is linked and not listed"
    sums = {
        (package["name"], package["version"]): package.get("checksum")
        for package in locked(LOCKS[0])
    }
    licences = frozenset(RULES["licenses"]["allow"])
    for key, part in crates.items():
        assert [item["content"] for item in part.get("hashes", [])] == (
            [sums[key]] if sums[key] else []
        ), key
        assert allowed(part["licenses"][0]["expression"], licences), key


def test_every_runtime_dependency_is_listed_with_its_licence() -> None:
    packages = listed("pypi")
    names = {name for name, _ in packages}
    optional = {name for (name, _), part in packages.items() if part["scope"] == "optional"}
    assert {"duckdb", "numpy", "pyarrow", "pytz", "sqlglot", "sqlglotc"} <= names - optional
    assert {"grpcio", "pyiceberg", "requests", "starlette", "uvicorn"} <= optional
    assert {"sqlalchemy", "urllib3", "pydantic"} <= optional
    assert not names & {"pytest", "mypy", "maturin", "moto", "gmpy2", "pandas"}
    for (name, version), part in packages.items():
        assert metadata.version(name) == version
        for licence in part["licenses"]:
            assert licence.get("expression") or licence["license"]["name"], name


def test_a_dependency_that_is_not_the_locked_one_stops_it(monkeypatch: Any) -> None:
    monkeypatch.setattr(sbom, "_locked", dict)
    with pytest.raises(SystemExit, match="make setup"):
        sbom.distributions(["duckdb==1.5.5"])


@pytest.mark.parametrize(
    ("lines", "licences"),
    [
        ([("License-Expression", "MIT"), ("License", "x")], [{"expression": "MIT"}]),
        ([("License", "Apache 2"), ("Classifier", MIT)], [{"license": {"name": "MIT License"}}]),
        ([("License", "BSD")], [{"license": {"name": "BSD"}}]),
    ],
)
def test_licences_are_read_as_they_are_told(
    lines: list[tuple[str, str]], licences: list[dict[str, Any]]
) -> None:
    assert sbom._licences("x", headers(lines)) == licences


def test_a_package_without_a_licence_stops_it() -> None:
    with pytest.raises(SystemExit, match="names no licence"):
        sbom._licences("x", headers([("Name", "x")]))


def headers(lines: list[tuple[str, str]]) -> Any:
    from email.message import Message

    message = Message()
    for key, value in lines:
        message[key] = value
    return message


def test_the_same_sources_give_the_same_bytes_without_local_paths(tmp_path: Path) -> None:
    path = tmp_path / "new" / "bill.json"
    command = [sys.executable, "-m", "tools.sbom", str(path)]
    subprocess.run(command, cwd=ROOT, check=True)
    text = path.read_text(encoding="utf-8")
    assert json.loads(text) == bill()
    assert str(ROOT) not in text
    assert "file:" not in text
    assert text == json.dumps(bill(), indent=1) + "\n"
