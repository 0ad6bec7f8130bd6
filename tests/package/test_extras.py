"""The core needs no extra, and what needs one names it."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from louver.extras import EXTRAS
from tests.sources import ROOT, sources
from tools import sbom

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
#: Loaded beside the core, where they are installed, by a method that says so: `rel.pl()`.
FRAMES = {"pandas", "polars"}

#: Makes every package of another distribution than the core's impossible to import.
BLOCK = """
import importlib.abc, json, sys

class Blocked(importlib.abc.MetaPathFinder):
    names = frozenset(json.loads(sys.argv.pop(1)))

    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
"""
#: Runs each command line of a JSON list; prints its exit code after its output.
COMMANDS = f"""{BLOCK}
from louver.trusted.apps.cli import main
for words in json.loads(sys.argv[1]):
    try:
        code = main(["--json", *words])
    except SystemExit as end:
        code = end.code
    print("==", code)
"""
SESSION = f"""{BLOCK}
import louver
louver.KeyRing.create("my.louverkey")
for profile in ("sealed", "cryptdb", "sdb"):
    con = louver.connect(f"duckdb:///{{profile}}.duckdb", keys="my.louverkey", profile=profile)
    con.execute("CREATE TABLE t (a TEXT ENC, b BIGINT ENC, seen TIMESTAMPTZ)")
    con.execute("INSERT INTO t VALUES ('Ada', 1, now()), ('Grace', 2, now())")
    con.sql("SELECT a FROM t WHERE b > 1").show()
    assert con.sql("SELECT * FROM t ORDER BY b").fetchall()[0][:2] == ("Ada", 1)
    assert con.sql("SELECT sum(b) AS s FROM t").arrow().to_pydict() == {{"s": [3]}}
    con.leakage()
    con.close()
for method in ("df", "pl"):
    con = louver.connect(keys="my.louverkey")
    try:
        getattr(con.sql("SELECT 1"), method)()
    except louver.Error as error:
        print(json.dumps([method, error.code, error.fix]))
"""


@cache
def core() -> set[str]:
    """The distributions that `pip install louver` installs."""
    return {canonicalize_name(part["name"]) for part in sbom.distributions(PROJECT["dependencies"])}


@cache
def blocked() -> str:
    """The import names of everything else that is installed here, as JSON."""
    names = {
        name
        for name, packages in metadata.packages_distributions().items()
        if not core() & {canonicalize_name(package) for package in packages}
    }
    return json.dumps(sorted(names - {"louver"}))


def run(script: str, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    own = {"LOUVER_STATE_DIR": str(folder / "state")}
    command = [sys.executable, "-c", script, blocked(), *words]
    return subprocess.run(
        command, cwd=folder, env=os.environ | own, capture_output=True, text=True, check=False
    )


def test_a_session_needs_no_extra(tmp_path: Path) -> None:
    done = run(SESSION, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("│ Grace") == 3
    errors = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert errors == [
        ["df", "package.missing", "Run `pip install pandas`."],
        ["pl", "package.missing", "Run `pip install polars`."],
    ]


NEED_AN_EXTRA = {
    ("-u", "lake:///warehouse", "sql", "SELECT 1"): "lake",
    ("-u", "lake+http://127.0.0.1:1", "sql", "SELECT 1"): "lake",
    ("-u", "duckdb:///d", "sql", "ATTACH 'lake:///w' AS l (KEYS 'k.louverkey')"): "lake",
    ("-u", "providers://127.0.0.1:1,127.0.0.1:2", "sql", "SELECT 1"): "providers",
    ("serve", "prune", "warehouse"): "lake",
    ("serve", "provider", "--data", "t.csv"): "providers",
    ("demo", "--rows", "1000"): "demo",
    ("demo", "lake"): "demo",
    ("demo", "postgres"): "demo",
    ("demo", "splinter"): "demo",
}


def test_what_needs_an_extra_names_it(tmp_path: Path) -> None:
    commands = [("-k", "k.louverkey", *words) for words in NEED_AN_EXTRA]
    output = executed([("key", "new", "k.louverkey"), *commands], tmp_path)
    assert output.pop(0)[1] == "== 0"
    for words, extra, (answer, code) in zip(
        NEED_AN_EXTRA, NEED_AN_EXTRA.values(), output, strict=True
    ):
        error = json.loads(answer)
        assert (code, error["code"]) == ("== 1", "package.missing"), words
        assert error["fix"] == f"Run `pip install 'louver[{extra}]'`.", words


def test_other_commands_need_no_extra(tmp_path: Path) -> None:
    create = "CREATE TABLE t (a TEXT ENC MAY REVEAL equality); INSERT INTO t VALUES ('x')"
    commands: list[tuple[str, ...]] = [
        ("--help",), ("serve", "prune", "--help"), ("key", "new", "k.louverkey"), ("sql", create),
        ("leakage",), ("attack",), ("status",), ("export", "plain.duckdb"),
    ]  # fmt: skip
    common = ("-u", "duckdb:///d.duckdb", "-k", "k.louverkey")
    output = executed([(*common, *words) for words in commands], tmp_path)
    assert {lines[-1] for lines in output} == {"== 0"}
    inspect = executed([("-u", "duckdb:///d.duckdb", "inspect")], tmp_path)
    assert inspect[0][-1] == "== 0"


def executed(commands: Sequence[tuple[str, ...]], folder: Path) -> list[list[str]]:
    """The lines that each command printed; the last one is its exit code."""
    done = run(COMMANDS, json.dumps(commands), folder=folder)
    assert done.returncode == 0, done.stderr
    output: list[list[str]] = [[]]
    for line in done.stdout.splitlines():
        output[-1].append(line)
        if line.startswith("== "):
            output.append([])
    assert len(output) == len(commands) + 1, done.stdout
    return output[:-1]


def test_each_import_belongs_to_the_core_or_to_one_extra() -> None:
    """`louver.extras` lists the imports of the sources that the core does not install."""
    modules = {
        name.partition(".")[0]
        for path in sources(".py", under=("src",))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in _imported(node)
    }
    owners = metadata.packages_distributions()
    foreign = {
        module
        for module in modules - set(sys.stdlib_module_names) - {"louver"}
        if not core() & {canonicalize_name(owner) for owner in owners.get(module, [])}
    }
    # What the others install is found by its files.
    imported = [names for extra, names in EXTRAS.items() if extra not in ("demo", "postgres")]
    listed = {name for names in imported for name in names}
    assert foreign - FRAMES == listed


def test_extras_install_what_is_imported() -> None:
    """An extra of pyproject.toml installs the packages that `louver.extras` gives for it."""
    owners = metadata.packages_distributions()
    extras = PROJECT["optional-dependencies"]
    for extra, packages in EXTRAS.items():
        own = f"{PROJECT['name']}["
        wanted = [text for text in extras[extra] if not text.startswith(own)]
        installed = {canonicalize_name(Requirement(text).name) for text in wanted}
        if extra != "demo":
            installed = {part["name"] for part in sbom.distributions(wanted)}
        for package in packages:
            assert {canonicalize_name(owner) for owner in owners[package]} & installed, package
    assert set(EXTRAS) | {"all", "examples", "bench"} == set(extras)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [str(node.module)]
    return []
