"""What a session may attach or name in DuckDB, of which a PostgreSQL has nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot.tokens import Token

from louver.trusted.executor.local.local import File, Files, Frame, Frames, Place


@dataclass(frozen=True, slots=True)
class NoFrames(Frames):
    """No objects of the user's process."""

    @property
    def known(self) -> Mapping[str, Frame]:
        """See `Frames`."""
        return {}


@dataclass(frozen=True, slots=True)
class NoFiles(Files):
    """No attached files."""

    frames: Frames = field(default_factory=NoFrames)

    @property
    def known(self) -> Mapping[str, File]:
        """See `Files`."""
        return {}

    @property
    def lost(self) -> set[str]:
        """See `Files`."""
        return set()

    @property
    def tables(self) -> dict[str, frozenset[Place]]:
        """See `Files`."""
        return {"": frozenset()}

    def said(self, tokens: Sequence[Token]) -> list[str]:
        """See `Files`."""
        return []
