"""Rows of a server's table asked for by keys that were read of another one (`ir.Probe`): their
codes or tags go beside the text, each once and sorted, so that the order of the rows that had them
does not show: many as an Arrow table, few as constants, and then as many as the next power of two,
so that the server prepares few texts. NULL equals nothing, and is not asked for. Where there is no
key, a code is drawn that no row has.

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
from louver.trusted.executor.storage import Answers, Parts, Request
from louver.trusted.planner.ir import Code, Probe, RemoteQuery, Sql, Tag
from louver.trusted.planner.operators import keys
from louver.trusted.planner.operators.codes import fill
from louver.trusted.planner.split.scans.key_joins import MOST_KEYS, MOST_LISTED
from louver.trusted.vault import schemes
from louver.trusted.vault.arrays import unwrapped, widened
from louver.trusted.vault.scheme import scheme_of
from louver.trusted.vault.stored_types import WIDE_CODE
from louver.wire.messages import Constant, Statement

#: An Arrow table of keys and its column.
_KEYS, _KEY = "louver_keys", "louver_key"
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


def narrowed(
    parts: Parts, remote: RemoteQuery, answers: Answers, literals: Sequence[str], bind: Bind
) -> Request:
    """The query for the rows that have the keys which were read; for all where they are many."""
    (probe,) = remote.probes
    types, rows = answers[probe.home]
    name = next(name for name in rows.column_names if fold(name) == fold(probe.key))
    rows = _passing(parts, probe, types, rows, literals)
    # An extension type has no unique().
    bare = [widened(unwrapped(chunk)) for chunk in rows.column(name).chunks]
    values = pa.chunked_array(bare, bare[0].type if bare else pa.int64()).unique().drop_null()
    if len(values) > min(probe.most, MOST_KEYS):
        return bind(remote, ())
    if len(values) <= MOST_LISTED:
        return _asked(parts, remote, _codes(parts, probe, values), bind)
    (code,) = keys.codes_of(_node(probe))
    if code.stored == WIDE_CODE:
        return bind(remote, ())
    codes = _stored(parts, code, values)
    query = parts.state.cache(_Narrowed).setdefault(remote, {})
    if 0 not in query:
        query[0] = _among(remote)
    statement = bind(query[0], ())
    keyed = pa.table({_KEY: codes.sort()})
    return Asked(query[0], replace(statement, tables={_KEYS: keyed}))


def _passing(
    parts: Parts,
    probe: Probe,
    types: Sequence[tuple[str, str]],
    rows: pa.Table,
    literals: Sequence[str],
) -> pa.Table:
    """The rows that give keys: all of them where the condition fails, for the user's own text says
    what is wrong.
    """
    if not probe.filters or not rows.num_rows:
        return rows
    there = [(name, type_) for name, type_ in types if not _is_absent(rows.column(name))]
    from louver.trusted.executor import row_conditions

    condition = " AND ".join(fill(text, literals) for text in probe.filters)
    return row_conditions.passing(parts.local, probe.alias, there, rows, condition)


def _is_absent(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_null(column.type))


def _stored(parts: Parts, code: Code, values: pa.Array) -> pa.Array:
    """What the server holds of rows that have one of these values."""
    table, column = parts.state.catalog.column(code.table, code.column)
    return schemes.key_codes(parts.columns, table, column, code.onion, values).unique()


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
    codes = _stored(parts, code, values).to_pylist()
    return [str(uuid.UUID(bytes=i)) if isinstance(i, bytes) else int(i) for i in sorted(codes)]


def _asked(parts: Parts, remote: RemoteQuery, codes: Sequence[Constant], bind: Bind) -> Asked:
    count = 1 << (len(codes) - 1).bit_length()
    known = parts.state.cache(_Narrowed).setdefault(remote, {})
    query = known.get(count)
    if query is None:
        query = known[count] = _query(parts, remote, count)
    return Asked(query, bind(query, (*codes, *[codes[-1]] * (count - len(codes)))))


def _query(parts: Parts, remote: RemoteQuery, count: int) -> RemoteQuery:
    compared = _node(remote.probes[0])
    (code,) = keys.codes_of(compared)
    tags = [Tag(index, code.stored) for index in range(count)]
    listed = ", ".join(f"⟦{index}⟧" for index in range(1, count + 1))
    text = f"⟦0⟧ IN ({listed})"
    if not scheme_of(code.onion).tags:
        text = keys.sieved(text, count, parts.backend)
    node = Sql(text, (compared.children[0], *tags))
    return replace(remote, where=(*remote.where, node), probes=())


def _among(remote: RemoteQuery) -> RemoteQuery:
    """The query for the rows that have one of the keys of an Arrow table beside it."""
    column = _node(remote.probes[0]).children[0]
    node = Sql(f"⟦0⟧ IN (SELECT {_KEY} FROM {_KEYS})", (column,))
    return replace(remote, where=(*remote.where, node), probes=())


def _node(probe: Probe) -> Sql:
    if not isinstance(probe.node, Sql):
        raise errors.make("internal", detail="keys of a table without codes")
    return probe.node
