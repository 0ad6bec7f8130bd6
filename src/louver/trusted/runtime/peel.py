"""Layers of onions opened in place on the server, once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from louver import errors
from louver.trusted.planner.values import Opening

if TYPE_CHECKING:
    from louver.trusted.runtime.session import Session


def require(session: Session, openings: Sequence[Opening]) -> list[str]:
    """Open what is not open yet; sentences for the user, where there is something to say."""
    for opening in openings:
        _, column = session.catalog.column(opening.table, opening.column)
        if column.layers.get(opening.onion) not in ("join", opening.state):
            raise errors.make("internal", detail=f"the {opening.onion} layer is closed")
    return []
