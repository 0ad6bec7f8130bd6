"""The SELECT blocks of a statement: which rows of its tables matter, as far as its text tells.

A *target* of a condition is a table occurrence of which a row may be left out if the condition
cannot be true of it. That holds

* in WHERE, for every occurrence that no outer join fills up with NULLs (a *strong* one);
* in ON of an inner join, for what is strong there; of a left join, for its right side only; of a
  right join, for what is strong on its left; of a full join, for nothing;
* in WHERE of an EXISTS or IN that is itself a conjunct, for the targets of that conjunct too.

A block that holds anything else (samples, ASOF, POSITIONAL, SEMI and ANTI joins, recursion) is
*frozen*: nothing is concluded from it. Names are resolved as DuckDB does, and only where no table
of unknown columns could have the name too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from louver.names import fold, keyword
from louver.trusted.planner.sql import selection
from louver.trusted.vault.catalog import Table

_CLAUSES = frozenset(
    ("with_", "with", "expressions", "from_", "from", "joins", "where", "group", "having")
    + ("qualify", "order", "limit", "offset", "distinct", "windows")
)
_JOIN_PARTS = frozenset(("this", "on", "using", "side", "kind", "method"))
# Where a subquery stands that may name columns of the block around it.
_CORRELATED = frozenset(("where", "expressions", "having", "qualify", "order"))
_BOUNDARIES = (exp.From, exp.Join, exp.CTE, exp.With, exp.Lateral, exp.Table, exp.Pivot)
_BARE = (exp.Star, exp.Literal, exp.Column, exp.Null, exp.Boolean)


@dataclass(eq=False, slots=True)
class Occurrence:
    """One mention of a base table in a FROM; ``slot`` numbers them through the statement."""

    slot: int
    alias: str
    node: exp.Table
    table: Table

    @property
    def name(self) -> str:
        """The alias under which conditions are rewritten: no user's name, so always clear."""
        return f"louver_o{self.slot}"


@dataclass(slots=True)
class Context:
    """A condition that holds of every row that matters, and for whom that says something."""

    condition: exp.Expr
    targets: frozenset[int]


@dataclass(eq=False, slots=True)
class Block:
    """One SELECT. ``items`` are what stands in its FROM, by alias; None is anything else than a
    base table. ``sources`` are the same as nodes.
    """

    select: exp.Select
    parent: Block | None
    items: list[tuple[str, Occurrence | None]] = field(default_factory=list)
    sources: list[exp.Expr] = field(default_factory=list)
    strong: set[int] = field(default_factory=set)
    contexts: list[Context] = field(default_factory=list)
    frozen: bool = False
    merged: set[str] = field(default_factory=set)
    natural: bool = False
    positive: frozenset[int] = frozenset()

    @property
    def opaque(self) -> bool:
        """Whether FROM holds something of which the columns are not known."""
        return any(match is None for _, match in self.items)

    def resolve(self, column: exp.Column) -> Occurrence | None:
        """The occurrence that a column is of; None where that is not beyond doubt."""
        if column.args.get("db") or isinstance(column.this, exp.Star):
            return None
        name, qualifier = fold(column.name), fold(column.table)
        block: Block | None = self
        while block is not None and not block.frozen:
            clear, match = block._local(name, qualifier)
            if clear or match is not None:
                return match
            block = block.parent
        return None

    def _local(self, name: str, qualifier: str) -> tuple[bool, Occurrence | None]:
        """Whether the search ends in this block, and with what."""
        known = [occurrence for _, occurrence in self.items if occurrence is not None]
        if qualifier:
            hits = [occurrence for alias, occurrence in self.items if alias == qualifier]
            if hits:
                hit = hits[0]
                return True, hit if hit is not None and hit.table.column(name) else None
            # It may be a field of a struct.
            struct = any(occurrence.table.column(qualifier) for occurrence in known)
            return self.opaque or struct, None
        if self.natural or name in self.merged:
            return True, None
        owners = [occurrence for occurrence in known if occurrence.table.column(name) is not None]
        if owners:
            return True, owners[0] if len(owners) == 1 else None
        aliases = {fold(item.alias) for item in self.select.expressions}
        return self.opaque or name in aliases, None


def read(tree: exp.Expr, resolve: selection.Resolve) -> list[Block]:
    """All SELECT blocks of a statement, outer ones first."""
    blocks: dict[int, Block] = {}
    slot = 0
    for select in tree.find_all(exp.Select):
        block = Block(select, _parent(select, blocks))
        blocks[id(select)] = block
        slot = _fill(block, resolve, slot)
        block.frozen = block.frozen or _is_odd(block)
    for block in blocks.values():
        if block.frozen:
            block.strong.clear()
            block.contexts.clear()
            continue
        where = block.select.args.get("where")
        if where is not None:
            targets = frozenset(block.strong) | block.positive
            block.contexts.append(Context(where.this, targets))
        _note_positive(block, blocks)
    return list(blocks.values())


def _parent(select: exp.Select, blocks: dict[int, Block]) -> Block | None:
    """The block whose columns a subquery may name, if nothing but clauses lies between."""
    node: exp.Expr = select
    while (above := node.parent) is not None:
        if isinstance(above, exp.Select):
            return blocks.get(id(above)) if node.arg_key in _CORRELATED else None
        if isinstance(above, _BOUNDARIES):
            return None
        node = above
    return None


def _is_odd(block: Block) -> bool:
    select = block.select
    if set(filter(select.args.get, select.args)) - _CLAUSES:
        return True
    aliases = [alias for alias, _ in block.items if alias]
    if len(set(aliases)) != len(aliases):
        return True
    above = select.find_ancestor(exp.With)
    while above is not None:
        if above.args.get("recursive"):
            return True
        above = above.find_ancestor(exp.With)
    return False


def _fill(block: Block, resolve: selection.Resolve, slot: int) -> int:
    """FROM and its joins, from left to right; gives the next free slot."""
    clause = block.select.args.get("from_") or block.select.args.get("from")
    if clause is None:
        return slot
    occurrence = _occurrence(clause.this, resolve, slot)
    block.items.append((_alias(clause.this), occurrence))
    block.sources.append(clause.this)
    if occurrence is not None:
        block.strong.add(slot)
    slot += 1
    for join in block.select.args.get("joins") or []:
        occurrence = _occurrence(join.this, resolve, slot)
        block.items.append((_alias(join.this), occurrence))
        block.sources.append(join.this)
        _joined(block, join, slot if occurrence is not None else None)
        slot += 1
    return slot


def _alias(node: exp.Expr) -> str:
    return fold(str(node.alias_or_name))


def _occurrence(node: exp.Expr, resolve: selection.Resolve, slot: int) -> Occurrence | None:
    if not isinstance(node, exp.Table):
        return None
    if set(filter(node.args.get, node.args)) - {"this", "db", "alias"}:
        return None
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        return None
    table = resolve(node)
    return Occurrence(slot, _alias(node), node, table) if table is not None else None


def _joined(block: Block, join: exp.Join, slot: int | None) -> None:
    """What one more join says, and whom it fills up with NULLs."""
    side, kind, method = keyword(join.side), keyword(join.kind), keyword(join.method)
    odd = set(filter(join.args.get, join.args)) - _JOIN_PARTS
    if odd or kind not in ("", "INNER", "CROSS", "OUTER") or method not in ("", "NATURAL"):
        block.frozen = True
        return
    before = frozenset(block.strong)
    own = frozenset() if slot is None else frozenset({slot})
    block.natural = block.natural or method == "NATURAL"
    targets = {"LEFT": own, "RIGHT": before, "FULL": frozenset[int]()}.get(side, before | own)
    block.strong = {
        "LEFT": set(before),
        "RIGHT": set(own),
        "FULL": set[int](),
    }.get(side, set(before | own))
    on = join.args.get("on")
    if on is not None:
        block.contexts.append(Context(on, targets))
    for name in join.args.get("using") or []:
        same = _same(block, name.name, side)
        block.merged.add(fold(name.name))
        if same is not None:
            block.contexts.append(Context(same, targets))


def _same(block: Block, name: str, side: str) -> exp.Expr | None:
    """USING (name) as an equality of the first table that has it and the one that is joined."""
    if block.opaque or block.natural or side in ("RIGHT", "FULL"):
        return None
    owners = [alias for alias, match in block.items[:-1] if match and match.table.column(name)]
    if not owners:
        return None
    aliases = (owners[0], block.items[-1][0])
    left, right = (
        exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(alias, quoted=True))
        for alias in aliases
    )
    return exp.EQ(this=left, expression=right)


def _note_positive(block: Block, blocks: dict[int, Block]) -> None:
    """EXISTS and IN that must be true of a row that matters."""
    for context in list(block.contexts):
        for part in selection.conjuncts(context.condition):
            query = subquery(part)
            inner = blocks.get(id(query))
            if query is None or inner is None or inner.frozen or inner.parent is not block:
                continue
            chooses = _shows_rows(query) if isinstance(part, exp.Exists) else _member(query)
            if chooses:
                inner.positive = context.targets


def subquery(node: exp.Expr) -> exp.Select | None:
    """The SELECT of an EXISTS or IN."""
    inner = node.this if isinstance(node, exp.Exists) else None
    if isinstance(node, exp.In):
        inner = node.args.get("query")
    while isinstance(inner, exp.Subquery):
        if set(filter(inner.args.get, inner.args)) - {"this"}:
            return None
        inner = inner.this
    return inner if isinstance(inner, exp.Select) else None


def member(node: exp.In) -> exp.Column | None:
    """The bare column that an IN's subquery gives."""
    query = subquery(node)
    return None if query is None else _member(query)


def _member(query: exp.Select) -> exp.Column | None:
    if len(query.expressions) != 1:
        return None
    item = query.expressions[0].unalias()
    return item if isinstance(item, exp.Column) and not isinstance(item.this, exp.Star) else None


def _shows_rows(query: exp.Select) -> bool:
    """Whether a subquery gives a row only where its FROM and WHERE do: no aggregate makes one."""
    if query.args.get("group") or query.args.get("having"):
        return False
    return all(isinstance(item.unalias(), _BARE) for item in query.expressions)


def gives_all(query: exp.Select) -> bool:
    """Whether a subquery gives every row of FROM and WHERE, so that fewer rows there are fewer of
    the same here.
    """
    chosen = ("group", "having", "limit", "offset", "qualify", "distinct")
    return not any(query.args.get(key) for key in chosen)
