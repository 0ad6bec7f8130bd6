"""Settled statements whose rows go as raw values, beside plaintext PostgreSQL: what a column takes
or refuses does not depend on the way that a row goes.
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

from louver.trusted.executor import raw_rows
from tests.generated import SEED, SOAK
from tests.local_postgres.twin import PostgresTwin

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
#: What fills a column of each type with more values than are counted, from limit to limit.
_FILLED = {
    "smallint": "(i * 1638 - 32768)::smallint", "integer": "(i * 107374182 - 2147483648)::integer",
    "bigint": "(i * 461168601842738790 - 9223372036854775808)::bigint", "text": "'t' || i",
    "boolean": "i % 2 = 0", "bytea": "decode(lpad(to_hex(i::integer), 2, '0'), 'hex')",
    "uuid": "lpad(i::text, 32, '0')::uuid", "date": "date '0001-01-01' + 90000 * i::integer",
    "timestamp": "timestamp '0001-01-01' + i * interval '90000 days 1 microsecond'",
    "double precision": "(i - 20) * 1.5e300::float8", "numeric(9,2)": "i * 249999.99",
    "jsonb": "to_jsonb(i)",
}  # fmt: skip
_ROWS = 40
_VALUES: tuple[Any, ...] = (
    None, 0, 1, -1, 7, 32_767, 32_768, -32_768, 2**31 - 1, 2**31, 2**63 - 1, -(2**63), 2**63, True,
    False, "", "a", "t5", "a\0", "\ud800", b"", b"a\0", UUID(int=7), UUID(int=2**128 - 1),
    date.min, date(2026, 2, 3), date.max, datetime(2026, 2, 3, 4, 5, 6, 7), datetime.min,
    datetime.max, datetime(2026, 2, 3, tzinfo=UTC), 0.0, -0.0, 0.1, 1e308, math.inf, math.nan,
    Decimal("1.005"), Decimal(7),
)  # fmt: skip


class Counted:
    """How many rows went as raw values."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.appended = self.replaced = self.removed = 0
        append, replace, remove = raw_rows.append, raw_rows.replace, raw_rows.remove

        def appended(*given: Any) -> bool:
            done = append(*given)
            self.appended += done
            return done

        def replaced(*given: Any) -> bool:
            done = replace(*given)
            self.replaced += done
            return done

        def removed(*given: Any) -> None:
            remove(*given)
            self.removed += 1

        patch.setattr(raw_rows, "append", appended)
        patch.setattr(raw_rows, "replace", replaced)
        patch.setattr(raw_rows, "remove", removed)


@pytest.fixture
def twin(encrypted: bool) -> Iterator[PostgresTwin]:
    twin = PostgresTwin("cryptdb" if encrypted else "sealed")
    yield twin
    twin.close()


def _table(twin: PostgresTwin, type_: str, encrypted: bool) -> None:
    twin.run(
        f"CREATE TABLE t (id bigint ENC PRIMARY KEY, v {type_}{' ENC' * encrypted},"
        f" n bigint ENC, p text)"
    )
    key = f"CASE i WHEN 0 THEN {-(2**63)} WHEN {_ROWS - 1} THEN {2**63 - 1} ELSE i END::bigint"
    rows = f"generate_series(0::numeric, {_ROWS - 1}) i"
    filled = f"INSERT INTO t SELECT {key}, {_FILLED[type_]}, {_FILLED['bigint']}, 'p' FROM {rows}"
    plain, own = twin.both(filled)
    assert plain.error is None
    assert own.error is None
    twin.run("INSERT INTO t VALUES (1000, NULL, NULL, NULL)")


@pytest.mark.parametrize("encrypted", [True, False])
@pytest.mark.parametrize("type_", [*_FILLED])
def test_every_value_fares_as_in_plaintext(
    twin: PostgresTwin, type_: str, encrypted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    _table(twin, type_, encrypted)
    counted, draw = Counted(monkeypatch), random.Random(SEED)
    values = [*_VALUES] if SOAK > 1 else draw.sample(_VALUES, 14)
    if type_.startswith("numeric("):
        # Refused where it is read (`postgres.nan`).
        values = [value for value in values if value == value or not isinstance(value, float)]
    insert, update = "INSERT INTO t VALUES ($1, $2, $3, $4)", "UPDATE t SET v = $1 WHERE id = $2"
    add, delete = "UPDATE t SET n = n + $1 WHERE id = $2", "DELETE FROM t WHERE id = $1"
    upsert = "INSERT INTO t VALUES ($1, $2, 1, 'p') ON CONFLICT (id) DO UPDATE SET v = excluded.v"
    for number, value in enumerate(values, 2000):
        begun = number % 5 == 0
        if begun:
            assert not twin.differs("BEGIN")
        for sql, given in (
            (insert, [number, value, number, "p"]), (update, [value, 3 + number % 20]),
            (add, [draw.choice((1, -1, 2**62, 2**63 - 1)), 3 + number % 20]),
            (upsert, [number - 1, value]), (delete, [number - 3]),
        ):  # fmt: skip
            differs = twin.differs(sql, given)
            assert not differs, (type_, sql, given, differs)
            if begun and twin.within:
                # An error ends the transaction on both sides.
                continue
        if begun:
            assert not twin.differs(draw.choice(("COMMIT", "ROLLBACK")))
        assert not twin.differs("SELECT * FROM t ORDER BY id"), (type_, value)
    for number in range(3000, 3004):
        for sql, given in (
            (insert, [number, None, number, "p"]), (add, [1, number]), (delete, [number]),
        ):  # fmt: skip
            assert not twin.differs(sql, given)
    assert counted.removed
    # Of the other types only the private PostgreSQL knows what they take.
    is_known = type_ != "jsonb"
    assert bool(counted.replaced) == (encrypted or is_known)
    assert bool(counted.appended) == is_known


@pytest.mark.parametrize("encrypted", [True])
@pytest.mark.parametrize("type_", ["smallint", "integer", "bigint"])
def test_a_key_beyond_its_type_is_an_error(twin: PostgresTwin, type_: str) -> None:
    """A parameter is of the type of what it is compared with."""
    twin.run(f"CREATE TABLE t (id {type_} ENC PRIMARY KEY, v integer ENC)")
    twin.run("INSERT INTO t SELECT i, i FROM generate_series(1, 50) i")
    limit = {"smallint": 2**15, "integer": 2**31, "bigint": 2**63}[type_]
    keys = [1, 2, 3, limit - 1, limit, -limit, -limit - 1, 2**200, 4, limit, None]
    for sql in (
        "SELECT v FROM t WHERE id = $1", "SELECT v FROM t WHERE id IN ($1, 7)",
        "UPDATE t SET v = v + 1 WHERE id = $1", "DELETE FROM t WHERE id = $1",
    ):  # fmt: skip
        for key in keys:
            differs = twin.differs(sql, [key])
            assert not differs, (sql, key, differs)
