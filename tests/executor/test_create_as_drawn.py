"""CREATE TABLE AS of drawn queries: the rows are plaintext DuckDB's, and a column takes over
nothing that it may show and its source may not.

The judge knows nothing of the rule: the same query runs over plaintext tables that differ from
the first ones only in columns up to some ceiling. Where columns of the copy that may reveal more
than this ceiling then differ, they show what the ceiling hides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

import duckdb
import pytest

from louver import errors
from louver.names import fold
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.levels import LEVELS
from tests.executor.drawn_queries import SCHEMA, TABLES, Draw
from tests.generated import cases, generator
from tests.twin import Twin, outcome_of, same

CLAUSES = (
    "", "", "", " ENC", " ENC MAY REVEAL size", " ENC USING onion MAY REVEAL equality",
    " ENC MAY REVEAL order", " ENC USING onion", " ENC WITH (sum = 'masked')",
)  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
REFUSED = ("leak.flow", "leak.refused")
Plain = duckdb.DuckDBPyConnection


def literal(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def filled(connection: Plain, level: str | None, seed: int) -> None:
    """The tables in plain text; columns up to a level have other values than without one."""
    for table, columns in TABLES.items():
        connection.execute(f"DELETE FROM {table}")
        rows = []
        for number in range(5):
            row = []
            for name, type_, own in columns:
                other = level is not None and LEVELS.index(own) <= LEVELS.index(level)
                dice = Random(f"{seed} {table}.{name} {number} {level if other else ''}")
                value = dice.choice(range(1, 5)) if type_ == "BIGINT" else dice.choice("pqrs")
                row.append(literal(value) if dice.random() < 0.9 else "NULL")
            rows.append(f"({', '.join(row)})")
        connection.execute(f"INSERT INTO {table} VALUES {', '.join(rows)}")


@contextmanager
def worlds(seed: int) -> Iterator[dict[str | None, Plain]]:
    """Plaintext databases: the first one, and by level those that differ up to it."""
    opened = {level: duckdb.connect() for level in (None, *LEVELS[:4])}
    for level, connection in opened.items():
        for statement in SCHEMA:
            connection.execute(statement)
        filled(connection, level, seed)
    try:
        yield opened
    finally:
        for connection in opened.values():
            connection.close()


def leaks(table: Table, query: str, judges: dict[str | None, Plain]) -> str:
    """A level whose columns show through columns of the copy that may reveal more; "" if none."""
    for level in LEVELS[:4]:
        shown = [
            number for number, column in enumerate(table.columns)
            if LEVELS.index(column.ceiling if column.encrypted else "plaintext")
            > LEVELS.index(level)
        ]  # fmt: skip
        first, second = (
            sorted(repr([row[n] for n in shown]) for row in judges[w].execute(query).fetchall())
            for w in (None, level)
        )
        if shown and first != second:
            return f"{level} in {[table.columns[n].name for n in shown]}: {first} / {second}"
    return ""


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_a_copy_shows_nothing_that_its_sources_hide(
    profile: str, open_twin: Callable[..., Twin]
) -> None:
    dice, twin, done = generator(f"drawn copy {profile}"), open_twin(profile), Counter[str]()
    for statement in SCHEMA:
        twin.louver.execute(enc_clauses(statement))
    with worlds(1) as judges:
        for table in TABLES:
            rows = judges[None].execute(f"FROM {table}").fetchall()
            marks = ", ".join("?" for _ in rows[0])
            twin.louver.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        for _ in range(cases(110)):
            done[copied(dice, twin, judges)] += 1
    assert done["copied"] > sum(done.values()) / 6, done
    assert done["refused"] > 5, done
    assert done["plain column"] > 5, done


def enc_clauses(statement: str) -> str:
    """The statement with the clauses of ENC columns."""
    for columns in TABLES.values():
        for name, type_, level in columns:
            if level != "plaintext":
                clause = f"{name} {type_} ENC MAY REVEAL {level}"
                statement = statement.replace(f"{name} {type_}", clause)
    return statement


def copied(dice: Random, twin: Twin, judges: dict[str | None, Plain]) -> str:
    """Make one copy, compare, and drop it; what became of it."""
    query, names = Draw(dice).statement()
    listed = ""
    if dice.random() < 0.25:
        given = [f'"c {n}"{dice.choice(CLAUSES)}' for n in range(dice.randint(1, len(names)))]
        listed = f" ({', '.join(given)})"
    word = dice.choice(("", "OR REPLACE ")) + "TABLE" + dice.choice(("", " IF NOT EXISTS"))
    word = "TABLE" if "REPLACE" in word and "EXISTS" in word else word
    sql = f"CREATE {word} copy{listed} AS {query}"
    expected = outcome_of(judges[None], query)
    sent = twin.sent()
    actual = outcome_of(twin.louver, sql)
    if actual.error is not None:
        assert isinstance(actual.error, errors.Error), sql
        if actual.code in REFUSED:
            assert twin.sent() <= sent + 1, f"the version of the catalog at most: {sql}"
            return "refused"
        assert expected.error is not None, f"{sql}\n{actual.error}"
        return "failed"
    assert expected.error is None, f"{sql}\n{expected.error}"
    try:
        copy = twin.table("copy")
        assert same(expected.rows, twin.rows("FROM copy"), ordered=False), sql
        leak = leaks(copy, query, judges)
        assert not leak, f"{sql}\n{leak}"
        assert len({fold(c.name) for c in copy.columns}) == len(names), sql
        return "copied" if copy.has_encrypted else "plain column"
    finally:
        twin.louver.execute("DROP TABLE copy")
