"""Statements that come again with other values: what runs them is remembered by their text, so that
they are neither cut into words nor bound again.

What is remembered holds while no name means something else here, and as far as the handler that is
remembered says by itself: those of changes rely on the session's token (docs/decisions/0020), those
of queries read the version of the catalog. Where it does not hold, the statement takes the general
way, under the newest catalog.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from louver.trusted.executor import constraint_check
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.state import Verdict
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Table

Again = Callable[[Context, list[object]], Answer | None]
"""Runs a statement with other values; None where it is to take the general way, which nothing was
done for yet.
"""
_MOST_TEXTS = 512
_LONGEST, _MOST_CHARACTERS = 262_144, 4_194_304
"""Characters of a text that is remembered, and of all: INSERT of a thousand rows is a long one."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What runs a statement, within transactions or ``alone``; ``verdict`` goes when a name means
    something else.
    """

    again: Again
    flow: tuple[tuple[str, str], str]
    verdict: Verdict
    revision: int
    path: tuple[str, ...]
    alone: bool
    #: what is known of it: of a query by keys what reads its rows, of a change its form
    form: object = None


class _Texts(dict[str, Known]):
    """A session's statements by their text with its placeholders; the oldest go first."""

    characters = 0

    def dropped(self) -> Known:
        """The oldest, which is not remembered any more."""
        plain = next(iter(self))
        self.characters -= len(plain)
        return self.pop(plain)


def keep(
    context: Context, text: lexer.Text, table: Table, again: Again, *, alone: bool = False,
    form: object = None,
) -> None:  # fmt: skip
    """Remember what runs a statement over one table, if it has placeholders; it was just run under
    the newest catalog.
    """
    if not text.parameters or len(text.plain) > _LONGEST or not context.backend.concurrent:
        return
    if not is_alone(context) or context.has_temporary:
        return
    if constraint_check.is_counted(context, table):
        return
    state, revision = context.state, context.local.revision
    texts, flow = state.cache(_Texts), (table.key, f"AGAIN\0{text.plain}")
    if text.plain not in texts:
        while len(texts) >= _MOST_TEXTS or texts.characters + len(text.plain) > _MOST_CHARACTERS:
            state.flows.pop(texts.dropped().flow, None)
        texts.characters += len(text.plain)
    verdict = state.flows[flow] = Verdict(())
    path = context.catalog.path
    texts[text.plain] = Known(again, flow, verdict, revision, path, alone, form)


def find(context: Context, text: lexer.Text) -> Known | None:
    """What runs a statement, if that still holds."""
    known = _known(context, text)
    return None if known is None or (known.alone and context.state.in_transaction) else known


def is_kept(context: Context, text: lexer.Text) -> bool:
    """Whether a statement is remembered, if only for where no transaction is open."""
    return _known(context, text) is not None


def _known(context: Context, text: lexer.Text) -> Known | None:
    state = context.state
    known = state.cache(_Texts).get(text.plain) if text.parameters else None
    if known is None or state.flows.get(known.flow) is not known.verdict:
        return None
    # What names meant before, it is to be learnt anew.
    same = (context.local.revision, context.catalog.path) == (known.revision, known.path)
    return known if same else None


def run(context: Context, known: Known, parameters: list[object]) -> Answer | None:
    """Run it; None where it is to take the general way, which nothing was done for yet."""
    return known.again(context, parameters) if holds(context) else None


def holds(context: Context) -> bool:
    """Whether what runs statements does so now."""
    return not context.state.aborted and is_alone(context)


def is_alone(context: Context) -> bool:
    """Whether the session has nothing but the database: names are of nothing else."""
    files = context.local.files
    return not (
        context.attached or files.known or files.frames.known or context.local.temporary.names
    )
