"""Key algebra that several rules share, on symbols (docs: spec/sdb.md, paper section 3.3)."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from louver.trusted.planner.ir import (
    PLAIN_KEY,
    Added,
    Call,
    Factor,
    Key,
    Node,
    Plain,
    Share,
    SharedExpr,
    Update,
    Updated,
)
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import Constant
from louver.trusted.vault.types import family

Numeric = SharedExpr | Plain | Constant


def multiplied(left: SharedExpr, right: SharedExpr) -> tuple[Node, Key]:
    """EE product: the ciphertexts' product has the product of the keys (Rule 1)."""
    return Call("sdb_mul", (left.node, right.node)), Key("multiply", (left.key, right.key))


def as_secret(value: Numeric, partner: SharedExpr, scope: Scope) -> SharedExpr | None:
    """A constant or plain operand of a sum as a secret of the partner's table: u·U (Rules 3
    and 5), P·U (Rules 9 and 10).
    """
    if isinstance(value, SharedExpr):
        return value
    if not partner.slots:
        return _slotless(value, scope)
    unit = scope.unit(min(partner.slots))
    if isinstance(value, Constant):
        return replace(
            unit,
            factor=value.factor,
            low=value.low,
            high=value.high,
            scale=value.scale,
            type=value.type,
        )
    shared = residue(value, scope)
    if shared is None:
        return None
    node, key = multiplied(shared, unit)
    return replace(shared, node=node, key=key, slots=value.slots | unit.slots)


def _slotless(value: Plain | Constant, scope: Scope) -> SharedExpr | None:
    """An operand beside a SUM: a constant becomes a share under the key <1, 0>, which a plain
    column has by nature.
    """
    if isinstance(value, Plain):
        return residue(value, scope)
    # The constant stays in the factor, so that what leaves is blinded with the sum's own update.
    return SharedExpr(
        Share(PLAIN_KEY, Factor()),
        PLAIN_KEY,
        value.factor,
        value.low,
        value.high,
        value.scale,
        value.type,
    )


def residue(value: Plain, scope: Scope) -> SharedExpr | None:
    """A plain column as a column with key <1, 0> (paper, appendix 7.1); None where its bounds
    are not known.
    """
    if value.low is None or value.high is None or family(value.type) != "number":
        return None
    text = scope.operation("number_text", value.node)
    if text is None:
        return None
    node = Call("sdb_residue", (text,))
    return SharedExpr(
        node,
        PLAIN_KEY,
        Factor(),
        value.low,
        value.high,
        value.scale,
        value.type,
        value.slots,
    )


def scaled(value: SharedExpr, digits: int) -> SharedExpr:
    """The same number with more decimal places: a constant factor on the key."""
    if not digits:
        return value
    power = 10**digits
    return replace(
        times(value, power),
        low=value.low * power,
        high=value.high * power,
        scale=value.scale + digits,
    )


def times(value: SharedExpr, number: int) -> SharedExpr:
    """The value with a constant factor on its key, under the same bounds."""
    return replace(value, factor=value.factor.times(Factor(number)), single=False)


def aligned(left: SharedExpr, right: SharedExpr) -> tuple[SharedExpr, SharedExpr]:
    """Both operands with the larger scale of the two."""
    scale = max(left.scale, right.scale)
    return scaled(left, scale - left.scale), scaled(right, scale - right.scale)


def negated(value: SharedExpr) -> SharedExpr:
    """−B: the factor n − 1 on B's own key (the paper's Rule 4 prints m_S for m_B)."""
    return replace(times(value, -1), low=-value.high, high=-value.low)


def added(left: SharedExpr, right: SharedExpr, target: Key) -> Added:
    """Both operands under the target, and their sum (Rule 2)."""
    return Added((*_summands(left, target), *_summands(right, target)))


def _summands(value: SharedExpr, target: Key) -> list[tuple[Node, Update]]:
    """A value as terms under the target. A sum is taken apart: its own key cancels, since every
    term can be updated to the target at once.
    """
    if isinstance(value.node, Added):
        return [
            (operand, Update(update.source, update.factor.times(value.factor), target))
            for operand, update in value.node.terms
        ]
    return [(value.node, Update(value.key, value.factor, target))]


def sum_target(left: SharedExpr, right: SharedExpr) -> Key:
    """The key of a sum: the larger offset per table, so that one operand needs no power."""
    return Key("sum_target", (left.key, right.key))


def common_target(purpose: str, *values: SharedExpr) -> Key:
    """A key without row numbers for all rows: one per purpose and set of columns, so that it is
    met again.
    """
    columns = sorted(frozenset().union(*(value.columns for value in values)))
    return Key("common_target", (f"{purpose}:" + ",".join(f"{t}.{c}" for t, c in columns),))


def under(value: SharedExpr, node: Node, key: Key) -> SharedExpr:
    """The value under a key without row numbers."""
    return replace(value, node=node, key=key, factor=Factor(), slots=frozenset(), single=False)


def brought(value: SharedExpr, target: Key) -> Node:
    """A value under a common key."""
    if isinstance(value.node, Added):
        return Added(tuple(_summands(value, target)))
    return Updated(value.node, Update(value.key, value.factor, target))


def is_zero(value: Numeric) -> bool:
    """Whether a value is the constant 0, of which no share has a key."""
    return isinstance(value, Constant) and value.value == 0


def same_family(left: Numeric, right: Numeric) -> bool:
    """Whether DuckDB compares the two without changing a value."""
    return family(left.type) == family(right.type) and family(left.type) != ""


def bits(low: int, high: int) -> int:
    """The bits of the largest magnitude in an interval."""
    return max(abs(low), abs(high)).bit_length()


def most_rows(scope: Scope) -> int:
    """No join of a block's tables has more rows, and so no group."""
    return prod(max(source.table.most_rows, 1) for source in scope.sources)


def stays_signed(low: int, high: int, scope: Scope, factor_bits: int = 0) -> bool:
    """Whether a value of the interval, times a number of ``factor_bits`` bits, keeps its sign
    as a residue: below n / 2, with two bits to spare.
    """
    return bits(low, high) + factor_bits <= scope.modulus_bits - 2
