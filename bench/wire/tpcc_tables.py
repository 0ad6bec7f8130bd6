"""The nine tables of TPC-C with all of their columns (clause 1.3), their first rows (4.3.3) in
numbers that are scaled down, and the twelve consistency conditions (3.3.2).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import psycopg

from bench.wire.sides import Side

Row = tuple[Any, ...]
SYLLABLES = "BAR OUGHT ABLE PRI PRES ESE ANTI CALLY ATION EING".split()


@dataclass(frozen=True, slots=True)
class Scale:
    """How many of each; clause 1.2 has 10 districts, 3,000 customers and 100,000 items. A district
    begins with as many orders as customers, of which the last three tenths are new.
    """

    warehouses: int
    districts: int = 10
    customers: int = 3_000
    items: int = 100_000

    @property
    def new(self) -> int:
        """The first order of a district that has not been delivered."""
        return self.customers - self.customers * 3 // 10 + 1


_ADDRESS = (
    "{p}_street_1 varchar(20){e}, {p}_street_2 varchar(20){e}, {p}_city varchar(20){e},"
    " {p}_state char(2){e}, {p}_zip char(9){e}"
)
#: What follows a column's type stands for `{e}` where customers have ENC.
TABLES = {
    "warehouse": "w_id int PRIMARY KEY, w_name varchar(10), " + _ADDRESS.format(p="w", e="")
    + ", w_tax numeric(4,4), w_ytd numeric(12,2)",
    "district": "d_id int, d_w_id int, d_name varchar(10), " + _ADDRESS.format(p="d", e="")
    + ", d_tax numeric(4,4), d_ytd numeric(12,2), d_next_o_id int, PRIMARY KEY (d_w_id, d_id)",
    "customer": "c_id int{e}, c_d_id int{e}, c_w_id int{e}, c_first varchar(16){e},"
    " c_middle char(2){e}, c_last varchar(16){e}, " + _ADDRESS.format(p="c", e="{e}")
    + ", c_phone char(16){e}, c_since timestamp{e}, c_credit char(2){e},"
    " c_credit_lim numeric(12,2){e}, c_discount numeric(4,4){e}, c_balance numeric(12,2){e},"
    " c_ytd_payment numeric(12,2){e}, c_payment_cnt int{e}, c_delivery_cnt int{e},"
    " c_data varchar(500){e}, PRIMARY KEY (c_w_id, c_d_id, c_id)",
    "history": "h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, h_date timestamp,"
    " h_amount numeric(6,2), h_data varchar(24)",
    "new_order": "no_o_id int, no_d_id int, no_w_id int, PRIMARY KEY (no_w_id, no_d_id, no_o_id)",
    "orders": "o_id int, o_d_id int, o_w_id int, o_c_id int, o_entry_d timestamp,"
    " o_carrier_id int, o_ol_cnt int, o_all_local int, PRIMARY KEY (o_w_id, o_d_id, o_id)",
    "order_line": "ol_o_id int, ol_d_id int, ol_w_id int, ol_number int, ol_i_id int,"
    " ol_supply_w_id int, ol_delivery_d timestamp, ol_quantity int, ol_amount numeric(6,2),"
    " ol_dist_info char(24), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)",
    "item": "i_id int PRIMARY KEY, i_im_id int, i_name varchar(24), i_price numeric(5,2),"
    " i_data varchar(50)",
    "stock": "s_i_id int, s_w_id int, s_quantity int, "
    + ", ".join(f"s_dist_{n:02} char(24)" for n in range(1, 11))
    + ", s_ytd int, s_order_cnt int, s_remote_cnt int, s_data varchar(50),"
    " PRIMARY KEY (s_w_id, s_i_id)",
}  # fmt: skip
_LAST_ORDERS = "CREATE INDEX ON orders (o_w_id, o_d_id, o_c_id, o_id)"
_NAMES = "CREATE INDEX ON customer (c_w_id, c_d_id, c_last, c_first)"
_BY_DISTRICT = "SELECT count(*) FROM district d LEFT JOIN "
#: Clause, and a query that counts what contradicts it.
CONDITIONS = {
    "3.3.2.1": "SELECT count(*) FROM warehouse WHERE w_ytd <>"
    " (SELECT sum(d_ytd) FROM district WHERE d_w_id = w_id)",
    "3.3.2.2": _BY_DISTRICT + "(SELECT o_w_id, o_d_id, max(o_id) AS o FROM orders GROUP BY 1, 2)"
    " AS o ON o_w_id = d_w_id AND o_d_id = d_id LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id)"
    " AS n FROM new_order GROUP BY 1, 2) AS n ON no_w_id = d_w_id AND no_d_id = d_id"
    " WHERE o IS DISTINCT FROM d_next_o_id - 1 OR n <> d_next_o_id - 1",
    "3.3.2.3": "SELECT count(*) FROM (SELECT max(no_o_id) - min(no_o_id) + 1 AS span, count(*) AS n"
    " FROM new_order GROUP BY no_w_id, no_d_id) AS x WHERE span <> n",
    "3.3.2.4": "SELECT count(*) FROM (SELECT o_w_id AS w, o_d_id AS d, sum(o_ol_cnt) AS a"
    " FROM orders GROUP BY 1, 2) AS o FULL JOIN (SELECT ol_w_id AS w, ol_d_id AS d, count(*) AS b"
    " FROM order_line GROUP BY 1, 2) AS l USING (w, d) WHERE a IS DISTINCT FROM b",
    "3.3.2.5": "SELECT count(*) FROM orders LEFT JOIN new_order ON no_w_id = o_w_id"
    " AND no_d_id = o_d_id AND no_o_id = o_id"
    " WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    "3.3.2.6": "SELECT count(*) FROM orders LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id,"
    " count(*) AS n FROM order_line GROUP BY 1, 2, 3) AS l ON ol_w_id = o_w_id AND ol_d_id = o_d_id"
    " AND ol_o_id = o_id WHERE n IS DISTINCT FROM o_ol_cnt",
    "3.3.2.7": "SELECT count(*) FROM order_line JOIN orders ON ol_w_id = o_w_id"
    " AND ol_d_id = o_d_id AND ol_o_id = o_id"
    " WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    "3.3.2.8": "SELECT count(*) FROM warehouse WHERE w_ytd <>"
    " (SELECT sum(h_amount) FROM history WHERE h_w_id = w_id)",
    "3.3.2.9": "SELECT count(*) FROM district WHERE d_ytd <>"
    " (SELECT sum(h_amount) FROM history WHERE h_w_id = d_w_id AND h_d_id = d_id)",
    "3.3.2.10": "SELECT count(*) FROM customer c JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id,"
    " sum(h_amount) AS h FROM history GROUP BY 1, 2, 3) AS h ON h_c_w_id = c_w_id"
    " AND h_c_d_id = c_d_id AND h_c_id = c_id LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id,"
    " sum(ol_amount) AS a FROM orders JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id"
    " AND ol_o_id = o_id WHERE ol_delivery_d IS NOT NULL GROUP BY 1, 2, 3) AS o"
    " ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id"
    " WHERE c_balance <> coalesce(a, 0) - h",
    "3.3.2.11": _BY_DISTRICT + "(SELECT o_w_id, o_d_id, count(*) AS o FROM orders GROUP BY 1, 2)"
    " AS o ON o_w_id = d_w_id AND o_d_id = d_id LEFT JOIN (SELECT no_w_id, no_d_id, count(*) AS n"
    " FROM new_order GROUP BY 1, 2) AS n ON no_w_id = d_w_id AND no_d_id = d_id"
    " WHERE o - coalesce(n, 0) <> (SELECT count(*) FROM orders WHERE o_w_id = d_w_id"
    " AND o_d_id = d_id AND o_carrier_id IS NOT NULL)",
    "3.3.2.12": "SELECT count(*) FROM customer c LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id,"
    " sum(ol_amount) AS a FROM orders JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id"
    " AND ol_o_id = o_id WHERE ol_delivery_d IS NOT NULL GROUP BY 1, 2, 3) AS o"
    " ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id"
    " WHERE c_balance + c_ytd_payment <> coalesce(a, 0)",
}


class Inconsistent(AssertionError):
    """A consistency condition of TPC-C does not hold."""


def check(con: psycopg.Connection[Any]) -> None:
    """The conditions of clause 3.3.2, when no transaction is under way."""
    for clause, sql in CONDITIONS.items():
        ((count,),) = con.execute(sql).fetchall()
        if count:
            raise Inconsistent(f"condition {clause} of TPC-C does not hold: {count}")


def fill(side: Side, scale: Scale) -> None:
    """Make all tables and load their first rows by COPY, the same on each side."""
    enc = f" {side.enc}" if side.enc else ""
    with side.connect() as con:
        for name, columns in TABLES.items():
            con.execute(f"CREATE TABLE {name} ({columns.replace('{e}', enc)})")
            with con.cursor().copy(f"COPY {name} FROM STDIN") as copy:
                for row in _rows(name, scale):
                    copy.write_row(row)
        con.execute(_LAST_ORDERS)
        if not side.enc:
            con.execute(_NAMES)
        con.execute("ANALYZE")


def last_name(number: int) -> str:
    """The customer's name of a number below 1,000 (4.3.2.3)."""
    return "".join(SYLLABLES[number // 10**digit % 10] for digit in (2, 1, 0))


def _rows(name: str, scale: Scale) -> Iterator[Row]:
    chance = random.Random(name)
    now = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
    if name == "item":
        for i in range(1, scale.items + 1):
            yield (
                i,
                chance.randint(1, 10_000),
                f"item {i}",
                _cents(chance, 100, 10_000),
                _text(chance),
            )
    for w in range(1, scale.warehouses + 1):
        if name == "warehouse":
            yield (
                w,
                f"w{w}",
                *_address(chance),
                _tax(chance),
                10 * scale.customers * scale.districts,
            )
        elif name == "stock":
            for i in range(1, scale.items + 1):
                infos = [f"dist {n:019}" for n in range(10)]
                yield i, w, chance.randint(10, 100), *infos, 0, 0, 0, _text(chance)
        for d in range(1, scale.districts + 1):
            yield from _of_district(name, scale, chance, now, w, d)


def _of_district(
    name: str, scale: Scale, chance: random.Random, now: datetime, w: int, d: int
) -> Iterator[Row]:
    count = scale.customers
    if name == "district":
        yield d, w, f"d{d}", *_address(chance), _tax(chance), 10 * count, count + 1
    elif name == "customer":
        for c in range(1, count + 1):
            credit = "BC" if chance.random() < 0.1 else "GC"
            yield (c, d, w, f"first {c}", "OE", last_name((c - 1) % 1000), *_address(chance),
                   f"{c:016}", now, credit, 50_000, _tax(chance), -10, 10, 1, 0,
                   _text(chance))  # fmt: skip
    elif name == "history":
        for c in range(1, count + 1):
            yield c, d, w, d, w, now, 10, _text(chance)[:24]
    elif name == "new_order":
        for o in range(scale.new, count + 1):
            yield o, d, w
    elif name in ("orders", "order_line"):
        yield from _orders(name, scale, now, w, d)


def _orders(name: str, scale: Scale, now: datetime, w: int, d: int) -> Iterator[Row]:
    """Of an order both tables draw the number of lines first."""
    customers = list(range(1, scale.customers + 1))
    random.Random(f"{w} {d}").shuffle(customers)
    for o, c in enumerate(customers, 1):
        chance, is_new = random.Random(f"{w} {d} {o}"), o >= scale.new
        count = chance.randint(5, 15)
        if name == "orders":
            yield o, d, w, c, now, None if is_new else chance.randint(1, 10), count, 1
            continue
        for number in range(1, count + 1):
            amount = _cents(chance, 1, 999_999) if is_new else 0
            yield (o, d, w, number, chance.randint(1, scale.items), w, None if is_new else now, 5,
                   amount, "dist")  # fmt: skip


def _address(chance: random.Random) -> Sequence[str]:
    number = chance.randint(1, 9999)
    return f"street {number}", f"house {number}", f"city {number % 97}", "NY", f"{number:04}11111"


def _tax(chance: random.Random) -> Decimal:
    return Decimal(chance.randint(0, 2000)).scaleb(-4)


def _cents(chance: random.Random, low: int, high: int) -> Decimal:
    return Decimal(chance.randint(low, high)).scaleb(-2)


def _text(chance: random.Random) -> str:
    return f"data {chance.getrandbits(96):024x}"
