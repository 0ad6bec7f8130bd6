"""What tables of a lake need of the vault: keys that seal and sign and never show themselves."""

from __future__ import annotations

from typing import Protocol

from louver.trusted.vault.index_keys import LakeKeys as TableKeys

__all__ = ["Ring", "TableKeys"]


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
