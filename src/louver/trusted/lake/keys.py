"""What lake tables need from the vault: keys that encrypt and sign without being exposed."""

from __future__ import annotations

from typing import Protocol

from louver.trusted.vault.index_keys import LakeKeys as TableKeys

__all__ = ["Ring", "TableKeys"]


class Ring(Protocol):
    """The part of the key ring that a lake uses."""

    def lake_table(self, table_id: int) -> TableKeys:
        """The keys of a table."""
        ...

    def seal_blob(self, purpose: str, context: bytes, plain: bytes) -> bytes:
        """Encrypt and authenticate `plain`, bound to purpose and context."""
        ...

    def open_blob(self, purpose: str, context: bytes, sealed: bytes) -> bytes:
        """Undo `seal_blob`; VerificationError when it does not authenticate."""
        ...
