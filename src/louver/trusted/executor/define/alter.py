"""ALTER: names, columns, types, constraints, ceilings."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor import cardinality, row_writer
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import (
    ceilings,
    comments,
    counting,
    encrypting,
    fill,
    postgres_forms,
    rebuilding,
    renames,
    temporary_objects,
)
from louver.trusted.executor.local.local import RANKS
from louver.trusted.executor.policy_spelling import require_spelled
from louver.trusted.executor.schema import (
    constraints,
    declarations,
    head,
    join_groups,
    objects,
    representations,
    sequences,
    tables,
)
from louver.trusted.planner.sql import declarations as declare
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.write import permit
from louver.trusted.vault import facts, scheme
from louver.trusted.vault.catalog import Catalog, Column, HomeObject, Table
from louver.trusted.vault.levels import allows
from louver.trusted.vault.protection import PLAIN, SEALED, Protection

Columns = list[tuple[str, str]]


def alter(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """Run an ALTER statement."""
    start = head.read(tokens)
    if text.parameters:
        raise errors.make("sql.unsupported", statement="A placeholder in ALTER")
    if start.kind not in ("TABLE", "VIEW", *postgres_forms.kinds(context)):
        raise errors.make("sql.unsupported", statement=f"ALTER {start.kind}")
    postgres_forms.require(context, start, tokens)
    encryption = declare.read_encryption(tokens)
    if encryption is not None:
        return encrypting.change(context, start, *encryption)
    ceiling = declare.read_ceiling(tokens)
    if ceiling is not None:
        return ceilings.change(context, start, ceiling[1], ceiling[2])
    counted = counting.read(start, tokens)
    if counted is not None:
        return counting.change(context, start, counted)
    said = declare.strip_enc(text.plain, tokens)
    table = context.catalog.named(*start.target) if start.kind == "TABLE" else None
    action = tokens[start.end :]
    if table is not None:
        encrypting.require_finished(context.catalog, table)
        _require_path(context, table, action)
        temporary_objects.independent(context, start, said.sql)
    notices: list[str] = []
    local = start.kind == "VIEW" and temporary_objects.is_view(context, start)
    if spoken().prints_objects and context.in_transaction and _restarts(start, action):
        sequences.bring_back(context)
    with temporary_objects.changing(context, local) as catalog:
        # Read within the change: no row comes between.
        if start.kind == "TYPE":
            from louver.trusted.executor.define import altered_types

            altered_types.rehearse(context, catalog, said.sql, tokens)
        held = fill.read(context, table) if table is not None and _asks_rows(action) else None
        if table is not None and held is not None and spoken().prints_objects:
            held = fill.rehearsed(context, table, held, said.sql, tokens)
        change = objects.run(context, said.sql, macros=start.kind == "MACRO")
        postgres_forms.require_moved(start, tokens, change)
        # A table moves with its sequences, which it names, and its indexes.
        for old, new in sorted(change.renamed.items(), key=lambda pair: RANKS.index(pair[0][0])):
            head.refuse_reserved(new[2])
            renames.apply(context, catalog, old, new)
        renamed = {old: (fold(new[1]), fold(new[2])) for old, new in change.renamed.items()}
        own = None if table is None else renamed.get(("TABLE", table.schema, table.name), table.key)
        objects.follow(context, catalog, change, table=own)
        working = None if table is None else catalog.table(*table.key)
        if working is not None:
            _follow(context, catalog, working, held, said, action)
            postgres_forms.number(context, change, held)
            declarations.require_around(context, catalog, catalog.table(*working.key) or working)
            notices = _noticed(context, working, said)
        if working is not None or not _of_view(context, catalog, tokens, local=local):
            comments.keep(context, catalog)
    return Answer(notices=notices)


def _restarts(start: head.Head, action: Sequence[Token]) -> bool:
    return start.kind == "SEQUENCE" or any(keyword(token.text) == "RESTART" for token in action)


def _of_view(context: Context, catalog: Catalog, tokens: Sequence[Token], *, local: bool) -> bool:
    """Keep what a view gets beside its definition: the defaults of columns. Whether it does."""
    if not (spoken().prints_objects and "DEFAULT" in {keyword(token.text) for token in tokens}):
        return False
    comments.keep(context, catalog, anew=True)
    if local and context.local.schema.comments(temporary=True):
        raise errors.make("sql.unsupported", statement="A default of a TEMP view's column")
    for item in catalog.objects:
        if item.kind == "COMMENT" and not item.sql.startswith("COMMENT "):
            # No word of a change of the view would say it.
            objects.require_no_draws(item.kind, item.sql)
    return True


def _require_path(context: Context, table: Table, action: Sequence[Token]) -> None:
    """Refuse names that would mean something else where the table's own text is read again."""
    paths = [o.path for o in context.catalog.objects if o.kind == "TABLE" and _is(o, table)]
    objects = (o for o in context.catalog.objects if o.kind in ("SEQUENCE", "MACRO"))
    if context.local.path.schemas not in paths and not {fold(o.name) for o in objects}.isdisjoint(
        fold(token.text) for token in action
    ):
        statement = (
            "ALTER TABLE with a sequence or macro that is named without its schema, under another "
            "search path than that of CREATE TABLE, (write schema.name)"
        )
        raise errors.make("sql.unsupported", statement=statement)


def _is(item: HomeObject, table: Table) -> bool:
    return (fold(item.schema), fold(item.name)) == table.key


def _noticed(context: Context, table: Table, said: declare.Declaration) -> list[str]:
    """Warnings of the columns that a statement declares."""
    now = context.catalog.table(*table.key) or table
    entries = [column for column in now.columns if fold(column.name) in said.columns]
    return [
        text for column in entries for text in cardinality.declared(now, column.ceiling, column)
    ]


def _asks_rows(action: Sequence[Token]) -> bool:
    """Whether the statement changes or tests what the rows hold.

    Renames, defaults and dropped columns do not, unless they reach into a STRUCT.
    """
    words = [keyword(token.text) for token in action]
    if spoken().prints_objects:
        return postgres_forms.asks_rows(action)
    if words[:1] in (["RENAME"], ["DROP"]):
        return "." in words
    return "DEFAULT" not in words[:5] or words[:1] == ["ADD"]


def _follow(
    context: Context,
    catalog: Catalog,
    table: Table,
    held: pa.Table | None,
    said: declare.Declaration,
    action: Sequence[Token],
) -> None:
    """Bring catalog, server and workspace to what the schema has become."""
    columns = objects.described(context, table.schema, table.name)
    before = [(column.name, column.type) for column in table.columns]
    added = [name for name, _ in columns if table.column(name) is None]
    head.refuse_reserved(*added)
    if added:
        known = [other.label for other in catalog.tables.values()]
        require_spelled(context.policy, table.label, (name for name, _ in columns), known)
    if columns == before and not (_given(action) or postgres_forms.computes_anew(action)):
        if held is not None:
            _tried(context, table, held, said.sql)
        _count_nulls(context, table)
        _settle_tags(context, catalog, table)
        return
    if (
        columns != before
        and postgres_forms.may_rename(action)
        and len(columns) == len(before)
        and [t for _, t in columns] == [t for _, t in before]
    ):
        renames.columns(context, table, [name for name, _ in columns])
    elif columns != before and [column for column in before if column in columns] == columns:
        _drop_columns(context, table, columns)
    elif not _added(context, catalog, table, columns, said, action):
        if held is not None:
            held = _tried(context, table, held, said.sql)
        elif not _asks_rows(action):
            raise errors.make("internal", detail="required rows were not read")
        _rewrite(context, catalog, table, columns, held, said, action)
    renames.mirror(context, catalog, table.schema, table.name)


def _tried(context: Context, table: Table, held: pa.Table, sql: str) -> pa.Table:
    """The rows as the statement leaves them, unless it was rehearsed on them before it ran."""
    return held if spoken().prints_objects else fill.tried(context, table, held, sql)


def _added(
    context: Context,
    catalog: Catalog,
    table: Table,
    columns: Columns,
    said: declare.Declaration,
    action: Sequence[Token],
) -> bool:
    """Whether the statement only adds a column at the end that no row has a value of, and its
    table's place has no need to write the rows anew for that.
    """
    before = [(column.name, column.type) for column in table.columns]
    words = {keyword(token.text) for token in action}
    if columns[:-1] != before or words & {"DEFAULT", "GENERATED", "AS", "CHECK", "UNIQUE"}:
        return False
    name, type_ = columns[-1]
    declared = constraints.read(context.local.schema, table.schema, table.name)
    known = declared.get(fold(name), constraints.Known())
    protection = context.protection(table.label, name, type_, said.columns.get(fold(name)))
    if not context.backend.adds_columns or not known.nullable:
        return False
    statement = tables.make_column(catalog, name, type_, protection, known, context.backend)
    table.columns.append(statement)
    return context.storage.add_column(table, statement)


def _settle_tags(context: Context, catalog: Catalog, table: Table) -> None:
    """A key may have come. What few statements need is imported by these."""
    from louver.trusted.executor.define import tagging

    tagging.settle(context, catalog, table)


def _count_nulls(context: Context, table: Table) -> None:
    """Schemes may store more of a column that may be NULL from now on."""
    declared = constraints.read(context.local.schema, table.schema, table.name)
    for column in table.columns:
        known = declared.get(fold(column.name), constraints.Known())
        column.nullable = known.nullable
        if not column.encrypted:
            continue
        protection = rebuilding.detailed(context, table, column)
        if scheme.lacks(column, protection):
            rebuilding.fit(context, table, column, protection)


def _drop_columns(context: Context, table: Table, columns: Columns) -> None:
    remaining = {name for name, _ in columns}
    gone = [s for c in table.columns if c.name not in remaining for s in c.stored.values()]
    if any(scheme.share_of(c) for c in table.columns if c.name not in remaining):
        gone += tables.let_go_of_kept(table)
    table.columns = [column for column in table.columns if column.name in remaining]
    context.storage.drop_columns(table, gone + tables.settle_helpers(table))


def _rewrite(
    context: Context,
    catalog: Catalog,
    table: Table,
    columns: Columns,
    held: pa.Table | None,
    said: declare.Declaration,
    action: Sequence[Token],
) -> None:
    """The table anew under fresh ids and row numbers, so that no old row fits into it."""
    fresh = Table(
        table.schema, table.name, catalog.take_table_id(), counted=table.counted,
        runs_known=table.counted,
    )  # fmt: skip
    declared = constraints.read(context.local.schema, table.schema, table.name)
    tables.require_uncollated(columns, declared)
    protections: dict[str, Protection] = {}
    for name, type_ in columns:
        old = table.column(name)
        if old is None:
            words = said.columns.get(fold(name))
            protected = context.protection(table.label, name, type_, words)
        else:
            protection = _kept(context, catalog, table, old, type_, said.sql, action)
            protected = rebuilding.detailed(context, table, old, protection)
        known = declared.get(fold(name), constraints.Known())
        protections[fold(name)] = protected
        fresh.columns.append(
            tables.make_column(catalog, name, type_, protected, known, context.backend)
        )
    join_groups.carry(catalog, table, fresh, protections, declared)
    representations.pack(fresh, protections, context.backend)
    tables.settle_helpers(fresh)
    from louver.trusted.executor.define import tagging

    representations.tag(fresh, tagging.keys_of(context, fresh), context.backend)
    context.ledger.carry(
        facts.moved(context.ledger.facts(), table, fresh), f"ALTER TABLE {table.label}"
    )
    context.storage.drop(table)
    catalog.add(fresh)
    # A default gives the new column its values: it is judged before they are sent.
    declarations.require_around(context, catalog, fresh)
    context.storage.create(fresh)
    context.local.forget_types()
    if held is not None:
        row_writer.append(context, fresh, fill.conformed(context, fresh, held))


def _given(action: Sequence[Token]) -> Sequence[Token]:
    """The expression of ALTER … TYPE … USING, which is computed where the type stays too."""
    if [keyword(token.text) for token in action[:1]] != ["ALTER"]:
        return ()
    for position, token in enumerate(action):
        if token.token_type == TokenType.USING:
            return action[position + 1 :]
    return ()


def _kept(
    context: Context,
    catalog: Catalog,
    table: Table,
    old: Column,
    type_: str,
    sql: str,
    action: Sequence[Token],
) -> Protection:
    """A column's protection after its type or its values changed: what is computed from encrypted
    columns is encrypted, and shows no more than any of them.
    """
    row = scheme.using(old.scheme)
    stays = row.takes(type_) if row is not None else bool(old.scheme)
    protection = Protection(True, old.scheme if stays else SEALED, old.ceiling)
    protection = protection if old.encrypted else PLAIN
    given = _given(action)
    if not given:
        return protection
    name, _ = head.names(action, 2 if keyword(action[1].text) == "COLUMN" else 1)
    if fold(name[0]) != fold(old.name):
        return protection
    expression = sql[given[0].start : given[-1].end + 1]
    ceiling = permit.lowest(
        catalog, declarations.computed(catalog, table, expression, context.state.origins)
    )
    if not ceiling or (old.encrypted and allows(ceiling, old.ceiling)):
        return protection
    return context.policy.derived(ceiling)
