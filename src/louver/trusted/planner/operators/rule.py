"""What a rule is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from louver.trusted.planner.ir import Plain, SharedExpr
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import (
    Constant,
    EncodedColumn,
    GroupRepresentative,
    HomSum,
    Masked,
    Predicate,
    Raw,
)

Value = SharedExpr | Plain | Constant | Predicate | EncodedColumn
Shown = SharedExpr | Plain | GroupRepresentative | Masked | HomSum | Raw
"""What may be a column of the answer."""
Operand = Callable[[exp.Expr], Value | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """``matches`` are the node types that ``rewrite`` looks at. ``rewrite`` gets the node, a
    function that gives an operand's rewritten form, and the scope; None passes.
    """

    name: str
    matches: tuple[type[exp.Expr], ...]
    rewrite: Callable[[exp.Expr, Operand, Scope], Value | None]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """What the server sends for an aggregate: one value, or the sum and the count of an average
    (``average``), which the client divides as DuckDB does.
    """

    values: tuple[Shown, ...]
    average: bool = False


@dataclass(frozen=True, slots=True)
class AggregateRule:
    """As `Rule`, for aggregates."""

    name: str
    matches: tuple[type[exp.Expr], ...]
    rewrite: Callable[[exp.Expr, Operand, Scope], Aggregate | None]
