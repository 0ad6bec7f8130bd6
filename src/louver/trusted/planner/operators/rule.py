"""What a rule is, and how the rules are applied to a node."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from sqlglot import exp

from louver.trusted.planner.ir import Plain, SharedExpr, Summed
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import (
    Constant,
    EncodedColumn,
    GroupRepresentative,
    Predicate,
    Raw,
)

Value = SharedExpr | Plain | Constant | Predicate | EncodedColumn
Shown = SharedExpr | Plain | GroupRepresentative | Summed | Raw
"""What may be a column of the answer."""
Result = TypeVar("Result")
Kind = tuple[bool, tuple[type, ...]]
"""What an operand must be: whether its tree is meant, and the types."""
MOST_MEMBERS = 1_000
"""More members of an IN than this are compared locally."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """What the server sends for an aggregate: one value, or the sum and the count of an average
    (``average``), which the client divides as DuckDB does.
    """

    values: tuple[Shown, ...]
    average: bool = False


class Rule(Generic[Result]):
    """One row of the table of operators: ``rewrite(node, scope, *operands)`` for the node types
    ``matches``. None passes.

    The annotations of ``rewrite`` are the signature: an operand of a kind of value is rewritten
    first and must come out as that kind; an operand of a kind of tree is passed as it is written.
    """

    def __init__(
        self,
        name: str,
        matches: tuple[type[exp.Expr], ...],
        rewrite: Callable[..., Result | None],
    ) -> None:
        self.name, self.matches, self.rewrite = name, matches, rewrite
        self._kinds, self._rest = _signature(rewrite)

    def signature(self, count: int) -> tuple[Kind, ...] | None:
        """The kinds of so many operands; None where the rule takes fewer or more."""
        missing = count - len(self._kinds)
        if missing < 0 or (missing and self._rest is None):
            return None
        return self._kinds if self._rest is None else (*self._kinds, *[self._rest] * missing)


Table = Mapping[type[exp.Expr], Sequence[Rule[Result]]]
"""The rules for each type of node, in the order in which they are tried."""


def by_type(rules: Sequence[Rule[Result]]) -> Table[Result]:
    """The table of these rules."""
    types = dict.fromkeys(type_ for rule in rules for type_ in rule.matches)
    return {type_: [rule for rule in rules if type_ in rule.matches] for type_ in types}


def rewritten(
    table: Table[Result],
    node: exp.Expr,
    scope: Scope,
    evaluate: Callable[[exp.Expr], Value | None],
) -> Result | None:
    """What the first rule computes that takes the node; None where no rule does. Each operand is
    evaluated at most once.
    """
    rules = table.get(type(node))
    trees = operands(node) if rules else None
    if rules is None or trees is None:
        return None
    values: dict[int, Value | None] = {}
    for rule in rules:
        kinds = rule.signature(len(trees))
        arguments: list[object] = []
        for position, (is_tree, kind) in enumerate(kinds or ()):
            if is_tree:
                argument: object = trees[position]
            elif position in values:
                argument = values[position]
            else:
                argument = values[position] = evaluate(trees[position])
            if not isinstance(argument, kind):
                break
            arguments.append(argument)
        if kinds is not None and len(arguments) == len(trees):
            result = rule.rewrite(node, scope, *arguments)
            if result is not None:
                return result
    return None


def operands(node: exp.Expr) -> tuple[exp.Expr, ...] | None:
    """The operands of a node; None where it bears a mark that no rule knows."""
    match node:
        case exp.Neg():
            return (node.this,)
        case exp.Between():
            marked = node.args.get("symmetric")
            return None if marked else (node.this, node.args["low"], node.args["high"])
        case exp.In():
            members = node.expressions
            return (node.this, *members) if 0 < len(members) <= MOST_MEMBERS else None
        case exp.Is() if node.args.get("negate"):
            return None
        case exp.Like():
            # NOT LIKE and ESCAPE are marks on the same node, and no filter follows from these.
            marks = set(filter(node.args.get, node.args)) - {"this", "expression"}
            return None if marks else (node.this, node.expression)
        case exp.AggFunc():
            return _aggregated(node)
    return (node.this, node.expression)


_AGGREGATE_WORDS = frozenset(("this", "big_int"))


def _aggregated(node: exp.AggFunc) -> tuple[exp.Expr, ...] | None:
    inner = node.this
    if inner is None or isinstance(inner, exp.Star):
        return ()
    if isinstance(node, exp.Count) and isinstance(inner, exp.Distinct):
        return (inner, *inner.expressions)
    # What is written beside the operand, as the 2 of max(a, 2), makes another aggregate of it.
    return None if set(filter(node.args.get, node.args)) - _AGGREGATE_WORDS else (inner,)


def _signature(rewrite: Callable[..., object]) -> tuple[tuple[Kind, ...], Kind | None]:
    """The kinds of the operands, and that of any further ones."""
    hints = get_type_hints(rewrite)
    _, _, *parameters = inspect.signature(rewrite).parameters.values()
    kinds = [(_kind(hints[item.name]), item.kind is item.VAR_POSITIONAL) for item in parameters]
    rest = next((kind for kind, further in kinds if further), None)
    return tuple(kind for kind, further in kinds if not further), rest


def _kind(annotation: Any) -> Kind:
    types = get_args(annotation) or (annotation,)
    return issubclass(types[0], exp.Expr), types
