"""A plaintext database comes over in PostgreSQL's language, and back just as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

import louver
from tests.client.harness import Done, answers, key_file, run
from tests.local_postgres import moving
from tests.postgres.moving import Database


@pytest.fixture
def source() -> Database:
    return Database()


@pytest.fixture
def target() -> Database:
    return Database()


def encrypt(source: Database, target: Database, folder: Path, *words: str, code: int = 0) -> Done:
    return run("encrypt", source.url, "--to", target.url, *words, folder=folder, code=code)


def test_all_that_is_declared_comes_along(
    source: Database, target: Database, tmp_path: Path
) -> None:
    source.run(moving.RICH)
    (body,) = answers(encrypt(source, target, tmp_path, "--json"))
    assert body["tables"] == {
        "Group": 3, "odd": 3003, "Sales dept.nothing": 0, "hen": 2, "egg": 2, "tree": 2,
    }  # fmt: skip
    assert "notices" not in body
    with louver.connect(target.url, keys=key_file()) as con:
        for table in (*moving.TABLES, "few", '"Sales dept".fewer'):
            rows = con.execute(f"SELECT x::text FROM (SELECT * FROM {table}) AS x ORDER BY 1")
            assert [text for (text,) in rows.fetchall()] == source.texts(table), table
    back = Database()
    done = answers(run("-u", target.url, "export", "--to", back.url, "--json", folder=tmp_path))
    assert done[0]["tables"] == body["tables"]
    assert moving.definitions(back) == moving.definitions(source)
    for table in (*moving.TABLES, "few", '"Sales dept".fewer'):
        assert back.texts(table) == source.texts(table), table
