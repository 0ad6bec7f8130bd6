"""The shape of a row of the error table."""

from __future__ import annotations

#: code, class (a name in `louver.errors`), message, cause, fix
Row = tuple[str, str, str, str, str]
