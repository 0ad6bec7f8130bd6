"""A plaintext PostgreSQL database in the local engine's words, and the other way round: what
`louver encrypt` reads and `louver export` writes.
"""

from __future__ import annotations

from louver.trusted.backends.postgres_plain.declared import Declared, PlainTable, declared, notices
from louver.trusted.backends.postgres_plain.values import received, sent
from louver.trusted.backends.postgres_plain.written import Written, WrittenTable, written
from louver.untrusted.engines.postgres.plain_catalog import plain_catalog, require_others

__all__ = [
    "Declared", "PlainTable", "Written", "WrittenTable", "declared", "notices", "plain_catalog",
    "received", "require_others", "sent", "written",
]  # fmt: skip
