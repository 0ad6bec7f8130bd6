"""How a column is kept: what its declaration, a policy and the profile come to."""

from __future__ import annotations

from dataclasses import dataclass

from louver.trusted.vault.levels import allows

BUNDLES = {"sealed": "access", "onion": "order"}
"""Words after USING that stand for all schemes that a ceiling allows, and their own ceiling where
none is written."""
FILES = "files"
"""What is kept of a column of a lake."""


@dataclass(frozen=True, slots=True)
class Protection:
    """How one column is kept.

    ``scheme`` is the word after USING; ``join`` names its join group; ``order`` says which order
    codes a ceiling of order means, and ``sum`` which sums; ``text`` whether it can be searched.
    """

    encrypted: bool
    scheme: str = ""
    ceiling: str = "plaintext"
    join: str = ""
    order: str = "ope"
    sum: str = "masked"
    text: bool = False

    def bundled(self, level: str) -> bool:
        """Whether a scheme of this level comes with the word and under the ceiling."""
        return self.encrypted and self.scheme in BUNDLES and allows(self.ceiling, level)


PLAIN = Protection(False)
