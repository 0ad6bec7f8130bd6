"""How much has crossed a connection."""

from __future__ import annotations

from louver.untrusted.engines.engine import Traffic
from louver.wire.messages import Statement


class Counted:
    """The part of an engine that counts, for EXPLAIN and bench."""

    traffic: Traffic

    def _count(self, statement: Statement) -> None:
        traffic = self.traffic
        traffic.statements += 1
        traffic.bytes_out += len(statement.sql.encode())
        for constant in statement.constants:
            traffic.bytes_out += len(constant) if isinstance(constant, bytes | str) else 8
        for table in statement.tables.values():
            traffic.bytes_out += table.nbytes
            traffic.rows_out += table.num_rows

    def _received(self, size_bytes: int, rows: int) -> None:
        self.traffic.bytes_in += size_bytes
        self.traffic.rows_in += rows
