"""A lazy query: planned when it is created, run when its rows are first needed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from louver import errors
from louver.trusted.client.result import SHOWN_ROWS, Result, Row, warned
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.containment import contained, face
from louver.trusted.executor.parameters import Parameters, split
from louver.trusted.planner.sql import lexer

if TYPE_CHECKING:
    from louver.trusted.executor.front import Front


@face
class Relation:
    """A query and its rows, which are fetched on first use.

    ``columns`` and ``types`` are known before anything is sent.
    """

    def __init__(
        self,
        session: Front,
        text: lexer.Text,
        parameters: list[object],
        described: list[tuple[str, str]],
        answer: Answer | None,
    ) -> None:
        """Use `Connection.sql`."""
        self._session = session
        self._text = text
        self._parameters = parameters
        self._described = described
        self._result = None if answer is None else Result(session, answer)
        self._planning_ms: dict[str, float] = {}

    @staticmethod
    def of(session: Front, sql: str, parameters: Parameters) -> Relation:
        """The relation of the last statement of a text; earlier statements run now."""
        *before, text = split(sql, parameters) or [lexer.Text("", "", ())]
        for earlier in before:
            warned(session.run(earlier, session.bound(earlier, parameters)))
        values = session.bound(text, parameters)
        described = session.described(text, values)
        if described is None:
            answer = warned(session.run(text, values))
            return Relation(session, text, values, answer.columns, answer)
        columns, planning_ms = described
        relation = Relation(session, text, values, columns, None)
        relation._planning_ms = planning_ms
        return relation

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [name for name, _ in self._described]

    @property
    def types(self) -> list[str]:
        """DuckDB's names of the columns' types."""
        return [type_ for _, type_ in self._described]

    def execute(self) -> Relation:
        """Run the query now."""
        self._ran()
        return self

    def show(self, *, max_rows: int = SHOWN_ROWS, max_width: int | None = None) -> None:
        """Write the rows to stdout as a table; of many rows the first and the last."""
        text = self.text(max_rows, max_width)
        if text:
            sys.stdout.write(text + "\n")

    def arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        return self._ran().arrow()

    def df(self) -> Any:
        """All rows as a pandas DataFrame."""
        return self._ran().df()

    def pl(self) -> Any:
        """All rows as a polars DataFrame."""
        return self._ran().pl()

    def text(self, max_rows: int = SHOWN_ROWS, max_width: int | None = None) -> str:
        """The text that `show` writes."""
        ran = self._ran()
        if ran.answer.rows is None:
            return ""
        if self.columns[:1] == ["explain_key"]:
            return "\n".join(str(row[1]) for row in ran.all())
        return ran.text(max_rows, max_width)

    def texts(self) -> list[tuple[str | None, ...]]:
        """All rows with every value as text, as DuckDB prints it."""
        return self._ran().texts()

    def fetchall(self) -> list[Row]:
        """The remaining rows as Python values."""
        return self._ran().take(None)

    def fetchmany(self, size: int = 1) -> list[Row]:
        """The next rows, at most ``size`` of them."""
        return self._ran().take(size)

    def fetchone(self) -> Row | None:
        """The next row, or None."""
        rows = self._ran().take(1)
        return rows[0] if rows else None

    def remote_sql(self) -> list[str]:
        """The SQL that each server receives; computed without sending anything."""
        if self._result is not None:
            return list(self._result.answer.remote_sql)
        return self._session.would_send(self._text, self._parameters)

    def explain(self, leakage: bool = False, format: str = "text") -> str:  # noqa: A002
        """The plan as text, json or mermaid; with ``leakage`` including what it newly reveals."""
        return self._session.explained(self._text, self._parameters, leakage=leakage, form=format)

    @property
    def times_ms(self) -> dict[str, float]:
        """Milliseconds of each step including planning; runs the query."""
        return {**self._ran().answer.times_ms, **self._planning_ms}

    @property
    def answer(self) -> Answer:
        """The executor's answer; runs the query."""
        return self._ran().answer

    def _ran(self) -> Result:
        if self._session.closed:
            raise errors.make("connection.closed")
        if self._result is None:
            with contained(self._session):
                answer = warned(self._session.run(self._text, self._parameters))
            self._result = Result(self._session, answer)
        return self._result

    def __len__(self) -> int:
        return int(self._ran().rows.num_rows)

    def __repr__(self) -> str:
        state = "not run yet" if self._result is None else "run"
        return f"<louver.Relation of {len(self._described)} columns, {state}>"
