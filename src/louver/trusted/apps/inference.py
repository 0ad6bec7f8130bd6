"""Attacks with an auxiliary table: values inferred from visible codes, and how many are right."""

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
from louver.names import fold, quoted
from louver.trusted.apps import terminal
from louver.trusted.client.inside import context_of
from louver.trusted.vault.facts import fact
from louver.trusted.vault.scheme import read_from

if TYPE_CHECKING:
    from louver.trusted.client.dbapi import Connection
    from louver.trusted.executor.context import Context
    from louver.trusted.vault.catalog import Column, Table
    from louver.untrusted.attacks.codes import Attempt, Sight
    from louver.untrusted.engines.stored import StoredRows

_READERS = {".parquet": "read_parquet", ".pq": "read_parquet", ".csv": "read_csv",
            ".tsv": "read_csv"}  # fmt: skip
_PREFIX_BYTES = 8
"""An order code of a text encodes its first bytes, so no more can be recovered."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """An auxiliary column: its values in ascending order, and the number of rows of each."""

    values: pa.Array
    counts: np.ndarray[Any, np.dtype[np.int64]]


class Auxiliary:
    """A table that the adversary has from another source: a Parquet or CSV file."""

    def __init__(self, path: str) -> None:
        """Open the file; raises ``load.file`` if it cannot be read."""
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
        """Close the file."""
        self._connection.close()

    def histogram(self, column: str, type_: str, *, prefix: bool) -> Histogram | None:
        """The column of this name, cast to a type; None if it is missing or has no value."""
        name = self._names.get(fold(column))
        if name is None:
            return None
        value = f"TRY_CAST({quoted(name)} AS {type_})"
        counts = self._connection.execute(
            f"SELECT {_cut(value, type_, prefix)} AS v, count(*) AS n FROM auxiliary"
            f" WHERE {value} IS NOT NULL GROUP BY v ORDER BY v"
        ).to_arrow_table()
        if not counts.num_rows:
            return None
        values = _storage(counts.column("v").combine_chunks())
        return Histogram(values, counts.column("n").cast(pa.int64()).to_numpy())


def of_stored(stored: StoredRows, table: str | None) -> list[dict[str, Any]]:
    """What codes reveal without any other information."""
    from louver.untrusted.attacks import codes

    return [_seen(sight) for sight in codes.look(stored) if _wanted(sight, table)]


def of_connection(
    connection: Connection, stored: StoredRows, table: str | None, path: str | None
) -> list[dict[str, Any]]:
    """The same with column names, and with the values that an auxiliary table reveals."""
    from louver.untrusted.attacks import codes

    auxiliary = Auxiliary(path) if path else None
    entries = []
    try:
        for sight in codes.look(stored):
            known = find(context_of(connection), sight) if _wanted(sight, table) else None
            if known is not None:
                entry = _seen(sight) | {"column": known[1].name}
                if auxiliary is not None:
                    entry |= _attacked(context_of(connection), stored, sight, *known, auxiliary)
                entries.append(entry)
    finally:
        if auxiliary is not None:
            auxiliary.close()
    return entries


def find(context: Context, sight: Sight) -> tuple[Table, Column] | None:
    """The declared column behind codes."""
    for table in context.catalog.tables.values():
        if context.backend.table(table) != sight.table.quoted:
            continue
        for column in table.columns:
            if column.encrypted and sight.column in column.stored.values():
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
    context: Context,
    stored: StoredRows,
    sight: Sight,
    table: Table,
    column: Column,
    auxiliary: Auxiliary,
) -> dict[str, Any]:
    from louver.untrusted.attacks import codes

    prefix = sight.shown == "order" and column.type in ("VARCHAR", "BLOB")
    own = auxiliary.histogram(column.name, column.type, prefix=prefix)
    if own is None:
        return {"auxiliary_values": 0, "attacks": []}
    attempts = codes.attempts(sight, own.counts)
    verdicts = []
    entry = {"auxiliary_values": len(own.values), "dense": len(own.values) == sight.distinct}
    if attempts:
        ordinals, values = _ground_truth(context, stored, sight, table, column, prefix)
        blind = np.full(len(values), own.counts.argmax())
        entry["blind_guess_rows"] = _right(own, values, blind)[0]
        verdicts = [_verdict(attempt, own, ordinals, values) for attempt in attempts]
    return entry | {"attacks": sorted(verdicts, key=lambda v: -v["recovered_rows"])}


def _ground_truth(
    context: Context,
    stored: StoredRows,
    sight: Sight,
    table: Table,
    column: Column,
    prefix: bool,
) -> tuple[np.ndarray[Any, Any], pa.Array]:
    """For each row, the ordinal of its code among all codes, and its value."""
    # The server sees this scan, so the ledger records it.
    context.ledger.record([fact("scan", table, [column])], "an attack")
    names = ("row_id", read_from(column), sight.column)
    columns = stored.columns(sight.table, names)
    known = pc.is_valid(columns[sight.column])
    row_ids, sealed, codes = (columns[name].filter(known) for name in names)
    field = context.local.arrow_field(column.type)
    opened = _storage(context.columns.open_column(table, column, sealed, row_ids, field))
    if prefix:
        opened = pc.binary_slice(opened.cast(pa.binary()), 0, _PREFIX_BYTES)
    return pc.index_in(codes, sight.codes).to_numpy(), opened


def _verdict(
    attempt: Attempt, own: Histogram, ordinals: np.ndarray[Any, Any], values: pa.Array
) -> dict[str, Any]:
    rows, right = _right(own, values, attempt.guesses[ordinals])
    return {
        "attack": attempt.attack,
        "recovered_rows": rows,
        "recovered_distinct": len(np.unique(ordinals[right])),
        "prevented_by": attempt.prevented_by,
    }


def _right(
    own: Histogram, values: pa.Array, guesses: np.ndarray[Any, Any]
) -> tuple[int, np.ndarray[Any, Any]]:
    """The number of rows guessed right, and a mask of them."""
    guessed = own.values.take(pa.array(guesses, mask=guesses < 0))
    same = pc.fill_null(pc.equal(guessed.cast(values.type), values), fill_value=False)
    right = np.asarray(same.to_numpy(zero_copy_only=False), dtype=bool)
    return int(right.sum()), right


def _cut(value: str, type_: str, prefix: bool) -> str:
    whole = f"encode({value})" if type_ == "VARCHAR" else value
    return f"array_slice({whole}, 1, {_PREFIX_BYTES})" if prefix else value


def _storage(values: pa.Array) -> pa.Array:
    return values.storage if isinstance(values, pa.ExtensionArray) else values


def lines(entries: Sequence[dict[str, Any]]) -> list[str]:
    """The findings as text."""
    out = []
    for table in dict.fromkeys(entry["table"] for entry in entries):
        out.append(f"{terminal.styled(table, 'bold')}: equality and order codes")
        for entry in (entry for entry in entries if entry["table"] == table):
            out += _lines(entry)
    return out


def _lines(entry: dict[str, Any]) -> list[str]:
    name = f"{entry.get('column', entry['stored_as']):<18}"
    if entry["shown"] == "nothing":
        closed = terminal.styled(f"{entry['codes']} layer closed", "green")
        return [f"  {name} {closed}: the codes look random"]
    top = ", ".join(f"{count:,}" for count in entry["most_frequent"])
    said = f"  {name} {terminal.styled(entry['shown'] + ' shows', 'red')}: "
    said += f"{entry['distinct']:,} distinct values in {entry['rows']:,} rows, "
    said += f"{entry['nulls_visible']:,} NULLs; the most frequent ones have {top} rows"
    out = [said]
    for attempt in entry.get("attacks", ()):
        rows = entry["rows"] - entry["nulls_visible"]
        out.append(
            f"    {attempt['attack']}: {attempt['recovered_rows']:,} of {rows:,} rows "
            f"({_percent(attempt['recovered_rows'], rows)}) and "
            f"{attempt['recovered_distinct']:,} of {entry['distinct']:,} values recovered; "
            f"prevented by the ceiling `{attempt['prevented_by']}`"
        )
    if "blind_guess_rows" in entry:
        share = _percent(entry["blind_guess_rows"], entry["rows"] - entry["nulls_visible"])
        out.append(f"    baseline, always guessing the most frequent value: {share}")
    elif "attacks" in entry:
        out.append("    the auxiliary table has no usable column of this name")
    return out


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0 %"
