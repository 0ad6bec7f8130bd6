"""Shortcuts of `Relation` for one window function, as DuckDB's relations have them."""

from __future__ import annotations

from typing import Self

from louver.trusted.client import composition
from louver.trusted.client.aggregates import Aggregates
from louver.trusted.executor.containment import face


@face
class Windows(Aggregates):
    """Each method gives a value for each row; ``window_spec`` is as in ``over (order by a)``."""

    def row_number(self, window_spec: str, projected_columns: str = "") -> Self:
        """The number of each row, from 1."""
        return self._applied(["row_number()"], "", window_spec, projected_columns)

    def rank(self, window_spec: str, projected_columns: str = "") -> Self:
        """The rank of each row, with gaps after equal ones."""
        return self._applied(["rank()"], "", window_spec, projected_columns)

    def dense_rank(self, window_spec: str, projected_columns: str = "") -> Self:
        """The rank of each row, without gaps."""
        return self._applied(["dense_rank()"], "", window_spec, projected_columns)

    rank_dense = dense_rank

    def percent_rank(self, window_spec: str, projected_columns: str = "") -> Self:
        """The relative rank of each row, from 0 to 1."""
        return self._applied(["percent_rank()"], "", window_spec, projected_columns)

    def cume_dist(self, window_spec: str, projected_columns: str = "") -> Self:
        """The share of rows that are not behind each row."""
        return self._applied(["cume_dist()"], "", window_spec, projected_columns)

    def n_tile(self, window_spec: str, num_buckets: int, projected_columns: str = "") -> Self:
        """The bucket of each row, of ``num_buckets`` equal ones."""
        return self._applied([f"ntile({int(num_buckets)})"], "", window_spec, projected_columns)

    def lag(
        self,
        expression: str,
        window_spec: str,
        offset: int = 1,
        default_value: str = "NULL",
        ignore_nulls: bool = False,
        projected_columns: str = "",
    ) -> Self:
        """The value ``offset`` rows before."""
        nulls = " IGNORE NULLS" if ignore_nulls else ""
        value, default = map(composition.expression, (expression, default_value))
        call = f"lag({value}, {int(offset)}, {default}{nulls})"
        return self._applied([call], "", window_spec, projected_columns)

    def lead(
        self,
        expression: str,
        window_spec: str,
        offset: int = 1,
        default_value: str = "NULL",
        ignore_nulls: bool = False,
        projected_columns: str = "",
    ) -> Self:
        """The value ``offset`` rows behind."""
        nulls = " IGNORE NULLS" if ignore_nulls else ""
        value, default = map(composition.expression, (expression, default_value))
        call = f"lead({value}, {int(offset)}, {default}{nulls})"
        return self._applied([call], "", window_spec, projected_columns)

    def first_value(
        self, expression: str, window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The value of the first row of the window."""
        call = f"first_value({composition.expression(expression)})"
        return self._applied([call], "", window_spec or "over ()", projected_columns)

    def last_value(
        self, expression: str, window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The value of the last row of the window."""
        call = f"last_value({composition.expression(expression)})"
        return self._applied([call], "", window_spec or "over ()", projected_columns)

    def nth_value(
        self,
        expression: str,
        window_spec: str,
        offset: int,
        ignore_nulls: bool = False,
        projected_columns: str = "",
    ) -> Self:
        """The value of the row number ``offset`` of the window, from 1."""
        nulls = " IGNORE NULLS" if ignore_nulls else ""
        call = f"nth_value({composition.expression(expression)}, {int(offset)}{nulls})"
        return self._applied([call], "", window_spec, projected_columns)
