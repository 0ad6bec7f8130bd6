"""`con.load` into a table that is not there yet: its columns are those of the data, with ENC for
the columns that are named, by the policy for the others.

A policy that is given for one load, as `louver load --create` has one, decides for every column:
those that it does not name are ENC.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace

from louver import errors
from louver.names import fold, own_schemas, quoted
from louver.trusted.executor import seen_state, transaction
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.csv_files import CsvForm
from louver.trusted.executor.load import Progress, load
from louver.trusted.executor.load_sources import columns_of
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.schema.tables import label_of
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken

Encrypt = bool | Iterable[str] | Mapping[str, str | None] | None
"""Which columns are ENC: all, those that are named, or by name what follows ENC."""


def is_there(context: Context, name: str) -> bool:
    """Whether a table has a name, with its schema perhaps."""
    if not context.in_transaction:
        seen_state.refresh(context)
    schema, table = _parts(name)
    return context.catalog.named(schema, table) is not None


def loaded(
    context: Context,
    name: str,
    source: object,
    encrypt: Encrypt = None,
    progress: Progress | None = None,
    form: CsvForm | None = None,
    policy: str | os.PathLike[str] | None = None,
) -> Answer:
    """Load a source; a table that is not there is created with it, both or neither. ``form`` is how
    CSV files are written, ``policy`` a file that decides how the columns of a new table are kept.
    """
    if is_there(context, name):
        if policy is not None or (encrypt is not None and encrypt is not False):
            raise errors.make("load.encrypt", table=name, detail="the table exists already")
        return load(context, name, source, progress, form)
    if context.in_transaction:
        return _created(context, name, source, encrypt, progress, form, policy)
    transaction.begin(context)
    try:
        answer = _created(context, name, source, encrypt, progress, form, policy)
    except BaseException:
        transaction.rollback(context)
        raise
    transaction.commit(context)
    return answer


def _created(
    context: Context,
    name: str,
    source: object,
    encrypt: Encrypt,
    progress: Progress | None,
    form: CsvForm | None,
    policy: str | os.PathLike[str] | None,
) -> Answer:
    schema, table = _parts(name)
    columns = columns_of(context, source, form or CsvForm())
    names = [column for column, _ in columns]
    clauses = _clauses(name, names, encrypt)
    if policy is not None:
        rules = Policy.read(policy, default=context.policy.profile)
        context = replace(context, policy=rules.stored_on(context.backend))
        clauses = _ruled(rules, label_of(schema or own_schemas().home, table), names) | clauses
    body = ", ".join(
        f"{quoted(column)} {spoken().own_type(type_)}{clauses.get(fold(column), '')}"
        for column, type_ in columns
    )
    target = f"{quoted(schema)}.{quoted(table)}" if schema else quoted(table)
    texts = lexer.split(f"CREATE TABLE {target} ({body})")
    if len(texts) != 1 or texts[0].parameters:
        raise errors.make("load.encrypt", table=name, detail="a clause is not one of ENC")
    notices = context.run(texts[0], []).notices
    answer = load(context, name, source, progress, form)
    answer.notices = [*notices, *answer.notices]
    return answer


def _clauses(table: str, columns: list[str], encrypt: Encrypt) -> dict[str, str]:
    """What follows the type of each column, by folded name."""
    if encrypt is None or isinstance(encrypt, bool):
        return {fold(column): " ENC" for column in columns} if encrypt else {}
    if isinstance(encrypt, str):
        raise errors.make("load.encrypt", table=table, detail="columns are given as a list")
    named = encrypt if isinstance(encrypt, Mapping) else dict.fromkeys(encrypt, "")
    known = set(map(fold, columns))
    unknown = [str(column) for column in named if fold(str(column)) not in known]
    if unknown:
        detail = f"{', '.join(unknown[:8])} not in the data"
        raise errors.make("load.encrypt", table=table, detail=detail)
    return {
        fold(column): f" ENC {clause}".rstrip()
        for column, clause in named.items()
        if clause is not None
    }


def _ruled(policy: Policy, label: str, columns: list[str]) -> dict[str, str]:
    """ENC for every column but those that a policy calls plain, by folded name."""
    rules = {column: policy.rule(label, column) for column in columns}
    return {fold(name): " ENC" for name, rule in rules.items() if rule is None or not rule.plain}


def _parts(name: str) -> tuple[str, str]:
    """Schema and name of a table as it is written in SQL."""
    parts = [token.text for token in lexer.tokens(name) if token.text != "."]
    return (parts[-2], parts[-1]) if len(parts) == 2 and "." in name else ("", name)
