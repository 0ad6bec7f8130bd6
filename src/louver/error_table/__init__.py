"""Every error of Louver: code, class, message, cause, fix. Plain data; see `louver.errors`.

Words in braces are filled in by the caller; `{detail}` is a cause in somebody else's words.
A message says what happened, a cause why that can be, a fix what to do now. No row may name
a secret: no key, no literal of a query on an encrypted column.
"""

from __future__ import annotations

from louver.error_table import inner, lake, places, providers, serve, statements
from louver.error_table.row import Row

#: All rows, in the order of the reference page.
ROWS: tuple[Row, ...] = (
    places.ROWS + statements.ROWS + lake.ROWS + serve.ROWS + providers.ROWS + inner.ROWS
)
