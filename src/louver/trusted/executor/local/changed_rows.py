"""What a change does to the rows of tables, as an engine reads it off (`Binder.effect_of`), and
which rows a query meets (`Binder.met_by`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from louver.names import quoted
from louver.trusted.executor.local.local import Described


@dataclass(frozen=True, slots=True)
class Filled:
    """Rows of a table, in the order of their numbers, with every column that is not generated.
    ``is_watched``: whether what changes in it is asked for; ``is_partial``: whether columns may be
    left out.
    """

    schema: str
    name: str
    rows: pa.Table
    is_watched: bool = True
    is_partial: bool = False

    @property
    def path(self) -> str:
        """The table's name as SQL."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"


@dataclass(frozen=True, slots=True)
class Changed:
    """What a change does to one table: the numbers of the rows, as they were filled in, that are
    no longer as they were, and the rows that there are instead or besides. An updated row is among
    both, also where all its values are the same.
    """

    gone: pa.Array
    fresh: pa.Table


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a statement did: by table, its command tag's number of rows, and what it returned."""

    changed: dict[tuple[str, str], Changed]
    affected: int
    columns: Described
    rows: pa.Table | None


@dataclass(frozen=True, slots=True)
class MetRows:
    """What a query returned, and for each of some tables the numbers of the rows, as they were
    filled in, that the rows of the answer are made of.
    """

    columns: Described
    rows: pa.Table
    met: Sequence[pa.Array]
