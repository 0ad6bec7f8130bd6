"""Clients that add rows and remove the rows that these refer to, at once: no row refers to nothing,
what was said to be done is there, and nobody else has to wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import louver
from louver.wire import control
from louver.wire.messages import Statement
from tests.executor.test_clients_at_once import at_once, between
from tests.generated import cases
from tests.inside import context_of

PARENT = "CREATE TABLE p (i INT {} PRIMARY KEY, v INT {})"
CHILD = "CREATE TABLE c (x INT {} PRIMARY KEY, up INT {} REFERENCES p(i))"
CEILINGS = ("ENC MAY REVEAL equality", "ENC", "")
KEYS = 6


@contextmanager
def sessions(directory: Path, key_file: Path, count: int, enc: str) -> Iterator[list[Any]]:
    """Clients of one database with parents 0 to `KEYS`, each with a child of the same number."""
    with ExitStack() as stack:
        url = f"duckdb:///{directory}/references.duckdb"
        clients = [
            stack.enter_context(louver.connect(url, keys=key_file, profile="sealed"))
            for _ in range(count)
        ]
        for table in (PARENT, CHILD):
            clients[0].execute(table.replace("{}", enc))
        for table in ("p", "c"):
            clients[0].execute(f"INSERT INTO {table} SELECT i, i FROM range({KEYS}) r(i)")
        # What layers and bounds there are does not change from here on.
        clients[0].execute(
            f"INSERT INTO p VALUES (900, 900); INSERT INTO c VALUES ({1 << 20}, 900)"
        )
        clients[0].execute("DELETE FROM c WHERE x > 900")
        clients[0].execute("DELETE FROM p WHERE v = 900")
        for client in clients:
            client.execute("FROM c")
        yield clients


@pytest.fixture(params=CEILINGS)
def pair(tmp_path: Path, key_file: Path, request: Any) -> Iterator[list[Any]]:
    with sessions(tmp_path, key_file, 2, request.param) as clients:
        yield clients


def require_whole(client: Any) -> None:
    """Plaintext DuckDB takes the rows, under the same references."""
    with duckdb.connect() as plain:
        for table, sql in (("p", PARENT), ("c", CHILD)):
            plain.execute(sql.replace("{}", ""))
            rows = client.execute(f"FROM {table}").fetchall()
            if rows:
                plain.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)


def voided(client: Any) -> Any:
    """How many tokens are void: those that are older than the schema."""
    sql = "SELECT count(*) FROM louver_writer WHERE version = 0 AND writer <> 0"
    return context_of(client).engine.value(Statement(sql))


ADDING = (
    "INSERT INTO c VALUES (100, 1)",
    "INSERT INTO c SELECT 100, 1",
    "UPDATE c SET up = 1 WHERE x = 2",
    "INSERT INTO c VALUES (2, 1) ON CONFLICT DO UPDATE SET up = excluded.up",
    "INSERT OR REPLACE INTO c VALUES (2, 1)",
    "MERGE INTO c USING (SELECT 100 AS x, 1 AS up) AS n ON c.x = n.x"
    " WHEN NOT MATCHED THEN INSERT VALUES (n.x, n.up)",
)
REMOVING = (
    "DELETE FROM p WHERE i = 1",
    "DELETE FROM p WHERE v = 1",
    "UPDATE p SET i = 77 WHERE i = 1",
    "MERGE INTO p USING (SELECT 1 AS i) AS n ON p.i = n.i WHEN MATCHED THEN DELETE",
)


@pytest.mark.parametrize("adding", range(len(ADDING)))
@pytest.mark.parametrize("removing", range(len(REMOVING)))
def test_a_reference_and_the_key_that_goes(
    tmp_path: Path, key_file: Path, adding: int, removing: int
) -> None:
    """One comes between the other's look at the rows and what it writes."""
    turn, enc = (adding + removing) % 4, CEILINGS[(adding + 2 * removing) % len(CEILINGS)]
    add, remove = ADDING[adding], REMOVING[removing]
    with sessions(tmp_path, key_file, 2, enc) as (first, second):
        first.execute("DELETE FROM c WHERE x = 1")
        early, late = (remove, add) if turn % 2 else (add, remove)
        at = control.WRITER_ENTER if turn != 2 else control.WRITERS_HOLD.sql
        raced: list[Any] = []

        def outrun() -> None:
            raced.append(outcome(second, early))

        between(context_of(first).engine, "run", at, outrun, first=True)
        done = [outcome(first, late), *raced]
        assert len(raced) == 1
        assert done.count("done") == 1, done
        require_whole(second)


def outcome(client: Any, sql: str) -> str:
    """How a statement ended, or a transaction of several."""
    try:
        client.execute(sql)
    except louver.IntegrityError:
        ended = "refused"
    except louver.OperationalError as error:
        if error.code not in ("catalog.conflict", "duckdb.transaction"):
            raise
        ended = "outrun"
    else:
        return "done"
    if context_of(client).in_transaction:
        client.execute("ROLLBACK")
    return ended


def test_children_of_one_parent_do_not_meet(pair: list[Any]) -> None:
    for client in pair:
        client.execute("BEGIN")
    for step in range(3):
        for number, client in enumerate(pair):
            client.execute("INSERT INTO c VALUES (?, 1)", [100 + 10 * number + step])
            client.execute(f"UPDATE p SET v = 7 WHERE i = {2 + number}")
            client.execute(f"UPDATE c SET up = 3 WHERE x = {4 + number}")
    for client in pair:
        client.execute("COMMIT")
    assert voided(pair[0]) == 0
    assert pair[0].execute("SELECT count(*) FROM c WHERE up = 1").fetchall() == [(7,)]
    require_whole(pair[1])


@pytest.mark.parametrize("removes", [False, True])
def test_a_key_that_goes_meets_references_alone(pair: list[Any], removes: bool) -> None:
    """Whoever writes rows that refer to nothing is not concerned."""
    first, second = pair
    first.execute("CREATE TABLE other (i INT ENC); INSERT INTO other VALUES (1 << 20)")
    second.execute("DELETE FROM c WHERE x < 2")
    second.execute("FROM other")
    for client in pair:
        client.execute("BEGIN")
    second.execute("INSERT INTO other VALUES (5)")
    first.execute("DELETE FROM p WHERE i = 1")
    if removes:
        with pytest.raises(louver.OperationalError) as caught:
            second.execute("DELETE FROM p WHERE i = 0")
        assert caught.value.code == "catalog.conflict"
        second.execute("ROLLBACK")
    else:
        second.execute("COMMIT")
    first.execute("COMMIT")
    assert voided(first) == 0
    second.execute("DELETE FROM p WHERE i = 0")
    require_whole(first)


def test_a_parent_of_an_open_transaction_is_not_there(pair: list[Any]) -> None:
    first, second = pair
    first.execute("BEGIN; INSERT INTO p VALUES (50, 1); INSERT INTO c VALUES (50, 50)")
    with pytest.raises(louver.IntegrityError, match="does not exist"):
        second.execute("INSERT INTO c VALUES (51, 50)")
    first.execute("COMMIT")
    second.execute("INSERT INTO c VALUES (51, 50)")
    require_whole(second)


def test_what_comes_again_sends_few_statements(tmp_path: Path, key_file: Path) -> None:
    with sessions(tmp_path, key_file, 1, CEILINGS[0]) as (client,):
        sent: list[str] = []
        engine = context_of(client).engine
        for name in ("run", "query", "value", "append"):
            real = getattr(engine, name)

            def noted(*given: Any, real: Any = real, name: str = name) -> Any:
                sent.append(name)
                return real(*given)

            setattr(engine, name, noted)
        for step in range(4):
            sent.clear()
            client.execute("INSERT INTO c VALUES (?, ?)", [100 + step, 1])
        # The token, the version, the parent, the row.
        assert sent == ["run", "value", "query", "append"]
        for step in range(3):
            client.execute("DELETE FROM c WHERE x = ?", [step + 2])
            sent.clear()
            client.execute("DELETE FROM p WHERE i = ?", [step + 2])
        assert len(sent) <= 8, sent
        assert voided(client) == 0


def step_of(dice: Random, number: int) -> str:
    """A change of one of several clients; children are each client's own."""
    key, own = dice.randrange(KEYS + 3), 1000 * (number + 1) + dice.randrange(5)
    return dice.choice([
        f"INSERT INTO c VALUES ({own}, {key})",
        f"INSERT INTO c VALUES ({own}, {key}), ({own + 500}, {dice.randrange(KEYS)})",
        f"INSERT INTO c VALUES ({own}, {key}) ON CONFLICT (x) DO UPDATE SET up = excluded.up",
        f"UPDATE c SET up = {key} WHERE x = {own}",
        f"DELETE FROM c WHERE x = {own}",
        f"DELETE FROM c WHERE x = {key}",
        f"DELETE FROM p WHERE i = {key}",
        f"DELETE FROM p WHERE i = {key}",
        f"DELETE FROM p WHERE v = {key}",
        f"INSERT INTO p VALUES ({key}, {key})",
        f"UPDATE p SET v = v + 100 WHERE i = {key}",
    ])  # fmt: skip


def net(sql: str) -> tuple[str, int]:
    """The table that a change adds to or removes from, and which it does; ("", 0) else."""
    words = sql.split()
    sign = {"INSERT": 1, "DELETE": -1}.get(words[0], 0)
    return (words[2], sign) if sign and "CONFLICT" not in words else ("", 0)


@settings(
    max_examples=cases(3),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 1 << 40), enc=st.sampled_from(CEILINGS))
def test_drawn_transactions(tmp_path_factory: Any, key_file: Path, seed: int, enc: str) -> None:
    """Three clients take turns as drawn, statement by statement. Of every table there are as many
    rows as those that committed have added and removed, and plaintext DuckDB takes them.
    """
    dice, totals = Random(seed), Counter({"p": KEYS, "c": KEYS})
    with sessions(tmp_path_factory.mktemp("drawn"), key_file, 3, enc) as clients:
        open_counts: list[Counter[str] | None] = [None] * 3
        for _ in range(45):
            number = dice.randrange(3)
            client, counts = clients[number], open_counts[number]
            if counts is None and dice.random() < 0.3:
                client.execute("BEGIN")
                open_counts[number] = Counter()
                continue
            if counts is not None and dice.random() < 0.3:
                if dice.random() < 0.3:
                    client.execute("ROLLBACK")
                elif outcome(client, "COMMIT") == "done":
                    totals.update(counts)
                open_counts[number] = None
                continue
            waits = any(item is not None for item in open_counts)
            sql = step_of(dice, number)
            if counts is None and waits:
                # It would be tried again for as long as others hold what it meets.
                client.execute("BEGIN")
                counts, alone = Counter[str](), True
            else:
                alone = False
            result = run(client, sql, totals if counts is None else counts)
            if result != "done":
                open_counts[number] = None
            elif alone and outcome(client, "COMMIT") == "done":
                totals.update(counts or {})
        for number, client in enumerate(clients):
            if open_counts[number] is not None:
                client.execute("ROLLBACK")
        for table in ("p", "c"):
            ((count,),) = clients[0].execute(f"SELECT count(*) FROM {table}").fetchall()
            if table == "p" or not totals["upserts"]:
                assert count == totals[table], table
        require_whole(clients[dice.randrange(3)])


def run(client: Any, sql: str, totals: Counter[str]) -> str:
    """Run one change, and count the rows that came and went."""
    try:
        affected = client.execute(sql).rowcount
    except louver.IntegrityError:
        ended = "refused"
    except louver.OperationalError as error:
        if error.code not in ("catalog.conflict", "duckdb.transaction"):
            raise
        ended = "outrun"
    else:
        table, sign = net(sql)
        totals[table] += sign * affected
        totals["upserts"] += "CONFLICT" in sql
        return "done"
    if context_of(client).in_transaction:
        client.execute("ROLLBACK")
    return ended


@pytest.mark.parametrize("enc", CEILINGS)
def test_many_clients_add_and_remove(tmp_path: Path, key_file: Path, enc: str) -> None:
    """Who was outrun runs again, or is refused by the rows; on a busy machine that may end with
    `catalog.conflict` once in a while.
    """
    outrun: list[int] = []
    with sessions(tmp_path, key_file, 8, enc) as clients:

        def work(number: int) -> None:
            dice, client = Random(number), clients[number]
            for step in range(12):
                sql = step_of(dice, number)
                try:
                    if step % 4 == 3:
                        rows = [[10_000 * (number + 1) + 10 * step + i, i] for i in range(4)]
                        client.executemany("INSERT INTO c VALUES (?, ?)", rows)
                    elif step % 4 == 2:
                        key = 10_000 * (number + 1) + 10 * step
                        client.execute("INSERT INTO c VALUES (?, ?)", [key, dice.randrange(KEYS)])
                    else:
                        client.execute(sql)
                except louver.IntegrityError:
                    pass
                except louver.OperationalError as error:
                    if error.code != "catalog.conflict":
                        raise
                    outrun.append(number)

        assert at_once(8, work) == []
        assert len(outrun) < 5
        require_whole(clients[0])
