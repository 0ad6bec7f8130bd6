"""The schemes, each with one row that says all about it.

The planner, the ledger, the page docs/reference/schemes.md and the tests read these rows.
"""

from __future__ import annotations

from louver.trusted.vault.scheme import Leak, Scheme
from louver.trusted.vault.schemes import sdb, sealed

SCHEMES: dict[str, Scheme] = {row.representation: row for row in (sealed.SCHEME, sdb.SCHEME)}
"""Every scheme by the representation that it stores."""

__all__ = ["SCHEMES", "Leak", "Scheme"]
