"""What applications read of a broken constraint, its name and the key, is what PostgreSQL says,
however the rows came and however often the statement did.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local_postgres.twin import Outcome, PostgresTwin

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
_DECLARED = (
    "CREATE TABLE u (k int ENC PRIMARY KEY, a text ENC UNIQUE, b int ENC, c int,"
    " CONSTRAINT bc UNIQUE (b, c))",
    'CREATE UNIQUE INDEX "Plain c" ON u (c)',
    "CREATE UNIQUE INDEX low ON u (lower(a)) WHERE b = 1",
    'CREATE TABLE "Ch" (k int ENC PRIMARY KEY, u int ENC REFERENCES u, n int ENC CHECK (n > 0)'
    ' NOT NULL, e int ENC, CONSTRAINT "to self" FOREIGN KEY (e) REFERENCES "Ch")',
    "INSERT INTO u VALUES (1, 'a', 1, 1), (2, 'b', 2, 2)",
    'INSERT INTO "Ch" VALUES (1, 1, 1)',
)
_BREAKS: tuple[tuple[str, list[object]], ...] = (
    ("INSERT INTO u VALUES ($1, $2, $3, $4)", [1, "x", 9, 9]),
    ("INSERT INTO u VALUES ($1, $2, $3, $4)", [5, "a", 9, 9]),
    ("INSERT INTO u VALUES ($1, $2, $3, $4)", [5, "A", 1, 9]),
    ("INSERT INTO u VALUES ($1, $2, $3, $4)", [5, "q", 1, 1]),
    ("INSERT INTO u VALUES ($1, $2, $3, $4)", [5, "q", 7, 2]),
    ("INSERT INTO u VALUES (8, '8', 8, 8), (8, '9', 9, 9)", []),
    ("INSERT INTO u VALUES (8, '8', 8, 8), (9, '8', 9, 9)", []),
    ("INSERT INTO u SELECT k, a || 'x', b + 10, c + 10 FROM u WHERE k = 1", []),
    ("INSERT INTO u VALUES (5, 'a', 9, 9) ON CONFLICT (k) DO UPDATE SET c = 1", []),
    ("UPDATE u SET k = $1 WHERE k = $2", [1, 2]),
    ("UPDATE u SET k = 99 WHERE k = 1", []),
    ("UPDATE u SET a = $1 WHERE k = $2", ["a", 2]),
    ("UPDATE u SET c = $1 WHERE k = $2", [1, 2]),
    ("DELETE FROM u WHERE k = $1", [1]),
    ('INSERT INTO "Ch" VALUES ($1, $2, $3)', [2, 77, 1]),
    ('INSERT INTO "Ch" VALUES ($1, $2, $3, $4)', [2, 1, 1, 9]),
    ('INSERT INTO "Ch" VALUES ($1, $2, $3)', [2, 1, 0]),
    ('INSERT INTO "Ch" VALUES ($1, $2, $3)', [2, 1, None]),
)


@pytest.fixture(scope="module", params=["cryptdb", "sealed"])
def twin(request: pytest.FixtureRequest) -> Iterator[PostgresTwin]:
    opened = PostgresTwin(request.param)
    for sql in _DECLARED:
        opened.run(sql)
    yield opened
    opened.close()


def _said(outcome: Outcome) -> list[str]:
    """The message, and its detail where that is not about a whole row."""
    assert outcome.error is not None
    lines = outcome.error.message.splitlines()
    return [line for line in lines[:2] if "Failing row" not in line]


@pytest.mark.parametrize(("sql", "values"), _BREAKS, ids=range(len(_BREAKS)))
def test_a_broken_constraint_has_its_name(
    twin: PostgresTwin, sql: str, values: list[object]
) -> None:
    for within in (False, False, True):
        if within:
            twin.run("BEGIN")
        plain, own = twin.both(sql, values)
        assert _said(plain) == _said(own)
        assert plain.state == own.state
        if within:
            twin.run("ROLLBACK")
