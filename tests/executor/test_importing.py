"""IMPORT DATABASE: the round trip keeps rows, objects and protection; it is all or nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest

import louver
from louver.trusted.client.dbapi import Connection
from tests.inside import context_of
from tests.twin import Twin

MADE = (
    "CREATE SCHEMA side",
    "CREATE TYPE mood AS ENUM ('sad', 'glad')",
    "CREATE SEQUENCE numbers START 7",
    "CREATE TABLE parent (i INT ENC PRIMARY KEY, \"odd \"\" name\" VARCHAR ENC MAY REVEAL order)",
    "CREATE TABLE child (i INT ENC REFERENCES parent (i), p INT DEFAULT nextval('numbers'),"
    " m mood ENC, n INT ENC USING onion)",
    "CREATE TABLE side.computed (a INT CHECK (a > 0), b INT AS (a + 1), \"WEIRD\" VARCHAR ENC)",
    "CREATE VIEW w AS SELECT i FROM parent",
    "CREATE MACRO twice(x) AS x * 2",
    "CREATE INDEX ix ON child (p)",
    "INSERT INTO parent VALUES (8317401, 'an-axolotl; it''s -- \n odd'), (2, NULL)",
    "INSERT INTO child (i, m, n) VALUES (2, 'glad', 77), (NULL, 'sad', NULL)",
    "INSERT INTO side.computed (a, \"WEIRD\") VALUES (3, 'zebra-in-the-attic')",
)  # fmt: skip
QUERIES = (
    "FROM parent ORDER BY i", "FROM child ORDER BY n", "FROM side.computed", "FROM w ORDER BY i",
    "SELECT twice(i) AS x FROM parent ORDER BY i",
    "SELECT index_name FROM duckdb_indexes()", "DESCRIBE child",
)  # fmt: skip


@pytest.fixture
def source(tmp_path: Path, key_file: Path) -> Path:
    """A folder with an export, whose name has quotes."""
    folder = tmp_path / 'it\'s "here"'
    with louver.connect(f"duckdb:///{tmp_path}/source.duckdb", keys=key_file) as con:
        for sql in MADE:
            con.execute(sql)
        con.execute(f"EXPORT DATABASE '{_quoted(folder)}' (FORMAT parquet)")
    return folder


def _quoted(folder: Path) -> str:
    return str(folder).replace("'", "''")


def _told(con: Connection) -> object:
    tables = context_of(con).catalog.tables.values()
    return [
        (table.key, [(c.name, c.type, c.encrypted, c.scheme, c.ceiling) for c in table.columns])
        for table in sorted(tables, key=lambda table: table.key)
    ]


def test_the_round_trip(tmp_path: Path, key_file: Path, source: Path) -> None:
    moved = tmp_path / "elsewhere's"
    shutil.move(source, moved)
    twin = Twin(tmp_path / "target.duckdb", key_file)
    watched, con = twin.recorded, twin.louver
    twin.run(f"IMPORT DATABASE '{_quoted(moved)}'")
    for query in QUERIES:
        twin.run(query, ordered=True)
    with louver.connect(f"duckdb:///{tmp_path}/source.duckdb", keys=key_file) as old:
        assert _told(con) == _told(old)
    assert not watched.holds(b"axolotl", b"zebra", b"elsewhere", b"glad")
    with pytest.raises(louver.Error, match="already exists"):
        con.execute(f"IMPORT DATABASE '{_quoted(moved)}'")
    assert con.execute("SELECT count(*) FROM parent").fetchall() == [(2,)]
    twin.close()


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("load.sql", "COPY nowhere FROM 'x.parquet'", "table.missing"),
        ("load.sql", "COMMIT", "sql.unsupported"),
        ("load.sql", "ATTACH 'x' AS x", "sql.unsupported"),
        ("load.sql", "COPY child FROM 'x.csv'", "duckdb.io"),
        ("protection.json", "{", "load.file"),
        ("protection.json", '{"version": 1, "tables": [{"schema": "main"}]}', "load.file"),
        ("protection.json", '{"version": 2, "tables": []}', "load.file"),
        ("schema.sql", "", "load.file"),
    ],
)
def test_nothing_is_half_done(
    tmp_path: Path, key_file: Path, source: Path, begun: bool, name: str, text: str, code: str
) -> None:
    path = source / name
    if not text:
        path.unlink()
    else:
        before = path.read_text() if name == "load.sql" else ""
        path.write_text(f"{before}\n{text}")
    with louver.connect(f"duckdb:///{tmp_path}/target.duckdb", keys=key_file) as con:
        if begun:
            con.execute("BEGIN")
        with pytest.raises(louver.Error) as caught:
            con.execute(f"IMPORT DATABASE '{_quoted(source)}'")
        assert caught.value.code == code, caught.value
        if begun:
            con.execute("ROLLBACK")
        assert con.execute("SHOW TABLES").fetchall() == []
        with pytest.raises(louver.Error):
            con.execute("SELECT twice(1)")
        con.execute("CREATE TABLE parent (i INT)")


def test_a_plain_export(tmp_path: Path, key_file: Path) -> None:
    """Under a policy as it says, and without one all ENC; so is a table that an export of Louver's
    says nothing of.
    """
    folder, policy = tmp_path / "plain", tmp_path / "policy.toml"
    with duckdb.connect() as plain:
        plain.execute("CREATE TABLE staff (name VARCHAR, age INT)")
        plain.execute("INSERT INTO staff VALUES ('zebra-in-the-attic', 30)")
        plain.execute(f"EXPORT DATABASE '{folder}'")
    policy.write_text('[staff]\nname = { may_reveal = "equality" }\n')
    for rules, expected in ((policy, ["equality", "plaintext"]), (None, ["access", "access"])):
        url = f"duckdb:///{tmp_path}/{rules is None}.duckdb"
        with louver.connect(url, keys=key_file, policy=rules) as con:
            con.execute(f"IMPORT DATABASE '{folder}'")
            columns = context_of(con).catalog.tables["main", "staff"].columns
            assert [c.ceiling if c.encrypted else "plaintext" for c in columns] == expected
            assert con.execute("FROM staff").fetchall() == [("zebra-in-the-attic", 30)]
    (folder / "protection.json").write_text('{"version": 1, "tables": []}')
    with louver.connect(f"duckdb:///{tmp_path}/third.duckdb", keys=key_file) as con:
        con.execute(f"IMPORT DATABASE '{folder}'")
        assert all(c.encrypted for c in context_of(con).catalog.tables["main", "staff"].columns)
