"""The order in which rows of a change are sent.

Rows are numbered as they come, so the server sees their order. Where DuckDB joins rows, groups
them, looks for conflicts of keys or moves them, it is that of hashes of values. Such rows are sent
by what shows of them anyway, and by chance where that is equal.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from sqlglot import exp

from louver.names import quoted
from louver.trusted.executor.local.local import RowQueries
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.sql.trees import parse
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.types import bare

_RANK = "louver_rank"
_ROWS = "louver_unordered"
#: By type: the length of a sealed value, in steps of 16 bytes (spec/rnd.md).
_TEXTS = {
    "VARCHAR": "(coalesce(strlen({}), 0) + 4) // 16",
    "BLOB": "(coalesce(octet_length({}), 0) + 4) // 16",
}
#: What gives rows in an order of its own.
_HASHING = (exp.Join, exp.Group, exp.Distinct, exp.SetOperation, exp.Window, exp.AggFunc, exp.Pivot,
            exp.Subquery, exp.Exists, exp.In)  # fmt: skip


def shown(table: Table) -> list[str]:
    """What a server sees of a row of ``t`` by itself: plain values, lengths of sealed texts; of a
    table that is all plain, the place of a row too.
    """
    if not table.has_encrypted and not table.column("rowid"):
        return ["t.rowid"]
    entries = []
    for column in table.columns:
        name = f"t.{quoted(column.name)}"
        if not column.encrypted:
            # What DuckDB sorts by a number, it takes from the key: -0.0 as 0.0.
            whole = any(part in column.type for part in ("DOUBLE", "FLOAT"))
            entries.append(f"row({name})" if whole else name)
        elif bare(column.type) in _TEXTS:
            entries.append(_TEXTS[bare(column.type)].format(name))
    return entries


def rank(keys: Sequence[str]) -> str:
    """An item that tells apart rows by these, and none that are equal in them."""
    return f"dense_rank() OVER (ORDER BY {', '.join(keys)}) AS {_RANK}" if keys else f"0 AS {_RANK}"


def mixed(rows: pa.Table) -> pa.Table:
    """Rows by their rank, those of one rank in an order that no one can know, whatever seed the
    user has set.
    """
    chance = np.random.Generator(np.random.PCG64(secrets.randbits(128)))
    places = np.lexsort((chance.permutation(rows.num_rows), rows.column(_RANK).to_numpy()))
    return rows.drop_columns([_RANK]).take(pa.array(places))


def by_chance(rows: pa.Table) -> pa.Table:
    """Rows in an order that no one can know."""
    return mixed(rows.append_column(_RANK, pa.nulls(rows.num_rows, pa.int8()).fill_null(0)))


def unordered(engine: RowQueries, table: Table, sql: str, rows: pa.Table) -> pa.Table:
    """The new rows of a query; as they came where the query says so, or reads them as they are."""
    tree = parse(sql)
    sorted_ = isinstance(tree, exp.Query) and tree.args.get("order") is not None
    hashing = tree is None or tree.find(*_HASHING) is not None
    if rows.num_rows < 2 or not table.has_encrypted or sorted_ or not hashing:
        return rows
    if spoken().reads_off:
        return by_chance(rows)
    query = f"SELECT t.*, {rank(shown(table))} FROM {_ROWS} AS t"
    return mixed(engine.over(_ROWS, rows, query))
