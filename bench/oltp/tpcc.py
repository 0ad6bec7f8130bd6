"""A mix like that of TPC-C: five transactions, one client, and the same inputs for both sides."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from bench.oltp import sides
from bench.oltp.tpcc_tables import STATES, Scale, check, filled

Inputs = dict[str, Any]
_NEW_ORDER = "w_id = ? AND d_w_id = w_id AND d_id = ?"
_CUSTOMER = "c_w_id = ? AND c_d_id = ? AND c_id = ?"
#: One deck: nearly the shares that clause 5.2.3 asks for.
DECK = {"new order": 10, "payment": 10, "order status": 1, "delivery": 1, "stock level": 1}


def measured(profile: str, scale: dict[str, int], seconds: float) -> dict[str, Any]:
    """Transactions a second of both, by kind as well, after one of each to warm up."""
    size = Scale(**scale)
    with sides.opened(profile) as pair:
        filled(pair, size)
        chance = random.Random(2)
        spent: dict[str, list[list[float]]] = {}
        _cards(pair, size, list(DECK), chance, spent)
        spent.clear()
        until = time.perf_counter() + seconds
        while not spent or time.perf_counter() < until:
            cards = [name for name, count in DECK.items() for _ in range(count)]
            chance.shuffle(cards)
            _cards(pair, size, cards, chance, spent)
        for side in pair.both():
            check(side)
        for sql in STATES:
            pair.equal(sql)
    return {name: [[len(times), sum(times)] for times in both] for name, both in spent.items()}


def _cards(
    pair: sides.Sides,
    size: Scale,
    cards: list[str],
    chance: random.Random,
    spent: dict[str, list[list[float]]],
) -> None:
    """Every transaction runs on one side and then, with the same inputs, on the other."""
    for name in cards:
        given = inputs(size, chance)
        times = spent.setdefault(name, [[], []])
        answers = []
        for side, list_ in zip(pair.both(), times, strict=True):
            start = time.perf_counter()
            side.begin()
            answer, commits = TRANSACTIONS[name](side, given)
            side.commit() if commits else side.rollback()
            list_.append(time.perf_counter() - start)
            answers.append(answer)
        if answers[0] != answers[1]:
            raise RuntimeError(f"another answer than plaintext DuckDB's: {name}")


def inputs(size: Scale, chance: random.Random) -> Inputs:
    """What the terminal of one transaction is given."""
    count = chance.randint(size.lines // 2, size.lines * 3 // 2)
    items = sorted(chance.sample(range(1, size.items + 1), count))
    if chance.random() < 0.01:
        # An item that does not exist: the transaction is rolled back, as clause 2.4.1.4 has it.
        items[-1] = size.items + 1
    return {
        "w": chance.randint(1, size.warehouses),
        "d": chance.randint(1, size.districts),
        "c": chance.randint(1, size.customers),
        "last": f"last {chance.randint(0, size.customers // 3)}",
        "by_name": chance.random() < 0.6,
        "amount": chance.randint(1, 5000),
        "items": [(item, chance.randint(1, 10)) for item in items],
        "carrier": chance.randint(1, 10),
        "level": chance.randint(10, 20),
        "districts": size.districts,
    }


def _rows(side: Any, sql: str, *values: Any) -> list[Any]:
    rows: list[Any] = side.execute(sql, list(values)).fetchall()
    return rows


def new_order(side: Any, given: Inputs) -> tuple[Any, bool]:
    """An order of some lines."""
    w, d, c = given["w"], given["d"], given["c"]
    ((tax, number),) = _rows(
        side, f"SELECT w_tax + d_tax, d_next_o_id FROM warehouse, district WHERE {_NEW_ORDER}", w, d
    )
    ((discount, *_),) = _rows(
        side, f"SELECT c_discount, c_last, c_credit FROM customer WHERE {_CUSTOMER}", w, d, c
    )
    side.execute(
        "UPDATE district SET d_next_o_id = ? WHERE d_w_id = ? AND d_id = ?", [number + 1, w, d]
    )
    side.execute(
        "INSERT INTO orders VALUES (?, ?, ?, ?, NULL, ?)", [w, d, number, c, len(given["items"])]
    )
    side.execute("INSERT INTO new_order VALUES (?, ?, ?)", [w, d, number])
    lines = []
    for position, (item, quantity) in enumerate(given["items"], 1):
        prices = _rows(side, "SELECT i_price FROM item WHERE i_id = ?", item)
        if not prices:
            return None, False
        amount = prices[0][0] * quantity
        lines.append([w, d, number, position, item, quantity, amount, False])
        ((stored,),) = _rows(
            side, "SELECT s_quantity FROM stock WHERE s_w_id = ? AND s_i_id = ?", w, item
        )
        left = stored - quantity + (91 if stored - quantity < 10 else 0)
        side.execute(
            "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1"
            " WHERE s_w_id = ? AND s_i_id = ?",
            [left, quantity, w, item],
        )
    side.executemany("INSERT INTO order_line VALUES (?, ?, ?, ?, ?, ?, ?, ?)", lines)
    return sum(line[6] for line in lines) * (1 - discount) * (1 + tax), True


def payment(side: Any, given: Inputs) -> tuple[Any, bool]:
    """A customer, by number or name, pays."""
    w, d, amount = given["w"], given["d"], given["amount"]
    side.execute("UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?", [amount, w])
    side.execute(
        "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?", [amount, w, d]
    )
    c, balance = _customer(side, given)
    side.execute(
        "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?,"
        f" c_payment_cnt = c_payment_cnt + 1 WHERE {_CUSTOMER}",
        [amount, amount, w, d, c],
    )
    side.execute("INSERT INTO history VALUES (?, ?, ?, ?)", [c, d, w, amount])
    return balance, True


def order_status(side: Any, given: Inputs) -> tuple[Any, bool]:
    """The last order of a customer."""
    w, d = given["w"], given["d"]
    c, balance = _customer(side, given)
    orders = _rows(
        side, "SELECT o_id, o_carrier_id FROM orders WHERE o_w_id = ? AND o_d_id = ?"
        " AND o_c_id = ? ORDER BY o_id DESC LIMIT 1", w, d, c,
    )  # fmt: skip
    lines = _rows(
        side, "SELECT ol_i_id, ol_quantity, ol_amount, ol_delivered FROM order_line"
        " WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ? ORDER BY ol_number",
        w, d, orders[0][0] if orders else 0,
    )  # fmt: skip
    return (balance, orders, lines), True


def delivery(side: Any, given: Inputs) -> tuple[Any, bool]:
    """The oldest new order of every district of a warehouse."""
    w, numbers = given["w"], []
    for d in range(1, given["districts"] + 1):
        ((number,),) = _rows(
            side, "SELECT min(no_o_id) FROM new_order WHERE no_w_id = ? AND no_d_id = ?", w, d
        )
        numbers.append(number)
        if number is None:
            continue
        side.execute(
            "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?",
            [w, d, number],
        )
        of_order = "o_w_id = ? AND o_d_id = ? AND o_id = ?"
        ((c,),) = _rows(side, f"SELECT o_c_id FROM orders WHERE {of_order}", w, d, number)
        side.execute(
            f"UPDATE orders SET o_carrier_id = ? WHERE {of_order}", [given["carrier"], w, d, number]
        )
        of_lines = "ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
        side.execute(f"UPDATE order_line SET ol_delivered = true WHERE {of_lines}", [w, d, number])
        ((total,),) = _rows(
            side, f"SELECT sum(ol_amount) FROM order_line WHERE {of_lines}", w, d, number
        )
        side.execute(
            "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1"
            f" WHERE {_CUSTOMER}",
            [total, w, d, c],
        )
    return numbers, True


def stock_level(side: Any, given: Inputs) -> tuple[Any, bool]:
    """How many items of the last twenty orders of a district run out."""
    w, d = given["w"], given["d"]
    ((number,),) = _rows(
        side, "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?", w, d
    )
    counts = _rows(
        side, "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_i_id = ol_i_id"
        " WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? AND ol_o_id < ?"
        " AND s_w_id = ? AND s_quantity < ?", w, d, number - 20, number, w, given["level"],
    )  # fmt: skip
    return counts, True


def _customer(side: Any, given: Inputs) -> tuple[int, Any]:
    """A customer's number and balance; by name, the one in the middle."""
    w, d = given["w"], given["d"]
    if given["by_name"]:
        rows = _rows(
            side, "SELECT c_id, c_balance FROM customer WHERE c_w_id = ? AND c_d_id = ?"
            " AND c_last = ? ORDER BY c_first, c_id", w, d, given["last"],
        )  # fmt: skip
        if rows:
            id_, balance = rows[len(rows) // 2]
            return id_, balance
    ((balance,),) = _rows(
        side, f"SELECT c_balance FROM customer WHERE {_CUSTOMER}", w, d, given["c"]
    )
    return given["c"], balance


TRANSACTIONS: dict[str, Callable[[Any, Inputs], tuple[Any, bool]]] = {
    "new order": new_order,
    "payment": payment,
    "order status": order_status,
    "delivery": delivery,
    "stock level": stock_level,
}
