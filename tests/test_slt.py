"""The sqllogictest corpus, with every column ENC, under both profiles.

The corpus lies outside of the project; where it is not there, a part of it that the project
makes itself runs instead.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tests.slt import runner

CORPUS = Path(__file__).parents[2] / "shared" / "data" / "slt"
OWN = Path(__file__).parent / "slt"
FILES = sorted(CORPUS.glob("*.test.xz")) + sorted(OWN.glob("*.test"))


@pytest.mark.parametrize("profile", ["sdb", "sealed"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_corpus(path: Path, profile: str, open_connection) -> None:
    connection = open_connection(profile)
    for row in connection.execute("SHOW TABLES").fetchall():
        connection.execute(f'DROP TABLE "{row[0]}"')
    differences = runner.run(path, connection, duckdb.connect())
    assert not differences, "\n".join(str(entry) for entry in differences[:5])


def test_a_wrong_answer_would_be_seen() -> None:
    assert not runner.same([(1,)], [(2,)], ordered=False)
    assert not runner.same([(1,), (2,)], [(2,), (1,)], ordered=True)
    assert not runner.same("error binder", [(1,)], ordered=False)
    assert runner.same([(1,), (2,)], [(2,), (1,)], ordered=False)
