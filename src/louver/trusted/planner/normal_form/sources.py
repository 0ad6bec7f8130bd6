"""What stands in a block's FROM, and which columns it has, as DuckDB resolves names.

A block is taken only where every column of every source is known. Whatever is not known here is
`Unclear`, and the block keeps the user's form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from louver.names import fold, keyword

Columns = Callable[[exp.Table], "tuple[str, ...] | None"]
"""The columns of a base table that a reference means; None for anything else."""
_PLAIN_TABLE = frozenset(("this", "db", "catalog", "alias"))
_PLAIN_SUBQUERY = frozenset(("this", "alias"))
_PLAIN_JOIN = frozenset(("this", "on", "using", "side", "kind", "method"))


class Unclear(Exception):
    """This block cannot be brought into normal form; it stays as it was written."""


@dataclass(slots=True)
class Source:
    """One item of FROM. ``merged`` are the folded names of columns that USING or NATURAL takes from
    an earlier source.
    """

    alias: str
    columns: tuple[str, ...]
    node: exp.Expr
    merged: set[str] = field(default_factory=set)

    def has(self, name: str) -> bool:
        """Whether a folded name is one of its columns."""
        return any(fold(column) == name for column in self.columns)

    def column(self, name: str) -> exp.Column:
        """A reference to a column that is clear in every clause."""
        return exp.column(
            exp.to_identifier(name, quoted=True), table=exp.to_identifier(self.alias, quoted=True)
        )


def items(select: exp.Select) -> Iterator[tuple[exp.Expr, exp.Join | None]]:
    """What FROM and its joins name, from left to right."""
    clause = select.args.get("from_")
    if clause is None:
        return
    yield clause.this, None
    for join in select.args.get("joins") or []:
        yield join.this, join


def read(select: exp.Select, columns: Columns) -> list[Source]:
    """The sources of a block; raises `Unclear` where one of them is not known."""
    sources: list[Source] = []
    for node, join in items(select):
        source = Source(str(node.alias_or_name), _columns(node, columns), node)
        if not source.alias or any(fold(source.alias) == fold(s.alias) for s in sources):
            raise Unclear
        if join is not None:
            source.merged = _merged(join, source, sources)
        sources.append(source)
    return sources


def _columns(node: exp.Expr, columns: Columns) -> tuple[str, ...]:
    present = set(filter(node.args.get, node.args))
    alias = node.args.get("alias")
    renamed = tuple(name.name for name in (alias.args.get("columns") or ())) if alias else ()
    if isinstance(node, exp.Table) and not present - _PLAIN_TABLE:
        known = columns(node)
    elif isinstance(node, exp.Subquery) and not present - _PLAIN_SUBQUERY:
        known = output_names(node.this)
    else:
        raise Unclear
    if known is None or len(renamed) > len(known):
        raise Unclear
    known = renamed + known[len(renamed) :]
    named = [fold(name) for name in known if name]
    if len(set(named)) != len(named):
        raise Unclear
    return known


def output_names(query: exp.Expr) -> tuple[str, ...] | None:
    """The names of a query's columns, each empty where only DuckDB has it; None if not known."""
    while isinstance(query, exp.SetOperation):
        if query.args.get("by_name") or query.args.get("side"):
            return None
        query = query.this
    if isinstance(query, exp.Subquery):
        return None if query.args.get("alias") else output_names(query.this)
    if not isinstance(query, exp.Select):
        return None
    names = []
    for item in query.expressions:
        if isinstance(item, exp.Alias):
            names.append(item.alias)
        elif isinstance(item, exp.Column) and not isinstance(item.this, exp.Star):
            names.append(item.name)
        elif isinstance(item, exp.Star | exp.Column):
            return None
        else:
            names.append("")
    return tuple(names)


def _merged(join: exp.Join, source: Source, before: list[Source]) -> set[str]:
    """The folded names that a join merges; raises `Unclear` for joins of another kind."""
    if set(filter(join.args.get, join.args)) - _PLAIN_JOIN:
        raise Unclear
    kind, method = keyword(join.kind), keyword(join.method)
    if kind not in ("", "INNER", "CROSS", "OUTER") or method not in ("", "NATURAL"):
        raise Unclear
    names = [fold(name.name) for name in join.args.get("using") or ()]
    if method == "NATURAL":
        names = [fold(c) for c in source.columns if any(s.has(fold(c)) for s in before)]
        if not names:
            raise Unclear
    if names and keyword(join.side) not in ("", "LEFT"):
        # Of a right or full join the merged column is not the left one.
        raise Unclear
    return set(names)


def owner(name: str, sources: list[Source]) -> Source | None:
    """The source that an unqualified folded name means; None where none has it. Raises `Unclear`
    where several have it.
    """
    owners = [source for source in sources if source.has(name) and name not in source.merged]
    if len(owners) > 1:
        raise Unclear
    return owners[0] if owners else None


def qualified(alias: str, sources: list[Source]) -> Source | None:
    """The source of a folded alias."""
    return next((source for source in sources if fold(source.alias) == alias), None)
