"""What belongs to savepoints and transactions, beside plaintext PostgreSQL: cursors, LISTEN, NOTIFY
and modes.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from tests.generated import cases, generator
from tests.local_postgres.twin import PostgresTwin, difference

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


@pytest.fixture(scope="module")
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    opened.run("CREATE TABLE t (id integer ENC PRIMARY KEY)")
    opened.run("INSERT INTO t SELECT generate_series(1, 40)")
    yield opened
    opened.close()


def transaction(random: Random) -> list[str]:
    """Statements of which most can run: an error ends what is drawn up to a ROLLBACK TO."""
    statements, points, cursors = ["BEGIN"], list[str](), list[str]()
    for _ in range(random.randint(5, 25)):
        word = random.choice(("SAVEPOINT", "RELEASE", "ROLLBACK TO", "DECLARE", "FETCH", "LISTEN"))
        if word == "SAVEPOINT":
            points.append(random.choice("ab"))
            statements.append(f"SAVEPOINT {points[-1]}")
        elif word in ("RELEASE", "ROLLBACK TO") and points:
            name = random.choice(points)
            position = len(points) - 1 - points[::-1].index(name)
            del points[position + (word != "RELEASE") :]
            statements.append(f"{word} {name}")
        elif word == "DECLARE":
            cursors.append(f"c{len(cursors)}")
            query = "SELECT id FROM t ORDER BY id"
            statements.append(f"DECLARE {cursors[-1]} CURSOR FOR {query}")
        elif word == "FETCH" and cursors:
            statements.append(f"FETCH 3 FROM {random.choice(cursors)}")
        elif word == "LISTEN":
            # What a transaction listens to and sends itself Louver does not hear.
            statements.append(random.choice(("LISTEN y", "UNLISTEN y", "NOTIFY x")))
    return [*statements, random.choice(("COMMIT", "COMMIT", "ROLLBACK"))]


def listened(twin: PostgresTwin, statements: list[str]) -> list[tuple[str, str]]:
    """The channels and messages that have arrived at plaintext, and the same of Louver's."""
    twin.on_plain("SELECT 1")
    plain = list(twin.plain.raw.notifications())
    own = [(message.channel, message.payload) for message in twin.louver.poll()]
    assert own == plain, "; ".join(statements)
    return plain


def test_cursors_and_messages_belong_to_savepoints(twin: PostgresTwin) -> None:
    random, arrived = generator("savepoints"), 0
    for _ in range(cases(60)):
        statements = ["UNLISTEN *", "LISTEN x", *transaction(random), "NOTIFY x", "NOTIFY y"]
        for sql in statements:
            outcome = twin.differs(sql)
            assert not outcome, f"{'; '.join(statements)}: {sql}: {outcome}"
        arrived += len(listened(twin, statements))
    assert arrived > 60


_MODES = {
    "isolation": ("'repeatable read'", "'read committed'"), "read_only": ("on", "off"),
    "deferrable": ("on", "off"),
}  # fmt: skip


def test_modes_of_transactions_are_set_and_reset_one_by_one(twin: PostgresTwin) -> None:
    random, failures = generator("modes of transactions"), 0
    for _ in range(cases(400)):
        mode = random.choice(list(_MODES))
        name, value = f"default_transaction_{mode}", random.choice(_MODES[mode])
        sql = random.choice((
            f"SET {name} = {value}", f"SET LOCAL {name} = {value}", f"RESET {name}", "BEGIN",
            f"SET {name} TO DEFAULT", f"RESET transaction_{mode}", "COMMIT", "ROLLBACK",
            f"SET transaction_{mode} TO DEFAULT", f"SET LOCAL {name} TO DEFAULT", f"SHOW {name}",
        ))  # fmt: skip
        plain, own = twin.both(sql)
        assert not difference(plain, own), f"{sql}: {plain} {own}"
        failures += plain.error is not None
        if not twin.within:
            for other in _MODES:
                twin.run(f"SHOW default_transaction_{other}")
    assert failures
    twin.run("ROLLBACK")
    twin.run("RESET ALL")
