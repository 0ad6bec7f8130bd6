"""The five transactions of TPC-C (clause 2) with their mix (5.2.3), as terminals without keying and
thinking times run them.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import psycopg

from bench.wire.sides import Side
from bench.wire.tpcc_tables import Scale, last_name

#: One deck: nearly the shares that clause 5.2.3 asks for.
DECK = {"new order": 10, "payment": 10, "order status": 1, "delivery": 1, "stock level": 1}
_CUSTOMER = "c_w_id = %s AND c_d_id = %s AND c_id = %s"
_ORDER = "o_w_id = %s AND o_d_id = %s AND o_id = %s"
_LINES = "ol_w_id = %s AND ol_d_id = %s AND ol_o_id = %s"
_STOCK = [
    "UPDATE stock SET s_quantity = CASE WHEN s_quantity >= %s + 10 THEN s_quantity - %s"
    " ELSE s_quantity - %s + 91 END, s_ytd = s_ytd + %s, s_order_cnt = s_order_cnt + 1,"
    " s_remote_cnt = s_remote_cnt + %s WHERE s_w_id = %s AND s_i_id = %s"
    f" RETURNING s_quantity, s_dist_{d:02}, s_data"
    for d in range(1, 11)
]  # fmt: skip
_LOST = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
_MOST_DATA = 500


class RolledBack(Exception):
    """An order with an unused item, whose transaction ends without a trace (2.4.1.4)."""


@dataclass(slots=True)
class Terminal:
    """A connection that runs transactions of one warehouse; counts them and those that lost against
    another terminal and ran again.
    """

    con: psycopg.Connection[Any]
    scale: Scale
    warehouse: int
    chance: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    spent_ms: dict[str, list[float]] = field(default_factory=dict)

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """Run a statement that has rows."""
        return self.con.execute(sql, values).fetchall()

    def run(self, until: float) -> None:
        """Cards of decks until the clock says so; one of each where it does already."""
        if time.perf_counter() >= until:
            for name in DECK:
                self.card(name)
        while time.perf_counter() < until:
            cards = [name for name, count in DECK.items() for _ in range(count)]
            self.chance.shuffle(cards)
            for name in cards:
                if time.perf_counter() < until:
                    self.card(name)

    def card(self, name: str) -> None:
        """One transaction, again where it loses."""
        start = time.perf_counter()
        state = self.chance.getstate()
        while True:
            try:
                with self.con.transaction():
                    TRANSACTIONS[name](self)
                break
            except RolledBack:
                break
            except _LOST:
                self.counts["lost"] += 1
                self.chance.setstate(state)
        self.counts[name] += 1
        self.spent_ms.setdefault(name, []).append((time.perf_counter() - start) * 1000)

    def number(self, spread: int, last: int) -> int:
        """NURand(A, 1, last) of clause 2.1.6, with C = 0."""
        return (self.chance.randint(0, spread) | self.chance.randint(1, last)) % last + 1

    def district(self) -> int:
        """Any of the warehouse."""
        return self.chance.randint(1, self.scale.districts)

    def customer(self, w: int, d: int, columns: str) -> tuple[Any, ...]:
        """By name in six of ten cases (2.5.1.2), the one in the middle; else by number. Its number
        comes first.
        """
        if self.chance.random() < 0.6:
            name = last_name(self.number(255, min(1000, self.scale.customers)) - 1)
            rows = self.rows(
                f"SELECT c_id, {columns} FROM customer WHERE c_w_id = %s AND c_d_id = %s"
                " AND c_last = %s ORDER BY c_first", w, d, name,
            )  # fmt: skip
            return tuple(rows[(len(rows) - 1) // 2])
        c = self.number(1023, self.scale.customers)
        ((*row,),) = self.rows(f"SELECT c_id, {columns} FROM customer WHERE {_CUSTOMER}", w, d, c)
        return tuple(row)


def new_order(t: Terminal) -> None:
    """Clause 2.4: an order of five to fifteen lines."""
    w, d, c = t.warehouse, t.district(), t.number(1023, t.scale.customers)
    count = t.chance.randint(5, 15)
    items = [(t.number(8191, t.scale.items), t.chance.randint(1, 10)) for _ in range(count)]
    is_wrong = t.chance.random() < 0.01
    if is_wrong:
        items[-1] = (t.scale.items + 1, 1)
    supplies = [_supply(t) for _ in items]
    ((discount, *_),) = t.rows(
        f"SELECT c_discount, c_last, c_credit FROM customer WHERE {_CUSTOMER}", w, d, c
    )
    ((w_tax,),) = t.rows("SELECT w_tax FROM warehouse WHERE w_id = %s", w)
    ((o, d_tax),) = t.rows(
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = %s AND d_id = %s"
        " RETURNING d_next_o_id - 1, d_tax", w, d,
    )  # fmt: skip
    t.con.execute(
        "INSERT INTO orders VALUES (%s, %s, %s, %s, CURRENT_TIMESTAMP, NULL, %s, %s)",
        (o, d, w, c, count, int(set(supplies) == {w})),
    )
    t.con.execute("INSERT INTO new_order VALUES (%s, %s, %s)", (o, d, w))
    total = Decimal(0)
    # In the order of items, so that two orders do not wait for each other.
    for number, ((item, quantity), supply) in enumerate(
        sorted(zip(items, supplies, strict=True)), 1
    ):
        prices = t.rows("SELECT i_price, i_name, i_data FROM item WHERE i_id = %s", item)
        if not prices:
            raise RolledBack
        amount = prices[0][0] * quantity
        ((_, info, _),) = t.rows(
            _STOCK[(d - 1) % 10],
            quantity,
            quantity,
            quantity,
            quantity,
            int(supply != w),
            supply,
            item,
        )
        t.con.execute(
            "INSERT INTO order_line VALUES (%s, %s, %s, %s, %s, %s, NULL, %s, %s, %s)",
            (o, d, w, number, item, supply, quantity, amount, info),
        )
        total += amount
    assert total * (1 - discount) * (1 + w_tax + d_tax) >= 0


def _supply(t: Terminal) -> int:
    """Another warehouse for one line of a hundred (2.4.1.5)."""
    if t.scale.warehouses == 1 or t.chance.random() >= 0.01:
        return t.warehouse
    others = [w for w in range(1, t.scale.warehouses + 1) if w != t.warehouse]
    return t.chance.choice(others)


def payment(t: Terminal) -> None:
    """Clause 2.5: a customer pays, at another warehouse in fifteen of a hundred cases."""
    w, d, amount = t.warehouse, t.district(), Decimal(t.chance.randint(100, 500_000)).scaleb(-2)
    c_w, c_d = w, d
    if t.scale.warehouses > 1 and t.chance.random() < 0.15:
        c_w, c_d = w % t.scale.warehouses + 1, t.district()
    c, credit, data, *_ = t.customer(
        c_w, c_d, "c_credit, c_data, c_first, c_middle, c_last, c_street_1, c_street_2, c_city,"
        " c_state, c_zip, c_phone, c_since, c_credit_lim, c_discount, c_balance",
    )  # fmt: skip
    if credit == "BC":
        data = f"{c} {c_d} {c_w} {d} {w} {amount} | {data}"[:_MOST_DATA]
        t.con.execute(
            "UPDATE customer SET c_balance = c_balance - %s, c_ytd_payment = c_ytd_payment + %s,"
            f" c_payment_cnt = c_payment_cnt + 1, c_data = %s WHERE {_CUSTOMER}",
            (amount, amount, data, c_w, c_d, c),
        )
    else:
        t.con.execute(
            "UPDATE customer SET c_balance = c_balance - %s, c_ytd_payment = c_ytd_payment + %s,"
            f" c_payment_cnt = c_payment_cnt + 1 WHERE {_CUSTOMER}",
            (amount, amount, c_w, c_d, c),
        )
    ((d_name, *_),) = t.rows(
        "UPDATE district SET d_ytd = d_ytd + %s WHERE d_w_id = %s AND d_id = %s"
        " RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip", amount, w, d,
    )  # fmt: skip
    ((w_name, *_),) = t.rows(
        "UPDATE warehouse SET w_ytd = w_ytd + %s WHERE w_id = %s"
        " RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip", amount, w,
    )  # fmt: skip
    t.con.execute(
        "INSERT INTO history VALUES (%s, %s, %s, %s, %s, CURRENT_TIMESTAMP, %s, %s)",
        (c, c_d, c_w, d, w, amount, f"{w_name}    {d_name}"),
    )


def order_status(t: Terminal) -> None:
    """Clause 2.6: the last order of a customer."""
    w, d = t.warehouse, t.district()
    c, *_ = t.customer(w, d, "c_balance, c_first, c_middle, c_last")
    orders = t.rows(
        "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = %s AND o_d_id = %s"
        " AND o_c_id = %s ORDER BY o_id DESC LIMIT 1", w, d, c,
    )  # fmt: skip
    for o, *_ in orders:
        assert t.rows(
            "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line"
            f" WHERE {_LINES}", w, d, o,
        )  # fmt: skip


def delivery(t: Terminal) -> None:
    """Clause 2.7: the oldest new order of every district."""
    w, carrier = t.warehouse, t.chance.randint(1, 10)
    for d in range(1, t.scale.districts + 1):
        oldest = t.rows(
            "SELECT no_o_id FROM new_order WHERE no_w_id = %s AND no_d_id = %s"
            " ORDER BY no_o_id LIMIT 1 FOR UPDATE", w, d,
        )  # fmt: skip
        for (o,) in oldest:
            t.con.execute(
                "DELETE FROM new_order WHERE no_w_id = %s AND no_d_id = %s AND no_o_id = %s",
                (w, d, o),
            )
            ((c,),) = t.rows(
                f"UPDATE orders SET o_carrier_id = %s WHERE {_ORDER} RETURNING o_c_id",
                carrier, w, d, o,
            )  # fmt: skip
            t.con.execute(
                f"UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP WHERE {_LINES}", (w, d, o)
            )
            ((total,),) = t.rows(f"SELECT sum(ol_amount) FROM order_line WHERE {_LINES}", w, d, o)
            t.con.execute(
                "UPDATE customer SET c_balance = c_balance + %s,"
                f" c_delivery_cnt = c_delivery_cnt + 1 WHERE {_CUSTOMER}",
                (total, w, d, c),
            )


def stock_level(t: Terminal) -> None:
    """Clause 2.8: how many items of a district's last twenty orders run out."""
    w, d = t.warehouse, t.district()
    ((o,),) = t.rows("SELECT d_next_o_id FROM district WHERE d_w_id = %s AND d_id = %s", w, d)
    t.rows(
        "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_i_id = ol_i_id"
        " WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id < %s AND ol_o_id >= %s"
        " AND s_w_id = %s AND s_quantity < %s", w, d, o, o - 20, w, t.chance.randint(10, 20),
    )  # fmt: skip


TRANSACTIONS: dict[str, Callable[[Terminal], None]] = {
    "new order": new_order, "payment": payment, "order status": order_status,
    "delivery": delivery, "stock level": stock_level,
}  # fmt: skip


def terminals(
    side: Side, scale: Scale, count: int, seconds: float, warm_s: float
) -> tuple[Counter[str], float, dict[str, list[float]]]:
    """So many at once, each with its own connection and draws, after a time that does not count:
    transactions by name, the seconds that passed, and milliseconds by name.
    """
    barrier, begun = threading.Barrier(count), list[float]()
    own = [
        Terminal(side.connect(), scale, number % scale.warehouses + 1, random.Random(number))
        for number in range(count)
    ]

    def run(terminal: Terminal) -> None:
        try:
            terminal.run(time.perf_counter() + warm_s)
            terminal.counts.clear()
            terminal.spent_ms.clear()
            barrier.wait()
            begun.append(time.perf_counter())
            terminal.run(time.perf_counter() + seconds)
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(count) as pool:
        runs = [pool.submit(run, terminal) for terminal in own]
    failures = [failure for done in runs if (failure := done.exception()) is not None]
    for failure in sorted(
        failures, key=lambda error: isinstance(error, threading.BrokenBarrierError)
    ):
        raise failure
    passed = time.perf_counter() - min(begun)
    counts, spent = Counter[str](), dict[str, list[float]]()
    for terminal in own:
        terminal.con.close()
        counts.update(terminal.counts)
        for name, times in terminal.spent_ms.items():
            spent.setdefault(name, []).extend(times)
    return counts, passed, spent
