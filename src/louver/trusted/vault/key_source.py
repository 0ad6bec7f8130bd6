"""Where schemes get their keys."""

from __future__ import annotations

from typing import Protocol

from louver.trusted.vault.keyring import HomSpace, KeyRing, SdbSpace


class KeySource(Protocol):
    """The keys of one database. Primes of a space are found at its first use."""

    @property
    def keyring(self) -> KeyRing:
        """The keys that derive from the root secret."""
        ...

    @property
    def space(self) -> SdbSpace:
        """The space of shares."""
        ...

    @property
    def hom_space(self) -> HomSpace:
        """The space of packed sums."""
        ...
