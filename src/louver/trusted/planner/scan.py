"""Split, last choice: table by table with pruned columns and pushed filters; the user's own text
then runs at home. This is what makes any SELECT run that DuckDB runs.

Nothing here needs to understand the query exactly. A column is left out only where its name
stands nowhere in the text; a filter is pushed only where it filters the one occurrence of its
table, and DuckDB at home applies it once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from louver.trusted.planner import choose, rewrite, selection
from louver.trusted.planner.lexer import PARAMETER_PREFIX, Shape
from louver.trusted.planner.plan import Output, Plan, Remote
from louver.trusted.planner.remote import Node
from louver.trusted.planner.scope import Scope, Source
from louver.trusted.planner.values import Leak
from louver.trusted.vault.catalog import Table

Describe = Callable[[str], list[tuple[str, str]]]


def plan_scans(
    tree: exp.Expr | None,
    found: Sequence[Token],
    tables: list[Table],
    shape: Shape,
    modulus_bits: int,
    parameters: list[object],
    describe: Describe,
    resolve: selection.Resolve,
) -> Plan:
    """One scan per table that the statement names, directly or through a view."""
    names = (
        None
        if tree is None or _reads_all(tree, found, tables)
        else {token.text.lower() for token in found}
    )
    filters = (
        {} if tree is None else _filters(tree, shape, modulus_bits, parameters, describe, resolve)
    )
    remotes: list[Remote] = []
    leaks: list[Leak] = []
    for table in tables:
        slot, where, shown = filters.get(table.id, (0, [], []))
        source = Source(slot, table.name, table)
        outputs = [_output(source, column.name, names) for column in table.columns]
        remote = Remote((table.schema, table.name), [source], [], outputs, where)
        remote.whole_table = not where
        remotes.append(remote)
        leaks += [leak for leak in (*shown, *choose.reads(remote)) if leak not in leaks]
    secret = any(out.kind == "sealed" for remote in remotes for out in remote.outputs)
    return Plan("scans" if remotes else "home", remotes, "", leaks, reads_secret=secret)


def _output(source: Source, name: str, names: set[str] | None) -> Output:
    if names is None or name.lower() in names:
        return choose.stored(name, source, name)
    column = source.table.column(name)
    return Output(name, "absent", column.type if column else "INTEGER")


def _reads_all(tree: exp.Expr, found: Sequence[Token], tables: list[Table]) -> bool:
    """Whether columns may be read without being named."""
    if isinstance(tree, exp.Command) or not isinstance(tree, exp.Query):
        return True
    if any(token.token_type == TokenType.HASH for token in found):
        return True
    for star in tree.find_all(exp.Star):
        if not isinstance(star.parent, exp.Count):
            return True
    if any(True for _ in tree.find_all(exp.Columns, exp.Pivot, exp.Summarize, exp.Table)):
        for join in tree.find_all(exp.Join):
            if join.args.get("method"):
                return True
        if any(True for _ in tree.find_all(exp.Columns, exp.Pivot, exp.Summarize)):
            return True
    # A table's name or alias used as a column is the whole row.
    rows = {table.name.lower() for table in tables}
    rows |= {alias.name.lower() for alias in tree.find_all(exp.TableAlias)}
    return any(column.name.lower() in rows for column in tree.find_all(exp.Column))


def _filters(
    tree: exp.Expr,
    shape: Shape,
    modulus_bits: int,
    parameters: list[object],
    describe: Describe,
    resolve: selection.Resolve,
) -> dict[int, tuple[int, list[Node], list[Leak]]]:
    """Conditions per table id that the server may apply before it sends rows."""
    occurrences: dict[int, int] = {}
    for node in tree.find_all(exp.Table):
        table = resolve(node)
        if table is not None:
            occurrences[table.id] = occurrences.get(table.id, 0) + 1
    filters: dict[int, tuple[int, list[Node], list[Leak]]] = {}
    for select in tree.find_all(exp.Select):
        where = select.args.get("where")
        if where is None:
            continue
        try:
            sources = selection.sources_of(select, resolve)
        except selection.Unsplit:
            continue
        scope = Scope(sources, shape, modulus_bits, parameters)
        rewrite.ask_types(select, scope, describe)
        for source in _preserved(select, sources):
            if occurrences.get(source.table.id) == 1:
                nodes = _pushed(where.this, source, scope)
                if nodes:
                    leaks = list(scope.collected.leaks)
                    filters[source.table.id] = (source.slot, nodes, leaks)
    return filters


def _preserved(select: exp.Select, sources: list[Source]) -> list[Source]:
    """The occurrences whose missing rows no outer join would turn into NULLs."""
    joins = select.args.get("joins") or []
    kept = [sources[0]]
    for source, join in zip(sources[1:], joins, strict=True):
        if selection.join_kind(join) != "LEFT JOIN":
            kept.append(source)
    return kept


def _pushed(condition: exp.Expr, source: Source, scope: Scope) -> list[Node]:
    alone = Scope([source], scope.shape, scope.modulus_bits, scope.parameters, scope.types)
    nodes: list[tuple[bool, Node]] = []
    for part in selection.conjuncts(condition):
        columns = list(part.find_all(exp.Column))
        owned = [_is_parameter(c) or (_owns(alone, c) and scope.find(c)) for c in columns]
        if not all(owned):
            continue
        found = rewrite.predicate(part, alone)
        if found is not None:
            nodes.append((found.secret, found.node))
    scope.collected.leaks += alone.collected.leaks
    return [node for _, node in sorted(nodes, key=lambda pair: pair[0])]


def _owns(alone: Scope, column: exp.Column) -> bool:
    return alone.find(column) is not None


def _is_parameter(column: exp.Column) -> bool:
    return column.name.startswith(PARAMETER_PREFIX)
