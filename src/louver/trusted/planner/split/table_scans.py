"""Split, last choice: table by table with pruned columns, reduced by what the server may apply; the
user's own text then runs locally. This is what makes any SELECT run that DuckDB runs.

Nothing here needs to understand the query exactly. A column is left out only where its name
stands nowhere in the text. A row is left out only where no occurrence of its table could use it:
a table is read once, with the rows that any of its occurrences needs, and the local DuckDB applies
every condition once more. So home runs the text as it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from sqlglot import exp
from sqlglot.tokens import Token

from louver.names import fold
from louver.trusted.planner import choose, cost
from louver.trusted.planner.ir import (
    SEALED,
    Node,
    Opening,
    Output,
    Plan,
    RemoteQuery,
    Sql,
)
from louver.trusted.planner.operators import keys
from louver.trusted.planner.split.scans import columns, graph, key_joins, probes, query_blocks
from louver.trusted.planner.split.scans.conditions import Conditions
from louver.trusted.planner.split.scans.pushes import ROOT, Push, fresh_slots, pushes
from louver.trusted.planner.sql import lexer, selection
from louver.trusted.planner.sql.lexer import Shape
from louver.trusted.planner.sql.placeholders import is_placeholder
from louver.trusted.planner.sql.resolver import name_words
from louver.trusted.planner.sql.scope import Servers, Source
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.facts import Fact

Describe = Callable[[str], list[tuple[str, str]]]
# What depends on which rows lie where, or must be asked once per row.
_TOUCHY = frozenset(("rowid", "nextval", "currval", "setseed"))
_PLAIN = {"expressions", "from_", "where"}
"""The parts of a statement that takes rows as they are."""
#: What reads something else, or gives rows in an order that depends on how they are held.
_BESIDE = (
    exp.Query, exp.With, exp.Join, exp.Lateral, exp.Unnest, exp.TableSample, exp.Pivot,
)  # fmt: skip
#: What looks at several rows at a time.
_TOGETHER = (exp.AggFunc, exp.Group, exp.Distinct, exp.Window, exp.Qualify)


def plan_scans(
    tree: exp.Expr | None,
    tokens: Sequence[Token],
    tables: list[Table],
    shape: Shape,
    servers: Servers,
    parameters: Sequence[object],
    describe: Describe,
    resolve: selection.Resolve,
    link: cost.Link | None = None,
    *,
    apart: bool = False,
    whole: Collection[int] = (),
    change: bool = False,
) -> Plan:
    """One scan per table that the statement names, directly or through a view; where tables lie
    ``apart``, none is reduced by another one where it lies. Of ``whole`` tables, by id, all columns
    are read. ``change`` tells that the rows are those of a change.
    """
    names = (
        None
        if tree is None or columns.reads_all(tree, tokens, tables, resolve)
        else name_words(tokens)
    )
    reducer = None
    if tree is not None and _may_reduce(tree, tokens):
        reducer = _Reducer(tree, shape, servers, parameters, describe, resolve)
        reducer.graph.apart = apart
    scanned = [servers.source(ROOT, table.name, table) for table in tables]
    remotes: list[RemoteQuery] = []
    leaks: list[Fact] = []
    opens: list[Opening] = []
    for source in scanned:
        remote = _whole(source, None if source.table.id in whole else names)
        if reducer is not None:
            remote = reducer.reduce(remote, source, tables, link or cost.Link(), leaks, opens)
            remote = reducer.look_up(remote, source, tables, link or cost.Link())
        remotes.append(remote)
    by_table = {source.table.id: source for source in scanned}
    if reducer is not None:
        probed = reducer.probe(remotes, by_table, tables, link or cost.Link(), change=change)
        remotes = probed.remotes
        leaks += [leak for leak in probed.leaks if leak not in leaks]
        opens += [opening for opening in probed.opens if opening not in opens]
    for remote in remotes:
        read = choose.reads(remote, [by_table[remote.sources[0].table]])
        leaks += [leak for leak in read if leak not in leaks]
    leaks = [leak for leak in leaks if not any(_says_more(other, leak) for other in leaks)]
    secret = any(out.kind == SEALED for remote in remotes for out in remote.outputs)
    kind = "scans" if remotes else "home"
    secret = secret or bool(opens)
    return Plan(kind, tuple(remotes), "", tuple(leaks), tuple(opens), reads_secret=secret)


def alone(plan: Plan, tree: exp.Expr | None, *, views: bool) -> tuple[str, bool]:
    """The name by which what runs locally calls the rows of the one answer, where it reads nothing
    else and reads them once: no table need be made of them. "" where it may do more. And whether it
    takes them row by row.
    """
    name = _read_once(plan, tree, views=views)
    by_row = plan.home_sql or tree is None or tree.find(*_TOGETHER) is None
    return name, bool(name and by_row)


def _read_once(plan: Plan, tree: exp.Expr | None, *, views: bool) -> str:
    if len(plan.remotes) != 1:
        return ""
    schema, name = plan.remotes[0].home
    if plan.home_sql:
        return name if not schema else ""
    if plan.replacements or views or not isinstance(tree, exp.Select):
        return ""
    tables = list(tree.find_all(exp.Table))
    beside = any(part is not tree for part in tree.find_all(*_BESIDE))
    if len(tables) != 1 or beside or tables[0].args.get("db"):
        return ""
    plain = isinstance(tables[0].this, exp.Identifier) and fold(tables[0].name) == fold(name)
    return tables[0].name if plain else ""


def projected(plan: Plan, tree: exp.Expr | None) -> tuple[str, ...]:
    """The columns that a statement asks for, if it asks for columns as they are, of rows that are
    equal to constants by their codes, and the server has decided all of that; else none.
    """
    if (
        not plan.alone
        or plan.home_sql
        or tree is None
        or set(filter(tree.args.get, tree.args)) - _PLAIN
    ):
        return ()
    (remote,) = plan.remotes
    if not decided_by_codes(remote, tree.args.get("where")):
        return ()
    outputs = {fold(out.name): out.name for out in remote.outputs if out.kind != "absent"}
    names: list[str] = []
    for item in tree.expressions:
        if isinstance(item, exp.Star) and not any(item.args.values()):
            names += [out.name for out in remote.outputs]
        elif isinstance(item, exp.Column) and not isinstance(item.this, exp.Star):
            names.append(item.name)
        else:
            return ()
    known = [outputs.get(fold(name), "") for name in names]
    return tuple(known) if all(known) and len(known) == len(plan.names) else ()


def decided_by_codes(remote: RemoteQuery, where: exp.Where | None) -> bool:
    """Whether the server has decided all of a condition, by codes that are equal to constants'."""
    conditions = selection.conjuncts(where.this) if where is not None else []
    if not all(_is_of_one_column(part.unnest()) for part in conditions):
        # Of an OR, or of rows, the server may have decided less than it says.
        return False
    constants = [keys.codes_of(node) for node in remote.where]
    decided = sum(1 + len(codes[0].more) for codes in constants if codes)
    return all(constants) and decided == len(conditions)


def _is_of_one_column(condition: exp.Expr) -> bool:
    """Whether a condition compares a column with constants."""
    if not isinstance(condition, exp.EQ | exp.In):
        return False
    columns = condition.find_all(exp.Column, exp.Tuple)
    return [type(part) for part in columns if not is_placeholder(part)] == [exp.Column]


def _says_more(other: Fact, leak: Fact) -> bool:
    """Whether one leak is the other, of more columns."""
    if (other.table, other.level, other.kind) != (leak.table, leak.level, leak.kind):
        return False
    return leak.kind == "rows" and set(leak.columns) < set(other.columns)


def _whole(source: Source, names: set[str] | None) -> RemoteQuery:
    table = source.table
    outputs = [_output(source, column.name, names) for column in table.columns]
    remote = RemoteQuery(
        (table.schema, table.name),
        (source.ref,),
        (),
        tuple(outputs),
        whole_table=True,
        rows=float(table.row_count),
    )
    return replace(remote, width=cost.row_bytes(remote))


def _output(source: Source, name: str, names: set[str] | None) -> Output:
    if names is None or fold(name) in names:
        return choose.stored(name, source, name)
    column = source.table.column(name)
    return Output(name, "absent", column.type if column else "INTEGER")


def _may_reduce(tree: exp.Expr, tokens: Sequence[Token]) -> bool:
    if not isinstance(tree, exp.Query):
        return False
    return not any(fold(t.text) in _TOUCHY or lexer.MARKS & set(t.text) for t in tokens)


class _Reducer:
    """Adds to scans what the server may apply to their rows."""

    def __init__(
        self,
        tree: exp.Expr,
        shape: Shape,
        servers: Servers,
        parameters: Sequence[object],
        describe: Describe,
        resolve: selection.Resolve,
    ) -> None:
        blocks = self._blocks = query_blocks.read(tree, resolve)
        held = [o for block in blocks if not block.frozen for _, o in block.items if o is not None]
        self._by_node = {id(occurrence.node): occurrence for occurrence in held}
        self._nodes = list(tree.find_all(exp.Table))
        self._resolve = resolve
        by_slot = {occurrence.slot: occurrence for occurrence in held}
        self._conditions = Conditions(shape, servers, parameters, describe, by_slot)
        self.graph = graph.gather(blocks, self._conditions)

    def reduce(
        self,
        remote: RemoteQuery,
        scanned: Source,
        tables: list[Table],
        link: cost.Link,
        leaks: list[Fact],
        opens: list[Opening],
    ) -> RemoteQuery:
        """A scan filtered by what all occurrences of its table admit, if the ceilings allow it."""
        slots = fresh_slots()
        wanted: list[list[Push]] = []
        for owner in self._owners(scanned.table):
            taken = self._taken(remote, owner, link, slots) if owner is not None else []
            if not taken:
                # This occurrence needs all rows, so the others find theirs among them.
                return remote
            wanted.append(taken)
        chosen = _merged(wanted)
        worth = chosen and _left(chosen) <= scanned.backend.costs.most_left
        if not worth or not self._access_allowed(remote, scanned, tables):
            return remote
        reduced = replace(
            remote,
            where=tuple(push.node for push in chosen),
            inner=tuple(source.ref for push in chosen for source in push.inner[1:]),
            whole_table=False,
            rows=remote.rows * min(1.0, _left(chosen)),
        )
        for push in chosen:
            leaks += [leak for leak in push.collected.leaks if leak not in leaks]
            opens += [opening for opening in push.collected.opens if opening not in opens]
        return reduced

    def look_up(
        self, remote: RemoteQuery, scanned: Source, tables: list[Table], link: cost.Link
    ) -> RemoteQuery:
        """A scan in two steps, where the server cannot decide the conditions and that pays."""
        if remote.rows < cost.LEAST_ROWS:
            return remote
        from louver.trusted.planner.split.scans import lookups

        owners = [owner for owner in self._owners(scanned.table) if owner is not None]
        if len(owners) != len(self._owners(scanned.table)):
            return remote
        may_show = self._access_allowed(remote, scanned, tables)
        return lookups.planned(
            remote, scanned, owners, self._blocks, self._conditions, link, may_show=may_show
        )

    def _owners(self, table: Table) -> list[query_blocks.Occurrence | None]:
        """The occurrences of a table; None for one of which nothing is known."""
        owners: list[query_blocks.Occurrence | None] = []
        for node in self._nodes:
            if fold(node.name) != fold(table.name):
                continue
            owner = self._by_node.get(id(node))
            if owner is not None and owner.table.id != table.id:
                continue
            elsewhere = self._resolve(node)
            if owner is None and elsewhere is not None and elsewhere.id != table.id:
                continue
            owners.append(owner)
        return owners

    def probe(
        self,
        remotes: list[RemoteQuery],
        sources: Mapping[int, Source],
        tables: list[Table],
        link: cost.Link,
        *,
        change: bool,
    ) -> key_joins.Probed:
        """Let tables be reduced by keys of tables that are read before them."""

        def may_show(remote: RemoteQuery) -> bool:
            scanned = sources[remote.sources[0].table]
            return not self.graph.apart and self._access_allowed(remote, scanned, tables)

        known = (self._blocks, self._nodes, self._conditions)
        return probes.add(remotes, sources, *known, link, may_show, change=change)

    def _taken(
        self,
        remote: RemoteQuery,
        owner: query_blocks.Occurrence,
        link: cost.Link,
        slots: Iterator[int],
    ) -> list[Push]:
        """The pushes of one occurrence that pay."""
        taken: list[Push] = []
        rows = remote.rows
        for push in sorted(pushes(owner, self.graph, slots), key=Push.order):
            reduced_s = cost.seconds(remote, rows * push.left, link)
            saved = cost.seconds(remote, rows, link) - reduced_s
            if not push.is_free() and saved <= push.work_s(rows):
                continue
            if keys.looks_up(push.node):
                # The index gives these rows; with another condition beside it none may be used.
                return [push]
            taken.append(push)
            rows *= push.left
        return taken

    @staticmethod
    def _access_allowed(remote: RemoteQuery, scanned: Source, tables: list[Table]) -> bool:
        filtered = RemoteQuery(remote.home, remote.sources, (), remote.outputs, (Sql("true"),))
        return not choose.above_ceiling(choose.reads(filtered, [scanned]), tables)


def _left(chosen: list[Push]) -> float:
    left = 1.0
    for push in chosen:
        left *= push.left
    return left


def _merged(wanted: list[list[Push]]) -> list[Push]:
    """The rows that any of the occurrences needs: what all ask for, and one of what is left."""
    if not wanted:
        return []
    common = set.intersection(*({push.key for push in item} for item in wanted))
    chosen = _once(push for push in wanted[0] if push.key in common)
    rests = [[push for push in item if push.key not in common] for item in wanted]
    if all(rests):
        chosen.append(reduce(_either, [reduce(_both, rest) for rest in rests]))
    # Cheap conditions first: the server then computes powers for fewer rows.
    return sorted(chosen, key=lambda push: (push.secret, len(push.inner)))


def _once(pushes: Iterator[Push]) -> list[Push]:
    return list({push.key: push for push in pushes}.values())


def _both(first: Push, second: Push) -> Push:
    return _joined(first, second, "AND", first.left * second.left)


def _either(first: Push, second: Push) -> Push:
    if first.key == second.key:
        return first
    return _joined(first, second, "OR", min(1.0, first.left + second.left))


def _joined(first: Push, second: Push, word: str, left: float) -> Push:
    node: Node = Sql(f"(⟦0⟧ {word} ⟦1⟧)", (first.node, second.node))
    noted = first.collected
    for opening in second.collected.opens:
        noted.open(opening)
    for leak in second.collected.leaks:
        noted.leak(leak)
    return Push(
        f"({first.key} {word} {second.key})",
        node,
        first.secret or second.secret,
        first.cheap and second.cheap,
        noted,
        [*first.inner, *second.inner[1:]],
        left,
    )
