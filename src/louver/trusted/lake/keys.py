"""What tables of a lake need of the vault: keys that seal and sign and never show themselves."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from louver.untrusted.lake.files import Buffer


class TableKeys(Protocol):
    """The keys of one table (`KeyRing.lake_table`)."""

    def index_id(self, column_id: int, generation: int, spec: bytes) -> bytes:
        """The public name of an index: 16 bytes."""
        ...

    def segment(
        self,
        column_id: int,
        generation: int,
        spec: bytes,
        lows: pa.Array,
        highs: pa.Array,
        states: pa.Array,
    ) -> bytes:
        """A new segment; one low, high and state a file."""
        ...

    def token(
        self,
        column_id: int,
        generation: int,
        spec: bytes,
        low: int,
        high: int,
        sides: bool = False,
    ) -> bytes:
        """What shows the server one inclusive range of mapped values."""
        ...

    def opened(self, token: bytes) -> list[int]:
        """The positions that a token opens."""
        ...

    def check(self, column_id: int, generation: int, segment: Buffer, token: bytes | None) -> None:
        """VerificationError when a row that the token reads was altered."""
        ...

    def sign(self, purpose: str, context: bytes, data: bytes) -> bytes:
        """A code of 32 bytes."""
        ...

    def verify(self, purpose: str, context: bytes, data: bytes, tag: bytes) -> None:
        """VerificationError when `sign` did not make this."""
        ...


class Ring(Protocol):
    """The key ring, as far as a lake uses it."""

    def lake_table(self, table_id: int) -> TableKeys:
        """The keys of a table."""
        ...

    def seal_blob(self, purpose: str, context: bytes, plain: bytes) -> bytes:
        """Encrypt and authenticate `plain`, bound to purpose and context."""
        ...

    def open_blob(self, purpose: str, context: bytes, sealed: bytes) -> bytes:
        """Undo `seal_blob`; VerificationError when it does not authenticate."""
        ...
