"""The local engine is reached by its protocols: few modules use DuckDB, each for a stated reason.

Another local engine can stand in its place where nothing outside of `executor/local` runs SQL on a
connection of DuckDB's own. `backends` says what DuckDB means as a server.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from louver.trusted.executor.local import engine, local
from tests.sources import ROOT

TRUSTED = ROOT / "src" / "louver" / "trusted"
INSIDE = ("executor/local/", "backends/")
#: Modules that use DuckDB as a library, of files or of Arrow, whatever the local engine is. The
#: list can only become shorter.
LIBRARY = {
    "apps/demo/database.py": "the plaintext twin of a demonstration",
    "apps/demo/lake.py": "the plaintext twin of a demonstration",
    "apps/demo/splinter.py": "the plaintext twin of a demonstration",
    "apps/inference.py": "counts values of Arrow tables for an estimate of attacks",
    "client/advice.py": "tries a generated column in a database of its own",
    "executor/containment.py": "translates what a library raises and nobody else caught",
    "executor/export_file.py": "writes a DuckDB file",
    "executor/file_objects.py": "reads the objects of a DuckDB file",
    "executor/inventory.py": "reads and writes the objects of a DuckDB file",
    "executor/load_sources.py": "finds out the columns of CSV and JSON files",
    "executor/server_source.py": "declares another server's tables in a database of its own",
    "executor/server_target.py": "writes declarations and values for another server",
    "executor/transfer.py": "reads a DuckDB file",
    "lake/maintenance.py": "sorts the rows of Parquet files",
    "lake/migrate.py": "reads the tables of other lakes",
    "lake/store.py": "reads Parquet files",
    "planner/private/functions.py": "functions that finish what providers answer",
    "planner/private/schema.py": "the schema of providers, whose language is DuckDB's",
}
#: Modules that know which local engine they are given.
CONCRETE = {
    "client/advice.py": "tries a generated column in a database of its own",
    "client/advised_script.py": "quotes names for a script of DuckDB's SQL",
    "executor/export_file.py": "writes a DuckDB file",
    "executor/file_objects.py": "reads the objects of a DuckDB file",
    "executor/load_sources.py": "finds out the columns of CSV and JSON files",
    "executor/private/context.py": "questions are in DuckDB's SQL",
    "executor/private/session.py": "questions are in DuckDB's SQL",
    "executor/session_context.py": "makes the local engine",
    "executor/server_source.py": "declares another server's tables in a database of its own",
    "executor/server_target.py": "writes declarations and values for another server",
    "executor/transfer.py": "reads a DuckDB file",
}
#: The modules of `executor/local` that are DuckDB's.
DUCKDB = re.compile(r"executor\.local\.(?:connection|duckdb_\w+|local_engine)\b")
HALVES = {"binder", "workspace"}


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every trusted module outside of the local engine and of the backends."""
    for path in sorted(TRUSTED.rglob("*.py")):
        name = path.relative_to(TRUSTED).as_posix()
        if not name.startswith(INSIDE):
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> set[str]:
    """The modules that one imports, anywhere in its text."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def test_few_modules_use_duckdb_and_each_says_why() -> None:
    users = {
        name
        for name, tree in modules()
        if any(module.partition(".")[0] == "duckdb" for module in imported(tree))
    }
    assert users == LIBRARY.keys(), "ask the local engine (executor/local/engine.py)"


def test_few_modules_know_which_local_engine_there_is() -> None:
    users = {name for name, tree in modules() if DUCKDB.search(" ".join(imported(tree)))}
    assert users == CONCRETE.keys(), "ask the local engine (executor/local/engine.py)"


def test_no_module_takes_a_connection_of_the_local_engine() -> None:
    taken = {
        f"{name}:{node.lineno}"
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in HALVES
    }
    assert taken == set()


@pytest.mark.parametrize("module", [engine, local], ids=lambda module: module.__name__)
def test_protocols_name_no_type_of_an_engine_s_library(module: object) -> None:
    text = inspect.getsource(module)  # type: ignore[arg-type]
    libraries = {name.partition(".")[0] for name in imported(ast.parse(text))}
    assert libraries.isdisjoint({"duckdb", "psycopg", "adbc_driver_postgresql"})


def test_languages_are_named_in_modules_of_their_own() -> None:
    named = {
        name
        for name, tree in modules()
        if any(module.startswith("sqlglot.dialects") for module in imported(tree))
    }
    assert named == {"planner/sql/dialect.py", "planner/sql/postgres_dialect.py"}


def test_nobody_takes_a_language_for_the_session_s() -> None:
    """`spoken()` says which it is; a row is named by a local engine alone."""
    rows = {"louver.trusted.planner.sql.dialect.DUCKDB"}
    users = {name for name, tree in modules() if rows & imported(tree)}
    assert users == {"planner/sql/postgres_dialect.py"}
    direct = {
        name
        for name, tree in modules()
        if "louver.trusted.planner.sql.postgres_dialect" in imported(tree)
    }
    assert direct == set()


def test_listed_modules_exist() -> None:
    for name in {*LIBRARY, *CONCRETE}:
        assert Path(TRUSTED / name).exists(), name
