"""DROP in all its forms against plaintext DuckDB: what goes is gone in the session, on the server
and after a reconnect.
"""

from __future__ import annotations

from itertools import cycle, product

import pytest

from tests.twin import Twin

_MAKE = {
    "TABLE": "CREATE TABLE {} (a INT ENC PRIMARY KEY, b INT ENC)",
    "VIEW": "CREATE VIEW {} AS SELECT a FROM kept",
    "SEQUENCE": "CREATE SEQUENCE {}",
    "TYPE": "CREATE TYPE {} AS ENUM ('x', 'y')",
    "MACRO": "CREATE MACRO {}(p) AS p + 1",
    "FUNCTION": "CREATE FUNCTION {}(p) AS p + 1",
    "MACRO TABLE": "CREATE MACRO {}(p) AS TABLE SELECT a FROM kept",
    "INDEX": "CREATE INDEX thing ON {}kept (a)",
}
_STATE = (
    "SELECT table_schema, table_name, table_type FROM information_schema.tables",
    "SELECT schema_name, function_name, function_type FROM duckdb_functions() WHERE NOT internal",
    "SELECT schema_name, sequence_name FROM duckdb_sequences()",
    "SELECT schema_name, type_name FROM duckdb_types() WHERE NOT internal",
    "SELECT schema_name, index_name FROM duckdb_indexes()",
    "SELECT schema_name FROM duckdb_schemas() WHERE NOT internal",
    "FROM kept",
)


def _same_state(twin: Twin) -> None:
    for sql in _STATE:
        twin.run(sql)


def _server_tables(twin: Twin) -> int:
    return sum("louver_" not in name for name in twin.session.context.engine.table_names())


def test_objects(twin: Twin) -> None:
    twin.both("CREATE TABLE kept (a INT ENC)", "INSERT INTO kept VALUES (1)")
    twin.both("CREATE SCHEMA s", "CREATE TABLE s.kept (a INT ENC)")
    behaviours = cycle(("", " CASCADE", " RESTRICT"))
    for (kind, make), prefix in product(_MAKE.items(), ("", "memory.", "s.")):
        behaviour, guarded = next(behaviours), "" if prefix == "s." else "IF EXISTS "
        within = prefix if kind == "INDEX" else f"{prefix}thing"
        drop = f"DROP {kind} {guarded}{prefix}thing{behaviour}"
        twin.both(make.format(within), drop)
        assert _server_tables(twin) == 2, drop
    _same_state(twin)
    twin.reopen()
    _same_state(twin)


@pytest.mark.parametrize("drop", ["DROP SCHEMA {}x{}", "DROP SCHEMA IF EXISTS {}x{}"])
def test_schemas(twin: Twin, drop: str) -> None:
    twin.both("CREATE TABLE kept (a INT ENC)", "INSERT INTO kept VALUES (1)")
    for prefix, behaviour in (("", " CASCADE"), ("memory.", " RESTRICT"), ("memory.", " CASCADE")):
        twin.both("CREATE SCHEMA x")
        for kind, make in _MAKE.items():
            if kind not in ("INDEX", "FUNCTION", "MACRO TABLE"):
                twin.both(make.format(f"x.{kind}_thing"))
        twin.both("CREATE INDEX i ON x.TABLE_thing (b)", "INSERT INTO x.TABLE_thing VALUES (1, 2)")
        twin.both(drop.format(prefix, behaviour))
        _same_state(twin)
        twin.reopen()
        _same_state(twin)
        twin.both("DROP SCHEMA IF EXISTS x CASCADE")
        assert _server_tables(twin) == 1
    twin.both("CREATE SCHEMA x", "CREATE TABLE x.TABLE_thing (other VARCHAR ENC)")
    twin.run("FROM x.TABLE_thing")


def test_what_depends(twin: Twin) -> None:
    """CASCADE takes along what needs the object; a name of another kind is an error."""
    twin.both(
        "CREATE SEQUENCE q", "CREATE TYPE e AS ENUM ('x')",
        "CREATE TABLE kept (a INT ENC DEFAULT nextval('q'), e e ENC)",
        "INSERT INTO kept (e) VALUES ('x')",
        "CREATE TABLE parent (a INT ENC PRIMARY KEY)",
        "CREATE TABLE child (a INT ENC REFERENCES parent (a))",
    )  # fmt: skip
    for sql in (
        "DROP VIEW IF EXISTS kept", "DROP SEQUENCE IF EXISTS q", "DROP TYPE IF EXISTS e",
        "DROP TABLE IF EXISTS parent", "DROP TABLE IF EXISTS q", "DROP INDEX IF EXISTS nothing",
        "DROP SCHEMA IF EXISTS main", "DROP SCHEMA IF EXISTS nothing CASCADE",
        "DROP TABLE IF EXISTS nothing.kept", "DROP TABLE IF EXISTS child",
        "DROP TABLE IF EXISTS parent",
    ):  # fmt: skip
        twin.both(sql)
        _same_state(twin)
    twin.both("DROP SEQUENCE IF EXISTS q CASCADE")
    for sql in _STATE[:-1]:
        twin.run(sql)
    before = twin.session.context.catalog.version
    twin.both("DROP TABLE IF EXISTS nothing", "DROP SCHEMA IF EXISTS nothing")
    assert twin.session.context.catalog.version == before
