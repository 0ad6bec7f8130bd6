"""All rows that a question may match, in search order, for a binary search over their index."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from louver.untrusted.providers import queries
from louver.untrusted.providers.expressions import refused
from louver.untrusted.providers.keys import key_columns
from louver.untrusted.providers.queries import Base
from louver.untrusted.providers.sandbox import Work, listed
from louver.wire import row_codec
from louver.wire.questions import Field


@dataclass(frozen=True, slots=True)
class Sorted:
    """Rows in their order: columns of the condition, contents of records, and their form."""

    keys: pa.Table
    values: pa.Table
    fields: tuple[Field, ...]


def rows(work: Work, base: Base) -> Sorted:
    """Create `louver_sorted`: the rows of the shape in search order; ties by position.

    The largest value of an expression is the first row in its descending order.

    Raises:
        errors.Error: `provider.refused`.
    """
    if not base.shape.columns:
        raise refused("its protocol is for single rows")
    names = [name for name in base.types if name[0] in "co"] + ["position"]
    listed_keys = listed([*key_columns(base), *names])
    work.run(
        f"CREATE TEMP TABLE louver_sorted AS SELECT {listed_keys} FROM ({base.sql}) "
        f"ORDER BY {queries.row_order(base.shape)}"
    )
    query = f"SELECT {listed(names)} FROM louver_sorted"
    values = work.table(query)
    fields = row_codec.fields_of(values, list(work.types(query).values()))
    keys = work.table(f"SELECT {listed(base.keys or ['none'])} FROM louver_sorted")
    return Sorted(keys, values, fields)
