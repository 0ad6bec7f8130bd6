"""The planner and the executor know no engine by name: what differs is said by backends."""

from __future__ import annotations

import re
from pathlib import Path

from tests.sources import ROOT

TRUSTED = ROOT / "src" / "louver" / "trusted"
BACKENDS = TRUSTED / "backends"
#: DuckDB's own SQL, as a server gets it.
DIALECT = re.compile(
    r"\.sql\(\s*[\"']|arg_(?:min|max)\(|struct_extract\(|\brow_set\(|USING SAMPLE|::BLOB|::UUID"
    r"|CREATE SCHEMA IF NOT EXISTS|onion_(?:open|join)\(|\bCHECKPOINT\b|[\"']duckdb[\"']"
)
FLAGS = re.compile(r"\bis_(?:lake|duckdb|server|postgres|spark)\b|\btable\.lake\b")
MODULES = re.compile(r"untrusted\.engines\.(?:duckdb|lake)\b|trusted\.backends\.(?:duckdb|lake)\b")
#: Where the words are for the local engine, which is a DuckDB.
LOCAL = {
    "client/aggregates.py": "functions by the names that DuckDB's relations have",
    "client/duckdb_names.py": "what users write in place of names that DuckDB has",
    "executor/local": "the local engine",
    "executor/dispatch.py": "the user's own CHECKPOINT",
    "executor/maintenance.py": "the user's own CHECKPOINT",
    "apps/pgproxy/tags.py": "the user's own CHECKPOINT",
    "apps/pgproxy/visitors.py": "the user's own CHECKPOINT",
    "executor/postgres/language.py": "the user's own CHECKPOINT",
    "executor/export_file.py": "the file that is written",
    "executor/transfer.py": "the file that is copied",
    "planner/sql/dialect.py": "the language of the local engine",
    "vault/catalog.py": "the language of a database's texts",
    "planner/sql/postgres_trees.py": "the user's own CHECKPOINT",
    "apps/demo": "questions to providers, which are DuckDBs by their protocol",
}
#: What is of lakes alone, and never runs for tables of a server.
LAKES = {
    "executor/lake": "the files of a lake and their index",
    "lake": "the files of a lake and their index",
    "vault/catalog.py": "how the files of a table and their index are made",
    "vault/facts.py": "what a full scan of files shows",
    "client/connect_lake.py": "opens the files of a lake",
}


def code(path: Path) -> str:
    """A file's text without docstrings and comments, which show what DuckDB is sent."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r'"""(?:.|\n)*?"""', "", text)
    return re.sub(r"(?m)^\s*#.*$", "", text)


def occurrences(pattern: re.Pattern[str], allowed: dict[str, str]) -> list[str]:
    """Where a pattern is met outside of backends."""
    places = []
    for path in sorted(TRUSTED.rglob("*.py")):
        name = path.relative_to(TRUSTED).as_posix()
        if path.is_relative_to(BACKENDS) or any(name.startswith(entry) for entry in allowed):
            continue
        places += [f"{name}: {match[0]}" for match in pattern.finditer(code(path))]
    return places


def test_no_engine_s_words_are_written_outside_of_backends() -> None:
    assert occurrences(DIALECT, LOCAL) == []


def test_no_flag_tells_one_engine_from_another() -> None:
    assert occurrences(FLAGS, LAKES) == []


def test_no_engine_is_imported_by_name() -> None:
    assert occurrences(MODULES, LAKES) == []


def test_allowed_places_exist() -> None:
    for name in (*LOCAL, *LAKES):
        assert (TRUSTED / name).exists(), name
