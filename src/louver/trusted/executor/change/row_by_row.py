"""Changes that are decided row by row, without a dry run: one query over the rows that came back.

Only for one table, and for expressions of a small grammar over its columns, so that what a row
becomes depends on nothing but the row. Whatever the query does not take (an error, NULL where there
must be none, a CHECK that is not met) goes to the dry run, which says why in DuckDB's words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from louver import errors
from louver.names import fold, quoted
from louver.trusted.executor import select
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.change import simple_terms, statement_parts
from louver.trusted.executor.context import Context
from louver.trusted.executor.dry_run import Difference, differs
from louver.trusted.executor.storage import ROW_ID
from louver.trusted.planner.ir import ChangePlan, RowChange
from louver.trusted.vault.catalog import Table

#: Rows that values are worked out for one by one.
_MOST_SIMPLE = 64
_OLD, _NEW, _DIFFERS, _MET = "louver_old_", "louver_new_", "louver_differs", "louver_met"


def terms_of(
    context: Context, words: statement_parts.Words, plan: ChangePlan
) -> Sequence[simple_terms.Term] | None:
    """What an UPDATE sets columns to, and nothing for a DELETE, where no engine need tell; else
    None. The numbers of the text are in it, bound values are not.
    """
    each = plan.each
    if each is None or not each.by_codes or each.checks or each.returning != (0, 0):
        return None
    if each.deletes:
        return ()
    table, field_of = context.catalog.by_id(plan.target), context.local.arrow_field
    known_as, required = (fold(each.alias or table.name),), set(map(fold, each.required))
    return simple_terms.terms_of(words, plan.free, table, known_as, required, field_of)


def decided(
    context: Context, words: statement_parts.Words, plan: ChangePlan,
    terms: Sequence[simple_terms.Term] | None, rows: pa.Table, literals: Sequence[str],
) -> Difference | None:  # fmt: skip
    """What a change does to the rows that it read; None where the dry run must tell. ``terms`` are
    those of its text.
    """
    table, each = context.catalog.by_id(plan.target), plan.each
    if each is None or rows.num_rows > select.MOST_ROWS or context.local.collated():
        return None
    try:
        if each.deletes:
            return _deleted(context, words, plan, each, table, rows, literals)
        done = _set_simply(context, words, plan, each, terms, table, rows, literals)
        return done or _updated(context, words, plan, each, table, rows)
    except (errors.Error, pa.ArrowException):
        return None


def decided_by(
    terms: Sequence[simple_terms.Term], context: Context, words: statement_parts.Words,
    plan: ChangePlan, rows: pa.Table, literals: Sequence[str], _again: bool,
) -> Difference | None:  # fmt: skip
    """The same of a text whose terms are known."""
    return decided(context, words, plan, terms, rows, literals)


def _deleted(
    context: Context, words: statement_parts.Words, plan: ChangePlan, each: RowChange,
    table: Table, rows: pa.Table, literals: Sequence[str],
) -> Difference | None:  # fmt: skip
    matches = _chosen(context, plan, each, table, rows, literals)
    if matches is None:
        condition, values = _where(words, each)
        sql = f"SELECT {ROW_ID} FROM {_source(table, each)}{condition}"
        reply = _asked(context, table, rows, each.reads, sql, values)
        matches = rows.take(_positions(reply, rows))
    answer = _answer(context, words, each, table, matches)
    gone = matches.column(ROW_ID).combine_chunks()
    return Difference(gone, matches.slice(0, 0), answer)


def _chosen(
    context: Context, plan: ChangePlan, each: RowChange, table: Table, rows: pa.Table,
    literals: Sequence[str],
) -> pa.Table | None:  # fmt: skip
    """The rows that meet a condition by their codes; None where codes do not tell."""
    if not each.by_codes or plan.rows is None:
        return None
    (remote,) = plan.rows.remotes
    return context.columns.decided_again(remote, {table.id: table}, rows, literals)


def _set_simply(
    context: Context, words: statement_parts.Words, plan: ChangePlan, each: RowChange,
    terms: Sequence[simple_terms.Term] | None, table: Table, rows: pa.Table,
    literals: Sequence[str],
) -> Difference | None:  # fmt: skip
    """An UPDATE that no engine need decide: by codes which rows, by simple terms what becomes of
    them.
    """
    if not terms or rows.num_rows > _MOST_SIMPLE:
        return None
    before = _chosen(context, plan, each, table, rows, literals)
    if before is None:
        return None
    field_of = context.local.arrow_field
    after = simple_terms.changed(terms, before, None, words.parameters)
    names = [column.name for column in table.columns]
    if after is None or any(
        after.schema.field(c.name).type != field_of(c.type).type for c in table.columns
    ):
        return None
    other = simple_terms.difference(terms, before, after)
    if plan.all_met:
        other = pa.array([True] * before.num_rows, pa.bool_())
    gone = before.column(ROW_ID).combine_chunks().filter(other)
    return Difference(gone, after.select(names).filter(other), Answer(affected=before.num_rows))


def _updated(
    context: Context, words: statement_parts.Words, plan: ChangePlan, each: RowChange,
    table: Table, rows: pa.Table,
) -> Difference | None:  # fmt: skip
    """New values of the columns that change beside all others as they came."""
    changed = dict(each.sets)
    others = [c for c in table.columns if c.name not in changed]
    fields = {c.name: context.local.arrow_field(c.type).type for c in others}
    # What a server gives in another type of Arrow's is cast as all that is assigned.
    cast = [c.name for c in others if rows.schema.field(c.name).type != fields[c.name]]
    sql, values = _update_text(words, each, table, cast)
    reads = {*each.reads, *changed, *cast, *each.checked}
    reply = _asked(context, table, rows, reads, sql, values)
    position = {name: number for number, name in enumerate((*changed, *cast))}
    arrays = {name: reply.column(f"{_NEW}{number}") for name, number in position.items()}
    if any(arrays[name].null_count for name in each.required):
        return None
    if not all(reply.column(_MET).to_pylist()):
        return None
    matches = rows.take(_positions(reply, rows))
    names = [column.name for column in table.columns]
    fresh = pa.table({n: arrays[n] if n in arrays else matches.column(n) for n in names})
    answer = _answer(context, words, each, table, fresh)
    different = pc.or_(pc.equal(reply.column(_DIFFERS), 1), plan.all_met)
    gone = matches.column(ROW_ID).filter(different).combine_chunks()
    return Difference(gone, fresh.filter(different), answer)


def _update_text(
    words: statement_parts.Words, each: RowChange, table: Table, cast: Sequence[str]
) -> tuple[str, list[object]]:
    """The query of new values, with whether they differ and meet what the table demands."""
    items, tests, renamed, values = [ROW_ID], list[str](), list[str](), list[object]()
    listed = [ROW_ID]
    for number, (name, stretch) in enumerate(each.sets):
        column = table.column(name)
        type_ = column.type if column is not None else ""
        text, more = words.text(*stretch, len(values))
        values += more
        old, new = f"{_OLD}{number}", f"{_NEW}{number}"
        items += [f"{quoted(name)} AS {old}", f"CAST(({text}) AS {type_}) AS {new}"]
        tests.append(differs(old, new, type_))
        renamed.append(f"{new} AS {quoted(name)}")
        listed.append(new)
    for number, name in enumerate(cast, len(each.sets)):
        items.append(f"{quoted(name)} AS {_NEW}{number}")
        listed.append(f"{_NEW}{number}")
    assigned = {name for name, _ in each.sets}
    items += [quoted(name) for name in sorted(each.checked - assigned)]
    condition, more = _where(words, each, len(values))
    source = f"(SELECT {', '.join(items)} FROM {_source(table, each)}{condition})"
    if each.checks:
        source = f"(SELECT *, {', '.join(renamed)} FROM {source})"
    met = [f"coalesce(CAST(({check}) AS INTEGER), 1) <> 0" for check in each.checks]
    listed += [
        f"({' OR '.join(tests)})::TINYINT AS {_DIFFERS}",
        f"({' AND '.join(met) or 'true'})::TINYINT AS {_MET}",
    ]
    sql = f"SELECT {', '.join(listed)} FROM {source} AS {quoted(table.name)}"
    return sql, [*values, *more]


def _where(
    words: statement_parts.Words, each: RowChange, offset: int = 0
) -> tuple[str, list[object]]:
    text, values = words.text(*each.where, offset)
    return (f" WHERE {text}" if text else ""), values


def _source(table: Table, each: RowChange) -> str:
    alias = f" AS {quoted(each.alias)}" if each.alias else ""
    return quoted(table.name) + alias


def _asked(
    context: Context, table: Table, rows: pa.Table, names: Collection[str], sql: str,
    values: Sequence[object],
) -> pa.Table:  # fmt: skip
    """A query over some columns of the rows, which stand under the table's name."""
    columns = [(c.name, c.type) for c in table.columns if c.name in names]
    if ROW_ID in rows.column_names:
        columns.append((ROW_ID, "BIGINT"))
    chosen = rows.select([name for name, _ in columns])
    return context.local.finish_over(table.name, columns, chosen, sql, values)


def _positions(reply: pa.Table, rows: pa.Table) -> pa.Array:
    """Where the rows of a reply stand among those that were asked about."""
    return pc.index_in(
        reply.column(ROW_ID).combine_chunks(), value_set=rows.column(ROW_ID).combine_chunks()
    )


def _answer(
    context: Context, words: statement_parts.Words, each: RowChange, table: Table, rows: pa.Table
) -> Answer:
    """What RETURNING asks for, of rows as they are after the change; else how many there are."""
    if each.returning == (0, 0):
        return Answer(affected=rows.num_rows)
    items, _ = words.text(*each.returning)
    sql = f"SELECT {items} FROM {_source(table, each)}"
    names = set(rows.column_names) - {ROW_ID}
    reply = _asked(
        context, table, rows.select(sorted(names, key=rows.column_names.index)), names, sql, ()
    )
    return Answer(reply, context.local.last_columns, reply.num_rows)
