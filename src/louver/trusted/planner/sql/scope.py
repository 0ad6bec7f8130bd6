"""What the rules know of the block that they rewrite: its tables, its columns, its types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from louver import errors
from louver.names import fold, keyword
from louver.trusted.backends.backend import Backend
from louver.trusted.planner.ir import Column as StoredColumn
from louver.trusted.planner.ir import (
    Factor,
    Key,
    LiteralValue,
    Node,
    Plain,
    SharedExpr,
    Sql,
    TableRef,
)
from louver.trusted.planner.split import precomputed
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.sql.trees import local_text
from louver.trusted.planner.sql.values import Constant, EncodedColumn, PlanEffects
from louver.trusted.vault import facts
from louver.trusted.vault.catalog import UNIT_COLUMN, Column, Table
from louver.trusted.vault.levels import allows
from louver.trusted.vault.scheme import packed, scheme_of, share_of
from louver.trusted.vault.types import code_domain
from louver.trusted.vault.types import decimal_scale as scale_of

Describe = Callable[[str], list[tuple[str, str]]]
"""Names and types of a query's columns, by DuckDB's binder."""
RANDOM_BITS = 128
"""Upper bound, in bits, of the random numbers of column R (spec/sdb.md)."""


@dataclass(frozen=True, slots=True)
class Source:
    """One table occurrence in FROM, while it is planned; a plan keeps its `ref`."""

    slot: int
    alias: str
    table: Table
    backend: Backend

    @property
    def ref(self) -> TableRef:
        """The occurrence as a plan names it."""
        return TableRef(self.slot, self.alias, self.table.id)

    @property
    def server_alias(self) -> str:
        return self.ref.server_alias

    @property
    def server_name(self) -> str:
        """The table's name on its server."""
        return self.backend.table(self.table)


@dataclass(frozen=True, slots=True)
class Servers:
    """What the planner knows of the machines that hold tables: the backend of each table's, and
    the size of n.
    """

    backend_of: Callable[[Table], Backend]
    modulus_bits: int

    def source(self, slot: int, alias: str, table: Table) -> Source:
        """One occurrence of a table."""
        return Source(slot, alias, table, self.backend_of(table))


@dataclass(slots=True)
class Scope:
    """One SELECT block over base tables while it is rewritten.

    ``virtual`` are columns of an inner query in reach, ``shown`` the tables that these come from:
    what is computed on them is a leak of those tables. ``tables`` is FROM with its joins as a text
    to describe. ``whole`` tells that the block reads all rows of one table, of which the client
    knows the numbers. ``filters`` are the conditions under which aggregates count a row.
    """

    sources: list[Source]
    shape: lexer.Shape
    modulus_bits: int
    parameters: Sequence[object] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    collected: PlanEffects = field(default_factory=PlanEffects)
    linked: list[frozenset[int]] = field(default_factory=list)
    virtual: dict[str, SharedExpr | Plain] = field(default_factory=dict)
    shown: list[Source] = field(default_factory=list)
    describe: Describe | None = None
    tables: str = ""
    whole: bool = False
    filters: list[Node] = field(default_factory=list)

    @property
    def refs(self) -> tuple[TableRef, ...]:
        """The block's table occurrences as a plan names them."""
        return tuple(source.ref for source in self.sources)

    @property
    def backend(self) -> Backend:
        """That of the one server that has the block's tables."""
        return (self.sources or self.shown)[0].backend

    def operation(self, name: str, *operands: Node) -> Sql | None:
        """What the server computes of operands; None where it cannot."""
        return self.backend.operation(name, *operands)

    def find(self, column: exp.Column) -> tuple[Source, Column] | None:
        """The table occurrence and column that a reference names; None if it is neither
        unqualified and unique, nor qualified with an alias of this block.
        """
        qualifier = fold(column.table)
        hits = []
        for source in self.sources:
            if qualifier and fold(source.alias) != qualifier:
                continue
            stored = source.table.column(column.name)
            if stored is not None:
                hits.append((source, stored))
        return hits[0] if len(hits) == 1 else None

    def generated(self, node: exp.Expr) -> exp.Column | None:
        """The generated column that holds a computed expression's value, if a table has one."""
        if isinstance(node, exp.Column | exp.Literal | exp.Null | exp.Boolean):
            return None
        if not any(source.table.has_generated for source in self.sources):
            return None
        owners = {owner[0].slot for c in node.find_all(exp.Column) if (owner := self.find(c))}
        if len(owners) != 1 or not self.source(min(owners)).table.has_generated:
            return None
        source = self.source(min(owners))
        wanted = precomputed.normal(node)
        for column in source.table.columns:
            same = column.expression and precomputed.parsed(column.expression) == wanted
            # Of another type the column holds what a cast made of the value.
            if same and column.type == self.typed(node):
                name = exp.to_identifier(column.name, quoted=True)
                return exp.column(name, table=exp.to_identifier(source.alias, quoted=True))
        return None

    def typed(self, node: exp.Expr) -> str:
        """DuckDB's type of an expression over columns of the block; empty where it has none."""
        known = self.type_of(node)
        if known or self.describe is None:
            return known
        try:
            ((_, type_),) = self.describe(f"SELECT {local_text(node)} {self.tables}")
        except errors.Error:
            return ""
        self.types[local_text(node)] = type_
        return type_

    def read(self, column: exp.Column) -> SharedExpr | Plain | EncodedColumn | None:
        """A column reference as a value, or None where the server cannot compute on it."""
        if not column.table and fold(column.name) in self.virtual:
            return self.virtual[fold(column.name)]
        match = self.find(column)
        if match is None or not (match[1].encrypted or match[0].backend.compares(match[1].type)):
            return None
        source, stored = match
        low, high = stored.minimum or 0, stored.maximum or 0
        if not stored.encrypted:
            node = StoredColumn(source.server_alias, source.backend.quote(stored.stored["plain"]))
            bounded = stored.minimum is not None
            return Plain(
                node,
                stored.type,
                low if bounded else None,
                high if bounded else None,
                scale_of(stored.type),
                frozenset({source.slot}),
            )
        share = share_of(stored)
        if not share or not source.backend.has("gathered"):
            return coded(source, stored)
        table = source.table
        return SharedExpr(
            StoredColumn(source.server_alias, share),
            Key("column", (table.id, stored.id, stored.generation, source.slot)),
            Factor(),
            low,
            high,
            scale_of(stored.type),
            stored.type,
            frozenset({source.slot}),
            frozenset({(table.id, stored.id)}),
            single=True,
        )

    def unit(self, slot: int) -> SharedExpr:
        """U of a table occurrence: the constant 1 as a secret."""
        source = self.source(slot)
        table = source.table
        return SharedExpr(
            StoredColumn(source.server_alias, table.helper_unit),
            Key("column", (table.id, UNIT_COLUMN, table.generation, slot)),
            Factor(),
            1,
            1,
            0,
            "INTEGER",
            frozenset({slot}),
            frozenset(),
        )

    def random(self, slot: int) -> tuple[StoredColumn, Key]:
        """R of a table occurrence and its key."""
        source = self.source(slot)
        table = source.table
        node = StoredColumn(source.server_alias, table.helper_random)
        return node, Key("random", (table.id, table.generation, slot))

    def source(self, slot: int) -> Source:
        return next(source for source in self.sources if source.slot == slot)

    def has_helpers(self, slot: int) -> bool:
        return bool(self.source(slot).table.helper_one)

    def type_of(self, node: exp.Expr) -> str:
        """DuckDB's own type of a node; empty where it was not asked for."""
        return spoken().catalog_type(self.types.get(local_text(node), ""))

    def constant(self, node: exp.Expr) -> Constant | None:
        """A number, a negated number, a date or a bound parameter as a constant."""
        if isinstance(node, exp.Paren):
            return self.constant(node.this)
        if isinstance(node, exp.Neg):
            inner = self.constant(node.this)
            return None if inner is None else negated(inner)
        if isinstance(node, exp.Literal) and not node.is_string:
            return self._number(node)
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
            return moment(node.this.name, keyword(local_text(node.to)))
        if isinstance(node, exp.Column) and node.name.startswith(lexer.PARAMETER_PREFIX):
            return self._bound(int(node.name.removeprefix(lexer.PARAMETER_PREFIX)))
        return None

    def _bound(self, position: int) -> Constant | None:
        """A bound parameter. Whole numbers count as numbers of the statement, so that a plan
        serves every value of the class; other values are part of the shape's key.
        """
        value = typed(self.parameters, position)
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 63:
            return bound(value)
        index = len(self.shape.literals) - len(self.parameters) + position
        limit = (1 << lexer.literal_bits(abs(value))) - 1
        factor = Factor(1, (LiteralValue(index),)) if value else Factor(0)
        low, high = (0, limit) if value > 0 else (-limit, 0)
        return Constant(value, 0, "BIGINT", factor, low if value else 0, high if value else 0)

    def _number(self, node: exp.Literal) -> Constant | None:
        start = node.meta.get("start")
        if start not in self.shape.starts:
            return None
        index = self.shape.starts.index(start)
        text = self.shape.literals[index]
        whole, _, fraction = text.partition(".")
        if not whole.isdigit() or (fraction and not fraction.isdigit()):
            return None
        if "." in text and not fraction:
            return None
        value = int(whole + fraction)
        width = len(whole) + len(fraction)
        if fraction:
            high, type_ = 10**width - 1, f"DECIMAL({max(width, 1)},{len(fraction)})"
        else:
            bits = lexer.literal_bits(value)
            high = (1 << bits) - 1
            type_ = "INTEGER" if bits <= 31 else "BIGINT" if bits <= 63 else "HUGEINT"
        factor = Factor(1, (LiteralValue(index),)) if value else Factor(0)
        return Constant(value, len(fraction), type_, factor, 0, high if value else 0)

    def pairs(self, slots: frozenset[int]) -> int:
        """How many combinations of rows these table occurrences have at most."""
        count = 1
        for slot in slots:
            count *= max(self.source(slot).table.row_count, 1)
        return count

    def connected(self) -> bool:
        """Whether equalities link all tables of the block, so that a join stays small."""
        reached = {self.sources[0].slot}
        links = list(self.linked)
        while grown := [link for link in links if link & reached and not link <= reached]:
            for link in grown:
                reached |= link
        return len(reached) == len(self.sources)

    def leak_of(self, name: str, value: EncodedColumn) -> None:
        """Note what an operator shows of a column by its codes or tokens."""
        table = self.source(value.slot).table
        self.collected.leak(facts.fact(name, table, [self.declared(value)]))

    def declared(self, value: EncodedColumn) -> Column:
        """The column of the catalog that a value is of."""
        table = self.source(value.slot).table
        return next(column for column in table.columns if column.id == value.column)

    def leak(self, name: str, *values: SharedExpr) -> None:
        """Note what an operator on these values shows of their columns."""
        by_table: dict[int, dict[int, Column]] = {}
        tables = self.shown or self.sources
        for value in values:
            for table_id, column_id in sorted(value.columns):
                for source in tables:
                    if source.table.id == table_id:
                        column = next(c for c in source.table.columns if c.id == column_id)
                        by_table.setdefault(table_id, {})[column_id] = column
        for table_id, columns in by_table.items():
            table = next(s.table for s in tables if s.table.id == table_id)
            self.collected.leak(facts.fact(name, table, list(columns.values())))


def coded(source: Source, stored: Column) -> EncodedColumn | None:
    """A sealed column as the codes that the server holds of it; None where it holds none."""
    held = tuple((k, name) for k, name in stored.stored.items() if scheme_of(k).answers)
    if allows(stored.ceiling, "access"):
        held += tuple(packed(source.table, stored))
    domain = code_domain(stored.type)
    if not held or domain is None:
        return None
    return EncodedColumn(
        source.slot,
        source.table.id,
        stored.id,
        source.server_alias,
        stored.type,
        domain,
        stored.group,
        held,
        stored.low or 0,
        stored.bits,
        stored.nullable,
        stored.coarse,
    )


def negated(constant: Constant) -> Constant:
    """The constant with its sign turned."""
    return Constant(
        -constant.value,
        constant.scale,
        constant.type,
        constant.factor.times(Factor(-1)),
        -constant.high,
        -constant.low,
    )


def moment(text: str, type_: str) -> Constant | None:
    """``DATE '…'`` and ``TIMESTAMP '…'`` in ISO form as a constant; other forms go home."""
    try:
        if type_ == "DATE" and len(text) == 10:
            value = (date.fromisoformat(text) - date(1970, 1, 1)).days
        elif type_ == "TIMESTAMP" and len(text) == 19 and text[10] in " T":
            delta = datetime.fromisoformat(text) - datetime(1970, 1, 1)
            value = delta.days * 86_400_000_000 + delta.seconds * 1_000_000
        else:
            return None
    except ValueError:
        return None
    return Constant(value, 0, type_, Factor(value), value, value)


def typed(parameters: Sequence[object], position: int) -> object:
    """A bound value where its type is all that matters of a text."""
    if isinstance(parameters, lexer.Values):
        return parameters.typed(position)
    return parameters[position]


def bound(value: object) -> Constant | None:
    """A bound parameter as a constant; types without an exact number go home."""
    match value:
        case Decimal() if value.is_finite():
            sign, digits, exponent = value.as_tuple()
            if not isinstance(exponent, int) or not -38 <= exponent <= 0 or len(digits) > 38:
                return None
            unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
            width = max(len(digits), -exponent)
            type_ = f"DECIMAL({width},{-exponent})"
            return Constant(unscaled, -exponent, type_, Factor(unscaled), unscaled, unscaled)
        case datetime():
            return None
        case date():
            days = (value - date(1970, 1, 1)).days
            return Constant(days, 0, "DATE", Factor(days), days, days)
    return None
