"""deny.toml, held without cargo-deny: licences, bans and sources of all crates."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import louver
from tests.sources import ROOT

RULES: dict[str, Any] = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))
LOCKS = ["Cargo.lock", "fuzz/libfuzzer/Cargo.lock", "bench/splinter/rates/Cargo.lock"]
_HOST = re.compile(r"^host: (\S+)$", re.MULTILINE)
#: The one registry, as Cargo writes it into a lock; its name in pieces, so that no file holds it.
_REGISTRY = "registry+https://github.com/rust-lang/" + "crates" + ".io-index"


def output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


@cache
def packages() -> list[dict[str, Any]]:
    """What is built for this machine, build and test dependencies too."""
    host = _HOST.search(output("rustc", "-vV"))
    assert host is not None
    wanted = ["--offline", "--locked", "--format-version=1", f"--filter-platform={host[1]}"]
    metadata = json.loads(output("cargo", "metadata", *wanted))
    listed: list[dict[str, Any]] = metadata["packages"]
    return listed


def locked(lock: str) -> list[dict[str, Any]]:
    """What stands in a lock: for every machine."""
    entries: list[dict[str, Any]] = tomllib.loads((ROOT / lock).read_text("utf-8"))["package"]
    return entries


def allowed(expression: str, licences: frozenset[str]) -> bool:
    """Whether an SPDX expression can be met by these licences. `/` is the old way to write OR."""
    words = re.findall(r"[()]|[^\s()/]+", expression.replace("/", " OR "))

    def either() -> bool:
        met = both()
        while words[:1] == ["OR"]:
            words.pop(0)
            met = both() or met
        return met

    def both() -> bool:
        met = known()
        while words[:1] == ["AND"]:
            words.pop(0)
            met = known() and met
        return met

    def known() -> bool:
        word = words.pop(0)
        if word == "(":
            met = either()
            assert words.pop(0) == ")"
            return met
        if words[:1] == ["WITH"]:
            words.pop(0)
            word = f"{word} WITH {words.pop(0)}"
        return word in licences

    met = either()
    assert not words, expression
    return met


def test_every_licence_is_permissive() -> None:
    licences = frozenset(RULES["licenses"]["allow"])
    refused = {
        f"{package['name']} {package['version']}": package["license"]
        for package in packages()
        if not allowed(package["license"] or "none", licences)
    }
    assert len(packages()) > 100
    assert not refused


@pytest.mark.parametrize("lock", LOCKS)
def test_crates_come_from_one_registry_and_none_is_banned(lock: str) -> None:
    if not (ROOT / lock).exists():
        pytest.fail(f"{lock} is missing")
    strange = {
        package["name"]
        for package in locked(lock)
        if package.get("source") not in (None, _REGISTRY)
    }
    banned = {rule["crate"] for rule in RULES["bans"]["deny"]}
    assert not strange
    assert not banned & {package["name"] for package in locked(lock)}


def test_two_versions_of_a_crate_are_known() -> None:
    counted = Counter(package["name"] for package in locked("Cargo.lock"))
    known = {rule["crate"] for rule in RULES["bans"]["skip"]}
    assert {name for name, count in counted.items() if count > 1} == known


def test_workspace_packages_inherit_what_they_share() -> None:
    """Version, edition, licence and minimum Rust version are written once, in Cargo.toml."""
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    members = [ROOT / member / "Cargo.toml" for member in workspace["members"]]
    assert ROOT / "rust/trusted/Cargo.toml" in members
    for manifest in members:
        package = tomllib.loads(manifest.read_text(encoding="utf-8"))["package"]
        for key in workspace["package"]:
            assert package.get(key) == {"workspace": True}, f"{manifest}: {key}"


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changelog, re.MULTILINE)
    assert newest is not None
    assert {louver.__version__, cargo["package"]["version"], newest[1]} == {project["version"]}


def release(version: str) -> tuple[int, ...]:
    """`1.89` and `1.89.0` are one version."""
    parts = tuple(map(int, version.split("-")[0].split(".")))
    return parts + (0,) * (3 - len(parts))


def test_no_dependency_needs_a_newer_rust_than_is_stated() -> None:
    """What one compiler can tell of older ones; clippy's `incompatible_msrv` tells of our code."""
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    stated = release(cargo["package"]["rust-version"])
    newer = {
        f"{package['name']} {package['version']}": package["rust_version"]
        for package in packages()
        if package["rust_version"] and release(package["rust_version"]) > stated
    }
    assert not newer
    compiler = re.search(r"^release: (\S+)$", output("rustc", "-vV"), re.MULTILINE)
    assert compiler is not None
    assert stated <= release(compiler[1])
    assert cargo["lints"]["clippy"]["incompatible_msrv"]


def test_no_file_makes_rustup_download() -> None:
    """A channel or component that is not installed would be fetched when Cargo starts."""
    assert not output("git", "ls-files", "*rust-toolchain*")


def test_no_version_is_open() -> None:
    """A manifest names the versions that it means."""
    manifests = [path for path in output("git", "ls-files").splitlines() if "Cargo.toml" in path]
    assert "rust/trusted/Cargo.toml" in manifests
    for path in map(Path, manifests):
        body = tomllib.loads((ROOT / path).read_text(encoding="utf-8"))
        for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
            for name, wanted in body.get(kind, {}).items():
                version = wanted if isinstance(wanted, str) else wanted.get("version", "")
                local = isinstance(wanted, dict) and "path" in wanted
                assert local or re.match(r"[=^~]?\d", version), f"{path}: {name}"


@pytest.mark.parametrize(
    ("expression", "met"),
    [
        ("MIT", True), ("GPL-3.0", False), ("MIT OR GPL-3.0", True), ("MIT AND GPL-3.0", False),
        ("(GPL-3.0 OR MIT) AND ISC", True), ("GPL-3.0/MIT", True), ("none", False),
        ("Apache-2.0 WITH LLVM-exception", True), ("ISC WITH LLVM-exception", False),
        ("GPL-3.0 OR MIT AND GPL-3.0", False),
    ],
)  # fmt: skip
def test_expressions_are_read(expression: str, met: bool) -> None:
    licences = frozenset(["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"])
    assert allowed(expression, licences) is met
