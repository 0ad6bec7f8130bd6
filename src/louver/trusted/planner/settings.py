"""What a session has chosen for its plans, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field

from louver.trusted.planner.cost import Link

Place = tuple[int, int]
"""Table and column by their ids."""


@dataclass(frozen=True, slots=True)
class PlannerSettings:
    """The switches of the planner; plans are remembered under them.

    ``local_processing`` tells whether a query may be finished locally, ``opens_layers`` whether a
    plan may open layers of onions. Where tables are ``apart``, on several servers, no request may
    name two of them. ``compares_codes`` tells whether codes and tags of constants may be made,
    which needs their values. ``link`` is the way to the server, ``stopped`` are the columns that
    no server is to add up.
    """

    local_processing: bool = True
    opens_layers: bool = True
    apart: bool = False
    compares_codes: bool = True
    link: Link = field(default_factory=Link)
    stopped: frozenset[Place] = frozenset()


DEFAULT = PlannerSettings()
