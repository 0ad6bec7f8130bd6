"""Plan a private question: parse, resolve, split, and choose the protocol."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from louver import errors
from louver.trusted.planner.private import conditions, describe, grouping, marks, names, parse, rows
from louver.trusted.planner.private.aggregates import has_aggregate
from louver.trusted.planner.private.grouping import Answer
from louver.trusted.planner.private.items import group_list, order_list, select_list
from louver.trusted.planner.private.postcondition import require_public
from louver.trusted.planner.private.question import Clause, Condition, Question
from louver.trusted.planner.private.refusal import refuse
from louver.trusted.planner.private.schema import Schema, schema_of
from louver.trusted.planner.private.secrets import Comparand, Values, comparand
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.trees import local_text
from louver.wire.questions import Dataset, Protocol

_STDEV = re.compile(r"\bstdev\s*\(", re.IGNORECASE)


def plan(
    text: lexer.Text, parameters: list[object], dataset: Dataset, parties: int, scheme: str
) -> Question:
    """The plan of one statement of private questions.

    Args:
        text: one statement, from `lexer.split`.
        parameters: the values of its placeholders, in the order of ``text.parameters``.
        dataset: the providers' data set.
        parties: the number of providers, 2 or more.
        scheme: ``paillier`` for sums over three or more providers with Paillier; anything else
            means one-way functions.

    Raises:
        provider.language: outside of the language, with an alternative.
        sql.syntax, table.missing, column.missing: as everywhere.
    """
    schema = schema_of(dataset)
    key = (text.plain, text.parameters, parties > 2, scheme == "paillier")
    return schema.plans.question(
        key, parameters, lambda types: _planned(text, types, schema, parties, scheme)
    )


def _planned(
    text: lexer.Text, types: tuple[str, ...], schema: Schema, parties: int, scheme: str
) -> Question:
    """The plan in which parameters of secrets are positions among those of the statement."""
    typed = marks.typed(text.plain, types, texts=False)
    select = _read(text.plain, typed, schema)
    scope, source = names.read_sources(select, schema)
    items = select_list(select, scope)
    where = select.args.get("where")
    condition = None if where is None else scope.resolved(where.this, aliases=scope.aliases)
    split = conditions.split(condition)
    described = _described(typed, schema)
    if len(described) != len(items):
        raise refuse("a select list with an unclear number of columns", "Name the columns")
    compared = _comparands(split, source, schema)
    values = Values(schema, types)
    clauses = tuple(values.clause(clause, compared, split.interval) for clause in split.clauses)
    plain = [not has_aggregate(item) for item in items]
    groups = group_list(select, scope, items, plain)
    orders = order_list(select, scope, items)
    public = grouping.Public(
        schema,
        source,
        " AND ".join(_bracketed(node) for node in split.public),
        tuple(of.sql for key, of in compared.items() if key != split.interval),
        compared[split.interval].sql if split.interval else "",
    )
    way = _way(split, parties, scheme)
    is_grouped = bool(select.args.get("group") or select.args.get("having")) or any(
        has_aggregate(node) for node in (*items, *(order.node for order in orders))
    )
    if is_grouped:
        answer = grouping.answer(select, scope, items, groups, orders, public, way, described)
    else:
        answer = rows.answer(select, items, orders, public, way, described)
    return _question(answer, clauses or (Clause(),), split, described, scope)


def _read(plain: str, typed: str, schema: Schema) -> exp.Select:
    try:
        return parse.read(plain)
    except errors.Error as error:
        if error.code == "sql.syntax":
            # DuckDB gives a better message for a syntax error, if it also refuses the text.
            _described(typed, schema)
        raise


def _described(typed: str, schema: Schema) -> list[tuple[str, str]]:
    """Names and types of the answer, from DuckDB's binder on the original statement."""
    try:
        return schema.describe(typed)
    except errors.Error as error:
        if "Macro Function" not in error.message:
            raise
    # DuckDB supports FILTER for STDDEV, but not for the macro STDEV.
    return schema.describe(_STDEV.sub("stddev(", typed))


def _comparands(split: conditions.Split, source: str, schema: Schema) -> dict[str, Comparand]:
    comparands = {}
    for key, node in split.expressions.items():
        type_ = schema.describe(f"SELECT {local_text(node)} FROM {source}")[0][1]
        comparands[key] = comparand(node, type_, interval=key == split.interval)
    return comparands


def _bracketed(node: exp.Expr) -> str:
    text = local_text(node)
    return f"({text})" if isinstance(node, exp.Or | exp.And) else text


def _way(split: conditions.Split, parties: int, scheme: str) -> grouping.Way:
    """The protocols for a question with this condition (Splinter, sections 5.2 and 6.2)."""
    if len(split.clauses) > 1:
        condition = Condition.DISJOINT
    else:
        condition = Condition.INTERVAL if split.interval else Condition.SINGLE
    bounded = bool(split.interval)
    if parties > 2:
        records = Protocol.DYADIC if bounded else Protocol.BUCKETS
        sums = Protocol.PAILLIER if scheme == "paillier" and split.clauses else None
        return grouping.Way(condition, records, sums, None)
    records = Protocol.NODES if bounded else Protocol.SELECT
    sums = Protocol.SUM if bounded else None
    # A row's key follows its index as one point, which an interval is not.
    searched = condition is Condition.DISJOINT and not bounded
    search = Protocol.SEARCH if searched else None
    return grouping.Way(condition, records, sums, search)


def _question(
    answer: Answer,
    clauses: tuple[Clause, ...],
    split: conditions.Split,
    described: Sequence[tuple[str, str]],
    scope: names.Scope,
) -> Question:
    for shape in (answer.shape, *(other.shape for other in answer.alternatives)):
        require_public(shape)
    return Question(
        shape=answer.shape,
        alternatives=answer.alternatives,
        clauses=clauses,
        finish=answer.finish,
        names=tuple(name for name, _ in described),
        types=tuple(type_ for _, type_ in described),
        private=describe.private_lines(answer.shape, split),
        public=describe.public_lines(answer.shape, split),
        condition=answer.condition,
        tables=tuple(dict.fromkeys(source.table.name for source in scope.sources)),
    )
