"""The examples of Relational Cloud, section 5, layer by layer (its Figure 2) on TPC-C's tables.

A point select opens item.i_name to DET (one by key opens nothing: the key has a tag); an order
comparison opens a stock's quantity to OPE; a join of customer and warehouse opens both warehouse
numbers to the layer that joins, and c_id to DET. Nothing else opens, and later queries of these
shapes cost the server no cryptography.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from louver.trusted.planner.sql import lexer
from louver.wire.messages import Append, Statement
from tests.twin import Twin

TABLES = (
    "CREATE TABLE warehouse (w_id INTEGER ENC PRIMARY KEY, w_name VARCHAR ENC,"
    " w_tax DECIMAL(4,4) ENC)",
    "CREATE TABLE item (i_id INTEGER ENC PRIMARY KEY, i_name VARCHAR ENC,"
    " i_price DECIMAL(5,2) ENC)",
    "CREATE TABLE stock (s_i_id INTEGER ENC REFERENCES item(i_id), s_quantity INTEGER ENC,"
    " s_data VARCHAR ENC)",
    "CREATE TABLE customer (c_w_id INTEGER ENC REFERENCES warehouse(w_id), c_id INTEGER ENC,"
    " c_last VARCHAR ENC, c_discount DECIMAL(4,4) ENC, PRIMARY KEY (c_w_id, c_id))",
    "CREATE TABLE order_line (ol_o_id INTEGER ENC, ol_number INTEGER ENC,"
    " ol_amount DECIMAL(6,2) ENC WITH (sum = 'masked'))",
)
ROWS = (
    "INSERT INTO warehouse SELECT i, 'house ' || i, i / 100 FROM range(1, 61) r(i)",
    "INSERT INTO item SELECT i, 'item ' || i, i * 0.75 FROM range(1, 101) r(i)",
    "INSERT INTO stock SELECT 1 + i % 100, (i * 37) % 91, 'data ' || i FROM range(300) r(i)",
    "INSERT INTO customer SELECT 1 + i % 60, i, 'BAR' || i % 9, i / 1000 FROM range(150) r(i)",
    "INSERT INTO order_line SELECT i // 5, i % 5, i * 1.25 FROM range(400) r(i)",
)
POINT = "SELECT i_price, i_id FROM item WHERE i_name = 'item {0}'"
KEY = "SELECT i_price, i_name FROM item WHERE i_id = {0}"
FEWER = "SELECT s_i_id, s_data FROM stock WHERE s_quantity < {0}"
JOIN = "SELECT c_discount, w_tax FROM customer, warehouse WHERE w_id = c_w_id AND c_id = {0}"
AMOUNT = "SELECT sum(ol_amount) AS total FROM order_line WHERE ol_o_id = {0}"


class Shop(Twin):
    """TPC-C's tables as onions, beside the same in plaintext."""

    def __init__(self, folder: Path, key_file: Path) -> None:
        super().__init__(folder / "tpcc.duckdb", key_file, "cryptdb", modulus_bits=2048)
        self.fill(*TABLES, *ROWS)

    def ask(self, query: str, number: int) -> list[object]:
        """Compare a query's rows, of which there are some; the messages sent meanwhile."""
        start = len(self.tap.records)
        assert self.run(query.format(number))
        records = self.tap.records[start:]
        return [record.message for record in records if record.direction == "sent"]

    def opens(self, query: str, number: int) -> set[tuple[str, str, str]]:
        """What the plan of a query says that it opens: column, onion, state."""
        (text,) = lexer.split(query.format(number))
        plan, _ = self.session.context.plan(text, [])
        catalog = self.session.context.catalog
        return {(catalog.column(o.table, o.column)[1].name, o.onion, o.state) for o in plan.opens}

    def layers(self) -> dict[str, str]:
        """Every layer that is not closed: onion.column to its state."""
        return {
            f"{onion}.{column.name}": state
            for table in self.session.context.catalog.tables.values()
            for column in table.columns
            for onion, state in column.layers.items()
            if state != "closed"
        }


@pytest.fixture
def shop(tmp_path: Path, key_file: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path, key_file)
    yield shop
    shop.close()


def functions(messages: list[object]) -> list[str]:
    """The texts among the messages in which the server is asked to do cryptography."""
    words = ("onion_open", "onion_join", "ore_", "sdb_", "hom_", "text_match")
    texts = [message.sql for message in messages if isinstance(message, Statement)]
    assert not [message for message in messages if isinstance(message, Append)]
    return [text for text in texts if any(word in text for word in words)]


def test_everything_begins_closed(shop: Shop) -> None:
    assert shop.layers() == {}
    # Keys are enforced by tags, which show no classes.
    facts = [f for f in shop.session.context.ledger.facts() if not f.kind.startswith("key.")]
    # Parents are looked up by their tags.
    assert {fact.level for fact in facts if fact.kind != "rows"} == {"size"}
    for table in shop.session.context.catalog.tables.values():
        for column in table.columns:
            assert {"rnd", "eq", "ord"} <= set(column.stored)
            assert (column.type == "VARCHAR") == ("text" in column.stored)
            assert (column.name == "ol_amount") == ("sum" in column.stored)


def test_a_point_select_opens_det(shop: Shop) -> None:
    assert functions(shop.ask(KEY, 7)) == []
    assert shop.layers() == {}
    assert shop.opens(POINT, 7) == {("i_name", "eq", "det")}
    assert len(functions(shop.ask(POINT, 7))) == 1
    assert shop.layers() == {"eq.i_name": "det"}
    assert functions(shop.ask(POINT, 8)) == []
    assert shop.layers() == {"eq.i_name": "det"}
    kinds = {
        (f.columns, f.level, f.kind)
        for f in shop.session.context.ledger.facts()
        if f.level != "size"
    }
    assert (("i_name",), "equality", "eq.open") in kinds
    assert {level for _, level, _ in kinds} <= {"access", "equality"}


def test_an_order_comparison_opens_ope(shop: Shop) -> None:
    assert shop.opens(FEWER, 11) == {("s_quantity", "ord", "open")}
    assert len(functions(shop.ask(FEWER, 11))) == 1
    assert shop.layers() == {"ord.s_quantity": "open"}
    assert functions(shop.ask(FEWER, 12)) == []
    assert shop.layers() == {"ord.s_quantity": "open"}


def test_a_join_opens_the_layer_that_joins(shop: Shop) -> None:
    joined = {("w_id", "eq", "join"), ("c_w_id", "eq", "join"), ("c_id", "eq", "det")}
    assert shop.opens(JOIN, 31) == joined
    assert len(functions(shop.ask(JOIN, 31))) == 2, "each table is written once"
    wanted = {"eq.w_id": "join", "eq.c_w_id": "join", "eq.c_id": "det"}
    assert shop.layers() == wanted
    assert functions(shop.ask(JOIN, 32)) == []
    assert shop.layers() == wanted
    facts = [fact.text for fact in shop.session.context.ledger.facts() if fact.kind == "eq.join"]
    assert len(set(facts)) == 1
    assert "warehouse.w_id" in facts[0]
    assert "customer.c_w_id" in facts[0]


def test_a_sum_over_a_point_select(shop: Shop) -> None:
    assert shop.opens(AMOUNT, 9) == {("ol_o_id", "eq", "det")}
    sent = shop.ask(AMOUNT, 9)
    assert len(functions(sent)) == 1
    texts = [message.sql for message in sent if isinstance(message, Statement)]
    assert any("sum(" in text for text in texts), "the server adds what it cannot read"
    assert shop.layers() == {"eq.ol_o_id": "det"}
    assert functions(shop.ask(AMOUNT, 10)) == []


def test_from_det_to_join_and_all_of_them_together(shop: Shop) -> None:
    """A column that a point select opened goes on to the layer that joins."""
    shop.ask("SELECT w_name FROM warehouse WHERE w_id <> {0}", 3)
    assert shop.layers() == {"eq.w_id": "det"}
    first = functions(shop.ask(JOIN, 31))
    assert len(first) == 2
    assert any("onion_join" in text and "onion_open" not in text for text in first)
    for query in (POINT, FEWER, AMOUNT):
        shop.ask(query, 14)
    shop.run("INSERT INTO warehouse VALUES (61, 'new', 0.06)")
    shop.run("INSERT INTO customer VALUES (61, 9000, 'NEW', 0.5)")
    for query, number in ((POINT, 15), (FEWER, 15), (AMOUNT, 15), (JOIN, 9000)):
        assert functions(shop.ask(query, number)) == []
    assert shop.layers() == {
        "eq.w_id": "join",
        "eq.c_w_id": "join",
        "eq.c_id": "det",
        "eq.i_name": "det",
        "ord.s_quantity": "open",
        "eq.ol_o_id": "det",
    }
