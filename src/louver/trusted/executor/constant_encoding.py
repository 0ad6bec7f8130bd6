"""Constants of a statement as codes of a column: evaluated locally, brought into the column's
domain, and encoded there by the scheme that is asked.
"""

from __future__ import annotations

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


def code(
    keys: KeySource, evaluate: Evaluate, table: Table, column: Column, item: Code,
    literals: Sequence[str],
) -> Constant:  # fmt: skip
    """What is bound for a constant: None for NULL, else what its scheme makes of it."""
    value = exact(evaluate(fill(item.text, list(literals))), code_domain(column.type) or "")
    if value is None:
        return None
    return schemes.encode(keys, table, column, item.onion, value, item.sign)
