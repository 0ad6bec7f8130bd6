"""FROM, and name resolution: the column of a table, or the alias, that a name refers to."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from louver.names import fold, keyword
from louver.trusted.planner.private import marks
from louver.trusted.planner.private.refusal import no_column, no_table, refuse
from louver.trusted.planner.private.schema import Schema
from louver.trusted.planner.sql import placeholders
from louver.trusted.planner.sql.trees import local_text
from louver.wire.questions import LEFT_OUT, TableFacts


@dataclass(frozen=True, slots=True)
class Source:
    """One table of FROM: its name in the statement, and its name in the shape."""

    said: str
    name: str
    table: TableFacts
    hidden: frozenset[str] = frozenset()

    def column(self, name: str) -> str | None:
        """The column's own spelling, or None."""
        return next((c for c, _ in self.table.columns if fold(c) == fold(name)), None)

    def require_held(self, name: str) -> None:
        """Refuse a column whose type is not supported in questions."""
        if (name, LEFT_OUT) in self.table.columns:
            raise refuse(
                f"{self.said}.{name}, a column of a type that answers and conditions cannot have",
                f"Leave it out: SELECT * EXCLUDE ({name})",
            )


@dataclass(slots=True)
class Scope:
    """The tables of a statement, and the aliases of its select list, in order."""

    schema: Schema
    sources: list[Source] = field(default_factory=list)
    aliases: dict[str, exp.Expr] = field(default_factory=dict)

    def resolved(
        self, node: exp.Expr, *, aliases: Mapping[str, exp.Expr] | None = None, first: bool = False
    ) -> exp.Expr:
        """A copy with every column as it is written in the shape.

        ``aliases`` are names of the select list (already resolved) that may be used for their
        expressions: before columns if ``first``, otherwise if there is no such column.
        """
        known = aliases or {}

        def name(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column) or placeholders.is_placeholder(node):
                return node
            alias = None if node.table else known.get(fold(node.name))
            if alias is not None and (first or self._find(node) is None):
                plain = isinstance(alias, exp.Column | exp.Literal | exp.Paren)
                return alias.copy() if plain else exp.Paren(this=alias.copy())
            return self.column(node)

        return node.copy().transform(name)

    def column(self, node: exp.Column) -> exp.Column:
        """The reference as it is written in the shape; raises if the column does not exist."""
        match = self._find(node)
        if match is None:
            raise self._missing(node)
        return self.reference(*match)

    def reference(self, source: Source, name: str) -> exp.Column:
        """The name of a column in the shape: unqualified if there is one table."""
        table = self.schema.identifier(source.name) if len(self.sources) > 1 else None
        return exp.Column(this=self.schema.identifier(name), table=table)

    def all_columns(self, said: str = "", without: Container[str] = ()) -> list[exp.Column]:
        """The columns of ``*`` or ``table.*``, except those in ``without``."""
        columns = []
        for source in self.sources:
            if said and fold(source.said) != fold(said):
                continue
            for name, _ in source.table.columns:
                if fold(name) not in without:
                    source.require_held(name)
                if said or fold(name) not in source.hidden:
                    columns.append(self.reference(source, name))
        if not columns:
            raise no_table(said, [source.said for source in self.sources])
        return columns

    def _find(self, node: exp.Column) -> tuple[Source, str] | None:
        hits = []
        for source in self.sources:
            if node.table and fold(node.table) != fold(source.said):
                continue
            if not node.table and fold(node.name) in source.hidden:
                continue
            name = source.column(node.name)
            if name is not None:
                hits.append((source, name))
        for source, name in hits:
            source.require_held(name)
        if len(hits) > 1:
            both = " or ".join(f"{source.said}.{name}" for source, name in hits)
            raise refuse(f"{node.name} may be {both}", f"Write {both}")
        return hits[0] if hits else None

    def _missing(self, node: exp.Column) -> Exception:
        if node.args.get("db") or node.args.get("catalog"):
            return refuse(f"{local_text(node)} names a schema", "Write table.column")
        if node.table and all(fold(s.said) != fold(node.table) for s in self.sources):
            return no_table(node.table, [source.said for source in self.sources])
        within = [s for s in self.sources if not node.table or fold(s.said) == fold(node.table)]
        names = [name for source in within for name, _ in source.table.columns]
        label = " and ".join(source.said for source in within)
        return no_column(label, node.name, [*names, *self.aliases])


def read_sources(select: exp.Select, schema: Schema) -> tuple[Scope, str]:
    """The scope of a statement and its FROM clause in the shape."""
    scope = Scope(schema)
    start = select.args.get("from_")
    if start is None:
        raise refuse("it reads no table", "Name a table in FROM")
    tables = [start.this, *(join.this for join in select.args.get("joins") or ())]
    for table in tables:
        _add(table, scope)
    text = _written(scope.sources[0], schema)
    for source, join in zip(scope.sources[1:], select.args.get("joins") or (), strict=True):
        text += _joined(join, source, scope)
    return scope, text


def _add(table: exp.Expr, scope: Scope) -> None:
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise refuse(
            "FROM contains something other than tables", "Name the providers' tables in FROM"
        )
    if any(table.args.get(part) for part in ("joins", "pivots", "sample", "catalog", "version")):
        raise refuse(
            f"{table.name} occurs in FROM with more than a name", "Name the table and join it"
        )
    facts = scope.schema.tables.get(fold(table.name))
    if facts is None or (table.db and fold(table.db) != "main"):
        raise no_table(table.name, [known.name for known in scope.schema.tables.values()])
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise refuse("columns are renamed in FROM", "Use the columns' own names")
    said = table.alias or facts.name
    if any(fold(source.said) == fold(said) for source in scope.sources):
        raise refuse(f"{said} occurs twice in FROM", "Give one of the two another name with AS")
    name, taken = facts.name, {fold(source.name) for source in scope.sources}
    others = {fold(known.name) for known in scope.schema.tables.values()}
    number = 2
    while fold(name) in taken or (name != facts.name and fold(name) in others):
        name, number = f"{facts.name}_{number}", number + 1
    scope.sources.append(Source(said, name, facts))


def _written(source: Source, schema: Schema) -> str:
    text = local_text(schema.identifier(source.table.name))
    if source.name != source.table.name:
        text += f" AS {local_text(schema.identifier(source.name))}"
    return text


def _joined(join: exp.Join, source: Source, scope: Scope) -> str:
    side, kind, method = (keyword(join.text(part)) for part in ("side", "kind", "method"))
    if (
        method
        or kind not in ("", "INNER", "OUTER", "CROSS")
        or side not in ("", "LEFT", "RIGHT", "FULL")
    ):
        raise refuse(
            f"a {method or side} {kind or ''} JOIN".replace("  ", " "),
            "Use JOIN, LEFT JOIN, RIGHT JOIN, FULL JOIN or CROSS JOIN with ON or USING",
        )
    if marks.has_secret(join):
        raise refuse(
            "a join on a secret", "Join on public conditions, and compare the secret in WHERE"
        )
    written = _written(source, scope.schema)
    using = join.args.get("using")
    if using:
        if side in ("RIGHT", "FULL"):
            raise refuse(f"USING in a {side} JOIN", "Use ON, and say of which table a column is")
        names = [_shared(item.name, source, scope) for item in using]
        listed = ", ".join(local_text(scope.schema.identifier(name)) for name in names)
        hidden = frozenset(fold(name) for name in names)
        index = scope.sources.index(source)
        scope.sources[index] = Source(source.said, source.name, source.table, hidden)
        return f" {side + ' ' if side else ''}JOIN {written} USING ({listed})"
    condition = join.args.get("on")
    if condition is None:
        if side:
            raise refuse(f"a {side} JOIN without a condition", "Add ON or USING")
        return f" CROSS JOIN {written}"
    index = scope.sources.index(source)
    so_far = Scope(scope.schema, scope.sources[: index + 1])
    on = local_text(so_far.resolved(condition))
    return f" {side + ' ' if side else ''}JOIN {written} ON {on}"


def _shared(name: str, source: Source, scope: Scope) -> str:
    earlier = scope.sources[: scope.sources.index(source)]
    column = source.column(name)
    if column is None:
        raise no_column(source.said, name, [c for c, _ in source.table.columns])
    owners = [s for s in earlier if s.column(name) and fold(name) not in s.hidden]
    if not owners:
        raise no_column(earlier[0].said, name, [c for s in earlier for c, _ in s.table.columns])
    return column
