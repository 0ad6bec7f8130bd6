"""Recipes: what the server stores of a table's rows, made by the compiled module in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from louver.trusted.vault import native
from louver.trusted.vault.catalog import Table

ROW_ID = "row_id"
#: Of a column all that decides how its values are stored, beside its layers and names.
_OF_COLUMN = attrgetter(
    "name", "id", "type", "encrypted", "generation", "group", "low", "bits", "coarse"
)


@dataclass(frozen=True)
class Step:
    """What a scheme makes of the columns of a table that it reads. Holds no key."""

    #: the step of the compiled module
    handle: Any
    #: names of columns as they are declared
    reads: tuple[str, ...]
    #: the server's names of what is made; None for what is not stored
    stored: tuple[str | None, ...]


class Recipe:
    """Steps, made ready for any number of rows."""

    def __init__(
        self,
        steps: Sequence[Step],
        plain: Sequence[int] = (),
        apart: Sequence[tuple[int, str]] = (),
    ) -> None:
        """Columns are stored in the order of these steps, behind the row ids; beside them plain
        ones, by their places in the table, and those that a named scheme makes by itself.
        """
        self.plain, self.apart = plain, apart
        self.reads = list(dict.fromkeys(name for step in steps for name in step.reads))
        positions = {name: position for position, name in enumerate(self.reads)}
        parts = [
            (step.handle, [positions[name] for name in step.reads], list(step.stored))
            for step in steps
        ]
        #: how rows of raw values are sealed, and the places of those that are sealed, and plain
        self.form: Any = None
        self.places: tuple[list[int], list[int]] = ([], [])
        #: texts of statements with all values of a row, by what they do
        self.texts: dict[tuple[str, ...], str] = {}
        self.handle = native.module().recipe.Recipe(ROW_ID, parts)

    def text(self, verb: str, table: Table, write: Callable[[Table, Sequence[str]], str],
             row: Any) -> str:  # fmt: skip
        """The text that does something with all values of a row, written once."""
        known = self.texts.get((verb, *table.key))
        if known is None:
            known = self.texts[verb, *table.key] = write(table, row.names())
        return known

    def make_form(self, table: Table, types: Sequence[Any]) -> None:
        """Have rows of raw values sealed; ``types`` are those of a table's columns in Arrow."""
        names = [column.name for column in table.columns]
        self.places = [names.index(name) for name in self.reads], list(self.plain)
        plain = [
            (table.columns[position].stored["plain"], types[position]) for position in self.plain
        ]
        reads = [types[position] for position in self.places[0]]
        self.form = native.module().recipe.RowForm(self.handle, reads, plain)


def basis(table: Table) -> tuple[Any, ...]:
    """Another value whenever rows of a table are stored otherwise."""
    columns = tuple(
        (_OF_COLUMN(column), tuple(column.stored.items()), tuple(column.layers.items()))
        for column in table.columns
    )
    return columns, tuple((name, tuple(ids)) for name, ids in table.tags.items())
