"""Statements that change the schema: locally first, then on the server, then in the catalog.

The local DuckDB runs every statement on empty tables, so its errors are DuckDB's own; what came
into being and what went is read off its catalog, never guessed from the text.
"""

from __future__ import annotations

from louver.trusted.executor.define.alter import alter
from louver.trusted.executor.define.create import create
from louver.trusted.executor.define.drop import comment, drop

__all__ = ["alter", "comment", "create", "drop"]
