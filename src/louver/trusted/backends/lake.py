"""Files of a lake: nothing is computed where they are, but which of them are fetched is chosen."""

from __future__ import annotations

from louver.trusted.backends.backend import Backend, Costs

BACKEND = Backend(
    "lake",
    storage="files",
    computes=False,
    narrowed="files",
    keys_choose=True,
    catalog_counts=False,
    adds_columns=True,
    # Files that are not fetched are saved, however many rows a guess says are left.
    costs=Costs(most_left=1.0),
)
