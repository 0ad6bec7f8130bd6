"""Arrow tables as streams for DuckDB."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

BATCH_ROWS = 122_880
"""As many rows as DuckDB stores together: a thread takes a batch at a time."""


def once(rows: pa.Table) -> Any:
    """Rows for one scan, which all threads of DuckDB share, and into which it pushes no filter:
    Arrow decides some in another way, such as those of NaN.
    """
    parts = rows.to_batches(max_chunksize=BATCH_ROWS)
    return pa.Table.from_batches(parts, rows.schema).__arrow_c_stream__()
