"""INSERT that comes again with other values: what plaintext PostgreSQL says of each value, and the
local engine is asked only where it must be.
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

from louver.trusted.executor.change import inserting
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
_INSERT = "INSERT INTO t (id, v) VALUES ($1, $2)"


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    twin = PostgresTwin()
    twin.run("CREATE DOMAIN short AS text CHECK (length(value) < 3)")
    twin.run("CREATE TYPE mood AS ENUM ('fine', 'a')")
    yield twin
    twin.close()


def _table(twin: PostgresTwin, type_: str, *values: str | None) -> None:
    """A table, into which the statement has put a row for each value."""
    twin.run(f"CREATE TABLE t (id bigint ENC PRIMARY KEY, v {type_} ENC)")
    for id_, value in enumerate(values):
        twin.run(_INSERT, [id_, value])


def _rehearsed(twin: PostgresTwin, monkeypatch: pytest.MonkeyPatch, values: list[Any]) -> bool:
    """Run the INSERT; whether the local engine was asked."""
    calls, own = list[Any](), inserting._rehearsed

    def counted(*given: Any) -> Any:
        calls.append(given)
        return own(*given)

    with monkeypatch.context() as patch:
        patch.setattr(inserting, "_rehearsed", counted)
        twin.run(_INSERT, values)
    return bool(calls)


@pytest.mark.parametrize("type_", _TYPES)
def test_every_value_is_stored_or_refused_as_on_plaintext(twin: PostgresTwin, type_: str) -> None:
    _table(twin, type_, None, None)
    values = list(_VALUES)
    random.Random(type_).shuffle(values)
    differences = []
    for id_, value in enumerate(values, 10):
        if type_ == "numeric(5,2)" and value is math.nan:
            continue  # refused (local.feature)
        plain, own = twin.both(_INSERT, [id_, value])
        if (plain.error is None) != (own.error is None) or plain.state != own.state:
            differences.append((value, plain.error, own.error))
    assert differences == []
    twin.run("SELECT id, v::text FROM t ORDER BY id")


def test_the_engine_is_asked_once(twin: PostgresTwin, monkeypatch: pytest.MonkeyPatch) -> None:
    twin.run("CREATE TABLE t (id bigint ENC PRIMARY KEY, v text ENC)")
    assert _rehearsed(twin, monkeypatch, [1, "a"])
    assert not _rehearsed(twin, monkeypatch, [2, "b"])
    assert not _rehearsed(twin, monkeypatch, [3, None])
    assert _rehearsed(twin, monkeypatch, ["4", "c"])
    assert not _rehearsed(twin, monkeypatch, [5, "c"])
    twin.run("BEGIN")
    assert _rehearsed(twin, monkeypatch, [6, "c"])
    twin.run("ROLLBACK")
    twin.run(_INSERT, [1, "again"])
    twin.run(_INSERT, [None, "a"])
    twin.run("SELECT * FROM t ORDER BY id")


@pytest.mark.parametrize(
    "definition",
    [
        "ALTER TABLE t ADD CHECK (v <> 'x')",
        "ALTER TABLE t ALTER v SET NOT NULL",
        "ALTER TABLE t ALTER v TYPE varchar(2)",
        "ALTER TABLE t ADD UNIQUE (v)",
        "CREATE UNIQUE INDEX ON t (lower(v))",
        "ALTER TABLE t ADD w bigint ENC DEFAULT 7",
        "ALTER TABLE t ADD w bigint ENC NOT NULL DEFAULT length('abc')",
        "ALTER TABLE t ADD w bigint ENC GENERATED ALWAYS AS (id * 2) STORED",
        "ALTER TABLE t DROP v",
        "ALTER TABLE t RENAME v TO w",
        "ALTER TABLE t RENAME TO u",
        "DROP TABLE t",
        "ALTER TABLE t ALTER id DROP DEFAULT, ALTER id ADD GENERATED ALWAYS AS IDENTITY",
        "CREATE TABLE p (id text ENC PRIMARY KEY);"
        " INSERT INTO p VALUES ('a'), ('b'); ALTER TABLE t ADD FOREIGN KEY (v) REFERENCES p",
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
    _table(twin, "text", "a", "b")
    other = PostgresTwin(beside=twin) if by_another else twin
    try:
        for part in definition.split("; "):
            twin.on_plain(part)
            own = other.on_louver(part)
            assert own.error is None, own.error
        for id_, value in [(3, "x"), (4, None), (5, "abc"), (6, "ABC"), (6, "y")]:
            twin.run(_INSERT, [id_, value])
        for table in ("t", "u"):
            twin.run(f"SELECT * FROM {table} ORDER BY 1")
    finally:
        if other is not twin:
            other.close()


def test_a_transaction_that_has_read_by_a_remembered_text_keeps_its_level(
    twin: PostgresTwin,
) -> None:
    _table(twin, "text", "a", "b")
    for _ in range(3):
        twin.run("SELECT v FROM t WHERE id = $1", [1])
    twin.run("BEGIN")
    twin.run("SELECT v FROM t WHERE id = $1", [2])
    twin.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    twin.run("ROLLBACK")
