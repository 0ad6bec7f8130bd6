"""Layers of onions opened in place on the server, once.

The server is sent the key of a layer and takes the layer off every row; the catalog says so from
the same transaction on. Whatever happens in between, either both are changed or neither, and who
comes next opens what is still closed. What was sent is in the ledger before, and stays there.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa

from louver import errors
from louver.trusted.executor import seen_state, spot_check, transaction
from louver.trusted.executor.context import Context
from louver.trusted.executor.plan_leakage import of_openings
from louver.trusted.executor.schema.representations import stored_type
from louver.trusted.planner.ir import Opening
from louver.trusted.vault.catalog import Catalog, Column, Table
from louver.trusted.vault.epochs import COUNTER_BITS, number_of
from louver.trusted.vault.scheme import scheme_of
from louver.trusted.vault.stored_types import WIDE_CODE
from louver.untrusted.engines.engine import Nesting
from louver.wire.messages import Constant, Statement

_KEYS = "louver_layer"
LEAST_ROWS = 100_000
"""From so many changed rows on, the server tidies up what the change left behind."""


def require(context: Context, openings: Sequence[Opening]) -> list[str]:
    """Open what is not open yet; sentences for the user, where there is something to say.

    Raises ``catalog.conflict`` when another client was faster: then the plan is old as well.
    """
    needed = [opening for opening in openings if _closed(context.catalog, opening)]
    spot_check.require(context, openings, anew=needed)
    if not needed:
        return []
    facts = of_openings(needed, context.catalog)
    if context.ledger.new(facts):
        raise errors.make(
            "internal", detail="a layer's key is requested before its leakage is recorded"
        )
    if context.engine.in_transaction and not context.in_transaction:
        _within(context, needed)
    else:
        # No plan depends on what is open: that is looked up when it is bound.
        # What reads without the layer waits for no one who is writing, nor lets anybody wait: what
        # is opened in the user's transaction is the others' at its end.
        state = context.state
        state.declined = True
        holds = context.in_transaction and not context.goes_beside()
        if holds and isinstance(context.engine, Nesting):
            raise errors.make("catalog.conflict")
        writing = transaction.writing(context, plans_hold=True, briefly=True)
        with transaction.beside(context), writing as catalog:
            state.declined = False
            _all(context, catalog, needed)
    _tidy(context, needed)
    return [f"A layer was opened for this query: {fact.text}." for fact in facts]


def _closed(catalog: Catalog, opening: Opening) -> bool:
    _, column = catalog.column(opening.table, opening.column)
    row = scheme_of(opening.onion)
    if opening.onion not in column.stored or not row.rank(opening.state):
        raise errors.make("internal", detail=f"there is no {opening.onion} layer to open")
    return row.rank(column.layers.get(opening.onion, "")) < row.rank(opening.state)


def _within(context: Context, needed: Sequence[Opening]) -> None:
    """In the snapshot of a query that is repeated: it is committed when the query is done."""
    context.store.exclude()
    working = context.catalog.copy()
    _all(context, working, needed)
    context.store.save(working)
    seen_state.adopt(context, working, schema_changed=False)


def _all(context: Context, catalog: Catalog, needed: Sequence[Opening]) -> None:
    from louver.trusted.executor.schema import indexes

    by_table: dict[int, list[Opening]] = {}
    for opening in needed:
        by_table.setdefault(opening.table, []).append(opening)
    for openings in by_table.values():
        columns = [catalog.column(opening.table, opening.column) for opening in openings]
        table = columns[0][0]
        before = indexes.wanted(catalog, table, context.backend)
        _open(context, table, [
            (column, opening.onion, opening.state)
            for (_, column), opening in zip(columns, openings, strict=True)
        ])  # fmt: skip
        # Codes are looked up from now on.
        context.storage.index(table, before)


def _open(context: Context, table: Table, openings: Sequence[tuple[Column, str, str]]) -> None:
    """Take off the layers above a state, of all columns of a table at once: a server that stores
    rows writes each of them anew.

    UPDATE, though ALTER … USING is somewhat quicker: a key can be bound to it, so it is in no
    statement's text.
    """
    backend, codes, constants = context.backend, dict[str, str](), list[Constant]()
    closed = list[tuple[Column, str]]()
    for column, onion, state in openings:
        name = column.stored[onion]
        # Of two openings of a column, the second one goes on.
        code, wide = codes.get(name, name), stored_type(column, onion) == WIDE_CODE
        if column.layers.get(onion, "closed") == "closed":
            closed.append((column, onion))
            code = backend.adjusted(code, "open", f"{_KEYS}.key{len(closed)}", wide=wide)
            column.layers[onion] = scheme_of(onion).layers[1].state
        if state == "join" and column.layers[onion] != "join":
            constants.append(context.keyring.det_key(table.id, column.id, column.generation))
            code = backend.adjusted(code, "join", f"${len(constants)}", wide=wide)
            column.layers[onion] = "join"
        codes[name] = code
    tables = {_KEYS: _layer_keys(context, table, closed)} if closed else {}
    sql = backend.adjust(table, codes, _KEYS if tables else "", COUNTER_BITS)
    try:
        statement = Statement(sql, tuple(constants), kind="write", tables=tables)
        changed = context.engine.run(statement)
    except errors.DatabaseError as error:
        if context.engine.lost_race(error):
            raise errors.make("catalog.conflict") from error
        raise
    if table.counted and changed != table.row_count:
        raise errors.make("row.missing", table=table.label, expected=table.row_count, found=changed)


def _layer_keys(context: Context, table: Table, closed: Sequence[tuple[Column, str]]) -> pa.Table:
    """The keys of layers, key1, key2 and so on: of each epoch in which the table has rows, and of
    no other.
    """
    if table.runs_known:
        ends = [(first, first + count - 1) for first, count in table.runs]
        numbers = {n for low, high in ends for n in range(number_of(low), number_of(high) + 1)}
    else:
        sql = context.backend.epochs(table, COUNTER_BITS)
        numbers = set(context.engine.query(Statement(sql)).column(0).to_pylist())
    epochs = context.catalog.epochs
    known = sorted(number for number in numbers if epochs.knows(number))
    columns = {"epoch": pa.array(known, pa.int64())}
    for ordinal, (column, onion) in enumerate(closed, 1):
        identity = (table.id, column.id, column.generation, onion)
        keys = [context.columns.keyring.layer_key(*identity, n << COUNTER_BITS) for n in known]
        columns[f"key{ordinal}"] = pa.array(keys, pa.binary())
    return pa.table(columns)


def _tidy(context: Context, needed: Sequence[Opening]) -> None:
    """Have the room of large changed tables' old rows taken back; no client waits for that."""
    if context.engine.in_transaction:
        return
    ids = dict.fromkeys(opening.table for opening in needed)
    tables = [context.catalog.by_id(table) for table in ids]
    large = [table for table in tables if table.row_count >= LEAST_ROWS]
    for sql in dict.fromkeys(context.backend.tidied(table) for table in large):
        if sql:
            with suppress(errors.Error):
                context.engine.run(Statement(sql, kind="ddl"))
