"""One question to a lake: which files, which columns, and what the tokens show."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from louver.trusted.executor.lake.range_predicates import Condition, Every, Some, Span
from louver.trusted.planner.lake_explain import text_of
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.facts import Fact, fact, named
from louver.trusted.vault.scheme import answered
from louver.wire import prune

Token = Callable[[Span], bytes]
"""The token of a range; equal for equal ranges."""


@dataclass(frozen=True, slots=True)
class Request:
    """Read these columns of the files that may meet a condition (see `storage.Request`)."""

    table: Table
    columns: tuple[Column, ...]
    condition: Condition
    tokens: dict[Span, bytes]
    #: what is to come: keys of other tables, which no one has read yet
    awaited: tuple[str, ...] = ()

    @property
    def sql(self) -> str:
        """What is asked, under the names that the server knows; ``$n`` is the n-th token."""
        places = {span: f"c{span.column} IN ${n}" for n, span in enumerate(self.tokens, 1)}
        ids = [column.id for column in self.columns]
        facts = _text(self.condition, places, outermost=not self.awaited)
        parts = [part for part in (facts, *self.awaited) if part != "TRUE"]
        return text_of(self.table.id, ids, " AND ".join(part for part in parts if part))

    @property
    def constants(self) -> Sequence[object]:
        """The tokens."""
        return tuple(self.tokens.values())

    @property
    def where(self) -> prune.Where:
        """What the pruner is sent."""
        return _where(self.condition, self.tokens)

    def facts(self) -> list[Fact]:
        """What each token tells the server beyond what the plan's leaks say."""
        names = {column.id: column.name for column in self.table.columns}
        return [
            token_fact(self.table, names[span.column], span, token)
            for span, token in self.tokens.items()
        ]


def build(table: Table, columns: Sequence[Column], condition: Condition, token: Token) -> Request:
    """A request with a token for every range that its condition names."""
    ranges = {span: token(span) for span in dict.fromkeys(spans(condition))}
    return Request(table, tuple(columns), condition, ranges)


def spans(condition: Condition) -> Iterator[Span]:
    """The ranges of a condition, as they stand."""
    if isinstance(condition, Span):
        yield condition
        return
    for part in condition.parts:
        yield from spans(part)


def token_fact(table: Table, column: str, span: Span, token: bytes) -> Fact:
    """One token in the ledger: the same fact again when an equal token is sent."""
    mark = hashlib.sha256(token).hexdigest()[:12]
    values = f"{span.low:016x} to {span.high:016x}"
    (target,) = named(table, [column])
    return fact(_token(target), table, [target], token=mark, values=values)


def _token(column: Column) -> str:
    """The name of the sentence of a token; "" of a column that has none."""
    answer = answered(column, "RANGE")
    return answer[1].tokens if answer is not None else ""


#: How a fact names the numbers of its range.
SPANS = re.compile(r"\(values ([0-9a-f]{16}) to ([0-9a-f]{16})\)")


def shown_spans(table: Table, facts: Iterable[Fact]) -> list[Span]:
    """The ranges of a table that tokens were sent for, as the ledger has them."""
    shown = {column.name: (column.id, _token(column)) for column in table.columns}
    results = []
    for other in facts:
        number, kind = shown.get(other.columns[0], (0, "")) if other.columns else (0, "")
        values = SPANS.search(other.text) if kind and other.kind == kind else None
        if values and other.table == table.label:
            low, high = (int(text, 16) for text in values.groups())
            results.append(Span(number, low, high))
    return results


def _where(condition: Condition, tokens: dict[Span, bytes]) -> prune.Where:
    if isinstance(condition, Span):
        return prune.Hit(tokens[condition])
    parts = tuple(_where(part, tokens) for part in condition.parts)
    if isinstance(condition, Every):
        return prune.All(parts) if parts else prune.Everything()
    return prune.Any(parts)


def _text(condition: Condition, places: dict[Span, str], *, outermost: bool = False) -> str:
    if isinstance(condition, Span):
        return places[condition]
    if not condition.parts:
        return "FALSE" if isinstance(condition, Some) else "" if outermost else "TRUE"
    word = " AND " if isinstance(condition, Every) else " OR "
    text = word.join(_text(part, places) for part in condition.parts)
    return text if outermost else f"({text})"
