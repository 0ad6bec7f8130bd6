"""Onions: what a column stores, layers opened in place, ceilings that move, swapped columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from louver import errors
from louver.trusted.executor import onion_adjustment
from louver.trusted.executor.plan_leakage import of_openings
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.planner.ir import Opening
from louver.trusted.vault.catalog import Column
from louver.trusted.vault.keyring import KeyRing
from louver.wire.messages import Statement
from tests.twin import MODULUS_BITS, Twin

NUMBER = {"rnd", "sum", "sum_high", "sum_count"}
MASKED = "WITH (sum = 'masked')"
ITEMS = (
    "CREATE TABLE item (i_id INT ENC PRIMARY KEY, i_name VARCHAR ENC, i_price DECIMAL(9,2) ENC"
    " WITH (sum = 'masked'))",
    "INSERT INTO item SELECT i, 'name ' || i % 7, nullif(i, 5) * 1.5 FROM range(40) r(i)",
)


def states(twin: Twin, table: str) -> dict[str, dict[str, str]]:
    return {c.name: c.layers for c in twin.table(table).columns if c.layers}


def server_types(twin: Twin, table: str) -> dict[str, str]:
    rows = twin.session.context.engine.query(Statement(f"DESCRIBE {table}")).to_pylist()
    return {row["column_name"]: row["column_type"] for row in rows}


@pytest.mark.parametrize(
    ("declared", "wanted"),
    [
        (f"INT ENC MAY REVEAL size {MASKED}", {"rnd"}),
        (f"INT ENC MAY REVEAL access {MASKED}", NUMBER),
        (f"INT ENC MAY REVEAL access {MASKED} NOT NULL", NUMBER - {"sum_count"}),
        (f"INT ENC MAY REVEAL equality {MASKED}", NUMBER | {"eq"}),
        (f"INT ENC {MASKED}", NUMBER | {"eq", "ord"}),
        ("INT ENC MAY REVEAL access", {"rnd"}),
        ("INT ENC", {"rnd", "eq", "ord"}),
        (f"DOUBLE ENC {MASKED}", {"rnd", "eq", "ord"}),
        (f"HUGEINT ENC {MASKED}", NUMBER | {"eq"}),
        ("UHUGEINT ENC", {"rnd", "eq"}),
        ("UUID ENC", {"rnd", "eq"}),
        ("BLOB ENC", {"rnd", "eq"}),
        ("VARCHAR ENC", {"rnd", "eq", "ord", "text"}),
        ("VARCHAR ENC MAY REVEAL access", {"rnd"}),
        ("VARCHAR ENC USING sealed MAY REVEAL order", {"rnd", "eq", "ord"}),
        ("INT[] ENC", {"rnd"}),
        ("INTERVAL ENC", {"rnd"}),
    ],
)
def test_what_a_ceiling_and_a_type_store(
    open_twin: Callable[..., Twin], declared: str, wanted: set[str]
) -> None:
    twin = open_twin("cryptdb")
    twin.session.execute(f"CREATE TABLE t (c {declared})")
    column = twin.column("t", "c")
    assert set(column.stored) == wanted
    assert column.layers == {name: "closed" for name in ("eq", "ord") if name in wanted}


def test_the_server_has_native_types(open_twin: Callable[..., Twin]) -> None:
    twin = open_twin("cryptdb")
    twin.session.execute(
        f"CREATE TABLE t (a INT ENC {MASKED}, b BIGINT ENC {MASKED}, c VARCHAR ENC, d DATE ENC,"
        f" e HUGEINT ENC {MASKED})"
    )
    shown = server_types(twin, "t")

    def types(name: str) -> dict[str, str]:
        return {kind: shown[stored] for kind, stored in twin.column("t", name).stored.items()}

    sums = dict.fromkeys(("sum", "sum_high", "sum_count"), "BIGINT")
    assert types("a") == {"rnd": "BLOB", "eq": "BIGINT", "ord": "BIGINT", **sums}
    assert types("b") == {"rnd": "BLOB", "eq": "BIGINT", "ord": "UUID", **sums}
    assert types("c") == {"rnd": "BLOB", "eq": "UUID", "ord": "UUID", "text": "BLOB"}
    assert types("d") == {"rnd": "BLOB", "eq": "BIGINT", "ord": "BIGINT"}
    assert types("e") == {
        "rnd": "BLOB", "eq": "UUID", "sum": "UBIGINT", "sum_high": "UBIGINT", "sum_count": "BIGINT",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("type_", "check", "wanted"),
    [
        ("INT", "", (-(1 << 31), 32)),
        ("INT", "CHECK (c BETWEEN 1 AND 100)", (1, 7)),
        ("INT", "CHECK (c >= -4 AND 11 >= c)", (-4, 4)),
        ("INT", "CHECK (c IN (3, 9, 5))", (3, 3)),
        ("INT", "CHECK (c > 0)", (0, 31)),
        ("INT", "CHECK (c = 7)", (7, 1)),
        ("INT", "CHECK (c < 5 OR c > 7)", (-(1 << 31), 32)),
        ("INT", "CHECK (c + 1 < 5)", (-(1 << 31), 32)),
        ("BIGINT", "CHECK (c <= 1e3)", (-(1 << 63), 64)),
        ("BIGINT", "CHECK (c BETWEEN 0 AND CAST(7 AS DOUBLE))", (0, 63)),
        ("BIGINT", "CHECK (c BETWEEN CAST(0 AS INT) AND 7.2)", (0, 3)),
        ("DECIMAL(9,2)", "CHECK (c BETWEEN 0 AND 1.5)", (0, 8)),
        ("DATE", "CHECK (c >= '1992-01-01' AND c < DATE '1999-01-01')", (8035, 12)),
        ("DATE", "CHECK (c <= 'infinity')", (-(1 << 31), 32)),
        ("INT", "CHECK (c IN (1, NULL))", (-(1 << 31), 32)),
        ("INT", "CHECK (NOT c BETWEEN 1 AND 5)", (-(1 << 31), 32)),
        ("VARCHAR", "CHECK (c IN ('a', 'b'))", (0, 64)),
        ("DECIMAL(15,2)", "", (-(10**15 - 1), 51)),
        ("BOOLEAN", "", (0, 1)),
    ],
)
def test_the_domain_of_order_codes(
    open_twin: Callable[..., Twin], type_: str, check: str, wanted: tuple[int, int]
) -> None:
    twin = open_twin("cryptdb")
    twin.session.execute(f"CREATE TABLE t (c {type_} ENC {check})")
    column = twin.column("t", "c")
    assert (column.low, column.bits) == wanted


def test_foreign_keys_and_policies_make_groups(open_twin: Callable[..., Twin]) -> None:
    people = {"join": "people"}
    twin = open_twin("cryptdb", {"x": {"who": people}, "y": {"whom": people}})
    twin.session.execute(
        "CREATE TABLE w (w_id INT ENC PRIMARY KEY, plain INT UNIQUE, other INT ENC);"
        "CREATE TABLE d (d_w_id INT ENC REFERENCES w(w_id), d_id INT ENC,"
        " PRIMARY KEY (d_w_id, d_id));"
        "CREATE TABLE c (c_w_id INT ENC, c_d_id INT ENC, again INT ENC REFERENCES w(plain),"
        " FOREIGN KEY (c_w_id, c_d_id) REFERENCES d(d_w_id, d_id));"
        "CREATE TABLE tree (id INT ENC PRIMARY KEY, parent INT ENC REFERENCES tree(id));"
        "CREATE TABLE x (who VARCHAR ENC); CREATE TABLE y (whom VARCHAR ENC)"
    )

    def group(table: str, name: str) -> str:
        return twin.column(table, name).group

    assert group("w", "w_id").startswith("w.w_id#")
    assert group("w", "w_id") == group("d", "d_w_id") == group("c", "c_w_id")
    assert group("d", "d_id") == group("c", "c_d_id") != group("w", "w_id")
    assert group("w", "other") == group("w", "plain") == group("c", "again") == ""
    assert group("tree", "id") == group("tree", "parent") != ""
    assert group("x", "who") == group("y", "whom")
    assert group("x", "who").startswith("people@")
    twin.session.execute("ALTER TABLE c ADD COLUMN more INT")
    assert group("c", "c_w_id") == group("w", "w_id")
    before = group("w", "w_id")
    twin.session.execute("DROP TABLE c; DROP TABLE d; DROP TABLE w")
    twin.session.execute("CREATE TABLE w (w_id INT ENC PRIMARY KEY)")
    assert group("w", "w_id") != before


# ---------------------------------------------------------------------- layers


def test_a_query_opens_what_it_needs_and_nothing_else(open_twin: Callable[..., Twin]) -> None:
    twin = open_twin("cryptdb")
    twin.both(*ITEMS)
    closed = {"eq": "closed", "ord": "closed"}
    assert states(twin, "item") == {"i_id": closed, "i_name": closed, "i_price": closed}
    twin.run("SELECT i_name, i_price FROM item WHERE i_id = 17")
    assert states(twin, "item")["i_id"] == closed, "a key has a tag"
    twin.run("SELECT count(DISTINCT i_id) FROM item")
    assert states(twin, "item")["i_id"] == {"eq": "det", "ord": "closed"}
    twin.run("SELECT i_name, i_price FROM item WHERE i_price < 9.75")
    assert states(twin, "item") == {
        "i_id": {"eq": "det", "ord": "closed"},
        "i_name": closed,
        "i_price": {"eq": "closed", "ord": "open"},
    }
    # New rows come as the layers are, and old ones are found beside them.
    twin.both("INSERT INTO item VALUES (99, 'new', 1.25), (100, NULL, NULL)")
    twin.run("SELECT i_name, i_price FROM item WHERE i_id IN (3, 99)")
    twin.run("SELECT i_name FROM item WHERE i_price <= 1.5 OR i_id = 100")
    twin.reopen()
    twin.run("SELECT i_name FROM item WHERE i_price <= 1.5 OR i_id = 100")


def test_a_rollback_closes_again_but_the_ledger_remembers(
    open_twin: Callable[..., Twin],
) -> None:
    twin = open_twin("cryptdb")
    twin.both(*ITEMS)
    column = twin.column("item", "i_name").stored["eq"]
    held = Statement(f"SELECT row_id, {column} FROM item ORDER BY row_id")
    before = twin.session.context.engine.query(held)
    twin.session.execute("BEGIN; INSERT INTO item VALUES (77, 'name 3', 1)")
    query = "SELECT i_id FROM item WHERE i_name = 'name 3'"
    assert len(twin.rows(query)) == 7
    assert states(twin, "item")["i_name"]["eq"] == "det"
    twin.session.execute("ROLLBACK")
    assert states(twin, "item")["i_name"]["eq"] == "closed"
    assert twin.session.context.engine.query(held).equals(before)
    assert "eq.open" in {fact.kind for fact in twin.session.context.ledger.facts()}
    twin.run(query)
    assert states(twin, "item")["i_name"]["eq"] == "det"


def test_no_key_is_sent_before_its_leak_is_recorded(open_twin: Callable[..., Twin]) -> None:
    twin = open_twin("cryptdb")
    twin.both(*ITEMS)
    table, column = twin.table("item"), twin.column("item", "i_id")
    opening = Opening(table.id, column.id, "eq", "join")
    with pytest.raises(errors.InternalError):
        onion_adjustment.require(twin.session.context, [opening])
    assert states(twin, "item")["i_id"]["eq"] == "closed"
    twin.session.context.ledger.record(of_openings([opening], twin.session.context.catalog), "test")
    assert onion_adjustment.require(twin.session.context, [opening])
    assert states(twin, "item")["i_id"]["eq"] == "join"
    assert onion_adjustment.require(twin.session.context, [opening]) == []
    lower = Opening(table.id, column.id, "eq", "det")
    assert onion_adjustment.require(twin.session.context, [lower]) == []
    twin.run("SELECT i_name FROM item WHERE i_id = 12")


def test_two_clients_open_the_same_layer(open_twin: Callable[..., Twin]) -> None:
    twin = open_twin("cryptdb")
    twin.both(*ITEMS)
    keys = KeyRing.open(twin.key_file)
    other = Session(
        twin.session.context.engine.side(), keys, Policy("cryptdb"), modulus_bits=MODULUS_BITS
    )
    query = "SELECT i_price FROM item WHERE i_name = 'name 3'"
    before = other.context.catalog.version
    wanted = sorted(map(repr, twin.rows(query)))
    assert other.context.catalog.version == before
    # The other one has planned against the closed layer when it learns of the open one.
    store, stale = other.context.store, iter([before])
    original = store.current_version
    store.current_version = lambda: next(stale, original())  # type: ignore[method-assign]
    answer = other.execute(query)
    assert answer.rows is not None
    assert sorted(map(repr, other.python_rows(answer.rows))) == wanted
    assert other.context.catalog.column(*ids(twin, "item", "i_name"))[1].layers["eq"] == "det"
    other.context.local.close()


def ids(twin: Twin, table: str, column: str) -> tuple[int, int]:
    return twin.table(table).id, twin.column(table, column).id


# ---------------------------------------------------------------------- ceilings


def test_a_ceiling_goes_up_and_down(open_twin: Callable[..., Twin]) -> None:
    # At `size` the masks are gone; it is the policy that has them made again.
    twin = open_twin("sealed", {"item": {"i_price": {"sum": "masked"}}})
    twin.both(*ITEMS, "INSERT INTO item VALUES (1000, NULL, NULL)")

    def reveal(level: str) -> Column:
        twin.session.execute(f"ALTER TABLE item ALTER COLUMN i_price MAY REVEAL {level}")
        column = twin.column("item", "i_price")
        names = set(server_types(twin, "item"))
        assert set(column.stored.values()) <= names
        every = [s for c in twin.table("item").columns for s in c.stored.values()]
        # A column of tags stays on the server, empty, when they are let go of.
        assert {name for name in names if not name.startswith("k_")} == {"row_id", *every}
        return column

    def right() -> None:
        twin.run("SELECT i_id FROM item WHERE i_price = 15")
        twin.run("SELECT i_id FROM item WHERE i_price < 15")
        twin.run("SELECT sum(i_price), count(i_price), count(*) FROM item")

    first = twin.column("item", "i_price")
    assert set(first.stored) == NUMBER
    raised = reveal("order")
    assert set(raised.stored) == {*NUMBER, "eq", "ord"}
    right()
    assert raised.layers == {"eq": "closed", "ord": "closed"}
    assert twin.column("item", "i_price").layers == {"eq": "det", "ord": "open"}
    generation = twin.column("item", "i_price").generation
    assert set(reveal("size").stored) == {"rnd"}
    right()
    again = reveal("equality")
    assert set(again.stored) == {*NUMBER, "eq"}
    assert again.generation != generation, "the server has the key of the old layer"
    assert again.layers == {"eq": "closed"}
    right()
    twin.reopen()
    right()


def test_a_column_that_may_become_null_gets_flags(open_twin: Callable[..., Twin]) -> None:
    twin = open_twin("sealed")
    twin.both(f"CREATE TABLE t (a INT ENC {MASKED} NOT NULL)", "INSERT INTO t VALUES (4), (5)")
    assert "sum_count" not in twin.column("t", "a").stored
    twin.both("ALTER TABLE t ALTER COLUMN a DROP NOT NULL", "INSERT INTO t VALUES (NULL), (6)")
    assert "sum_count" in twin.column("t", "a").stored
    twin.run("SELECT sum(a), avg(a), count(a) FROM t")


# ---------------------------------------------------------------------- a server that lies


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("way", ["swapped", "shifted", "zeros"])
def test_codes_that_are_not_those_of_the_rows_are_found(
    open_twin: Callable[..., Twin], way: str, opened: bool
) -> None:
    twin = open_twin("cryptdb")
    twin.session.execute("CREATE TABLE t (a INT ENC, b INT ENC)")
    twin.session.execute("INSERT INTO t SELECT i, i + 3 FROM range(200) r(i)")
    if opened:
        assert twin.rows("SELECT b FROM t WHERE a = 5 AND b = 8") == [(8,)]
    a, b = (twin.column("t", name).stored["eq"] for name in "ab")
    change = {
        "swapped": f"UPDATE t SET {a} = {b}, {b} = {a}",
        "shifted": f"UPDATE t SET {a} = {a} + 1",
        "zeros": f"UPDATE t SET {a} = 0",
    }[way]
    twin.session.context.engine.run(Statement(change, kind="write"))
    twin.reopen()
    with pytest.raises(errors.VerificationError) as caught:
        twin.session.execute("SELECT b FROM t WHERE a = 5")
    assert caught.value.code == "value.tampered"


def test_swapped_rows_of_a_type_that_differs(open_twin: Callable[..., Twin]) -> None:
    twin = open_twin("cryptdb")
    twin.session.execute("CREATE TABLE t (a VARCHAR ENC)")
    twin.session.execute("INSERT INTO t SELECT 'v' || i FROM range(200) r(i)")
    stored = twin.column("t", "a").stored["ord"]
    twin.session.context.engine.run(Statement(f"ALTER TABLE t DROP COLUMN {stored}", kind="ddl"))
    twin.session.context.engine.run(
        Statement(f"ALTER TABLE t ADD COLUMN {stored} UUID", kind="ddl")
    )
    with pytest.raises(errors.VerificationError):
        twin.session.execute("SELECT a FROM t WHERE a < 'v17'")


def test_the_ledger_hears_of_the_first_null_under_an_open_layer(
    open_twin: Callable[..., Twin], tmp_path: Path
) -> None:
    twin = open_twin("cryptdb")
    twin.both("CREATE TABLE t (a INT ENC)", "INSERT INTO t VALUES (1), (2)")
    twin.run("SELECT * FROM t WHERE a = 1")
    facts = [f.text for f in twin.session.context.ledger.facts() if f.kind == "eq.open"]
    assert len(facts) == 1
    assert "NULL" not in facts[0]
    twin.both("INSERT INTO t VALUES (NULL)")
    facts = [f.text for f in twin.session.context.ledger.facts() if f.kind == "eq.open"]
    assert len(facts) == 2
    assert "NULL" in facts[1]


def test_decimals_of_many_digits_keep_all_of_them(open_twin: Callable[..., Twin]) -> None:
    twin = open_twin("cryptdb")
    long = "1234567890123456789012345678.0123456789"
    twin.both(
        "CREATE TABLE t (a DECIMAL(38,10) ENC)",
        f"INSERT INTO t VALUES ('{long}'::DECIMAL(38,10)), (2.5), (-{long}), ({long}), (NULL)",
    )
    twin.run(f"SELECT count(*) FROM t WHERE a = CAST('{long}' AS DECIMAL(38,10))")
    twin.run("SELECT sum(a), min(a), max(a), count(a) FROM t")
    column = twin.column("t", "a")
    assert column.maximum == 10**38 - 1  # its 125 bits are more than 64
