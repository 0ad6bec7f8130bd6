"""Changes that come again with other values are not planned again, and those that are decided row
by row do what DuckDB does: random tables, assignments, conditions and RETURNING, with changes of
the schema, transactions and another client between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

import louver
from louver.trusted.executor import constraint_check
from louver.trusted.executor.change import changing, row_by_row
from tests.generated import cases, generator
from tests.recorded import RecordedSession
from tests.twin import MODULUS_BITS, Twin, outcome_of, plain_sql

TABLE = """CREATE TABLE t (id INTEGER ENC, v BIGINT ENC, s VARCHAR ENC NOT NULL,
 d DECIMAL(9,2) ENC, p DOUBLE, n INTEGER CHECK (n < 100))"""
ROWS = "INSERT INTO t SELECT i, i, 's' || i, i * 1.25, i / 4, i % 10 FROM range(100) r(i)"


class Counted:
    """How often changes were planned, statements bound, and changes decided row by row."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, twin: Twin) -> None:
        self.plans = self.bound = self.decided = self.rehearsed = 0
        planned, decided = changing.planned, row_by_row.decided
        home = twin.session.context.planner.home
        describe, rehearse = home.describe, constraint_check.rehearsed

        def counted_plan(*given: Any) -> Any:
            self.plans += 1
            return planned(*given)

        def counted_describe(*given: Any) -> Any:
            self.bound += 1
            return describe(*given)

        def counted_decided(*given: Any) -> Any:
            result = decided(*given)
            self.decided += result is not None
            return result

        def counted_rehearsed(*given: Any, **named: Any) -> Any:
            self.rehearsed += 1
            return rehearse(*given, **named)

        monkeypatch.setattr(changing, "planned", counted_plan)
        monkeypatch.setattr(home, "describe", counted_describe)
        monkeypatch.setattr(row_by_row, "decided", counted_decided)
        monkeypatch.setattr(constraint_check, "rehearsed", counted_rehearsed)


@pytest.fixture
def twin(open_twin: Callable[..., Twin]) -> Twin:
    twin = open_twin("cryptdb")
    twin.fill(TABLE, ROWS)
    return twin


AGAIN: list[tuple[str, Sequence[Sequence[object]]]] = [
    ("UPDATE t SET v = ? WHERE id = ?", [(5, 3), (7, 4), (0, 5), (-0, 6)]),
    ("UPDATE t SET s = ?, p = ? WHERE id = ?", [("a", 1.5, 3), ("b''c", 2.5, 4), ("", 7, 5)]),
    ("UPDATE t SET d = d + ? WHERE s = ?", [(Decimal("1.5"), "s3"), (2, "s4"), (0.25, "s50")]),
    ("UPDATE t SET n = n - ? WHERE id = ? AND n < 90 RETURNING id, n AS m", [(1, 8), (2, 9)]),
    ("UPDATE t AS x SET v = x.v * 2, d = x.v WHERE x.s = ?", [("s10",), ("s11",)]),
    ("DELETE FROM t WHERE id = ?", [(20,), (21,), (120,)]),
    ("DELETE FROM t WHERE s = ? RETURNING *", [("s22",), ("s23",), ("none",)]),
    ("DELETE FROM t WHERE id = ? AND p > 1", [(24,), (25,)]),
    ("UPDATE t SET v = {0} WHERE id = {1}", [(11, 30), (12, 31), (13, 32)]),
    ("DELETE FROM t WHERE id = {0} AND v > {1}", [(33, 12), (34, 13)]),
]


@pytest.mark.parametrize(("sql", "values"), AGAIN)
def test_another_value_takes_no_other_plan(
    sql: str, values: Sequence[Sequence[object]], twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one makes the plan, and none needs a dry run."""
    counted = Counted(monkeypatch, twin)

    def run(given: Sequence[object]) -> None:
        written = sql.format(*given)
        twin.run(written, [] if written != sql else given)

    run(values[0])
    # What opened a layer is planned again: another plan serves then.
    run(values[0])
    before = (counted.plans, counted.bound, counted.decided)
    for given in values[1:]:
        run(given)
    assert (counted.plans, counted.bound) == before[:2]
    assert counted.decided == before[2] + len(values) - 1
    assert counted.rehearsed == 0
    twin.run("SELECT * FROM t")


@pytest.mark.parametrize("sql", [
    "UPDATE t SET n = 100 WHERE id = 3",
    "UPDATE t SET s = NULL WHERE id = 3",
    "UPDATE t SET s = s || chr(id + 64) WHERE id = 3",
    "UPDATE t SET d = 99999999 WHERE id = 3",
    "UPDATE k SET id = id + 100 WHERE v = 3",
    "UPDATE k SET l = [v] WHERE v = 3",
    "DELETE FROM t WHERE id = 3 RETURNING v + 1",
    "DELETE FROM t WHERE id = 3 AND random() < 2",
])  # fmt: skip
def test_what_needs_more_than_the_row_has_its_dry_run(
    sql: str, twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors are told in DuckDB's words there; what is not of the grammar is run there."""
    twin.fill("CREATE TABLE k (id INTEGER ENC PRIMARY KEY, v BIGINT ENC, l INTEGER[] ENC)")
    twin.run("INSERT INTO k SELECT i, i, [i] FROM range(50) r(i)")
    counted = Counted(monkeypatch, twin)
    for _ in range(2):
        twin.either(sql)
        twin.run("SELECT * FROM t")
        twin.run("SELECT * FROM k")
    assert (counted.rehearsed, counted.decided) == (2, 0)


def test_what_a_plan_rests_on_ends_it(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these lets the same change mean something else."""
    sql, counted = "UPDATE t SET v = v + 1 WHERE id = ?", Counted(monkeypatch, twin)
    for number, between in enumerate((
        "SELECT 1",
        "ALTER TABLE t ADD COLUMN more INTEGER ENC DEFAULT 3",
        "ALTER TABLE t ALTER COLUMN v SET DATA TYPE VARCHAR",
        "ALTER TABLE t ALTER COLUMN v SET DATA TYPE INTEGER",
        "CREATE VIEW u AS SELECT * FROM t",
        "DROP VIEW u",
        "ALTER TABLE t RENAME TO u; CREATE TABLE t (id INTEGER ENC, v TINYINT)",
        "INSERT INTO t VALUES (47, 127), (48, 1)",
    )):  # fmt: skip
        for part in between.split("; "):
            twin.either(part)
        plans = counted.plans
        twin.either(sql, [40 + number])
        assert counted.plans > plans or not number, between
        twin.run("SELECT * FROM t")


def test_ceilings_end_a_plan(twin: Twin) -> None:
    sql = "DELETE FROM t WHERE id = ?"
    twin.run(sql, [1])
    twin.louver.execute("CREATE TABLE w (id INTEGER ENC, v BIGINT ENC)")
    twin.plain.execute("CREATE TABLE w (id INTEGER, v BIGINT)")
    twin.run("INSERT INTO w SELECT i, i FROM range(50) r(i)")
    twin.run("DELETE FROM w WHERE v = ?", [1])
    before = twin.tap.traffic.rows_in
    twin.run("DELETE FROM w WHERE v = ?", [2])
    assert twin.tap.traffic.rows_in - before < 20


#: By type: values, and expressions over a column `c` of the type and an integer `i`.
_TYPES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "INTEGER": (("0", "-1", "7", "2147483647", "NULL"), ("c + 1", "-c", "c % 3", "i", "abs(c)")),
    "TINYINT": (("0", "-128", "127", "NULL"), ("c + 1", "c * 2", "i", "300")),
    "BIGINT": (("0", "9223372036854775807", "5", "NULL"), ("c - 1", "c // 2", "i * 1000", "1.5")),
    "HUGEINT": (("0", "170141183460469231731687303715884105727", "NULL"), ("c", "i", "c + 1")),
    "UBIGINT": (("0", "18446744073709551615", "3", "NULL"), ("c", "i", "c + 1")),
    "DECIMAL(9,2)": (("0", "1.50", "-9999999.99", "NULL"), ("c + 0.005", "c * 2", "i", "c / 3")),
    "DECIMAL(30,10)": (("0.0000000001", "5", "NULL"), ("c * 1.5", "i", "-c")),
    "DOUBLE": (
        ("0.0", "-0.0", "'nan'::DOUBLE", "'-inf'::DOUBLE", "1.5", "NULL"),
        ("-c", "c / 2", "c * 0", "floor(c)", "sign(c)", "i", "'nan'", "c % 2"),
    ),
    "FLOAT": (("0.0", "-0.0", "'nan'::FLOAT", "0.1", "NULL"), ("-c", "c + 0.1", "i")),
    "BOOLEAN": (("true", "false", "NULL"), ("NOT c", "i > 3", "c AND true", "1", "'no'")),
    "VARCHAR": (
        ("''", "'a'", "'A'", "'a '", "'ä'", "'long ' || repeat('x', 30)", "NULL"),
        (
            "c || 'x'",
            "upper(c)",
            "i",
            "lower(c)",
            "substring(c, 1, 2)",
            "coalesce(c, 'none')",
            "replace(c, 'a', 'b')",
            "left(c, 1)",
            "CURRENT_DATE IS NULL",
        ),
    ),
    "BLOB": (("''::BLOB", "'\\x00a'::BLOB", "NULL"), ("c", "'x'", "c || 'b'::BLOB")),
    "UUID": (("'00000000-0000-0000-0000-000000000001'", "NULL"), ("c", "'no uuid'", "i")),
    "DATE": (("DATE '2020-02-29'", "'infinity'", "NULL"), ("c", "c + i", "'2021-01-01'")),
    "TIMESTAMP": (
        ("'2020-02-29 01:02:03.5'", "'-infinity'", "NULL"),
        ("c", "DATE '2020-01-02'", "c + INTERVAL 1 DAY"),
    ),
    "TIMESTAMPTZ": (("'2020-02-29 01:02:03.5+02'", "NULL"), ("c", "'2020-10-25 00:30:00+00'")),
    "TIME": (("'00:00:00'", "'23:59:59.999999'", "NULL"), ("c", "'01:02'", "i")),
    "INTERVAL": (("INTERVAL 1 DAY", "NULL"), ("c", "c + c", "'2 days'")),
    "INTEGER[]": (("[1, 2]", "[]", "NULL"), ("c", "[i]", "c || [3]")),
    "STRUCT(x INTEGER, y VARCHAR)": (("{'x': 1, 'y': 'a'}", "NULL"), ("c", "{'x': i, 'y': 'b'}")),
    "mood": (("'sad'", "'happy'", "NULL"), ("c", "'happy'", "'none'", "'sad'::mood")),
}
_KEEPS = ("", "", "", " NOT NULL", " DEFAULT {}", " CHECK ({} IS NOT NULL OR id < 30)",
          " CHECK ({} > 0)")  # fmt: skip


class _World:
    """One table of random columns, `id` among them, and random changes of it."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.columns = {f"c{i}": chance.choice(list(_TYPES)) for i in range(chance.randint(2, 4))}
        self.encrypted = {name: chance.random() < 0.7 for name in self.columns}

    def create(self) -> str:
        chance = self.chance
        key = chance.choice(["", "", " PRIMARY KEY", " UNIQUE"])
        parts = [f"id INTEGER{chance.choice(['', ' ENC'])}{key}", "i INTEGER"]
        for name, type_ in self.columns.items():
            rule = chance.choice(_KEEPS)
            if ("CHECK" in rule and type_ not in ("INTEGER", "BIGINT", "DOUBLE")) or (
                "> 0" in rule and chance.random() < 0.5
            ):
                rule = ""
            filler = name if "CHECK" in rule else _TYPES[type_][0][0]
            enc = " ENC" if self.encrypted[name] else ""
            parts.append(f'"{name}" {type_}{enc}{rule.format(filler)}')
        if chance.random() < 0.2:
            parts.append("g INTEGER GENERATED ALWAYS AS (i + 1)")
        return f"CREATE TABLE t ({', '.join(parts)})"

    def value(self, name: str) -> str:
        return self.chance.choice(_TYPES[self.columns[name]][0])

    def insert(self, id_: int) -> str:
        values = ", ".join(self.value(name) for name in self.columns)
        names = ", ".join(self.columns)
        return f"INSERT INTO t (id, i, {names}) VALUES ({id_}, {id_ % 5}, {values})"

    def _expression(self, name: str, prefix: str) -> str:
        text = self.chance.choice([*_TYPES[self.columns[name]][1], self.value(name), "DEFAULT"])
        if text == "DEFAULT" and self.chance.random() < 0.7:
            text = self.value(name)
        words = {"c": f"{prefix}{name}", "i": f"{prefix}i"}
        quoted = False
        pieces = []
        for part in text.replace("(", " ( ").replace(")", " ) ").split(" "):
            pieces.append(part if quoted else words.get(part, words.get(part[1:-1], part)))
            quoted ^= part.count("'") % 2 == 1
        return " ".join(pieces)

    def _condition(self, prefix: str) -> str:
        chance, name = self.chance, self.chance.choice(list(self.columns))
        return chance.choice([
            f"{prefix}id = <a>", f"{prefix}id = <a>", f"{prefix}id IN (<a>, <b>)",
            f"{prefix}id = <a> AND {prefix}{name} IS NOT NULL",
            f"{prefix}{name} = {self.value(name)}",
            f"{prefix}id BETWEEN <a> AND <a> + 3", f"{prefix}i = <a> AND NOT {prefix}id = <b>",
            f"{prefix}{name} IS NULL AND {prefix}id > <a>", f"{prefix}id = <a> OR {prefix}i = 9",
            f"{prefix}{name} IS DISTINCT FROM {self.value(name)} AND {prefix}id = <a>",
        ])  # fmt: skip

    def change(self) -> str:
        """A change with places for two numbers."""
        chance = self.chance
        alias = chance.choice(["", "", " AS x"])
        prefix = chance.choice(["", "x." if alias else "t."])
        where = f" WHERE {self._condition(prefix)}"
        returning = chance.choice(
            [
                "",
                "",
                " RETURNING *",
                " RETURNING id, c0 AS z",
                " RETURNING c1, i",
                " RETURNING id + 1",
            ]
        )
        returning = returning and f" RETURNING {returning}"
        if chance.random() < 0.3:
            return f"DELETE FROM t{alias}{where}{returning}"
        chosen = chance.sample(list(self.columns), chance.choice([1, 1, 2]))
        if chance.random() < 0.1:
            return f"UPDATE t{alias} SET id = {prefix}id + <a>{where}{returning}"
        sets = ", ".join(f"{name} = {self._expression(name, prefix)}" for name in chosen)
        return f"UPDATE t{alias} SET {sets}{where}{returning}"

    def between(self) -> str:
        """What makes something else of the changes before it."""
        name = self.chance.choice(list(self.columns))
        return self.chance.choice([
            "BEGIN", "COMMIT", "ROLLBACK", f"ALTER TABLE t ALTER COLUMN {name} SET NOT NULL",
            f"ALTER TABLE t ALTER COLUMN {name} DROP NOT NULL",
            f"ALTER TABLE t ALTER COLUMN {name} SET DEFAULT {self.value(name)}",
            "ALTER TABLE t ADD COLUMN IF NOT EXISTS more VARCHAR ENC DEFAULT 'm'",
            "CREATE MACRO IF NOT EXISTS abs(x) AS 5", "DROP MACRO IF EXISTS abs",
            "CREATE UNIQUE INDEX IF NOT EXISTS u ON t (i, id)", "DROP INDEX IF EXISTS u",
            "SELECT * FROM t WHERE id = 3", "SET default_null_order = 'nulls_first'",
        ])  # fmt: skip


@pytest.mark.parametrize("number", range(cases(8)))
def test_random_changes(number: int, tmp_path: Path, key_file: Path) -> None:
    """Every change runs several times, so that plans of before are met with other values."""
    chance = generator(f"repeated changes {number}")
    world = _World(chance)
    profile = chance.choice(["cryptdb", "cryptdb", "sealed", "sdb"])
    twin = Twin(tmp_path / "x.duckdb", key_file, profile, own_errors=True)
    twin.run("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    other = RecordedSession(twin.path, key_file, profile, modulus_bits=MODULUS_BITS).session
    try:
        twin.either(world.create())
        for id_ in range(12):
            twin.either(world.insert(id_))
        changes = [world.change() for _ in range(6)]
        for step in range(40):
            drawn = chance.random()
            if drawn < 0.12:
                sql = world.between()
                expected = outcome_of(twin.plain, plain_sql(sql))
                actual = outcome_of(twin.louver, sql)
                assert (expected.error is None) == (actual.error is None), (sql, expected, actual)
                if expected.error is not None:
                    _end(twin)
            elif drawn < 0.2:
                twin.either(world.insert(100 + step))
            elif drawn < 0.3 and not twin.session.in_transaction:
                _both_elsewhere(twin, other, f"UPDATE t SET i = i + 1 WHERE id = {step % 12}")
            sql = chance.choice(changes)
            for mark in ("<a>", "<b>"):
                sql = sql.replace(mark, str(chance.randrange(12)))
            allowed = _is_allowed(twin, sql)
            if (allowed and twin.either(sql) is None) or not allowed:
                _end(twin)
            twin.either("SELECT * FROM t")
        if twin.session.in_transaction:
            twin.either("COMMIT")
        twin.reopen()
        twin.either("SELECT * FROM t")
    finally:
        other.close()
        twin.close()


def _end(twin: Twin) -> None:
    """After an error no transaction goes on: not every error ends one."""
    if twin.session.in_transaction:
        twin.louver.execute("ROLLBACK")
        twin.plain.execute("ROLLBACK")


def _is_allowed(twin: Twin, sql: str) -> bool:
    """Whether no rule about leakage forbids a change that DuckDB may run."""
    try:
        twin.rows(f"EXPLAIN (LEAKAGE) {sql}")
    except louver.errors.LeakageRefused:
        return False
    except louver.Error:
        _end(twin)
    return True


def _both_elsewhere(twin: Twin, other: Any, sql: str) -> None:
    """The same change by another client, and on plaintext DuckDB."""
    try:
        twin.plain.execute(plain_sql(sql))
    except Exception:  # noqa: BLE001 - a rule of the table may forbid it
        with pytest.raises(louver.Error):
            other.execute(sql)
    else:
        other.execute(sql)
