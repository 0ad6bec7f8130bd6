"""What a statement gives back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa


class Notice(str):
    """What PostgreSQL remarks on a statement, with the fields of its message."""

    sqlstate, severity, detail, hint = "00000", "NOTICE", "", ""

    @classmethod
    def of(
        cls, sqlstate: str, message: str, severity: str = "NOTICE", detail: str = "", hint: str = ""
    ) -> Notice:  # fmt: skip
        """A notice, or a warning."""
        own = cls(message)
        own.sqlstate, own.severity, own.detail, own.hint = sqlstate, severity, detail, hint
        return own


@dataclass(slots=True)
class Answer:
    """Rows (Arrow without loss) with DuckDB's names and types, or the number of rows touched.

    ``times_ms`` are the milliseconds of each step, ``remote_sql`` what the server was sent.
    """

    rows: pa.Table | None = None
    columns: list[tuple[str, str]] = field(default_factory=list)
    affected: int = -1
    times_ms: dict[str, float] = field(default_factory=dict)
    remote_sql: list[str] = field(default_factory=list)
    home_sql: str = ""
    notices: list[str] = field(default_factory=list)
    #: of a query that locks rows: which of its rows, from one on, are still those that it locked
    alive: Callable[[int], list[int]] | None = None

    @property
    def count(self) -> int:
        """The number of rows; -1 where there are none to count."""
        return -1 if self.rows is None else int(self.rows.num_rows)

    @property
    def values(self) -> list[tuple[Any, ...]] | None:
        """The rows as Python's values, where they are there without Arrow's."""
        return None


class OpenedRows(Protocol):
    """Rows that the compiled module holds (`louver._rust.look_ups.Opened`)."""

    def __len__(self) -> int: ...

    def arrays(self) -> list[pa.Array]:
        """All columns."""
        ...

    def rows(self, columns: list[int]) -> list[tuple[Any, ...]] | None:
        """Some columns' values as Python's; None where these have several forms."""
        ...


class OpenedAnswer(Answer):
    """Rows that become Arrow's when somebody reads them so."""

    def __init__(
        self, opened: OpenedRows, shown: list[int], columns: list[tuple[str, str]], sql: str
    ) -> None:
        """``shown`` are the opened columns that are the answer's, in its order; ``sql`` is what the
        server was sent.
        """
        self._opened, self._shown = opened, shown
        self._table: pa.Table | None = None
        super().__init__(None, columns, remote_sql=[sql])

    @property
    def rows(self) -> pa.Table | None:
        """The rows in Arrow."""
        if self._table is None:
            arrays = self._opened.arrays()
            names = [name for name, _ in self.columns]
            self._table = pa.Table.from_arrays([arrays[at] for at in self._shown], names)
        return self._table

    @rows.setter
    def rows(self, table: pa.Table | None) -> None:
        self._table = table

    @property
    def count(self) -> int:
        return len(self._opened) if self._table is None else self._table.num_rows

    @property
    def values(self) -> list[tuple[Any, ...]] | None:
        return self._opened.rows(self._shown) if self._table is None else None


@dataclass(frozen=True, slots=True)
class Described:
    """What is known of a query before it runs."""

    #: names and types of its columns; None where the rows decide them
    columns: list[tuple[str, str]] | None
    #: the milliseconds of planning
    times_ms: dict[str, float] = field(default_factory=dict)


_LISTENER: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Call a function with the name of each step that begins."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


class Clock:
    """The milliseconds of each step of a statement."""

    def __init__(self) -> None:
        self.times_ms: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add the time of the block to a step."""
        listener = _LISTENER.get()
        if listener is not None:
            listener(name)
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = (time.perf_counter() - start) * 1000
            self.times_ms[name] = self.times_ms.get(name, 0.0) + spent
