"""INSERT … VALUES of constants with a way out for conflicts, decided without the local engine: what
becomes of the rows that have a key of a new row, where the new rows are known (`constant_rows`) and
what they do to old ones is simple (`simple_terms`). All else takes the general way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from louver.names import fold
from louver.trusted.executor import constraint_check
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.change import constant_rows, simple_terms, statement_parts
from louver.trusted.executor.dry_run import Difference
from louver.trusted.executor.storage import ROW_ID
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.types import is_collated

Keys = Sequence[tuple[str, ...]]
FieldOf = Callable[[str], pa.Field]


@dataclass(frozen=True, slots=True)
class Form:
    """Such a statement without the values of its parameters. ``terms`` are what DO UPDATE and
    OR REPLACE set; none where an old row stays as it is.
    """

    rows: constant_rows.Form
    keys: Keys
    terms: tuple[simple_terms.Term, ...]

    def decided(
        self,
        new: pa.Table,
        old: pa.Table,
        parameters: Sequence[object],
        *,
        all_met: bool = False,
    ) -> Difference | None:
        """What the statement does with the old rows that have a key of its new ones; None where
        only DuckDB tells. With ``all_met`` rows that get the values that they have are written too.
        """
        met = [_places(new, old, key) for key in self.keys]
        stays = [not any(known) for known in zip(*map(_is_met, met), strict=True)]
        added = new.filter(pa.array(stays, pa.bool_()))
        none = old.slice(0, 0).column(ROW_ID).combine_chunks()
        if not self.terms:
            return Difference(none, added, Answer(affected=added.num_rows))
        (places,) = met
        order = sorted((at, n) for n, at in enumerate(places) if at is not None)
        before = old.take(pa.array([at for at, _ in order], pa.int64()))
        given = new.take(pa.array([n for _, n in order], pa.int64()))
        after = simple_terms.changed(self.terms, before, given, parameters)
        if after is None or not after.select(new.column_names).schema.equals(new.schema):
            return None
        other = simple_terms.difference(self.terms, before, after)
        if all_met:
            other = pa.array([True] * before.num_rows, pa.bool_())
        gone = before.column(ROW_ID).combine_chunks().filter(other)
        fresh = pa.concat_tables([after.filter(other).select(added.column_names), added])
        return Difference(gone, fresh, Answer(affected=added.num_rows + len(order)))


def form_of(
    words: statement_parts.Words,
    parts: statement_parts.Insert,
    table: Table,
    rules: constraint_check.Rules,
    field_of: FieldOf,
) -> Form | None:
    """The form of an INSERT; None of any other than this module's."""
    if fold(table.name) == simple_terms.EXCLUDED:  # DuckDB tells which row is meant, if any
        return None
    if rules.foreign or rules.children or any(is_collated(c.type) for c in table.columns):
        return None
    alone = replace(parts, returning=parts.source_end, end=parts.source_end)
    rows = constant_rows.form_of(words, alone, table, rules, field_of)
    if rows is None or not rules.keys or table.column(ROW_ID):
        return None
    keyed = set(rules.key_columns())
    columns = {column.name: column for column in table.columns}
    if any(pa.types.is_floating(field_of(columns[name].type).type) for name in keyed):
        return None
    keys = [key.columns for key in rules.keys]
    said = [words.keyword(position) for position in range(parts.source_end, parts.end)]
    if words.keyword(parts.verb + 1) == "OR":
        way = words.keyword(parts.verb + 2)
        if said or way not in ("IGNORE", "REPLACE"):
            return None
        if way == "IGNORE":
            return Form(rows, keys, ())
        terms = _replaced(words, parts, table, rules, field_of, keyed)
        return Form(rows, keys, terms) if terms and len(keys) == 1 else None
    position = parts.source_end + 2
    target, position = _target(words, position, table)
    if said[:2] != ["ON", "CONFLICT"] or target is None or (target and {*target} != {*keys[0]}):
        return None
    rest = [words.keyword(n) for n in range(position, parts.end)]
    if rest == ["DO", "NOTHING"]:
        return Form(rows, keys, ()) if not target or len(keys) == 1 else None
    if rest[:3] != ["DO", "UPDATE", "SET"] or len(keys) != 1 or {"WHERE", "RETURNING"} & {*rest}:
        return None
    known_as = (fold(table.name), simple_terms.EXCLUDED)
    stretch = (position + 3, parts.end)
    terms = simple_terms.terms_of(words, stretch, table, known_as, rules.required, field_of)
    if not terms or keyed & {term.name for term in terms}:
        return None
    return Form(rows, keys, terms)


def _target(
    words: statement_parts.Words, position: int, table: Table
) -> tuple[tuple[str, ...] | None, int]:
    """The columns of a conflict's target, none where there is no target, and the place after it;
    None of a target of another form.
    """
    if words.keyword(position) != "(":
        return (), position
    names = list[str]()
    while words.keyword(position) in ("(", ","):
        column = table.column(words.tokens[position + 1].text)
        if column is None:
            return None, position
        names.append(column.name)
        position += 2
    return (tuple(names), position + 1) if words.keyword(position) == ")" else (None, position)


def _replaced(
    words: statement_parts.Words,
    parts: statement_parts.Insert,
    table: Table,
    rules: constraint_check.Rules,
    field_of: FieldOf,
    keyed: set[str],
) -> tuple[simple_terms.Term, ...] | None:
    """OR REPLACE sets all columns but those of the key, where all are given."""
    given = constant_rows.listed(words, parts, table)
    if given is None or len(given) < len(table.columns):
        return None
    return tuple(
        simple_terms.of_given(column, fold(column.name) in rules.required, field_of)
        for column in table.columns
        if column.name not in keyed
    )


def _is_met(positions: Sequence[int | None]) -> list[bool]:
    return [position is not None for position in positions]


def _places(new: pa.Table, old: pa.Table, key: Sequence[str]) -> list[int | None]:
    """Of each new row the place of the old one that has its key; None where none has. A key with a
    NULL is none.
    """
    known = {values: n for n, values in enumerate(_values(old, key))}
    return [None if None in values else known.get(values) for values in _values(new, key)]


def _values(rows: pa.Table, key: Sequence[str]) -> list[tuple[object, ...]]:
    return list(zip(*(rows.column(name).to_pylist() for name in key), strict=True))
