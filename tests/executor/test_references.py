"""Foreign keys are checked on the rows that a change touches, by what both ends may show, and hold
as they hold in plaintext DuckDB.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from louver import errors
from louver.trusted.executor import constraint_check, references
from louver.wire.messages import Statement
from tests.generated import cases
from tests.twin import Twin, first_line, outcome_of

TABLES = (
    "CREATE TABLE p (i INT {} PRIMARY KEY, b INT {}, z TEXT {}, v INT {}, UNIQUE (b, z))",
    "CREATE TABLE ch (x INT {} PRIMARY KEY, up INT {} REFERENCES p(i), w TEXT {})",
    "CREATE TABLE c2 (bb INT {}, zz TEXT {}, FOREIGN KEY (bb, zz) REFERENCES p(b, z))",
    "CREATE TABLE s (i INT {} PRIMARY KEY, up INT {} REFERENCES s(i), v INT {})",
)
LINKED = ("ENC MAY REVEAL equality", "ENC MAY REVEAL order", "")


def filled(key_file: Path, enc: str, rows: int = 12, parent: str | None = None) -> Twin:
    twin = Twin(":memory:", key_file, "sealed")
    for number, table in enumerate(TABLES):
        twin.fill(table.replace("{}", parent if parent is not None and not number else enc))
    twin.fill(
        f"INSERT INTO p SELECT i, i, 'z' || i, 0 FROM range({rows}) r(i)",
        "INSERT INTO ch VALUES (1, 1, 'a'), (2, 2, 'b'), (3, NULL, 'c'), (4, 9, 'd')",
        "INSERT INTO c2 VALUES (4, 'z4'), (2, 'z2'), (NULL, 'z3'), (5, NULL)",
        "INSERT INTO s VALUES (1, NULL, 0)",
        "INSERT INTO s VALUES (2, 1, 0), (3, 1, 0), (4, NULL, 0)",
        "INSERT INTO s VALUES (5, 2, 0)",
    )
    return twin


def statement_of(dice: Random) -> str:
    """A change that may break a reference."""
    key, other, far = dice.randrange(12), dice.randrange(12), 100 + dice.randrange(1000)
    parent = dice.choice([str(key), str(far), "NULL", str(other)])
    return dice.choice([
        f"DELETE FROM p WHERE i = {key}",
        f"DELETE FROM p WHERE i IN ({key}, {other}) RETURNING v, z",
        f"DELETE FROM p WHERE v = 1 AND b > {key}",
        f"UPDATE p SET v = 1 WHERE i >= {key}",
        f"UPDATE p SET i = {dice.choice([far, other])} WHERE i = {key}",
        f"UPDATE p SET z = 'q{far}' WHERE b = {key}",
        f"INSERT INTO p VALUES ({key}, {other}, 'z', 3) ON CONFLICT (i) DO UPDATE SET v = v + 1",
        f"INSERT INTO p VALUES ({key}, {far}, 'n', 3) ON CONFLICT (i) DO UPDATE SET z = 'q', v = 2",
        f"INSERT INTO s VALUES ({dice.randrange(9)}, {dice.randrange(6)}, 5) ON CONFLICT DO UPDATE"
        f" SET v = excluded.v, up = {dice.choice(['up', '2'])}",
        f"INSERT INTO s VALUES ({dice.randrange(9)}, NULL, 5) ON CONFLICT DO UPDATE SET v = 9",
        f"INSERT OR REPLACE INTO s (i, v) VALUES ({dice.randrange(9)}, 5)",
        f"INSERT OR REPLACE INTO s VALUES ({dice.randrange(9)}, {dice.randrange(6)}, 5)",
        f"INSERT INTO ch VALUES ({far}, {parent}, 'n')",
        f"INSERT INTO ch (up, x) VALUES ({parent}, {far}), ({other}, {far + 1})",
        f"INSERT INTO ch VALUES ({dice.randrange(6)}, {parent}, 'u') ON CONFLICT DO NOTHING",
        f"INSERT OR REPLACE INTO ch VALUES ({dice.randrange(6)}, {parent}, 'u')",
        f"UPDATE ch SET up = {parent} WHERE x = {dice.randrange(6)}",
        f"UPDATE ch SET x = {dice.randrange(8)}, w = 'k' WHERE x = {dice.randrange(6)} RETURNING *",
        f"UPDATE ch SET w = w || '!' WHERE up = {key}",
        f"DELETE FROM ch WHERE up = {key}",
        f"INSERT INTO c2 VALUES ({key}, 'z{dice.choice([key, key, other])}'), ({parent}, NULL)",
        f"UPDATE c2 SET bb = {key}, zz = 'z{dice.choice([key, key, other])}' WHERE bb = {other}",
        f"DELETE FROM c2 WHERE bb = {key}",
        f"INSERT INTO s VALUES ({far}, {dice.choice([dice.randrange(7), far])}, 1)",
        f"DELETE FROM s WHERE i = {dice.randrange(6)}",
        f"UPDATE s SET up = {dice.randrange(7)} WHERE i = {dice.randrange(6)}",
        f"UPDATE s SET v = v + 1 WHERE i < {dice.randrange(6)}",
    ])  # fmt: skip


def test_of_two_references_the_one_that_is_older_is_named(key_file: Path) -> None:
    twin = Twin(":memory:", key_file, "sealed")
    names = [f"c{number}" for number in range(16)]
    twin.fill("CREATE TABLE p (i INT ENC PRIMARY KEY)", "INSERT INTO p VALUES (1)")
    for name in names:
        twin.fill(f"CREATE TABLE {name} (r_{name} INT ENC REFERENCES p(i))",
                  f"INSERT INTO {name} VALUES (1)")  # fmt: skip
    local = twin.session.context.local
    assert local.schema.children(("main", "p")) == [("main", name) for name in names]
    for name in names[:4]:
        expected, actual = (outcome_of(c, "DELETE FROM p") for c in (twin.plain, twin.louver))
        assert f"r_{name}: 1" in first_line(expected.error) == first_line(actual.error)
        twin.fill(f"DELETE FROM {name}")
    twin.close()


@settings(
    max_examples=cases(12),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 1 << 40), enc=st.sampled_from(["ENC", *LINKED]))
def test_any_change(key_file: Path, seed: int, enc: str) -> None:
    dice, twin = Random(seed), filled(key_file, enc)
    try:
        for _ in range(12):
            sql = statement_of(dice)
            expected, actual = outcome_of(twin.plain, sql), outcome_of(twin.louver, sql)
            assert (expected.error is None) == (actual.error is None), (sql, expected, actual)
            if expected.error is not None and "foreign key" in str(expected.error):
                assert first_line(actual.error) == first_line(expected.error), sql
            for name in ("p", "ch", "c2", "s"):
                twin.run(f"SELECT * FROM {name}")
    finally:
        twin.close()


READING = {
    "INSERT INTO p VALUES (5, 900, 'n', 3) ON CONFLICT (i) DO UPDATE SET v = p.v + 1": 1,
    "INSERT OR REPLACE INTO s (i, v) VALUES (3, 7)": 1,
    "INSERT INTO ch VALUES (900, 7, 'x'), (901, 8, 'y')": 2,
    "INSERT INTO ch VALUES (902, 9000, 'x')": 0,
    "INSERT INTO c2 VALUES (7, 'z7')": 1,
    "INSERT OR REPLACE INTO ch VALUES (1, 7, 'x')": 2,
    "UPDATE ch SET up = 8 WHERE up = 7": 3,
    "UPDATE ch SET x = 77 WHERE up = 1": 1,
    "DELETE FROM p WHERE i = 6": 1,
    "DELETE FROM p WHERE i = 2": 3,
}


@pytest.mark.parametrize("enc", LINKED[:2])
def test_a_linked_reference_reads_the_rows_that_it_is_about(key_file: Path, enc: str) -> None:
    counts = []
    for rows in (20, 2000):
        twin, read = filled(key_file, enc, rows), []
        # These open the layers.
        twin.either("DELETE FROM p WHERE i = 0")
        twin.either("UPDATE ch SET x = 4 WHERE up = 9 AND x = 4")
        for sql in READING:
            before = twin.tap.traffic.rows_in
            twin.either(sql)
            read.append(twin.tap.traffic.rows_in - before)
        counts.append(read)
        twin.close()
    assert counts[0] == counts[1]
    assert max(counts[0]) < 12


def test_elsewhere_one_column_is_read(key_file: Path) -> None:
    twin = filled(key_file, "ENC", 300)
    sent = twin.sent()
    twin.either("INSERT INTO ch VALUES (900, 7, 'x')")
    twin.either("DELETE FROM p WHERE i = 6")
    texts = [m.sql for m in twin.tap.sent()[sent:] if isinstance(m, Statement)]
    stored = {c.name: c.stored["rnd"] for c in twin.table("ch").columns}
    reading = [text for text in texts if text.startswith("SELECT t0") and stored["up"] in text]
    assert reading
    assert not any(stored["w"] in text or stored["x"] in text for text in reading)
    assert not any(" IN ($" in text for text in texts if text.startswith("SELECT"))
    twin.close()


def test_values_of_references_are_not_sent(key_file: Path) -> None:
    twin = filled(key_file, LINKED[0])
    twin.fill("INSERT INTO p VALUES (471101, 471102, 'secret words', 0)")
    sent = twin.sent()
    for sql in (
        "INSERT INTO ch VALUES (900, 471101, 'x')",
        "INSERT INTO c2 VALUES (471102, 'secret words')",
        "UPDATE ch SET up = 471101 WHERE x = 1",
        "DELETE FROM p WHERE i = 471101",
    ):
        twin.either(sql)
    messages = [message for message in twin.tap.sent()[sent:] if isinstance(message, Statement)]
    assert len(messages) > 20
    assert not any("4711" in repr(message) or "words" in repr(message) for message in messages)
    twin.close()


def test_what_a_link_shows_is_written_down(key_file: Path) -> None:
    for enc, expected in (("ENC", set()), (LINKED[0], {("up",), ("bb", "zz")})):
        twin = filled(key_file, enc)
        twin.either("INSERT INTO ch VALUES (900, 7, 'x')")
        facts = twin.louver.leakage().arrow().to_pylist()
        assert {
            tuple(fact["columns"]) for fact in facts if fact["kind"] == "key.refers"
        } == expected
        twin.close()


@pytest.mark.parametrize(
    ("own", "parent", "expected"),
    [
        ("", "", True),
        ("ENC", "", False),
        ("ENC MAY REVEAL access", "ENC MAY REVEAL access", False),
        ("ENC MAY REVEAL access", "ENC MAY REVEAL equality", False),
        ("ENC MAY REVEAL equality", "ENC MAY REVEAL equality", True),
        ("ENC MAY REVEAL equality", "ENC MAY REVEAL order", False),
        ("ENC MAY REVEAL order", "ENC MAY REVEAL order", True),
        ("ENC MAY REVEAL size", "ENC MAY REVEAL size", False),
    ],
)
def test_both_ends_may_show_the_same(twin: Twin, own: str, parent: str, expected: bool) -> None:
    twin.louver.execute(f"CREATE TABLE q (i INT {parent} PRIMARY KEY)")
    twin.louver.execute(f"CREATE TABLE r (up INT {own} REFERENCES q(i))")
    context = twin.session.context
    (foreign,) = constraint_check.rules(context, twin.table("r")).foreign
    assert references.links(twin.table("r"), foreign, twin.table("q")) == expected


def test_a_parent_that_the_server_leaves_out_is_missing(
    key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = filled(key_file, LINKED[0])
    real = twin.tap.query

    def answered(statement: Statement) -> Any:
        hidden = " IN ($" in statement.sql
        return real(Statement(statement.sql + " LIMIT 0" * hidden, statement.constants))

    monkeypatch.setattr(twin.tap, "query", answered)
    with pytest.raises(errors.IntegrityError, match="does not exist"):
        twin.session.execute("INSERT INTO ch VALUES (900, 7, 'x')")
    monkeypatch.undo()
    twin.run("SELECT * FROM ch")
    twin.close()


def test_many_references_read_one_column(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "MOST_LOOKED_UP", 3)
    twin = filled(key_file, LINKED[0], 300)
    twin.run("INSERT INTO ch SELECT i + 1000, i, 'm' FROM (VALUES (7), (8), (10), (11)) v(i)")
    twin.either("INSERT INTO ch SELECT i + 5000, i, 'm' FROM (VALUES (7), (8), (10), (999)) v(i)")
    twin.run("SELECT * FROM ch")
    twin.close()


def test_keys_of_other_types_are_looked_for(twin: Twin) -> None:
    for enc in ("ENC MAY REVEAL equality", "ENC"):
        twin.fill(
            f"CREATE TABLE q (d DATE {enc}, n DECIMAL(9,2) {enc}, PRIMARY KEY (d, n))",
            f"CREATE TABLE r (d DATE {enc}, n DECIMAL(9,2) {enc},"
            " FOREIGN KEY (d, n) REFERENCES q(d, n))",
            "INSERT INTO q VALUES ('2020-01-01', 1.5), ('2020-01-02', 2)",
        )
        twin.both(
            "INSERT INTO r VALUES ('2020-01-01', 1.50)",
            "INSERT INTO r VALUES ('2020-01-01', 2)",
            "DELETE FROM q WHERE n = 2",
            "DELETE FROM q WHERE n < 2",
        )
        twin.run("SELECT * FROM q")
        twin.fill("DROP TABLE r", "DROP TABLE q")


@pytest.mark.parametrize(
    ("type_", "odd", "usual"),
    [
        ("DATE", "'infinity'", "'2020-01-01'"),
        ("TIMESTAMP", "'-infinity'", "'2020-01-01'"),
        ("TIMESTAMPTZ", "'infinity'", "'2020-01-01'"),
        ("DOUBLE", "'nan'", "'-0.0'"),
    ],
)
def test_values_that_python_has_not(twin: Twin, type_: str, odd: str, usual: str) -> None:
    twin.fill(
        f"CREATE TABLE p (k {type_} ENC PRIMARY KEY, v INT ENC)",
        f"CREATE TABLE c (i INT ENC, r {type_} ENC REFERENCES p (k))",
        f"INSERT INTO p VALUES ({odd}, 1), ({usual}, 2)",
        f"INSERT INTO c VALUES (1, {odd})",
    )
    twin.both(f"DELETE FROM p WHERE k = {odd}")
    twin.fill(
        "UPDATE p SET v = 7",
        f"UPDATE c SET i = 2, r = {odd}",
        f"DELETE FROM p WHERE v = 7 AND k = {usual}",
    )
    twin.run("FROM p")
    twin.run("FROM c")


@pytest.mark.parametrize("change", [
    "UPDATE orders SET customer = 8 WHERE i = 3",
    "UPDATE orders SET n = customer + 1 WHERE i = 3 RETURNING customer",
    "DELETE FROM orders WHERE i = 3 AND customer < 50",
    "INSERT INTO orders VALUES (3, 5, 0), (300, 5, 0) ON CONFLICT (i)"
    " DO UPDATE SET customer = excluded.customer WHERE orders.customer > 1",
])  # fmt: skip
def test_a_column_may_have_the_name_of_a_table(key_file: Path, change: str) -> None:
    """As foreign keys often do; nothing more is read for it."""
    twin = Twin(":memory:", key_file, "cryptdb")
    enc = "ENC MAY REVEAL equality"
    twin.fill(
        f"CREATE TABLE customer (i INT {enc} PRIMARY KEY, v INT {enc})",
        f"CREATE TABLE orders (i INT {enc} PRIMARY KEY, customer INT {enc} REFERENCES customer(i),"
        f" n INT {enc})",
        "INSERT INTO customer SELECT i, i FROM range(100) r(i)",
        "INSERT INTO orders SELECT i, i, i FROM range(100) r(i)",
    )
    before = twin.tap.traffic.rows_in
    twin.run(change)
    assert twin.tap.traffic.rows_in - before < 30
    twin.run("FROM orders")
    twin.run("UPDATE orders SET n = (SELECT max(v) FROM customer) WHERE customer = 7")
    twin.run("FROM orders")
    twin.close()
