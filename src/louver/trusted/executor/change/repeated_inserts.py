"""INSERT … VALUES that comes again with other values: told by its text, neither parsed nor bound.

What is remembered of it holds while no name means something else here. That none does elsewhere is
what the session's token says (docs/decisions/0020): while it is there no one has saved a version of
the catalog but to add to it, so that the server need not be asked for its version. Once it is void
the statement takes the general way, under the newest catalog.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from louver import errors
from louver.trusted.executor import transaction
from louver.trusted.executor.answer import Answer, Clock
from louver.trusted.executor.context import Context
from louver.trusted.executor.row_writer import send
from louver.trusted.executor.state import State, Verdict
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Table

if TYPE_CHECKING:
    from louver.trusted.executor.change.constant_rows import Form

_MOST_TEXTS = 512
_LONGEST = 16_384
"""Characters of a text that is remembered."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """An INSERT and what it is known for: ``verdict`` goes when a name means something else."""

    form: Form
    table: tuple[str, str]
    verdict: Verdict
    revision: int
    path: tuple[str, ...]


class _Forms(dict[str, Known]):
    """A session's INSERTs by their text with its placeholders; the oldest go first."""


def keep(context: Context, text: lexer.Text, table: Table, form: Form) -> None:
    """Remember an INSERT with placeholders that was just made under the newest catalog."""
    if len(text.plain) > _LONGEST or not context.backend.concurrent:
        return
    if not _is_alone(context) or context.has_temporary or transaction.is_counted(context, table):
        return
    forms, verdict = context.state.cache(_Forms), Verdict(())
    if len(forms) >= _MOST_TEXTS:
        forms.pop(next(iter(forms)))
    context.state.flows[table.key, _shape(text)] = verdict
    forms[text.plain] = Known(
        form, table.key, verdict, context.local.revision, context.catalog.path
    )


def find(state: State, text: lexer.Text) -> Known | None:
    """What is known of a statement, if that still holds."""
    known = state.cache(_Forms).get(text.plain) if text.parameters else None
    if known is None or state.flows.get((known.table, _shape(text))) is not known.verdict:
        return None
    return known


def run(context: Context, known: Known, parameters: list[object]) -> Answer | None:
    """Run it; None where it is to take the general way, which nothing was done for yet."""
    state, catalog, clock = context.state, context.catalog, Clock()
    same = (context.local.revision, catalog.path) == (known.revision, known.path)
    if not same or state.aborted or not _is_alone(context):
        return None
    table, rows = catalog.tables.get(known.table), known.form.rows([parameters])
    if table is None or rows is None:
        return None
    try:
        with clock.step("server"):
            send(context, table, rows)
    except errors.OperationalError as error:
        if error.code != "catalog.conflict" or state.in_transaction:
            raise
        return None
    return Answer(affected=rows.num_rows, times_ms=clock.times_ms)


def _is_alone(context: Context) -> bool:
    """Whether the session has nothing but the database: names are of nothing else."""
    files = context.local.files
    return not (
        context.attached or files.known or files.frames.known or context.local.temporary.names
    )


def _shape(text: lexer.Text) -> str:
    return f"VALUES\0{text.plain}"
