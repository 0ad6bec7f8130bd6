"""Relations in notebooks: rows as HTML, with marks for what the query reveals to a server."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from louver.names import fold, quoted
from louver.trusted.client.result import Result
from louver.trusted.client.typecodes import NUMBER, base_of
from louver.trusted.vault.levels import LEVELS

_SHOWN_ROWS = 20
_STYLE = "font-size:smaller;font-weight:normal"


@dataclass(frozen=True, slots=True)
class Mark:
    """What running a query reveals of one column of a table."""

    table: str
    column: str
    level: str
    #: whether the server did not know it before
    new: bool


def marks(explained: str) -> list[Mark]:
    """The highest level of each column, from EXPLAIN (LEAKAGE, FORMAT json)."""
    reveals = json.loads(explained).get("reveals", {})
    highest: dict[tuple[str, str], Mark] = {}
    for key in ("new", "known"):
        for fact in reveals.get(key, ()):
            for column in fact["columns"]:
                known = highest.get((fact["table"], column))
                if known is None or LEVELS.index(fact["level"]) > LEVELS.index(known.level):
                    mark = Mark(fact["table"], column, fact["level"], key == "new")
                    highest[fact["table"], column] = mark
    return list(highest.values())


def table(result: Result, revealed: Sequence[Mark]) -> str:
    """The first rows; a column's level stands below its name, and all marks below the rows."""
    if result.answer.rows is None:
        return ""
    rows = result.rows
    shown: pa.Table = rows.slice(0, _SHOWN_ROWS)
    levels = {fold(mark.column): mark.level for mark in revealed}
    heads = "".join(_head(name, type_, levels) for name, type_ in result.columns)
    lines = "".join(
        "<tr>" + "".join(f"<td>{_value(value)}</td>" for value in row) + "</tr>"
        for row in result.texts(shown)
    )
    return (
        f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"
        f'<p style="{_STYLE}">{_counted(rows.num_rows, shown.num_rows)}{_listed(revealed)}</p>'
    )


def statistics(columns: Sequence[tuple[str, str]]) -> str:
    """The select list of `Relation.describe`, as DuckDB's relations compute it."""
    names = ("count", "mean", "stddev", "min", "max", "median")
    items = [f"unnest([{', '.join(repr(name) for name in names)}]) AS aggr"]
    for name, type_ in columns:
        number = base_of(type_) in NUMBER.families - {"BOOLEAN"}
        result = "DOUBLE" if number else "VARCHAR"
        values = [
            f"CAST({function}({quoted(name)}) AS {result})"
            if number or function in ("count", "min", "max")
            else "NULL"
            for function in names
        ]
        items.append(f"unnest([{', '.join(values)}]) AS {quoted(name)}")
    return ", ".join(items)


def _head(name: str, type_: str, levels: dict[str, str]) -> str:
    level = levels.get(fold(name))
    mark = f"<br>&#9680; {html.escape(level)}" if level else ""
    note = f'<div style="{_STYLE}">{html.escape(type_)}{mark}</div>'
    return f"<th>{html.escape(name)}{note}</th>"


def _value(value: str | None) -> str:
    return "<em>NULL</em>" if value is None else html.escape(value)


def _counted(total: int, shown: int) -> str:
    more = f" ({shown:,} shown)" if shown < total else ""
    return f"{total:,} row{'' if total == 1 else 's'}{more}. "


def _listed(revealed: Sequence[Mark]) -> str:
    if not revealed:
        return "The query reveals nothing of a column."
    items = [
        f"{html.escape(mark.table)}.{html.escape(mark.column)}: {html.escape(mark.level)}"
        + (" (new)" if mark.new else "")
        for mark in revealed
    ]
    return "&#9680; The query reveals " + "; ".join(items) + "."
