"""Split, first choice: one SELECT over base tables whose joins and filters the server runs.

``whole``: the server aggregates too. ``rows``: it sends the joined and filtered rows with the
expressions that it could compute. A block that holds anything not listed in `VOCABULARY` is left
to the last choice (`scan`), where the user's own text runs locally.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from louver.names import fold
from louver.trusted.planner import choose
from louver.trusted.planner.ir import Column as StoredColumn
from louver.trusted.planner.ir import (
    Joined,
    Node,
    Output,
    Plain,
    Plan,
    RemoteQuery,
    SharedExpr,
    Sql,
    Summed,
)
from louver.trusted.planner.operators import encoded, keys, shares
from louver.trusted.planner.operators.rule import Aggregate, Shown
from louver.trusted.planner.split import order_limit, rewrite
from louver.trusted.planner.sql import selection
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.sql.lexer import Shape
from louver.trusted.planner.sql.scope import Scope, Servers, Source
from louver.trusted.planner.sql.selection import Unsplit
from louver.trusted.planner.sql.trees import local_text
from louver.trusted.planner.sql.values import EncodedColumn, GroupRepresentative, Predicate, Raw
from louver.trusted.vault.types import family

Describe = Callable[[str], list[tuple[str, str]]]
ROWS = "louver_rows"
_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """The plan of a block, with what a query around it needs while that is planned: the local text
    as a tree, and the answer's columns as operands.
    """

    plan: Plan
    tree: exp.Select
    values: dict[str, SharedExpr | Plain] = field(default_factory=dict)


def plan_block(
    select: exp.Select,
    sources: list[Source],
    shape: Shape,
    servers: Servers,
    parameters: Sequence[object],
    describe: Describe,
    *,
    target: str = ROWS,
    rows: bool = False,
) -> BlockPlan:
    """Plan a block on the server as far as it goes; raises `Unsplit`. ``target`` is the home table
    of its answer. With ``rows`` the server joins and filters also where scans would be cheaper.
    """
    scope = Scope(sources, shape, servers.modulus_bits, parameters, describe=describe)
    scope.tables = rewrite.tables_text(select, scope)
    sample = order_limit.sampled(select, scope)
    if sample is not None:
        return _sampled(*sample, scope, target)
    selection.require_vocabulary(select, scope)
    select = selection.distinct_as_group(select, scope)
    rewrite.ask_types(select, scope, describe)
    joins = _joins(select, scope)
    where, rest = _conditions(select, scope)
    # A larger product of tables is multiplied locally.
    most = scope.backend.costs.most_product_rows
    if not scope.connected() and scope.pairs(frozenset(s.slot for s in sources)) > most:
        raise Unsplit
    if selection.is_aggregated(select):
        before = scope.collected.mark()
        if not rest:
            try:
                return _whole(select, scope, joins, where, target)
            except Unsplit:
                scope.collected.undo(before)
    elif not rest:
        order, limit = order_limit.pushed(select, scope)
        if limit:
            return _rows(select, scope, joins, where, [], target, order, limit)
    if not selection.worth_rows(sources) and not rows:
        raise Unsplit
    if rows and (rest or selection.chooses_rows(select)):
        # More rows would come than the answer has.
        raise Unsplit
    return _rows(select, scope, joins, where, rest, target)


def _sampled(select: exp.Select, order: Node, limit: str, scope: Scope, target: str) -> BlockPlan:
    """So many rows of the one table; all conditions are applied to these locally."""
    selection.require_vocabulary(select, scope)
    where = select.args.get("where")
    rest = selection.conjuncts(where.this if where else None)
    return _rows(select, scope, [], [], rest, target, [order], limit)


def _joins(select: exp.Select, scope: Scope) -> list[Joined]:
    joins: list[Joined] = []
    for source, join in zip(scope.sources[1:], select.args.get("joins") or [], strict=True):
        on = join.args.get("on")
        kind = selection.join_kind(join)
        conditions = [rewrite.predicate(part, scope) for part in selection.conjuncts(on)]
        if any(condition is None or not condition.exact for condition in conditions):
            raise Unsplit
        joins.append(Joined(source.ref, kind, tuple(c.node for c in conditions if c is not None)))
    return joins


def _conditions(select: exp.Select, scope: Scope) -> tuple[list[Node], list[exp.Expr]]:
    """The conjuncts of WHERE that the server decides, and the rest."""
    where = select.args.get("where")
    pushed: list[Predicate] = []
    rest: list[exp.Expr] = []
    parts = keys.grouped(selection.conjuncts(where.this if where else None), keys.finds(scope))
    decided = [rewrite.predicate(part, scope) for part in parts]
    plain = all(item is not None and item.exact and not item.secret for item in decided)
    for part, item in zip(parts, decided, strict=True):
        # The server excludes as the plaintext engine does only where it decides all by itself.
        condition = item if item is None or plain else rewrite.guarded(item, scope)
        if condition is None or not condition.exact:
            rest.append(part)
        if condition is not None:
            pushed.append(condition)
    # Cheap conditions first: the server then computes powers for fewer rows.
    return [c.node for c in sorted(pushed, key=lambda c: c.secret)], rest


def _rows(
    select: exp.Select,
    scope: Scope,
    joins: list[Joined],
    where: list[Node],
    rest: list[exp.Expr],
    target: str,
    order: Sequence[Node] = (),
    limit: str = "",
) -> BlockPlan:
    """The joined rows come home, where the rest of the query runs on them."""
    tree = select.copy()
    outputs = _Outputs(scope)
    selection.expand_stars(tree, scope)
    replacer = rewrite.Replacer(scope, outputs, selection.is_aggregated(select))
    _keep_conditions(tree, rest)
    for key in ("from_", "from", "joins"):
        tree.set(key, None)
    replacer.tree(tree)
    tree.set("from_", exp.From(this=exp.to_table(target)))
    remote = RemoteQuery(
        ("", target),
        scope.refs,
        tuple(joins),
        tuple(outputs.columns),
        tuple(where),
        order=tuple(order),
        limit=limit,
        whole_table=not where and not joins and not limit,
    )
    return _finished("rows", remote, tree, scope)


def _keep_conditions(tree: exp.Select, rest: list[exp.Expr]) -> None:
    where = exp.and_(*[part.copy() for part in rest]) if rest else None
    tree.set("where", exp.Where(this=where) if where is not None else None)


def _whole(
    select: exp.Select, scope: Scope, joins: list[Joined], where: list[Node], target: str
) -> BlockPlan:
    """The server groups and aggregates; the client opens one row per group."""
    tree = select.copy()
    # The answer's columns are the groups, in their order: a star must not stand for these.
    selection.expand_stars(tree, scope)
    outputs = _Outputs(scope)
    keys = selection.group_keys(select)
    alone = not where and not joins and not keys and len(scope.sources) == 1
    scope.whole = alone and scope.sources[0].table.runs_known
    group: list[Node] = []
    virtual: dict[str, SharedExpr | Plain] = {}
    names: list[tuple[exp.Expr, str]] = []
    for key in keys:
        value = rewrite.operand(key, scope)
        if isinstance(value, SharedExpr):
            value = shares.grouped(value, scope)
        shown: Shown
        if isinstance(value, EncodedColumn):
            node, shown = encoded.grouped(value, scope)
        elif isinstance(value, SharedExpr | Plain):
            node, shown = value.node, value
        else:
            raise Unsplit
        group.append(node)
        names.append(
            (key, outputs.add(shown, scope.type_of(key) or shown.type or scope.typed(key)))
        )
    having, left = _having(select, scope, outputs, virtual)
    _keep_conditions(tree, left)
    for clause in ("from_", "from", "joins", "group", "having"):
        tree.set(clause, None)
    _replace_groups(tree, names, scope)
    _replace_aggregates(tree, select, scope, outputs)
    if any(scope.find(column) for column in tree.find_all(exp.Column)):
        raise Unsplit
    tree.set("from_", exp.From(this=exp.to_table(target)))
    counts = [o.name for o in outputs.columns if o.node == Sql("count(*)")]
    counted = not where and not group and not joins and len(scope.sources) == 1
    remote = RemoteQuery(
        ("", target),
        scope.refs,
        tuple(joins),
        tuple(outputs.columns),
        tuple(where),
        tuple(group),
        grouped=True,
        having=tuple(having),
        counted=counts[0] if counted and counts else "",
        filters=tuple(scope.filters),
    )
    values = {name: value for name in outputs.names() if (value := outputs.value(name))}
    return replace(_finished("whole", remote, tree, scope), values=values)


def _having(
    select: exp.Select, scope: Scope, outputs: _Outputs, virtual: dict[str, SharedExpr | Plain]
) -> tuple[list[Node], list[exp.Expr]]:
    """HAVING on the server where a rule decides it: a SUM is a share like any other."""
    clause = select.args.get("having")
    pushed: list[Node] = []
    left: list[exp.Expr] = []
    for part in selection.conjuncts(clause.this if clause else None):
        copy: exp.Expr = exp.Paren(this=part.copy())
        aggregates = list(copy.find_all(*_AGGREGATES))
        originals = list(part.find_all(*_AGGREGATES))
        for node, original in zip(aggregates, originals, strict=True):
            entry = outputs.aggregate(original, scope)
            value = outputs.value(entry.name) if isinstance(entry, exp.Column) else None
            if value is not None:
                virtual[entry.name] = value
                node.replace(entry)
        # Only columns of the grouped query are in reach of HAVING.
        sources, scope.sources, scope.shown = scope.sources, [], scope.sources
        scope.virtual = virtual
        condition = rewrite.predicate(copy, scope)
        scope.virtual, scope.sources, scope.shown = {}, sources, []
        if condition is not None and condition.secret:
            pushed.append(condition.node)
        else:
            left.append(part)
    return pushed, left


def _replace_groups(tree: exp.Select, names: list[tuple[exp.Expr, str]], scope: Scope) -> None:
    """Grouping expressions become columns of the answer, wherever they stand outside of an
    aggregate. One column may be written in several ways: ``c``, ``t.c``, ``"C"``.
    """
    for key, name in names:
        for node in list(tree.find_all(type(key))):
            if _is_group(node, key, scope) and not node.find_ancestor(*_AGGREGATES):
                selection.put_column(node, name)


def _is_group(node: exp.Expr, key: exp.Expr, scope: Scope) -> bool:
    if node == key or not isinstance(node, exp.Column) or not isinstance(key, exp.Column):
        return node == key
    match, wanted = scope.find(node), scope.find(key)
    if match is None or wanted is None:
        return False
    return (match[0].slot, match[1].id) == (wanted[0].slot, wanted[1].id)


def _replace_aggregates(
    tree: exp.Select, select: exp.Select, scope: Scope, outputs: _Outputs
) -> None:
    known = {local_text(node): node for node in select.find_all(*_AGGREGATES)}
    for node in list(tree.find_all(*_AGGREGATES)):
        original = known.get(local_text(node))
        if original is None:
            raise Unsplit
        node.replace(outputs.aggregate(original, scope))


def _finished(kind: str, remote: RemoteQuery, tree: exp.Select, scope: Scope) -> BlockPlan:
    home = selection.home_text(tree, scope)
    choose.note_reads(remote, scope)
    secret = any(output.kind != "plain" for output in remote.outputs) or bool(scope.collected.leaks)
    noted = scope.collected
    plan = Plan(kind, (remote,), home, tuple(noted.leaks), tuple(noted.opens), reads_secret=secret)
    return BlockPlan(plan, tree)


def _type_of(value: Shown, type_: str, *, alone: bool) -> str:
    """The type of a column of the answer: that of the aggregate which it is; of a row's value its
    own, and of a sum the widest exact number where the engine's has no bounds.
    """
    if not alone or isinstance(value, GroupRepresentative):
        return value.type
    if isinstance(value, Summed) and family(type_) != "number":
        return value.type
    return type_


class _Outputs:
    """The columns of the answer, each asked for once."""

    def __init__(self, scope: Scope) -> None:
        self.columns: list[Output] = []
        self._names: dict[object, str] = {}
        self._aggregates: dict[str, exp.Expr] = {}
        self._values: dict[str, SharedExpr | Plain] = {}
        self._scope = scope

    def add(self, value: Shown, type_: str) -> str:
        """The name of a value in the answer."""
        known = self._names.get(value)
        if known is not None:
            return known
        if isinstance(value, Summed):
            return self._summed(value, type_)
        name = self._names[value] = f"louver_c{len(self.columns)}"
        if isinstance(value, SharedExpr | Plain):
            self._values[name] = value
        self.columns.append(choose.output(name, value, type_, self._scope))
        return name

    def _summed(self, value: Summed, type_: str) -> str:
        parts = tuple(self.add(Raw(node, "HUGEINT"), "HUGEINT") for _, node in value.parts)
        name = self._names[value] = f"louver_c{len(self.columns)}"
        self.columns.append(
            Output(
                name,
                "summed",
                type_,
                slot=value.slot,
                column=value.column,
                parts=parts,
                summed=value,
            )
        )
        return name

    def stored(self, source: Source, name: str) -> str:
        """The name of a stored column in the answer, in its cheapest representation."""
        key = (source.slot, fold(name))
        known = self._names.get(key)
        if known is None:
            known = self._names[key] = f"louver_c{len(self.columns)}"
            self.columns.append(choose.stored(known, source, name))
        return known

    def aggregate(self, node: exp.Expr, scope: Scope) -> exp.Expr:
        """An aggregate over columns of the answer."""
        key = local_text(node)
        known = self._aggregates.get(key)
        if known is None:
            computed = rewrite.aggregate(node, scope)
            if computed is None:
                raise Unsplit
            known = self._aggregates[key] = self._stored(computed, scope.type_of(node))
        return known.copy()

    def _stored(self, computed: Aggregate, type_: str) -> exp.Expr:
        alone = len(computed.values) == 1
        names = [self.add(value, _type_of(value, type_, alone=alone)) for value in computed.values]
        if not computed.average:
            return exp.column(names[0])
        if spoken().divides_sums:
            sum_, count = map(exp.column, names)
            return exp.Paren(this=exp.Div(this=sum_, expression=count, typed=True, safe=False))
        name = f"louver_c{len(self.columns)}"
        self.columns.append(Output(name, "average", type_, parts=(names[0], names[1])))
        return exp.column(name)

    def names(self) -> list[str]:
        """The names of all values."""
        return list(self._values)

    def value(self, name: str) -> SharedExpr | Plain | None:
        """A value of the answer as an operand of HAVING: a column of the grouped query."""
        value = self._values.get(name)
        node = StoredColumn("h", name)
        if isinstance(value, SharedExpr):
            return replace(value, node=node, single=False)
        if isinstance(value, Plain):
            return Plain(node, value.type)
        return None
