"""What is known of planned queries: whether they are look-ups by key, and whether their answer is
whole as it was opened.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from louver.trusted.executor.context import Context
from louver.trusted.executor.local import exact
from louver.trusted.planner.ir import Code, Plan
from louver.trusted.planner.operators import keys
from louver.trusted.vault.catalog import Catalog
from louver.trusted.vault.scheme import has_shares

_CONSTANT = re.compile(r"⟪[0-9]+⟫|[0-9]+|CAST\(⟪[0-9]+⟫ AS (?:uuid|numeric)")


def is_look_up(catalog: Catalog, plan: Plan) -> bool:
    """Whether a plan is of the rows that have certain keys, and no engine finishes it."""
    if not (plan.columns and plan.alone and by_keys(plan)):
        return False
    return reads_once(catalog, plan) and not any(map(exact.may_change, plan.types))


def reads_once(catalog: Catalog, plan: Plan) -> bool:
    """Whether a plan reads one table, once, and relies on no bounds and no open layers, so that
    its answer is right whatever another client does meanwhile.
    """
    if len(plan.remotes) > 1 or plan.opens or (plan.remotes and not plan.alone):
        return False
    if any(remote.lookup is not None for remote in plan.remotes):
        return False
    ids = (source.table for remote in plan.remotes for source in remote.sources)
    return not any(has_shares(catalog.by_id(table)) for table in ids)


def by_keys(plan: Plan) -> bool:
    """Whether rows are read of one table by tags of constants as they are written or bound, and by
    nothing else.
    """
    if len(plan.remotes) != 1 or plan.opens or plan.remotes[0].lookup is not None:
        return False
    conditions = plan.remotes[0].where
    given = [code for node in conditions for code in keys.codes_of(node)]
    return bool(conditions) and all(map(keys.looks_up, conditions)) and all(map(_is_plain, given))


def _is_plain(code: Code) -> bool:
    """Whether a constant is not worked out, which may depend on the time."""
    parts = (code, *code.more)
    return all(_CONSTANT.fullmatch(part.text.strip("()")) is not None for part in parts)


def finished_alone(
    context: Context, plan: Plan, rows: pa.Table, literals: Sequence[str]
) -> pa.Table | None:
    """The result of a plan whose columns are those of its only table, where no engine need decide
    which rows are in it; else None.
    """
    if not have_types(context, plan, rows, plan.columns):
        return None
    (remote,) = plan.remotes
    tables = {ref.table: context.catalog.by_id(ref.table) for ref in remote.sources}
    decided = context.columns.decided_again(remote, tables, rows, literals)
    if decided is None:
        return None
    return pa.Table.from_arrays([decided.column(name) for name in plan.columns], list(plan.names))


def have_types(context: Context, plan: Plan, rows: pa.Table, names: Sequence[str]) -> bool:
    """Whether there are columns of these names, in the types of the plan's."""
    wanted = [context.local.arrow_field(type_).type for type_ in plan.types]
    known = dict(zip(rows.schema.names, rows.schema.types, strict=True))
    return [known.get(name) for name in names] == wanted


def tables_of(plan: Plan) -> set[int]:
    """The tables that a plan reads on servers, by their ids."""
    return {source.table for remote in plan.remotes for source in remote.sources}
