"""The forms in which the commands print tables, and the options that select them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from louver.trusted.client.relation import Relation

Texts = Sequence[Sequence[str | None]]

#: The options by name, each with its help. Without one of them a table is drawn as DuckDB draws it,
#: cut to the width of the terminal; --json is an option of every command.
FORMS: dict[str, str] = {
    "csv": "print tables as CSV with a header, as DuckDB writes it",
    "md": "print tables as Markdown",
    "box": "print tables in boxes, whole",
    "line": "print one value per line",
    "table": "print tables in ASCII, whole",
}


def add(parser: argparse.ArgumentParser, *, default: Any = argparse.SUPPRESS) -> None:
    """Declare the options; they may precede or follow the command."""
    group = parser.add_argument_group("forms of tables")
    # `louver encrypt --table NAME` names a table.
    taken = {option for action in parser._actions for option in action.option_strings}
    for form, help_ in FORMS.items():
        if f"--{form}" in taken:
            continue
        group.add_argument(
            f"--{form}", dest="form", action="store_const", const=form, default=default, help=help_
        )


def write(
    form: str, columns: Sequence[tuple[str, str]], rows: Texts, stream: TextIO | None = None
) -> None:
    """Write a table whose values are texts, None for NULL, in any form but csv."""
    stream = sys.stdout if stream is None else stream
    for line in _LINES[form](columns, rows):
        stream.write(line + "\n")


def write_csv(relation: Relation, stream: TextIO | None = None) -> None:
    """Write the rows of a relation as CSV."""
    stream = sys.stdout if stream is None else stream
    buffer = getattr(stream, "buffer", None)
    stream.flush()
    if buffer is not None:
        relation.csv(buffer.write)
        buffer.flush()
        return
    # A stream of text alone, such as that of a program which runs a command in its own process.
    parts: list[bytes] = []
    relation.csv(parts.append)
    stream.write(b"".join(parts).decode())


def write_texts(form: str, columns: Sequence[tuple[str, str]], rows: Texts) -> None:
    """Write a table that no statement returned, in any form."""
    if form == "csv":
        import csv

        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow([name for name, _ in columns])
        writer.writerows(rows)
        return
    write(form, columns, rows)


def _markdown(columns: Sequence[tuple[str, str]], rows: Texts) -> Iterable[str]:
    from louver.trusted.client.table_format import is_number

    def row(values: Iterable[str]) -> str:
        return "| " + " | ".join(values) + " |"

    yield row(_escaped(name) for name, _ in columns)
    yield "|" + "|".join("---:" if is_number(type_) else "---" for _, type_ in columns) + "|"
    for values in rows:
        yield row("" if value is None else _escaped(value) for value in values)


def _escaped(text: str) -> str:
    from louver.trusted.client.table_format import printable

    return printable(text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", "<br>"))


def _line_by_line(columns: Sequence[tuple[str, str]], rows: Texts) -> Iterable[str]:
    from louver.trusted.client.table_format import measure, printable

    names = [printable(name) for name, _ in columns]
    width = max(map(measure, names), default=0)
    for number, values in enumerate(rows):
        if number:
            yield ""
        for name, value in zip(names, values, strict=True):
            text = "NULL" if value is None else printable(value)
            yield " " * (width - measure(name)) + f"{name} = {text}"


def _whole(columns: Sequence[tuple[str, str]], rows: Texts, *, ascii_only: bool) -> Iterable[str]:
    from louver.trusted.client.table_format import whole

    return whole(columns, rows, ascii_only=ascii_only)


_LINES: dict[str, Any] = {
    "md": _markdown,
    "line": _line_by_line,
    "box": lambda columns, rows: _whole(columns, rows, ascii_only=False),
    "table": lambda columns, rows: _whole(columns, rows, ascii_only=True),
}
