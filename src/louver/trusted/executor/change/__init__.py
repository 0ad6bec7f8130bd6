"""INSERT, UPDATE, DELETE, MERGE, TRUNCATE and COPY.

Every change is worked out locally by DuckDB itself, on the declared tables with their
constraints, and only then sealed and sent (see `louver.trusted.executor.constraint_check`).
"""

from __future__ import annotations

from louver.trusted.executor.change.changing import change, truncate
from louver.trusted.executor.change.copying import copy
from louver.trusted.executor.change.inserting import insert, insert_many

__all__ = ["change", "copy", "insert", "insert_many", "truncate"]
