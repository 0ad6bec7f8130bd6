"""How a column is kept: what its declaration, a policy and the profile come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from louver.trusted.vault.levels import allows

SEALED, ONION = "sealed", "onion"
BUNDLES = {SEALED: "access", ONION: "order"}
"""Words after USING that stand for all schemes that a ceiling allows, and their own ceiling where
none is written."""
Word = str | bool
"""What an entry of a policy says."""
FILES = "files"
"""What is kept of a column of a lake."""


@dataclass(frozen=True, slots=True)
class Protection:
    """How one column is kept.

    ``scheme`` is the word after USING; ``join`` names its join group; ``words`` are what
    the entries of the schemes say (`scheme.word`), where that is not meant anyway.
    """

    encrypted: bool
    scheme: str = ""
    ceiling: str = "plaintext"
    join: str = ""
    words: Mapping[str, Word] = field(default_factory=dict, hash=False)

    def bundled(self, level: str) -> bool:
        """Whether a scheme of this level comes with the word and under the ceiling."""
        return self.encrypted and self.scheme in BUNDLES and allows(self.ceiling, level)


PLAIN = Protection(False)
