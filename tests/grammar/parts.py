"""The parts of queries: tables, conditions, orders, aggregates."""

from __future__ import annotations

from random import Random

from tests.grammar.expressions import Expressions, Scope, named
from tests.grammar.types import KEYS, Tab

AGGREGATES = (
    "count(*)", "count({any})", "count(DISTINCT {key})", "sum({small})", "avg({small})",
    "min({key})",
    "max({key})", "bool_and({bool})", "bool_or({bool})", "sum(DISTINCT {small})", "median({small})",
    "string_agg({text}, '|' ORDER BY {text})", "list({key} ORDER BY {key} NULLS LAST)",
    "array_agg(DISTINCT {key} ORDER BY {key})", "round(stddev_samp({small}), 6)", "product({tiny})",
    "quantile_disc({key}, 0.5)", "bit_and({small})", "bit_xor({small})", "histogram({key})",
    "first({key} ORDER BY {key})", "arg_min({key}, {key}) IS NULL", "count_if({bool})",
    "kurtosis({tiny}) IS NULL",
    "max({key}, 2)", "round(corr({tiny}, {tiny}), 6)", "mode({tiny}) IS NULL", "bit_or({small})",
    "quantile_cont({small}, 0.25)", "sum({float0})", "avg({float0})", "entropy({tiny}) >= 0",
    "min({text} COLLATE C)", "fsum({float0})", "sum({dec})", "sum(TRY_CAST({int} AS INTEGER))",
)  # fmt: skip
WINDOWS = (
    "row_number()", "rank()", "dense_rank()", "ntile(3)", "lag({key})", "lead({key}, 2)",
    "first_value({key})",
    "last_value({key})", "nth_value({key}, 2)", "count(*)", "sum({small})", "min({key})",
    "max({key})",
    "percent_rank()", "cume_dist()", "lag({key}, 1, NULL)", "count({any}) FILTER (WHERE {bool})",
    "list({key})", "first_value({key} IGNORE NULLS)",
)  # fmt: skip


class Parts:
    """Draws parts of queries over tables."""

    def __init__(self, dice: Random, tables: list[Tab]) -> None:
        self.dice = dice
        self.tables = tables

    def table(self) -> Tab:
        """One of the tables."""
        return self.dice.choice(self.tables)

    def expressions(self, scope: Scope, safe: bool = True) -> Expressions:
        """The expressions of a scope."""
        return Expressions(self.dice, scope, safe)

    def chance(self, share: float) -> bool:
        """Yes in this share of cases."""
        return self.dice.random() < share

    def where(self, scope: Scope, share: float = 0.5, safe: bool = True) -> str:
        """A WHERE, or none."""
        if not self.chance(share):
            return ""
        parts = [self.expressions(scope, safe).condition(self.dice.choice((1, 1, 2)))]
        if safe and self.chance(0.3):
            parts.append(self.expressions(scope).condition(1))
        return " WHERE " + self.dice.choice((" AND ", " OR ")).join(parts)

    def ordered(self, limited: bool = True) -> str:
        """An order of all columns, perhaps with a limit: of all, so that it is total."""
        if not self.chance(0.45):
            return ""
        words = self.dice.choice(
            ("", " DESC", " NULLS FIRST", " DESC NULLS LAST", " ASC NULLS FIRST")
        )
        limits = (
            "", "", f" LIMIT {self.dice.randrange(5)}",
            f" LIMIT {self.dice.randrange(1, 4)} OFFSET {self.dice.randrange(3)}", " OFFSET 2",
            " LIMIT 40%",
        )  # fmt: skip
        return f" ORDER BY ALL{words}{self.dice.choice(limits) if limited else ''}"

    def key(self, scope: Scope) -> str:
        """A value whose equals do not differ."""
        fitting = [entry for entry in scope if entry[1].family in KEYS]
        if fitting and self.chance(0.8):
            return named(self.dice.choice(fitting))
        return self.expressions(scope).of(self.dice.choice(KEYS), 1)

    def aggregate(self, scope: Scope, forms: tuple[str, ...] = AGGREGATES) -> str:
        """An aggregate of the scope."""
        expressions, text = self.expressions(scope), self.dice.choice(forms)
        key = self.key(scope)
        small = f"TRY_CAST({expressions.of('int', 1)} AS BIGINT) % 1000"
        tiny = f"TRY_CAST({expressions.of('int', 1)} AS BIGINT) % 5"
        number = expressions.of("float", 0)
        for mark, given in (
            ("{key}", key), ("{small}", small), ("{tiny}", tiny),
            ("{float0}", f"CASE WHEN abs({number}) < 1e6 THEN round({number}) END"),
            ("{any}", expressions.any(1)),
        ):  # fmt: skip
            text = text.replace(mark, given)
        for family in ("bool", "dec", "int", "text"):
            text = text.replace(
                f"{{{family}}}", expressions.of(family, 0 if family != "bool" else 1)
            )
        return text

    def items(self, scope: Scope, safe: bool = True, names: bool = False) -> str:
        """A list of expressions."""
        items = []
        for number in range(self.dice.choice((1, 1, 2, 3))):
            text = self.expressions(scope, safe).any(self.dice.choice((0, 1, 2, 3)))
            items.append(f"{text} AS e{number}" if names or self.chance(0.6) else text)
        return ", ".join(items)
