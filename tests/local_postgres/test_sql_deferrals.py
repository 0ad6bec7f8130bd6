"""Foreign keys that are DEFERRABLE, and SET CONSTRAINTS, beside plaintext PostgreSQL."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.local_postgres.twin import PostgresTwin


@pytest.fixture(scope="module")
def opened() -> Iterator[PostgresTwin]:
    twin = PostgresTwin()
    twin.run("CREATE TABLE pk (id int ENC PRIMARY KEY, v int ENC)")
    twin.run(
        "CREATE TABLE fk (id int ENC PRIMARY KEY, r int ENC REFERENCES pk DEFERRABLE INITIALLY"
        " DEFERRED, s int ENC REFERENCES pk ON DELETE CASCADE DEFERRABLE, t int ENC REFERENCES pk)"
    )
    twin.run(
        "CREATE TABLE own (id int ENC PRIMARY KEY, up int ENC REFERENCES own DEFERRABLE INITIALLY"
        " DEFERRED)"
    )
    yield twin
    twin.close()


@pytest.fixture
def twin(opened: PostgresTwin) -> Iterator[PostgresTwin]:
    yield opened
    for sql in ("ROLLBACK", "DELETE FROM fk", "DELETE FROM pk", "UPDATE own SET up = NULL",
                "DELETE FROM own"):  # fmt: skip
        opened.run(sql)


def run(twin: PostgresTwin, *statements: str) -> None:
    for sql in statements:
        twin.run(sql)


ALL = ("SELECT * FROM fk", "SELECT * FROM pk", "SELECT * FROM own")


def test_a_parent_may_come_later(twin: PostgresTwin) -> None:
    run(
        twin, "INSERT INTO fk VALUES (1, 5)", "BEGIN", "INSERT INTO fk VALUES (1, 5), (2, 5)",
        "INSERT INTO fk (id, r) SELECT id + 10, 6 FROM fk", *ALL,
        "INSERT INTO pk VALUES (5), (6)", "COMMIT", *ALL,
        "BEGIN", "DELETE FROM pk WHERE id = 5", "INSERT INTO pk VALUES (5)", "COMMIT",
        "BEGIN", "INSERT INTO own VALUES (1, 2)", "INSERT INTO own VALUES (2, 1)", "COMMIT", *ALL,
    )  # fmt: skip


def test_a_commit_that_breaks_a_key_is_undone(twin: PostgresTwin) -> None:
    run(twin, "INSERT INTO pk VALUES (1), (2)", "INSERT INTO fk VALUES (1, 1)")
    for sql in (
        "INSERT INTO fk VALUES (4, 9)", "UPDATE fk SET r = 8 WHERE id = 1",
        "DELETE FROM pk WHERE id = 1", "UPDATE pk SET id = id + 100",
        "INSERT INTO own VALUES (3, 4)",
    ):  # fmt: skip
        run(twin, "BEGIN", "INSERT INTO pk VALUES (3)", sql, "COMMIT", *ALL)
    twin.louver.execute("BEGIN")
    twin.louver.execute("INSERT INTO fk VALUES (4, 9)")
    with pytest.raises(Exception, match="foreign key"):
        twin.louver.commit()
    run(twin, *ALL)


def test_what_is_said_of_them(twin: PostgresTwin) -> None:
    run(
        twin, "SET CONSTRAINTS nope DEFERRED", "SET CONSTRAINTS pk_pkey DEFERRED",
        "SET CONSTRAINTS ALL DEFERRED",
        "BEGIN", "INSERT INTO fk (id, s) VALUES (4, 9)", "ROLLBACK",
        "BEGIN", "SET CONSTRAINTS ALL DEFERRED", "INSERT INTO fk (id, s) VALUES (4, 9)",
        "INSERT INTO pk VALUES (9)", "SET CONSTRAINTS ALL IMMEDIATE",
        "INSERT INTO fk (id, s) VALUES (5, 10)", "ROLLBACK",
        "BEGIN", "SET CONSTRAINTS public.fk_s_fkey, fk_r_fkey DEFERRED",
        "INSERT INTO fk (id, s) VALUES (4, 9)", "SET CONSTRAINTS fk_r_fkey IMMEDIATE",
        "SET CONSTRAINTS fk_s_fkey IMMEDIATE", "COMMIT",
        "BEGIN", "SET CONSTRAINTS ALL DEFERRED", "INSERT INTO fk (id, t) VALUES (4, 9)", "COMMIT",
        "BEGIN", "SAVEPOINT a", "SET CONSTRAINTS ALL IMMEDIATE", "INSERT INTO fk VALUES (7, 70)",
        "ROLLBACK TO a", "INSERT INTO fk VALUES (7, 70)", "DELETE FROM fk WHERE id = 7", "COMMIT",
        "INSERT INTO fk VALUES (7, 70)", *ALL,
    )  # fmt: skip


def test_tables_with_broken_keys_stay_as_they_are(twin: PostgresTwin) -> None:
    for sql in ("ALTER TABLE fk DROP CONSTRAINT fk_r_fkey", "DROP TABLE fk"):
        run(twin, "BEGIN", "INSERT INTO fk VALUES (1, 9)")
        # PostgreSQL refuses it as well, but not of other tables.
        assert twin.on_plain(sql).state == "55006"
        refused = twin.on_louver(sql).error
        assert refused is not None
        assert refused.code == "postgres.refused"
        run(twin, "COMMIT", *ALL)


def test_checked_keys_are_pending_no_more(twin: PostgresTwin) -> None:
    broken = ("BEGIN", "SET CONSTRAINTS ALL DEFERRED", "INSERT INTO fk VALUES (1, 9)")
    run(twin, *broken)
    own = twin.on_louver("DROP TABLE own")
    assert own.error is not None
    assert own.error.code == "postgres.refused"
    twin.run("ROLLBACK")
    checked = ("INSERT INTO pk VALUES (9)", "SET CONSTRAINTS ALL IMMEDIATE")
    run(twin, *broken, *checked, "DROP TABLE own", "ROLLBACK", *ALL)
    for end in ("COMMIT", "SET CONSTRAINTS ALL IMMEDIATE"):
        run(twin, *broken, "SAVEPOINT a", *checked, "ROLLBACK TO a", end, "ROLLBACK", *ALL)


def statement(chance: random.Random) -> str:
    """One statement over few keys."""
    key, other = chance.randrange(4), chance.randrange(4)
    name, mode = chance.choice(("ALL", "fk_r_fkey", "fk_s_fkey")), chance.choice("DI")
    return chance.choice((
        "BEGIN", "COMMIT", "COMMIT", "ROLLBACK", "SAVEPOINT a", "ROLLBACK TO a",
        f"INSERT INTO pk VALUES ({key})", f"DELETE FROM pk WHERE id = {key}",
        f"UPDATE pk SET id = {key} WHERE id = {other}",
        f"INSERT INTO fk (id, {chance.choice('rst')}) VALUES ({key}, {other})",
        f"UPDATE fk SET {chance.choice('rst')} = {key} WHERE id = {other}",
        f"DELETE FROM fk WHERE id = {key}", f"INSERT INTO own VALUES ({key}, {other})",
        f"DELETE FROM own WHERE id = {key}",
        f"SET CONSTRAINTS {name} {'DEFERRED' if mode == 'D' else 'IMMEDIATE'}",
    ))  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_drawn_statements(twin: PostgresTwin, seed: int) -> None:
    chance = random.Random(seed)
    history = []
    for _ in range(120):
        sql = statement(chance) if chance.random() < 0.9 else chance.choice(ALL)
        if sql == "SAVEPOINT a" and not twin.within:
            sql = "BEGIN"
        history.append(sql)
        assert not twin.differs(sql), history[-25:]
    run(twin, "ROLLBACK", *ALL)
