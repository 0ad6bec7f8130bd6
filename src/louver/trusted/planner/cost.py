"""What a plan costs, in seconds, and how many rows a condition leaves.

cost = bytes / bandwidth + statements * latency + values * opening + what the server computes
The shares of rows are guesses: an equality leaves one of the values that the column's bounds have
room for, a range its part of the bounds, what is not known a third. A wrong guess makes a plan
slower, never wrong.

The server sees which plan was chosen. So nothing that an encrypted column holds is gone by: neither
its bounds, nor how many values it was seen to have, nor the constants that it is compared with;
what is left is what is declared, and the number of rows, which the server knows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sqlglot import exp

from louver.trusted.backends.backend import Costs
from louver.trusted.planner.ir import Output, RemoteQuery
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.vault import bounds
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.types import decimal_scale, has_fixed_length, value_range

OPEN_S = 2e-7
"""To open one sealed value locally (bench: five million a second and core)."""
SEALED_BYTES = 29
"""What sealing adds to a value: version, nonce and tag."""
TILED_BYTES, TILED_OPEN_S = 4, 4e-9
"""The same of a value in a tile, whose numbers are packed and texts compressed (bench: tiles)."""
_TILE_ROWS = 1024
DECIDE_S = 1e-8
"""To decide a condition on one row locally."""
_TAKE_S = 2e-8
"""To take a value of one row out of those of its tile."""
NUMBER_BYTES = 8
"""A row number on the way to the server."""
LEAST_ROWS = 1_000
"""A smaller table is read at once: looking up its rows saves less than it shows."""
_UNKNOWN = 1 / 3
_LIKE = 0.1
_FEW = 10


@dataclass(frozen=True, slots=True)
class Link:
    """The way to the server: ``bandwidth`` in bytes per second, ``latency_ms`` of a statement."""

    bandwidth: float = 125e6
    latency_ms: float = 1.0

    def seconds(self, sent_bytes: float, statements: int = 1) -> float:
        """How long it takes to fetch this much."""
        return sent_bytes / self.bandwidth + statements * self.latency_ms / 1000


def row_bytes(remote: RemoteQuery) -> int:
    """The size of one row of an answer."""
    total = 8 * len(remote.row_slots())
    for out in remote.outputs:
        if out.kind == "plain":
            total += 8 if has_fixed_length(out.type) else 24
        elif out.tiled:
            total += _tiled_bytes(out)
        elif out.kind != "absent":
            total += SEALED_BYTES + (8 if has_fixed_length(out.type) else 32)
    return total


def _tiled_bytes(out: Output) -> int:
    return TILED_BYTES if has_fixed_length(out.type) else 4 * TILED_BYTES


def opening_s(remote: RemoteQuery) -> float:
    """To open one row of an answer."""
    return sum(
        TILED_OPEN_S if out.tiled else OPEN_S
        for out in remote.outputs
        if out.kind not in ("plain", "absent", "raw")
    )


def seconds(remote: RemoteQuery, rows: float, link: Link) -> float:
    """To fetch and open an answer of so many rows."""
    return link.seconds(rows * row_bytes(remote)) + rows * opening_s(remote)


def by_number_s(remote: RemoteQuery, rows: float, of: float, link: Link, costs: Costs) -> float:
    """To have a server find so many rows of all by their numbers, to fetch and to open them: of
    what is in tiles, each tile that has one of them, which needs no numbers.
    """
    tiled = [out for out in remote.outputs if out.tiled]
    met = of * (1 - (1 - min(rows / of, 1.0)) ** _TILE_ROWS) if of else rows
    if tiled and all(out.tiled or out.kind == "absent" for out in remote.outputs):
        opened_s = met * TILED_OPEN_S * len(tiled) + rows * _TAKE_S * len(tiled)
        return link.seconds(met * sum(map(_tiled_bytes, tiled))) + opened_s
    tiled_bytes = sum(map(_tiled_bytes, tiled))
    sent_s = link.seconds(rows * NUMBER_BYTES + max(met - rows, 0.0) * tiled_bytes, 0)
    return seconds(remote, rows, link) + sent_s + rows * costs.number_s


def looks_up(rest: RemoteQuery, rows: float, matches: float, link: Link, costs: Costs) -> bool:
    """Whether it pays to read other columns after those of a condition, of the ``matches`` that are
    expected among all rows, and not beside them.
    """
    number_s = by_number_s(rest, matches, rows, link, costs) + rows * DECIDE_S
    known = NUMBER_BYTES * len(rest.row_slots())
    beside_s = link.seconds(rows * (row_bytes(rest) - known), 0) + rows * opening_s(rest)
    return number_s < beside_s


def fraction(node: exp.Expr, scope: Scope, *, private: bool = False) -> float:
    """The share of rows that a condition on one occurrence leaves, between 0 and 1; `private`: also
    by what the client alone knows of values, for what no plan is chosen by.
    """

    def part(of: exp.Expr) -> float:
        return fraction(of, scope, private=private)

    match node:
        case exp.Paren():
            return part(node.this)
        case exp.And():
            return part(node.this) * part(node.expression)
        case exp.Or():
            return min(1.0, part(node.this) + part(node.expression))
        case exp.Not():
            return max(0.05, 1 - part(node.this))
        case exp.EQ():
            return _one_of(node, scope, private)
        case exp.In():
            members = len(node.expressions) or _FEW
            return min(1.0, members * _one_of(node, scope, private))
        case exp.Between():
            low = _above(node.this, node.args["low"], scope, private)
            high = _above(node.this, node.args["high"], scope, private)
            return 0.25 if low is None or high is None else min(1.0, max(low - high, 0.001))
        case exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            return _range(node, scope, private)
        case exp.NEQ():
            return 0.9
        case exp.Like():
            return _LIKE
        case exp.Is():
            return 0.1
    return _UNKNOWN


def _column(node: exp.Expr, scope: Scope) -> tuple[Column, int, Table] | None:
    """The column of a bare reference, how many rows its table has, and the table."""
    bare = node.unnest()
    match = scope.find(bare) if isinstance(bare, exp.Column) else None
    if match is None:
        return None
    table = match[0].table
    return match[1], table.row_count, table


def _one_of(node: exp.Expr, scope: Scope, private: bool) -> float:
    """An equality leaves one value of the column's, that of rows one of each column's."""
    if isinstance(row := node.this.unnest(), exp.Tuple):
        parts = [exp.EQ(this=column, expression=exp.null()) for column in row.expressions]
        return math.prod(_one_of(part, scope, private) for part in parts)
    results = _column(node.this, scope)
    if results is None and isinstance(node, exp.EQ):
        results = _column(node.expression, scope)
    if results is None:
        return _UNKNOWN
    column, rows, table = results
    values = distinct(column, rows, private=private)
    return 1 / (values if private else min(values, _of_key(column, rows, table)))


def distinct(column: Column, rows: int, *, private: bool = False) -> float:
    """How many values a column may have; `private` as of `fraction`."""
    if column.encrypted and column.unique:
        return float(max(rows, 1))
    if column.encrypted and not private:
        known = value_range(column.type)
        span = column.choices or (known[1] - known[0] + 1 if known is not None else rows)
        return float(max(1, min(span, _guess(rows))))
    if column.cardinality():
        return float(column.cardinality())
    known = bounds.close(column)
    if known is None:
        return _guess(rows)
    return float(max(1, min(known[1] - known[0] + 1, rows)))


def _of_key(column: Column, rows: int, table: Table) -> float:
    """How many values an encrypted column may have at most, as one of several that make up a key:
    of those that tell rows apart together, each is taken to have as many as the others.
    """
    widths = [len(key) for key in table.tags.values() if column.id in key]
    if not column.encrypted or not widths:
        return math.inf
    return float(max(rows ** (1 / min(widths)), min(rows, _FEW), 1))


def _guess(rows: int) -> float:
    return max(math.sqrt(rows), min(rows, _FEW), 1)


def met(node: exp.Expr, table: Table, left: float, scope: Scope) -> float:
    """The share of rows that find a partner, by an equality, among the share ``left`` of a
    table's rows: as many values are left there as rows, at most.
    """
    ends = [results for side in (node.this, node.expression) if (results := _column(side, scope))]
    values = max((distinct(column, rows) for column, rows, _ in ends), default=1.0)
    return min(1.0, table.row_count * left / values)


def _range(node: exp.Expr, scope: Scope, private: bool) -> float:
    above, turned = _above(node.this, node.expression, scope, private), False
    if above is None:
        above, turned = _above(node.expression, node.this, scope, private), True
    if above is None:
        return _UNKNOWN
    upwards = isinstance(node, exp.GT | exp.GTE) != turned
    return max(above if upwards else 1 - above, 0.001)


def _above(
    column_node: exp.Expr, constant_node: exp.Expr, scope: Scope, private: bool
) -> float | None:
    """The part of a column's range that lies above a constant."""
    match, constant = _column(column_node, scope), scope.constant(constant_node)
    if match is None or constant is None:
        return None
    column, known = match[0], bounds.close(match[0])
    if known is None or (column.encrypted and not private):
        return None
    value = constant.value * 10.0 ** (decimal_scale(column.type) - constant.scale)
    return min(max((known[1] - value) / max(known[1] - known[0], 1), 0.0), 1.0)
