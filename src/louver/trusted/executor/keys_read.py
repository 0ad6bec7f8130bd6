"""Rows of a server's table asked for by keys that were read of another one (`ir.Probe`): their
codes or tags go beside the text, each once and sorted, so that the order of the rows that had them
does not show, and as many as the next power of two, so that the server prepares few texts. NULL
equals nothing, and is not asked for. Where there is no key, a code is drawn that no row has.

What comes is decided again locally, so a code too many does no harm.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import pyarrow as pa

from louver import errors
from louver.names import fold
from louver.trusted.executor.columns import unwrapped
from louver.trusted.executor.storage import Answers, Parts, Request
from louver.trusted.planner.ir import Probe, RemoteQuery, Sql, Tag
from louver.trusted.planner.operators import keys
from louver.trusted.planner.split.scans.probes import MOST_KEYS
from louver.trusted.vault import schemes
from louver.trusted.vault.scheme import scheme_of
from louver.trusted.vault.stored_types import WIDE_CODE
from louver.wire.messages import Constant, Statement

Bind = Callable[[RemoteQuery, Sequence[Constant]], Statement]
"""Makes a statement of a remote query, with what stands for its tags."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query that waits for keys, printed for one, or the one with them."""

    remote: RemoteQuery
    statement: Statement

    @property
    def sql(self) -> str:
        """The text, for people."""
        return self.statement.sql

    @property
    def constants(self) -> Sequence[object]:
        """What goes beside it."""
        return self.statement.constants


class _Narrowed(WeakKeyDictionary[RemoteQuery, dict[int, RemoteQuery]]):
    """Queries that ask for some keys, by how many, of those that may have to."""


def awaiting(parts: Parts, remote: RemoteQuery, bind: Bind) -> Asked:
    """A query before its keys are known."""
    return _asked(parts, remote, [None], bind)


def narrowed(parts: Parts, remote: RemoteQuery, answers: Answers, bind: Bind) -> Request:
    """The query for the rows that have the keys which were read; for all where they are many."""
    (probe,) = remote.probes
    _, rows = answers[probe.home]
    name = next(name for name in rows.column_names if fold(name) == fold(probe.key))
    # An extension type has no unique().
    bare = [unwrapped(chunk) for chunk in rows.column(name).chunks]
    values = pa.chunked_array(bare, None if bare else pa.int64()).unique().drop_null()
    if len(values) > MOST_KEYS:
        return bind(remote, ())
    return _asked(parts, remote, _codes(parts, probe, values), bind)


def _codes(parts: Parts, probe: Probe, values: pa.Array) -> list[Constant]:
    """Values as they are bound, each once."""
    (code,) = keys.codes_of(_node(probe))
    if not len(values):
        drawn = secrets.token_bytes(16)
        return [
            str(uuid.UUID(bytes=drawn))
            if code.stored == WIDE_CODE
            else int.from_bytes(drawn[:7], "big") + 1
        ]
    table, column = parts.state.catalog.column(code.table, code.column)
    codes = schemes.key_codes(parts.columns, table, column, code.onion, values).unique().to_pylist()
    return [str(uuid.UUID(bytes=i)) if isinstance(i, bytes) else int(i) for i in sorted(codes)]


def _asked(parts: Parts, remote: RemoteQuery, codes: Sequence[Constant], bind: Bind) -> Asked:
    count = 1 << (len(codes) - 1).bit_length()
    known = parts.state.cache(_Narrowed).setdefault(remote, {})
    query = known.get(count)
    if query is None:
        query = known[count] = _query(remote, count)
    return Asked(query, bind(query, (*codes, *[codes[-1]] * (count - len(codes)))))


def _query(remote: RemoteQuery, count: int) -> RemoteQuery:
    compared = _node(remote.probes[0])
    (code,) = keys.codes_of(compared)
    tags = [Tag(index, code.stored) for index in range(count)]
    listed = ", ".join(f"⟦{index}⟧" for index in range(1, count + 1))
    text = f"⟦0⟧ IN ({listed})"
    if not scheme_of(code.onion).tags:
        text = keys.sieved(text, count)
    node = Sql(text, (compared.children[0], *tags))
    return replace(remote, where=(*remote.where, node), probes=())


def _node(probe: Probe) -> Sql:
    if not isinstance(probe.node, Sql):
        raise errors.make("internal", detail="keys of a table without codes")
    return probe.node
