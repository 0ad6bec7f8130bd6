"""The nine tables of TPC-C, their rows, and the conditions that hold whenever all is at rest."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from bench.oltp import sides


@dataclass(frozen=True, slots=True)
class Scale:
    """How many of each; a district has as many orders as customers, the last third new.

    `lines` is the mean number of lines of an order.
    """

    warehouses: int
    districts: int
    customers: int
    items: int
    lines: int = 10


#: The names of TPC-C without most of the columns that no transaction reads. Keys are on both sides.
TABLES = {
    "warehouse": "w_id INT PRIMARY KEY, w_tax DECIMAL(4, 4), w_ytd DECIMAL(12, 2)",
    "district": "d_w_id INT, d_id INT, d_tax DECIMAL(4, 4), d_ytd DECIMAL(12, 2),"
    " d_next_o_id INT, PRIMARY KEY (d_w_id, d_id)",
    "customer": "c_w_id INT{enc}, c_d_id INT{enc}, c_id INT{enc}, c_first TEXT{enc},"
    " c_last TEXT{enc}, c_credit TEXT{enc}, c_discount DECIMAL(4, 4){enc},"
    " c_balance DECIMAL(12, 2){enc}, c_ytd_payment DECIMAL(12, 2){enc},"
    " c_payment_cnt INT{enc}, c_delivery_cnt INT{enc}, PRIMARY KEY (c_w_id, c_d_id, c_id)",
    "history": "h_c_id INT, h_c_d_id INT, h_c_w_id INT, h_amount DECIMAL(6, 2)",
    "new_order": "no_w_id INT, no_d_id INT, no_o_id INT, PRIMARY KEY (no_w_id, no_d_id, no_o_id)",
    "orders": "o_w_id INT, o_d_id INT, o_id INT, o_c_id INT, o_carrier_id INT, o_ol_cnt INT,"
    " PRIMARY KEY (o_w_id, o_d_id, o_id)",
    "order_line": "ol_w_id INT, ol_d_id INT, ol_o_id INT, ol_number INT, ol_i_id INT,"
    " ol_quantity INT, ol_amount DECIMAL(6, 2), ol_delivered BOOLEAN,"
    " PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)",
    "item": "i_id INT PRIMARY KEY, i_name TEXT, i_price DECIMAL(5, 2)",
    "stock": "s_w_id INT, s_i_id INT, s_quantity INT, s_ytd INT, s_order_cnt INT,"
    " PRIMARY KEY (s_w_id, s_i_id)",
}
_W = "range(1, {warehouses} + 1) AS w(w)"
_D = _W + ", range(1, {districts} + 1) AS d(d)"
_C = _D + ", range(1, {customers} + 1) AS c(c)"
ROWS = {
    "warehouse": f"SELECT w, 0.1, 30000 * {{districts}} FROM {_W}",
    "district": f"SELECT w, d, 0.1, 30000, {{customers}} + 1 FROM {_D}",
    "customer": f"SELECT w, d, c, 'first ' || c, 'last ' || c % (1 + {{customers}} // 3), 'GC',"
    f" (c % 5) / 10, -10, 10, 1, 0 FROM {_C}",
    "history": f"SELECT c, d, w, 10 FROM {_C}",
    "new_order": f"SELECT w, d, c FROM {_C} WHERE c > {{customers}} - {{customers}} // 3",
    # Customers order in another order than that of their numbers: 7919 is prime.
    "orders": f"SELECT w, d, c, 1 + c * 7919 % {{customers}}, CASE WHEN c > {{customers}}"
    f" - {{customers}} // 3 THEN NULL ELSE 1 + c % 10 END, {{lines}} FROM {_C}",
    "order_line": f"SELECT w, d, c, n, 1 + (c * 31 + n) % {{items}}, 5, n, c <= {{customers}}"
    f" - {{customers}} // 3 FROM {_C}, range(1, {{lines}} + 1) AS n(n)",
    "item": "SELECT i, 'item ' || i, 1 + i % 100 FROM range(1, {items} + 1) AS i(i)",
    "stock": f"SELECT w, i, 10 + i % 91, 0, 0 FROM {_W}, range(1, {{items}} + 1) AS i(i)",
}
#: Number of the clause of the specification, and a query that counts what contradicts it.
CONDITIONS = {
    "3.3.2.1": "SELECT count(*) FROM warehouse JOIN (SELECT d_w_id, sum(d_ytd) AS ytd"
    " FROM district GROUP BY d_w_id) AS d ON w_id = d_w_id WHERE w_ytd <> ytd",
    "3.3.2.2": "SELECT count(*) FROM district LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS last"
    " FROM orders GROUP BY o_w_id, o_d_id) AS o ON o_w_id = d_w_id AND o_d_id = d_id LEFT JOIN"
    " (SELECT no_w_id, no_d_id, max(no_o_id) AS newest FROM new_order GROUP BY no_w_id, no_d_id)"
    " AS n ON no_w_id = d_w_id AND no_d_id = d_id"
    " WHERE last IS NULL OR last <> d_next_o_id - 1 OR newest <> d_next_o_id - 1",
    "3.3.2.3": "SELECT count(*) FROM (SELECT max(no_o_id) - min(no_o_id) + 1 AS span,"
    " count(*) AS n FROM new_order GROUP BY no_w_id, no_d_id) AS x WHERE span <> n",
    "3.3.2.4": "SELECT count(*) FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS wanted FROM orders"
    " GROUP BY o_w_id, o_d_id) AS o LEFT JOIN (SELECT ol_w_id, ol_d_id, count(*) AS stored"
    " FROM order_line GROUP BY ol_w_id, ol_d_id) AS l ON ol_w_id = o_w_id AND ol_d_id = o_d_id"
    " WHERE stored IS NULL OR wanted <> stored",
}
#: What must be the same on both sides after the same transactions.
STATES = (
    "SELECT sum(c_balance), sum(c_ytd_payment), sum(c_payment_cnt), sum(c_delivery_cnt)"
    " FROM customer",
    "SELECT count(*), sum(h_amount) FROM history",
    "SELECT count(*), sum(ol_amount), count(*) FILTER (WHERE ol_delivered) FROM order_line",
    "SELECT sum(s_quantity), sum(s_ytd), sum(s_order_cnt) FROM stock",
)


class Inconsistent(AssertionError):
    """A consistency condition of TPC-C does not hold."""


def filled(pair: sides.Sides, scale: Scale) -> None:
    """All tables on both sides; every column of customer is ENC."""
    for name, columns in TABLES.items():
        for side in pair.both():
            side.execute(f"CREATE TABLE {name} ({columns.format(enc=pair.enc(side))})")
            side.execute(f"INSERT INTO {name} {ROWS[name].format(**asdict(scale))}")


def check(side: Any) -> None:
    """Conditions 3.3.2.1 to 3.3.2.4."""
    for clause, sql in CONDITIONS.items():
        ((count,),) = side.execute(sql).fetchall()
        if count:
            raise Inconsistent(f"condition {clause} of TPC-C does not hold: {count}")
