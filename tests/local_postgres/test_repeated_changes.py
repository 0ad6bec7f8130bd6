"""UPDATE and DELETE by key that come again with other values, beside plaintext PostgreSQL: the
local engine is asked only where it must be, and the server twice.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from louver.trusted.executor.change import read_off
from louver.untrusted.engines.postgres import connection, pipeline
from tests.generated import SEED, SOAK
from tests.local_postgres.twin import PostgresTwin

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
_TYPES = (
    "smallint", "integer", "bigint", "text", "varchar", "varchar(3)", "char(3)", "boolean",
    "bytea", "uuid", "date", "timestamp", "timestamptz", "double precision", "real", "numeric",
    "numeric(5,2)", "short", "mood", "jsonb", "bigint[]",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, 0, 1, -1, 32_767, 32_768, 2**31 - 1, 2**31, 2**63 - 1, 2**63, True, False, "", "a", "abc",
    "abcd", "abc   ", "a\0", "\ud800", "7", "fine", "t", b"", b"a\0", UUID(int=7), date.min,
    date(2026, 2, 3), datetime(2026, 2, 3, 4, 5, 6, 7), datetime(2026, 2, 3, tzinfo=UTC), 0.0, -0.0,
    0.1, math.inf, math.nan, Decimal("1.005"), Decimal("999.995"), [1], {"a": 1},
)  # fmt: skip
_SET, _DELETE = "UPDATE t SET v = $1 WHERE id = $2", "DELETE FROM t WHERE id = $1"
_ROWS = "SELECT * FROM t ORDER BY 1"


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    twin = PostgresTwin()
    twin.run("CREATE DOMAIN short AS text CHECK (length(value) < 3)")
    twin.run("CREATE TYPE mood AS ENUM ('fine', 'a')")
    yield twin
    twin.close()


def _table(twin: PostgresTwin, type_: str = "bigint", more: str = "") -> None:
    twin.run(f"CREATE TABLE t (id bigint ENC PRIMARY KEY, v {type_} ENC{more})")
    twin.run("INSERT INTO t (id) SELECT generate_series(1, 9)")


class Journey:
    """How often statements run locally, and how many round trips they make."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.rehearsals = self.trips = 0
        effect, exchanged = read_off.at_once, pipeline.exchanged

        def counted(*given: Any) -> Any:
            self.rehearsals += 1
            return effect(*given)

        def sent(*given: Any, **more: Any) -> Any:
            # The first few of what is shown are noted one by one.
            self.trips += "louver_ledger" not in str(given[-1])
            return exchanged(*given, **more)

        patch.setattr(read_off, "at_once", counted)
        patch.setattr(connection, "exchanged", sent)

    def of(self, twin: PostgresTwin, sql: str, values: list[Any]) -> tuple[int, int]:
        """Run a statement on both: the rehearsals and the server's round trips."""
        self.rehearsals = self.trips = 0
        twin.run(sql, values)
        return self.rehearsals, self.trips


@pytest.mark.parametrize("type_", _TYPES)
def test_every_value_is_stored_or_refused_as_on_plaintext(twin: PostgresTwin, type_: str) -> None:
    _table(twin, type_)
    for _ in range(2):
        twin.run(_SET, [None, 1])
    values = list(_VALUES)
    random.Random(type_).shuffle(values)
    differences = []
    for id_, value in enumerate(values):
        if type_ == "numeric(5,2)" and value is math.nan:
            continue  # refused (local.feature)
        given = [value, 1 + id_ % 9]
        plain, own = twin.both(_SET, given)
        if (plain.error is None) != (own.error is None) or plain.state != own.state:
            differences.append((value, plain.error, own.error))
        twin.run("SELECT id, v::text FROM t ORDER BY id")
    assert differences == []


@pytest.mark.parametrize("type_", ["smallint", "integer", "bigint"])
def test_every_sum_is_stored_or_refused_as_on_plaintext(twin: PostgresTwin, type_: str) -> None:
    _table(twin, type_, f", w {type_} ENC DEFAULT 1")
    texts = [
        "UPDATE t SET v = v + $1 WHERE id = $2", "UPDATE t SET v = $1 - v WHERE id = $2",
        "UPDATE t SET v = v - 32768, w = $1 WHERE id = $2",
        "UPDATE t AS x SET v = x.w + v, w = w - $1 WHERE x.id = $2",
        "UPDATE t SET v = w, w = v WHERE id = $2 AND id = $1",
        "UPDATE t SET v = v + 2147483648 WHERE id IN ($1, $2)",
        "UPDATE t SET w = $1, v = 5 WHERE id = $2", _SET,
    ]  # fmt: skip
    source = random.Random(f"{SEED} {type_}")
    limit = {"smallint": 15, "integer": 31, "bigint": 63}[type_]
    edges = [2**limit - 1, -(2**limit), 2**limit, 2**15, 2**31, 1, 0, -1, None, True, "3", 2.5]
    for _ in range(90 * SOAK):
        twin.run(source.choice(texts), [source.choice(edges), source.randint(1, 10)])
        if source.random() < 0.2:
            twin.run(_ROWS)
    twin.run(_ROWS)


@pytest.mark.parametrize(
    ("sql", "before"),
    [
        (_SET, ["x"]),
        ("UPDATE t SET n = n + 1, v = 'it''s' WHERE id = $1", []),
        ("UPDATE t SET id = id + 100 WHERE id = $1", []),
        ("UPDATE t SET v = NULL, n = 7 WHERE id IN ($1, $2)", [50]),
        (_DELETE, []),
        ("DELETE FROM t AS x WHERE id IN ($1, $2)", [50]),
    ],
)
def test_the_engine_is_asked_once(
    twin: PostgresTwin, monkeypatch: pytest.MonkeyPatch, sql: str, before: list[Any]
) -> None:
    _table(twin, "text", ", n integer ENC")
    twin.run("INSERT INTO t (id) SELECT generate_series(10, 50)")
    journey = Journey(monkeypatch)
    trips = 0
    for number in range(1, 5):
        rehearsals, trips = journey.of(twin, sql, [*before, number])
        assert rehearsals == (number == 1)
    # A first NULL widens what the catalog knows, and a new token is got.
    assert trips == 2
    for first, level in ((5, "READ COMMITTED"), (9, "REPEATABLE READ")):
        twin.run(f"BEGIN ISOLATION LEVEL {level}")
        for number in range(first, first + 4):
            rehearsals, trips = journey.of(twin, sql, [*before, number])
            assert not rehearsals
            twin.run(_ROWS)
        assert trips == 2
        twin.run("COMMIT")
    # Of a row that is not there nothing is written.
    assert journey.of(twin, sql, [*before, 99])[0] == 0
    twin.run(_ROWS)


def test_keys_are_compared_row_by_row(twin: PostgresTwin) -> None:
    _table(twin)
    sql = "UPDATE t SET id = id + $1 WHERE id IN ($2, $3)"
    for values in ([100, 8, 9], [1, 1, 2], [-1, 6, 7], [1, 7, 20], [1, 3, 4], [-2, 3, 4]):
        twin.run(sql, values)
        twin.run(_ROWS)


def test_a_value_of_another_type_is_for_the_engine(
    twin: PostgresTwin, monkeypatch: pytest.MonkeyPatch
) -> None:
    _table(twin, "text")
    journey = Journey(monkeypatch)
    for value, rehearsals in (("x", 1), (None, 0), ("y", 0), (7, 1), ("7", 0)):
        assert journey.of(twin, _SET, [value, 1])[0] == rehearsals
        twin.run(_ROWS)


@pytest.mark.parametrize(
    "definition",
    [
        "ALTER TABLE t ADD CHECK (v <> 'x')",
        "ALTER TABLE t ALTER v SET NOT NULL",
        "ALTER TABLE t ALTER v TYPE varchar(2)",
        "ALTER TABLE t ADD UNIQUE (v)",
        "CREATE UNIQUE INDEX ON t (lower(v))",
        "CREATE INDEX ON t ((1 / (length(v) - 1)))",
        "CREATE INDEX ON t (id) WHERE 1 / (length(v) - 1) > 0",
        "ALTER TABLE t ADD w bigint ENC DEFAULT 7",
        "ALTER TABLE t ADD w bigint ENC GENERATED ALWAYS AS (id * 2) STORED",
        "ALTER TABLE t ADD w bigint ENC GENERATED ALWAYS AS (length(v)) STORED",
        "ALTER TABLE t DROP v",
        "ALTER TABLE t RENAME v TO w",
        "ALTER TABLE t RENAME TO u",
        "DROP TABLE t",
        "ALTER TABLE t ALTER id DROP DEFAULT, ALTER id ADD GENERATED ALWAYS AS IDENTITY",
        "CREATE TABLE p (id text ENC PRIMARY KEY);"
        " INSERT INTO p VALUES ('aa'), ('b'); ALTER TABLE t ADD FOREIGN KEY (v) REFERENCES p",
        "CREATE TABLE c (id bigint ENC REFERENCES t); INSERT INTO c VALUES (1)",
        "CREATE TABLE c (id bigint ENC REFERENCES t ON DELETE CASCADE); INSERT INTO c VALUES (1)",
        "CREATE SCHEMA s; CREATE TABLE s.t (id bigint, v bigint); SET search_path = s, public",
        "SET default_transaction_read_only = on",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    ],
)
@pytest.mark.parametrize("by_another", [False, True])
def test_a_definition_in_between_counts(
    twin: PostgresTwin, definition: str, by_another: bool
) -> None:
    """Also one of another session, of which this one has not heard."""
    of_session = definition.startswith(("SET", "CREATE SCHEMA"))
    if by_another and of_session:
        return
    _table(twin, "text")
    texts = (_SET, "UPDATE t SET v = $1, id = 10 WHERE id = $2")
    for id_ in range(1, 10):
        twin.run(_SET, ["aa", id_])
    twin.run(texts[1], ["aa", 9])
    twin.run("UPDATE t SET v = NULL WHERE id = $1", [7])
    for id_ in (8, 7):
        twin.run(_DELETE, [id_])
    other = PostgresTwin(beside=twin) if by_another else twin
    try:
        if "UNIQUE" in definition:
            for id_ in range(1, 11):
                twin.run(_SET, [f"b{id_}", id_])
        for part in definition.split("; "):
            plain, own = other.on_plain(part), other.on_louver(part)
            assert (plain.error, own.error) == (None, None)
        for id_, value in [(3, "x"), (4, None), (5, "abc"), (6, "ABC"), (6, "y"), (10, "aa")]:
            for text in texts:
                twin.run(text, [value, id_])
            twin.run("UPDATE t SET v = NULL WHERE id = $1", [id_])
        for id_ in (1, 2):
            twin.run(_DELETE, [id_])
        for table in ("t", "u", "c", "s.t", "public.t"):
            twin.run(f"SELECT * FROM {table} ORDER BY 1")
    finally:
        if other is not twin:
            other.close()


_TEXTS = (
    (_SET, "vk"), (_SET, "vk"), ("UPDATE t SET v = $1, n = n + 1 WHERE id = $2", "vk"),
    ("UPDATE t SET n = n + $1 WHERE id = $2", "nk"), ("UPDATE t SET n = n - 1 WHERE id = $1", "k"),
    ("UPDATE t SET id = $1 WHERE id = $2", "kk"), ("UPDATE t SET u = $1 WHERE id = $2", "kk"),
    ("UPDATE t SET u = $1, p = 'z' WHERE u = $2", "kk"),
    ("UPDATE t SET p = $1, s = s WHERE id = $2", "vk"),
    ("UPDATE t SET s = DEFAULT WHERE id = $1", "k"),
    ("UPDATE t SET v = $1 WHERE id = $2 RETURNING id, n, v", "vk"), (_DELETE, "k"),
    ("DELETE FROM t WHERE u = $1", "k"), ("DELETE FROM t WHERE id IN ($1, $2)", "kk"),
    ("UPDATE t SET v = upper(v), c = $1 WHERE id = $2", "vk"),
    ("UPDATE t SET v = $1 WHERE id = $2 AND n > 3", "vk"),
    ("UPDATE t SET n = $1 WHERE id IN ($2, $3)", "nkk"),
    # Beyond the keys that are drawn: which of two neighbours comes first is not said.
    ("UPDATE t SET id = id + 20 WHERE id IN ($1, $2)", "kk"),
    ("INSERT INTO t (id, n, v, p, u) VALUES ($1, $2, $3, 'q', $4)", "knvk"),
    ("INSERT INTO t (id, n) VALUES ($1, $2)"
     " ON CONFLICT (id) DO UPDATE SET n = excluded.n", "kn"),
    ("SELECT id, n, v, p, u, c FROM t WHERE id = $1", "k"),
)  # fmt: skip


#: Without what a sequence gave: how many numbers a failed statement draws is not said.
_ALL = "SELECT id, n, v, p, u, c FROM t ORDER BY id"


def _value(source: random.Random, kind: str) -> Any:
    draw = source.random()
    if kind == "k":
        return source.randint(1, 12) if draw < 0.93 else source.choice([None, "3", 2**63, True])
    if kind == "n":
        return (
            source.randint(0, 9) if draw < 0.8 else source.choice([None, 2**31 - 1, -(2**31), "4"])
        )
    return source.choice("abcd") if draw < 0.8 else source.choice([None, "", "abcde", 7, "x\0"])


@pytest.mark.parametrize("session", range(4 * SOAK))
def test_random_changes_that_come_again(session: int) -> None:
    """Two clients, with transactions and savepoints of the first."""
    source = random.Random(f"{SEED} {session}")
    level = source.choice(("READ COMMITTED", "REPEATABLE READ"))
    with_check = source.choice(("", " CHECK (n < 2000000000)"))
    # A number that is drawn within a transaction may be another client's conflict.
    drawn = source.choice((True, False))
    twin = PostgresTwin()
    twin.run(
        "CREATE TABLE t (id bigint ENC PRIMARY KEY, n integer ENC"
        f"{with_check}, v text ENC, p text, u bigint ENC UNIQUE,"
        f" c varchar(4) ENC NOT NULL DEFAULT '', s {'serial' if drawn else 'integer DEFAULT 3'})"
    )
    twin.run("INSERT INTO t SELECT i, i, 'v' || i, 'p', 20 - i FROM generate_series(1, 9) AS s(i)")
    other = PostgresTwin(beside=twin)
    try:
        for _ in range(90):
            draw, client = source.random(), twin
            if draw < 0.05 and not drawn:
                twin.run("ROLLBACK" if twin.within else f"BEGIN ISOLATION LEVEL {level}")
            elif draw < 0.1 and twin.within:
                twin.run(source.choice(("SAVEPOINT s", "ROLLBACK TO s", "COMMIT")))
            elif draw < 0.3 and not twin.within:
                client = other
            text, kinds = source.choice(_TEXTS)
            client.run(text, [_value(source, kind) for kind in kinds])
            if source.random() < 0.15:
                client.run(_ALL)
        twin.run("COMMIT")
        twin.run(_ALL)
    finally:
        other.close()
        twin.close()


_UPSERTS = (
    ("INSERT INTO t VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET n = excluded.n", "knv"),
    ("INSERT INTO t (id, n) VALUES ($1, $2)"
     " ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n, v = 'it''s'", "kn"),
    ("INSERT INTO t (n, id) VALUES ($2, $1) ON CONFLICT (id) DO UPDATE SET n = t.n + $2", "kn"),
    ("INSERT INTO t VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", "knv"),
    ("INSERT INTO t (id, v) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET v = NULL", "kv"),
    ("INSERT INTO t (id, v) VALUES ($1, $2), (12, 'x') ON CONFLICT (id) DO NOTHING", "kv"),
    ("INSERT INTO t (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET id = excluded.id + 20", "k"),
    (_DELETE, "k"),
)  # fmt: skip


@pytest.mark.parametrize("session", range(2 * SOAK))
def test_random_upserts_that_come_again(session: int) -> None:
    source, twin = random.Random(f"{SEED} {session}"), PostgresTwin()
    try:
        twin.run(
            "CREATE TABLE t (id bigint ENC PRIMARY KEY, n integer ENC NOT NULL DEFAULT 7,"
            " v text ENC)"
        )
        for _ in range(90):
            if source.random() < 0.06:
                twin.run("COMMIT" if twin.within else "BEGIN")
            text, kinds = source.choice(_UPSERTS)
            twin.run(text, [_value(source, kind) for kind in kinds])
            if source.random() < 0.15:
                twin.run(_ROWS)
        twin.run("COMMIT")
        twin.run(_ROWS)
    finally:
        twin.close()


def test_an_upsert_asks_the_engine_once(
    twin: PostgresTwin, monkeypatch: pytest.MonkeyPatch
) -> None:
    _table(twin, "text", ", n integer ENC")
    journey = Journey(monkeypatch)
    for sql, kinds in (
        ("INSERT INTO t VALUES ($1, $2, $3)"
         " ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n, v = $2", ["x", 5]),
        ("INSERT INTO t VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", ["y", 6]),
    ):  # fmt: skip
        for number in range(5, 15):
            rehearsals, trips = journey.of(twin, sql, [number, *kinds])
            assert bool(rehearsals) == (number == 5)
            twin.run(_ROWS)
        assert trips <= 2
