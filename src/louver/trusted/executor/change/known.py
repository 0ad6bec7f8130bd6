"""Plans of changes that come again, by the statement's shape as those of queries.

A plan holds while the verdict of the flow rule does, which ends with every change of a name, and
while its tables' columns are as they were: their bounds, layers and ceilings, not their rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from louver.trusted.executor.change import flow, narrowing, statement_parts
from louver.trusted.executor.context import Context
from louver.trusted.executor.state import Verdict
from louver.trusted.executor.table_basis import basis
from louver.trusted.planner.ir import ChangePlan
from louver.trusted.planner.planner import MOST_VARIANTS
from louver.trusted.planner.settings import PlannerSettings
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Table

_NOTHING = lexer.Shape("", (), ())
_MOST_TEXTS = 512


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A plan and what it holds for: ``flow`` is where its verdict is kept, ``bound`` the values of
    placeholders by their classes, ``fixed`` numbers of the text as they are.
    """

    plan: ChangePlan
    verdict: Verdict
    flow: tuple[tuple[str, str], str]
    #: those that it was made under, and those without openings, where it opens nothing
    settings: tuple[PlannerSettings, ...]
    revision: int
    path: tuple[str, ...]
    basis: tuple[Any, ...]
    bound: tuple[tuple[int, str], ...]
    fixed: tuple[tuple[int, str], ...]


@dataclass(slots=True)
class _Plans:
    """A session's plans of changes by the text without its numbers; the oldest go first."""

    by_text: dict[str, list[Known]] = field(default_factory=dict)


def find(
    context: Context, words: statement_parts.Words, text: str, shape: lexer.Shape
) -> ChangePlan | None:
    """The plan of a statement, if one is known that holds for it, its flow noted once more:
    ``text`` is the key of its shape without its bound values.
    """
    known = holding(context, words, text, shape)
    rows = known.plan.rows if known is not None else None
    if known is None or (rows and not narrowing.has_values(context, rows, shape.literals)):
        return None
    flow.require_again(context, context.catalog.by_id(known.plan.target), known.verdict)
    return known.plan


def holding(
    context: Context, words: statement_parts.Words, text: str, shape: lexer.Shape
) -> Known | None:
    """The same before it is known that every constant has a value."""
    variants = context.state.cache(_Plans).by_text.get(text, ())
    return next((known for known in variants if _holds(context, known, words, shape)), None)


def keep(
    context: Context,
    words: statement_parts.Words,
    text: str,
    shape: lexer.Shape,
    table: Table,
    plan: ChangePlan,
) -> None:
    """Remember a plan of a change of a table that was just made, and judged before."""
    verdict = context.state.flows.get((table.key, text))
    tables = [context.catalog.by_id(number) for number in plan.rehearsed]
    # The rows of a file that lies elsewhere are not in the catalog.
    if verdict is None or any(other.lake for other in tables):
        return
    # How else rows are read may depend on how many there are.
    exact = plan.rows is not None and any(remote.weighed for remote in plan.rows.remotes)
    known = Known(
        plan,
        verdict,
        (table.key, text),
        _settings(context, plan),
        context.local.revision,
        context.catalog.path,
        tuple(_basis(other, exact=exact) for other in tables),
        *_values(words, shape, plan),
    )
    plans = context.state.cache(_Plans).by_text
    if len(plans) >= _MOST_TEXTS:
        plans.pop(next(iter(plans)))
    variants = plans.setdefault(text, [])
    variants.insert(0, known)
    del variants[MOST_VARIANTS:]


def _settings(context: Context, plan: ChangePlan) -> tuple[PlannerSettings, ...]:
    settings = context.planning
    opens = plan.rows is not None and bool(plan.rows.opens)
    return (settings,) if opens else (settings, replace(settings, opens_layers=False))


def _values(
    words: statement_parts.Words, shape: lexer.Shape, plan: ChangePlan
) -> tuple[tuple[tuple[int, str], ...], tuple[tuple[int, str], ...]]:
    """The classes of bound values, and the numbers and texts, that a plan holds for: of what is
    assigned to columns it knows nothing.
    """
    first, last = plan.free
    start, end = (words.tokens[first].start, words.tokens[last - 1].end) if last else (0, -1)
    free = {i for i, position in enumerate(shape.starts) if start <= position <= end}
    assigned = set(map(statement_parts.parameter_of, words.tokens[first:last]))
    written = len(shape.starts)
    bound = [i for i in range(len(words.parameters)) if i not in assigned]
    free |= {written + i for i in range(len(words.parameters)) if i not in bound}
    fixed = enumerate(shape.literals) if plan.rows is None else plan.rows.fixed
    classes = tuple((i, _class(words.parameters[i])) for i in bound)
    return classes, tuple((index, value) for index, value in fixed if index not in free)


def _class(value: object) -> str:
    return lexer.with_parameters(_NOTHING, [value]).key


def _basis(table: Table, *, exact: bool) -> tuple[Any, ...]:
    """What plans rest on, of a table: also how many rows it has, roughly or not. Were it rough
    where a plan was chosen by it, a server could tell whether a plan is an earlier one.
    """
    return (*basis(table), exact, table.row_count if exact else table.row_count.bit_length())


def _holds(
    context: Context, known: Known, words: statement_parts.Words, shape: lexer.Shape
) -> bool:
    if context.state.flows.get(known.flow) is not known.verdict:
        return False
    if (context.local.revision, context.catalog.path) != (known.revision, known.path):
        return False
    if any(_class(words.parameters[index]) != kind for index, kind in known.bound):
        return False
    if any(shape.literals[index] != value for index, value in known.fixed):
        return False
    if context.planning not in known.settings:
        return False
    tables = (context.catalog.tables.get(entry[0]) for entry in known.basis)
    pairs = zip(tables, known.basis, strict=True)
    return all(t is not None and _basis(t, exact=entry[-2]) == entry for t, entry in pairs)
