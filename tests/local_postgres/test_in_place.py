"""A plaintext database is encrypted within itself: nothing is lost at any point, and no plaintext
is left.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import louver
from tests.client.harness import Done, answers, key_file, run
from tests.local_postgres import moving
from tests.postgres.moving import Database


@pytest.fixture
def shop() -> Database:
    return Database()


def encrypt(shop: Database, folder: Path, *words: str, code: int = 0) -> Done:
    return run("encrypt", shop.url, "--in-place", "--json", *words, folder=folder, code=code)


def test_a_database_and_back(shop: Database, tmp_path: Path) -> None:
    shop.run(moving.RICH)
    before = moving.definitions(shop)
    views = ("few", '"Sales dept".fewer')
    rows = {table: shop.texts(table) for table in (*moving.TABLES, *views)}
    (body,) = answers(encrypt(shop, tmp_path, "--yes"))
    assert body["tables"] == {
        "Group": 3, "odd": 3003, "Sales dept.nothing": 0, "hen": 2, "egg": 2, "tree": 2,
    }  # fmt: skip
    assert not any("Still there" in notice for notice in body["notices"])
    with louver.connect(shop.url, keys=key_file()) as con:
        for table, texts in rows.items():
            done = con.execute(f"SELECT x::text FROM (SELECT * FROM {table}) AS x ORDER BY 1")
            assert [text for (text,) in done.fetchall()] == texts, table
    back = Database()
    run("-u", shop.url, "export", "--to", back.url, folder=tmp_path)
    assert moving.definitions(back) == before
    for table, texts in rows.items():
        assert back.texts(table) == texts, table
