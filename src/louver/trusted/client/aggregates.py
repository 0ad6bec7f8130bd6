"""Shortcuts of `Relation` for one aggregate function, as DuckDB's relations have them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

from louver.trusted.client import composition
from louver.trusted.executor.containment import face


@face
class Aggregates(ABC):
    """Each method gives a relation with the columns ``projected_columns`` and one function.

    ``expression`` is a column or an expression, or several. ``groups`` are the expressions to group
    by. With ``window_spec``, as in ``over (partition by a)``, each row has a value.
    """

    @abstractmethod
    def aggregate(self, aggr_expr: object, group_expr: str = "") -> Self:
        """Expressions of each group."""

    @abstractmethod
    def project(self, *args: object) -> Self:
        """Expressions of each row."""

    def _applied(
        self, calls: Sequence[str], groups: str, window_spec: str, projected_columns: str
    ) -> Self:
        """Calls of functions as aggregates, or over a window."""
        window = f" {composition.expression(window_spec)}" if window_spec else ""
        items = [composition.expression(projected_columns)] if projected_columns else []
        items += [call + window for call in calls]
        if window:
            return self.project(", ".join(items))
        return self.aggregate(", ".join(items), groups)

    def apply(
        self,
        function_name: str,
        function_aggr: str,
        group_expr: str = "",
        function_parameter: str = "",
        projected_columns: str = "",
    ) -> Self:
        """Any aggregate function, with further arguments in ``function_parameter``."""
        more = f", {composition.expression(function_parameter)}" if function_parameter else ""
        calls = [f"{function_name}({item}{more})" for item in composition.items(function_aggr)]
        return self._applied(calls, group_expr, "", projected_columns)

    def count(
        self,
        expression: str = "*",
        groups: str = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Self:
        """The number of rows, or of values that are not NULL."""
        calls = [f"count({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def any_value(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The first value that is not NULL."""
        calls = [f"any_value({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def avg(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The average."""
        calls = [f"avg({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def bit_and(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """All bits joined by AND."""
        calls = [f"bit_and({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def bit_or(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """All bits joined by OR."""
        calls = [f"bit_or({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def bit_xor(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """All bits joined by XOR."""
        calls = [f"bit_xor({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def bitstring_agg(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """A bit for each value."""
        calls = [f"bitstring_agg({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def bool_and(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """Whether all values are true."""
        calls = [f"bool_and({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def bool_or(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """Whether a value is true."""
        calls = [f"bool_or({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def favg(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The average, summed with less rounding."""
        calls = [f"favg({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def fsum(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The sum with less rounding."""
        calls = [f"fsum({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def geomean(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The geometric mean."""
        calls = [f"geomean({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def histogram(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """How often each value occurs, as a MAP."""
        calls = [f"histogram({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def list(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The values as a list."""
        calls = [f"list({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def max(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The largest value."""
        calls = [f"max({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def mean(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The average."""
        calls = [f"avg({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def median(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The median."""
        calls = [f"median({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def min(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The smallest value."""
        calls = [f"min({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def mode(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The most frequent value."""
        calls = [f"mode({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def product(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The product."""
        calls = [f"product({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def stddev(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The standard deviation of a sample."""
        calls = [f"stddev_samp({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def std(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The standard deviation of a sample."""
        calls = [f"stddev_samp({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def stddev_pop(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The standard deviation of the whole."""
        calls = [f"stddev_pop({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def stddev_samp(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The standard deviation of a sample."""
        calls = [f"stddev_samp({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def sum(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The sum."""
        calls = [f"sum({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def var(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The variance of a sample."""
        calls = [f"var_samp({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def variance(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The variance of a sample."""
        calls = [f"var_samp({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def var_pop(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The variance of the whole."""
        calls = [f"var_pop({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def var_samp(
        self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Self:
        """The variance of a sample."""
        calls = [f"var_samp({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def first(self, expression: str, groups: str = "", projected_columns: str = "") -> Self:
        """The first value."""
        calls = [f"first({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, "", projected_columns)

    def last(self, expression: str, groups: str = "", projected_columns: str = "") -> Self:
        """The last value."""
        calls = [f"last({item})" for item in composition.items(expression)]
        return self._applied(calls, groups, "", projected_columns)

    def string_agg(
        self,
        expression: str,
        sep: str = ",",
        groups: str = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Self:
        """The values as one text, with ``sep`` between them."""
        separator = sep.replace("'", "''")
        calls = [f"string_agg({item}, '{separator}')" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def arg_max(
        self,
        arg_column: str,
        value_column: str,
        groups: str = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Self:
        """``arg_column`` of the row with the largest ``value_column``."""
        calls = [
            f"arg_max({composition.expression(arg_column)}, {composition.expression(value_column)})"
        ]
        return self._applied(calls, groups, window_spec, projected_columns)

    def arg_min(
        self,
        arg_column: str,
        value_column: str,
        groups: str = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Self:
        """``arg_column`` of the row with the smallest ``value_column``."""
        calls = [
            f"arg_min({composition.expression(arg_column)}, {composition.expression(value_column)})"
        ]
        return self._applied(calls, groups, window_spec, projected_columns)

    def quantile_disc(
        self,
        expression: str,
        q: float | Sequence[float] = 0.5,
        groups: str = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Self:
        """The value at a quantile between 0 and 1, or a list of values."""
        calls = [f"quantile_disc({item}, {_quantile(q)})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    quantile = quantile_disc

    def quantile_cont(
        self,
        expression: str,
        q: float | Sequence[float] = 0.5,
        groups: str = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Self:
        """The interpolated value at a quantile between 0 and 1, or a list of values."""
        calls = [f"quantile_cont({item}, {_quantile(q)})" for item in composition.items(expression)]
        return self._applied(calls, groups, window_spec, projected_columns)

    def value_counts(self, expression: str, groups: str = "") -> Self:
        """Each value with the number of its rows."""
        item = composition.expression(expression)
        return self._applied([item, f"count({item})"], groups, "", "")


def _quantile(q: float | Sequence[float]) -> str:
    return (
        f"[{', '.join(repr(float(x)) for x in q)}]" if isinstance(q, Sequence) else repr(float(q))
    )
