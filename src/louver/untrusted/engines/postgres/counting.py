"""How much has crossed a connection."""

from __future__ import annotations

from louver.untrusted.engines.engine import Traffic
from louver.wire.messages import Statement


class Counted:
    """The part of an engine that counts, for EXPLAIN and bench."""

    traffic: Traffic

    def _count(self, statement: Statement) -> None:
        self.traffic.count(statement)

    def _received(self, size_bytes: int, rows: int) -> None:
        self.traffic.bytes_in += size_bytes
        self.traffic.rows_in += rows
