"""Constants of a statement as codes of a column: evaluated locally, brought into the column's
domain, and encoded there by the scheme that is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pyarrow as pa

from louver.trusted.planner.ir import Code
from louver.trusted.planner.operators.codes import fill
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.vault import schemes
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.exact_values import Exact, exact, exact_whole
from louver.trusted.vault.key_source import KeySource
from louver.trusted.vault.scheme import scheme_of
from louver.trusted.vault.types import code_domain, is_integer, value_range
from louver.wire.messages import Constant

Evaluate = Callable[[str], pa.Array]
"""The value of a constant expression: an array of one element."""
_WHOLE_NUMBER = re.compile(r"\(*(-?[0-9]+)\)*")
#: What is a whole number under any settings, and fits 64 bits: no engine need say which.
_SURE_DIGITS = 18


class Codes:
    """The codes of one statement's constants, each made once: a change asks for them before it is
    sent, when it is, and when the rows that came back are decided again.
    """

    def __init__(self, evaluate: Evaluate) -> None:
        """``evaluate`` is asked for what is not a number of the text."""
        self._evaluate = evaluate
        self._literals: Sequence[str] = ()
        self._made: dict[tuple[object, ...], Constant] = {}

    def code(
        self, keys: KeySource, table: Table, column: Column, item: Code, literals: Sequence[str]
    ) -> Constant:
        """What is bound for a constant: None for NULL, else what its scheme makes of it."""
        # Of equal literals another statement may have, its functions may tell another time.
        if literals is not self._literals:
            self._literals, self._made = literals, {}
        if not literals:
            return self._made_now(keys, table, column, item, literals)
        # What codes rest on beside the keys, which may change within a statement: layers open.
        layers = tuple(column.layers.items())
        rests_on = (column.generation, column.group, layers, column.low, column.bits, column.coarse)
        position = (item, table.id, rests_on)
        if position not in self._made:
            self._made[position] = self._made_now(keys, table, column, item, literals)
        return self._made[position]

    def _made_now(
        self, keys: KeySource, table: Table, column: Column, item: Code, literals: Sequence[str]
    ) -> Constant:
        if scheme_of(item.onion).tags:
            columns, parts = columns_of(table, item), (item, *item.more)
            pairs = zip(columns, parts, strict=True)
            values = [_value(self._evaluate, other, part, literals) for other, part in pairs]
            known = [value for value in values if value is not None]
            return None if len(known) < len(values) else schemes.tag(keys, table, columns, known)
        value = _value(self._evaluate, column, item, literals)
        if value is None:
            return None
        return schemes.encode(keys, table, column, item.onion, value, item.sign)


def columns_of(table: Table, item: Code) -> list[Column]:
    """The columns that a constant is of: one, or those of a key."""
    ids = (item.column, *(part.column for part in item.more))
    return [next(column for column in table.columns if column.id == id_) for id_ in ids]


def _value(evaluate: Evaluate, column: Column, item: Code, literals: Sequence[str]) -> Exact:
    """The value of a constant in units of a column's domain; None for NULL."""
    text = fill(item.text, list(literals))
    whole = _WHOLE_NUMBER.fullmatch(text)
    domain = code_domain(column.type) or ""
    if whole and item.bound and is_integer(column.type):
        limits = value_range(column.type)
        if limits is not None and not limits[0] <= int(whole[1]) <= limits[1]:
            # The engine says so in its own words.
            evaluate(f"CAST('{whole[1]}' AS {spoken().own_type(column.type)})")
    if whole and len(whole[1]) <= _SURE_DIGITS:
        return exact_whole(int(whole[1]), domain)
    return exact(evaluate(text), domain)
