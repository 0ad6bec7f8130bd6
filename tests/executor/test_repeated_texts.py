"""Statements that come again with other values are known by their text: UPDATE and DELETE by a key,
INSERT with a way out for conflicts, and look-ups, beside plaintext DuckDB, whatever changed
meanwhile, here or by another client, and whatever the values are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

import louver
from louver import errors
from louver.trusted.executor import dispatch, repeated
from louver.trusted.planner.sql import lexer
from tests.generated import cases, generator, is_due
from tests.twin import Twin, plain_sql

TABLE = "CREATE TABLE t (a INT ENC PRIMARY KEY, b TEXT ENC, c DECIMAL(9,2) ENC, d DATE, e BIGINT)"
ROWS = "INSERT INTO t SELECT i, 'b' || i, i, DATE '2020-01-01' + i::INT, i FROM range(300) AS r(i)"
#: Statements with the number of a key in the place of 0.
STATEMENTS: dict[str, tuple[object, ...]] = {
    "UPDATE t SET b = ? WHERE a = ?": ("x", 0),
    "UPDATE t SET c = c + ?, e = e - 1 WHERE a = ?": (1, 0),
    "UPDATE t SET b = b, d = d WHERE a = ?": (0,),
    "UPDATE t AS y SET b = ?, c = 2.5 WHERE y.a IN (?, 3)": ("y", 0),
    "DELETE FROM t WHERE a = ?": (0,),
    "DELETE FROM t WHERE a IN (?, 5)": (0,),
    "INSERT INTO t (a, b) VALUES (?, ?) ON CONFLICT (a) DO UPDATE SET b = excluded.b": (0, "z"),
    "INSERT OR IGNORE INTO t (a, b) VALUES (?, ?)": (0, "z"),
    "SELECT a, b, c, d FROM t WHERE a = ?": (0,),
    "SELECT * FROM t WHERE a = ?": (0,),
}
KEYS = (3, 4, 299, 5, 1000)
CHANGES = (
    "SELECT 1",
    "ALTER TABLE t ADD COLUMN f INT DEFAULT 5",
    "ALTER TABLE t ALTER COLUMN b SET NOT NULL",
    "ALTER TABLE t RENAME COLUMN b TO bb",
    "ALTER TABLE t RENAME TO u",
    "ALTER TABLE t ALTER COLUMN c TYPE BIGINT",
    "ALTER TABLE t ALTER COLUMN b SET DEFAULT 'q'",
    "DROP TABLE t",
    "DROP TABLE t; CREATE TABLE t (b INT, a TEXT ENC PRIMARY KEY, c INT, d INT, e INT)",
    "CREATE UNIQUE INDEX i ON t (a, b)",
    "DELETE FROM t",
    "DELETE FROM t WHERE a = 4",
    "UPDATE t SET c = 7 WHERE a = 4",
    "UPDATE t SET a = 2000 WHERE a = 4",
    "INSERT INTO t (a, b) VALUES (1000, 'another')",
)


def values_of(sql: str, key: object) -> list[object]:
    """The values of a statement about a key."""
    return [key if value == 0 else value for value in STATEMENTS[sql]]


@pytest.fixture
def clients(tmp_path: Path, key_file: Path) -> Iterator[list[Any]]:
    with ExitStack() as stack:
        url = f"duckdb:///{tmp_path}/x.duckdb"
        yield [
            stack.enter_context(louver.connect(url, keys=key_file, profile="cryptdb"))
            for _ in range(2)
        ]


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
@pytest.mark.parametrize("sql", STATEMENTS)
def test_no_word_is_read_again(
    sql: str, profile: str, open_twin: Callable[..., Twin], monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = open_twin(profile)
    twin.fill(TABLE, ROWS)
    for key in (10, 11):
        twin.run(sql, values_of(sql, key))
    handled, handler = list[object](), dispatch.handler
    monkeypatch.setattr(dispatch, "handler", lambda *given: handled.append(given))
    twin.run(sql, values_of(sql, 12))
    assert handled == []
    monkeypatch.setattr(dispatch, "handler", handler)
    twin.run("SELECT * FROM t")


@pytest.mark.parametrize("sign", ["?", "${}"])
def test_no_word_of_many_rows_is_read_again(
    sign: str, open_twin: Callable[..., Twin], monkeypatch: pytest.MonkeyPatch
) -> None:
    twin, count = open_twin("cryptdb"), 2_000
    twin.fill(TABLE, ROWS)
    signs = [sign.format(number) for number in range(1, 2 * count + 1)]
    rows = ", ".join(f"({a}, {b})" for a, b in zip(signs[::2], signs[1::2], strict=True))
    sql = f"INSERT INTO t (a, b) VALUES {rows}"

    def values(first: int) -> list[object]:
        return [value for key in range(first, first + count) for value in (key, f"v{key}")]

    for first in (10_000, 20_000):
        twin.run(sql, values(first))
    read, tokens = list[str](), lexer.tokens
    monkeypatch.setattr(lexer, "tokens", read.append)
    twin.run(sql, values(30_000))
    assert read == []
    monkeypatch.setattr(lexer, "tokens", tokens)
    twin.either(sql, values(31_999))
    for wrong, code in ((values(40_000)[:-1], "count"), ([*values(40_000), 1], "excess")):
        with pytest.raises(errors.Error) as refused:
            twin.session.execute(sql, wrong)
        assert refused.value.code == f"parameter.{code}"
    twin.run("SELECT * FROM t ORDER BY a")


def test_few_long_texts_are_remembered(clients: list[Any]) -> None:
    """The oldest go first, and come again as new ones."""
    client = clients[0]
    client.execute("CREATE TABLE t (a INT ENC PRIMARY KEY, b INT)")
    for count in [*range(3_000, 3_050), 3_000]:
        rows = ", ".join(["(?, ?)"] * count)
        given = [value for key in range(10, 10 + count) for value in (key, 1)]
        client.execute(f"INSERT INTO t VALUES {rows}", given)
        client.execute("DELETE FROM t WHERE a > ?", [9])
    texts = client._session.context.state.cache(repeated._Texts)
    assert texts.characters == sum(map(len, texts)) <= repeated._MOST_CHARACTERS
    assert 10 < len(texts) < 52
    assert client.execute("SELECT * FROM t").fetchall() == []


@pytest.mark.parametrize("sql", STATEMENTS)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_changes_between(sql: str, elsewhere: bool, clients: list[Any]) -> None:
    """By this client or another one."""
    writer, other = clients
    twin = Twin.beside(writer)
    first = list(STATEMENTS).index(sql)
    for change in (item for number, item in enumerate(CHANGES) if is_due(first + number)):
        twin.either("DROP TABLE IF EXISTS u")
        twin.either("DROP TABLE IF EXISTS t")
        twin.fill(TABLE, ROWS)
        for key in (1, 2):
            twin.run(sql, values_of(sql, key))
        for part in change.split("; "):
            (other if elsewhere else writer).execute(part)
            twin.plain.execute(plain_sql(part))
        for key in KEYS:
            twin.either(sql, values_of(sql, key))
        twin.either("SELECT * FROM t")
    twin.plain.close()


@pytest.mark.parametrize("sql", STATEMENTS)
def test_values_of_any_type(sql: str, open_twin: Callable[..., Twin]) -> None:
    twin = open_twin("cryptdb")
    twin.fill(TABLE, ROWS)
    odd: Sequence[object] = (7, None, "7", 7.0, 7.5, Decimal(8), True, "x", -1, 2**40, 2**70, 9)
    for key in odd:
        twin.either(sql, values_of(sql, key))
    places = [n for n, value in enumerate(STATEMENTS[sql]) if value != 0]
    for value in ("x", None, 5, "", "ä'", 1.25, Decimal("1.005"), 10**9, True) if places else ():
        given = values_of(sql, 20)
        given[places[0]] = value
        twin.either(sql, given)
    twin.run("SELECT * FROM t")


def test_within_a_transaction(clients: list[Any]) -> None:
    """Rows of the transaction's own are read and changed; what is undone does not come."""
    writer, other = clients
    twin = Twin.beside(writer)
    twin.fill(TABLE, ROWS)
    for round_ in range(3):
        for ending in ("ROLLBACK", "COMMIT"):
            twin.either("BEGIN")
            twin.either("INSERT INTO t (a, b) VALUES (?, ?)", [500 + round_, "own"])
            for sql in STATEMENTS:
                for key in (500 + round_, 20 + round_, 21 + round_):
                    twin.either(sql, values_of(sql, key))
            twin.either(ending)
            twin.either("SELECT * FROM t")
    update, values = "UPDATE t SET b = ? WHERE a = ?", ["x", 100]
    twin.run(update, values)
    twin.either("BEGIN")
    twin.run(update, ["y", 101])

    def both() -> None:
        other.execute("ALTER TABLE t ADD COLUMN f INT")
        writer.execute("COMMIT")

    # Who changes the schema meanwhile is refused, or the writer is.
    with pytest.raises(errors.OperationalError):
        both()
    twin.plain.close()


def test_values_that_end_a_transaction_do_so_again(open_twin: Callable[..., Twin]) -> None:
    twin = open_twin("cryptdb")
    twin.fill("CREATE TABLE t (a INT ENC PRIMARY KEY, b INT ENC NOT NULL)")
    twin.fill("INSERT INTO t SELECT i, i FROM range(50) AS r(i)")
    sql = "UPDATE t SET b = ? WHERE a = ?"
    for value in (1, 2, None, 3):
        twin.either("BEGIN")
        twin.either(sql, [value, 5])
        twin.either(sql, [7, 6])
        twin.either("COMMIT" if value is not None else "ROLLBACK")
        twin.either("SELECT * FROM t")


def test_two_clients_change_one_row(clients: list[Any]) -> None:
    """One of two transactions that change a row is refused, as in DuckDB; by itself a statement
    runs again.
    """
    first, second = clients
    first.execute(TABLE)
    first.execute(ROWS)
    update, delete = "UPDATE t SET e = e + ? WHERE a = ?", "DELETE FROM t WHERE a = ?"
    both = "UPDATE t SET e = e + 100 WHERE a IN (50, 51)"
    for client in clients:
        for key in (1, 2):
            client.execute(update, [1, key])
        client.execute(delete, [90])
    for position, (before, after) in enumerate((
        (update, update), (update, delete), (delete, update), (delete, delete),
        (update, both), (both, update),
    )):  # fmt: skip
        key = 50 if both in (before, after) else 60 + position
        first.execute("BEGIN")
        second.execute("BEGIN")
        _run(first, before, key)
        with pytest.raises(errors.OperationalError):
            _run(second, after, key)
        with suppress(errors.Error):
            second.execute("ROLLBACK")
        first.execute("COMMIT")
    assert second.execute("SELECT e FROM t WHERE a = 50").fetchall() == [(50 + 1 + 100,)]
    first.execute(update, [1, 70])
    second.execute(update, [1, 70])
    assert first.execute("SELECT e FROM t WHERE a = ?", [70]).fetchall() == [(72,)]


def _run(client: Any, sql: str, key: int) -> None:
    count = sql.count("?")
    client.execute(sql, [1, key][2 - count :])


@pytest.mark.parametrize("number", range(cases(6)))
def test_random_statements(number: int, clients: list[Any]) -> None:
    """Two clients in turns, in transactions and not; what one has written the other sees."""
    chance: Random = generator(f"repeated texts {number}")
    twins = [Twin.beside(client) for client in clients]
    twins[1].plain.close()
    twins[1].plain = twins[0].plain
    twins[0].fill(TABLE, ROWS)
    for _ in range(60):
        twin = chance.choice(twins)
        inside = chance.random() < 0.3
        twin.either("BEGIN") if inside else None
        for _ in range(chance.randint(1, 4)):
            sql = chance.choice(list(STATEMENTS))
            odd = chance.randrange(320) if inside else 2**33  # a wrong value ends a transaction
            twin.either(sql, values_of(sql, chance.choice([chance.randrange(320), 3, 5, odd])))
        twin.either(chance.choice(["COMMIT", "ROLLBACK"])) if inside else None
        if chance.random() < 0.1:
            twin.either(chance.choice(CHANGES[9:13]))
    twins[1].either("SELECT * FROM t")
    twins[0].plain.close()
