"""Constants of a statement as codes of a column: evaluated locally, brought into the column's
domain, and encoded there by the scheme that is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pyarrow as pa

from louver.trusted.planner.ir import Code
from louver.trusted.planner.operators.codes import fill
from louver.trusted.vault import schemes
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.exact_values import exact
from louver.trusted.vault.key_source import KeySource
from louver.trusted.vault.types import code_domain
from louver.wire.messages import Constant

Evaluate = Callable[[str], pa.Array]
"""The value of a constant expression: an array of one element."""
#: What is a whole number under any settings, and fits 64 bits: no engine need say which.
_WHOLE_NUMBER = re.compile(r"\(?(-?[0-9]{1,18})\)?")


def code(
    keys: KeySource, evaluate: Evaluate, table: Table, column: Column, item: Code,
    literals: Sequence[str],
) -> Constant:  # fmt: skip
    """What is bound for a constant: None for NULL, else what its scheme makes of it."""
    text = fill(item.text, list(literals))
    whole = _WHOLE_NUMBER.fullmatch(text)
    number = pa.array([int(whole[1])], pa.int64()) if whole else evaluate(text)
    value = exact(number, code_domain(column.type) or "")
    if value is None:
        return None
    return schemes.encode(keys, table, column, item.onion, value, item.sign)
