"""Attacks with an auxiliary table: what a server infers from open codes, and how much is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver import errors
from louver.names import fold
from louver.trusted.apps import terminal
from louver.trusted.executor.local.local_engine import quoted
from louver.trusted.vault.facts import fact
from louver.wire.messages import Statement

if TYPE_CHECKING:
    from louver.trusted.client.dbapi import Connection
    from louver.trusted.executor.context import Context
    from louver.trusted.vault.catalog import Column, Table
    from louver.untrusted.attacks.codes import Attempt, Sight
    from louver.untrusted.attacks.state import State

_READERS = {".parquet": "read_parquet", ".pq": "read_parquet", ".csv": "read_csv",
            ".tsv": "read_csv"}  # fmt: skip
_PREFIX_BYTES = 8
"""Order codes of text are those of its first bytes, so no more can be recovered."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """An auxiliary column: its values in ascending order, and how many rows have each."""

    values: pa.Array
    counts: np.ndarray[Any, np.dtype[np.int64]]


class Auxiliary:
    """A table that the adversary is supposed to have from elsewhere: a Parquet or CSV file."""

    def __init__(self, path: str) -> None:
        """Open the file; raises ``load.file`` for what cannot be read."""
        reader = _READERS.get(fold(Path(path).suffix))
        if reader is None:
            raise errors.make("load.file", path=path, detail="it is neither .parquet nor .csv")
        if not Path(path).is_file():
            raise errors.make("load.file", path=path, detail="the file does not exist")
        self._connection = duckdb.connect(config={"arrow_lossless_conversion": "true"})
        try:
            self._connection.from_query(
                f"SELECT * FROM {reader}('{path.replace(chr(39), chr(39) * 2)}')"
            ).create("auxiliary")
        except duckdb.Error as error:
            self.close()
            detail = str(error).splitlines()[0]
            raise errors.make("load.file", path=path, detail=detail) from None
        names = self._connection.table("auxiliary").columns
        self._names = {fold(name): name for name in names}

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()

    def histogram(self, column: str, type_: str, *, prefix: bool) -> Histogram | None:
        """The column of this name in a column's type; None where there is none, or no value."""
        name = self._names.get(fold(column))
        if name is None:
            return None
        value = f"TRY_CAST({quoted(name)} AS {type_})"
        found = self._connection.execute(
            f"SELECT {_cut(value, type_, prefix)} AS v, count(*) AS n FROM auxiliary"
            f" WHERE {value} IS NOT NULL GROUP BY v ORDER BY v"
        ).to_arrow_table()
        if not found.num_rows:
            return None
        values = _storage(found.column("v").combine_chunks())
        return Histogram(values, found.column("n").cast(pa.int64()).to_numpy())


def of_state(state: State, table: str | None) -> list[dict[str, Any]]:
    """What shows of codes to someone who has nothing else."""
    from louver.untrusted.attacks import codes

    return [_seen(sight) for sight in codes.look(state) if _wanted(sight, table)]


def of_connection(
    connection: Connection, state: State, table: str | None, path: str | None
) -> list[dict[str, Any]]:
    """The same with the columns' names, and with an auxiliary table what it gives away."""
    from louver.untrusted.attacks import codes

    auxiliary = Auxiliary(path) if path else None
    told = []
    try:
        for sight in codes.look(state):
            known = find(connection.context, sight) if _wanted(sight, table) else None
            if known is not None:
                entry = _seen(sight) | {"column": known[1].name}
                if auxiliary is not None:
                    entry |= _attacked(connection.context, sight, *known, auxiliary)
                told.append(entry)
    finally:
        if auxiliary is not None:
            auxiliary.close()
    return told


def find(context: Context, sight: Sight) -> tuple[Table, Column] | None:
    """The declared column behind codes."""
    table = context.catalog.table(sight.table.schema, sight.table.name)
    for column in table.columns if table is not None else []:
        stored = (column.stored.get("eq"), column.stored.get("ord"))
        if table is not None and sight.column in stored:
            return table, column
    return None


def _wanted(sight: Sight, table: str | None) -> bool:
    return table is None or fold(table) == fold(sight.table.label)


def _seen(sight: Sight) -> dict[str, Any]:
    return {
        "table": sight.table.label, "stored_as": sight.column, "codes": sight.kind,
        "shown": sight.shown or "nothing",
        "rows": sight.rows, "nulls_visible": sight.nulls if sight.shown else 0,
        "distinct": sight.distinct if sight.shown else None, "most_frequent": sight.top,
    }  # fmt: skip


def _attacked(
    context: Context, sight: Sight, table: Table, column: Column, auxiliary: Auxiliary
) -> dict[str, Any]:
    from louver.untrusted.attacks import codes

    prefix = sight.shown == "order" and column.type in ("VARCHAR", "BLOB")
    own = auxiliary.histogram(column.name, column.type, prefix=prefix)
    if own is None:
        return {"auxiliary_values": 0, "attacks": []}
    made = codes.attempts(sight, own.counts)
    verdicts = []
    told = {"auxiliary_values": len(own.values), "dense": len(own.values) == sight.distinct}
    if made:
        places, truth = _truth(context, sight, table, column, prefix)
        told["blind_guess_rows"] = _right(own, truth, np.full(len(truth), own.counts.argmax()))[0]
        verdicts = [_verdict(attempt, own, places, truth) for attempt in made]
    return told | {"attacks": sorted(verdicts, key=lambda v: -v["recovered_rows"])}


def _truth(
    context: Context, sight: Sight, table: Table, column: Column, prefix: bool
) -> tuple[np.ndarray[Any, Any], pa.Array]:
    """By row, the place of its code among all codes, and its value."""
    # Even this is something that the server sees.
    context.ledger.record([fact("scan", table, [column])], "an attack")
    reply = context.engine.query(
        Statement(
            f"SELECT row_id, {column.stored['rnd']} AS v, ({sight.column} IS NULL)::INT AS gone, "
            f"dense_rank() OVER (ORDER BY {sight.column} NULLS LAST) - 1 AS place "
            f"FROM {context.backend.table(table)}"
        )
    )
    reply = reply.filter(pc.equal(reply.column("gone"), 0))
    row_ids, sealed = (reply.column(n).combine_chunks() for n in ("row_id", "v"))
    field = context.local.arrow_field(column.type)
    opened = _storage(context.columns.open_column(table, column, sealed, row_ids, field))
    if prefix:
        opened = pc.binary_slice(opened.cast(pa.binary()), 0, _PREFIX_BYTES)
    return reply.column("place").to_numpy(), opened


def _verdict(
    attempt: Attempt, own: Histogram, places: np.ndarray[Any, Any], truth: pa.Array
) -> dict[str, Any]:
    rows, right = _right(own, truth, attempt.guesses[places])
    return {
        "attack": attempt.attack,
        "recovered_rows": rows,
        "recovered_distinct": len(np.unique(places[right])),
        "prevented_by": attempt.prevented_by,
    }


def _right(
    own: Histogram, truth: pa.Array, guesses: np.ndarray[Any, Any]
) -> tuple[int, np.ndarray[Any, Any]]:
    """How many rows were guessed right, and which."""
    guessed = own.values.take(pa.array(guesses, mask=guesses < 0))
    same = pc.fill_null(pc.equal(guessed.cast(truth.type), truth), fill_value=False)
    right = np.asarray(same.to_numpy(zero_copy_only=False), dtype=bool)
    return int(right.sum()), right


def _cut(value: str, type_: str, prefix: bool) -> str:
    whole = f"encode({value})" if type_ == "VARCHAR" else value
    return f"array_slice({whole}, 1, {_PREFIX_BYTES})" if prefix else value


def _storage(values: pa.Array) -> pa.Array:
    return values.storage if isinstance(values, pa.ExtensionArray) else values


def lines(told: Sequence[dict[str, Any]]) -> list[str]:
    """What codes show, for people."""
    out = []
    for table in dict.fromkeys(entry["table"] for entry in told):
        out.append(f"{terminal.styled(table, 'bold')}: codes of equality and order")
        for entry in (entry for entry in told if entry["table"] == table):
            out += _lines(entry)
    return out


def _lines(entry: dict[str, Any]) -> list[str]:
    name = f"{entry.get('column', entry['stored_as']):<18}"
    if entry["shown"] == "nothing":
        closed = terminal.styled(f"{entry['codes']} is closed", "green")
        return [f"  {name} {closed}: the codes look random"]
    top = ", ".join(f"{count:,}" for count in entry["most_frequent"])
    said = f"  {name} {terminal.styled(entry['shown'] + ' shows', 'red')}: "
    said += f"{entry['distinct']:,} distinct values in {entry['rows']:,} rows, "
    said += f"{entry['nulls_visible']:,} NULLs; the most frequent ones have {top} rows"
    out = [said]
    for made in entry.get("attacks", ()):
        rows = entry["rows"] - entry["nulls_visible"]
        out.append(
            f"    {made['attack']}: {made['recovered_rows']:,} of {rows:,} rows "
            f"({_percent(made['recovered_rows'], rows)}) and {made['recovered_distinct']:,} of "
            f"{entry['distinct']:,} values recovered; a ceiling of `{made['prevented_by']}` "
            "would have prevented it"
        )
    if "blind_guess_rows" in entry:
        share = _percent(entry["blind_guess_rows"], entry["rows"] - entry["nulls_visible"])
        out.append(f"    without any codes, guessing the most frequent value: {share}")
    elif "attacks" in entry:
        out.append("    the auxiliary table has no column of this name that could be used")
    return out


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0 %"
