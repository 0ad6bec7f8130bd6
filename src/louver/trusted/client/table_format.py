"""Tables as text, drawn like DuckDB's: names, types, rows, cut to the terminal width."""

from __future__ import annotations

import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Sequence
from itertools import zip_longest

from louver.names import fold

LEAST_WIDTH_CHARACTERS = 4
_SHORT = {
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "HUGEINT": "int128",
    "UTINYINT": "uint8",
    "USMALLINT": "uint16",
    "UINTEGER": "uint32",
    "UBIGINT": "uint64",
    "UHUGEINT": "uint128",
}
_NUMBERS = ("int", "uint", "decimal", "double", "float", "bigint", "smallint", "numeric", "real")
# Control characters of untrusted data must not reach the terminal.
_CONTROL = {code: f"\\x{code:02x}" for code in [*range(32), *range(127, 160)]}
_CONTROL |= {10: "\\n", 13: "\\r", 9: "\\t"}
_CONTROL |= {code: f"\\u{code:04x}" for code in [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]}
_ASCII = str.maketrans("┌┬┐├┼┤└┴┘─│·…", "+++++++++-|..")


def box(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[str | None]],
    *,
    total: int | None = None,
    max_width: int | None = None,
    ascii_only: bool | None = None,
    wrapped: bool = False,
) -> str:
    """The rows (values as text, None for NULL) as a table.

    ``total`` is the total number of rows if only the first and last are given. ``wrapped`` values
    continue on the next line where others are cut.
    """
    total = len(rows) if total is None else total
    if not columns:
        return ""
    width = max_width or shutil.get_terminal_size((100, 24)).columns
    types = [_SHORT.get(type_, fold(type_)) for _, type_ in columns]
    heads = [name.translate(_CONTROL) for name, _ in columns]
    cells = [["NULL" if v is None else v.translate(_CONTROL) for v in row] for row in rows]
    shown = _visible(heads, types, cells, width)
    widths = _widths(heads, types, cells, shown, width)
    lines = [_rule("┌┬┐", widths)]
    lines.append(_line([_centred(heads[i], w) for i, w in zip(shown, widths, strict=True)]))
    lines.append(_line([_centred(types[i], w) for i, w in zip(shown, widths, strict=True)]))
    lines.append(_rule("├┼┤", widths))
    right = [types[i].startswith(_NUMBERS) for i in shown]
    gap = len(rows) - len(rows) // 2 if total > len(rows) else -1
    for number, row in enumerate(cells):
        if number == gap:
            lines += [_line([_centred("·", w) for w in widths])] * 3
        folded = [
            _folded(row[i], w) if wrapped else [row[i]] for i, w in zip(shown, widths, strict=True)
        ]
        for texts in zip_longest(*folded, fillvalue=""):
            parts = zip(texts, widths, right, strict=True)
            lines.append(_line([_aligned(text, w, to_right) for text, w, to_right in parts]))
    lines.append(_rule("└┴┘", widths))
    lines += _footer(total, len(rows), len(columns), len(shown))
    text = "\n".join(lines)
    if ascii_only is None:
        ascii_only = "utf" not in fold(getattr(sys.stdout, "encoding", None) or "utf-8")
    return _plain(text) if ascii_only else text


def whole(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[str | None]],
    *,
    ascii_only: bool = False,
) -> list[str]:
    """The lines of a table whose columns and values are not cut, without types."""
    if not columns:
        return []
    heads = [printable(name) for name, _ in columns]
    cells = [["NULL" if v is None else printable(v) for v in row] for row in rows]
    widths = [max(map(measure, column)) for column in zip(heads, *cells, strict=True)]
    right = [is_number(type_) for _, type_ in columns]
    top, middle, bottom = (_rule(corners, widths) for corners in ("┌┬┐", "├┼┤", "└┴┘"))
    aligned = [[_centred(head, w) for head, w in zip(heads, widths, strict=True)]]
    for row in cells:
        parts = zip(row, widths, right, strict=True)
        aligned.append([_aligned(cell, w, to_right) for cell, w, to_right in parts])
    if ascii_only:
        # Only the frame is ASCII: a value is printed as it is.
        top, middle, bottom = (rule.translate(_ASCII) for rule in (top, middle, bottom))
        head, *body = ["| " + " | ".join(row) + " |" for row in aligned]
    else:
        head, *body = map(_line, aligned)
    return [top, head, middle, *body, bottom]


def is_number(type_: str) -> bool:
    """Whether values of a DuckDB type are aligned to the right."""
    return _SHORT.get(type_, fold(type_)).startswith(_NUMBERS)


def printable(text: str) -> str:
    """Text whose control characters are escaped."""
    return text.translate(_CONTROL)


def _footer(total: int, rows: int, columns: int, shown: int) -> list[str]:
    said = []
    if total > rows:
        said.append(f"{total:,} rows ({rows:,} shown)")
    elif total != 1 or shown < columns:
        said.append(f"{total:,} row{'' if total == 1 else 's'}")
    if shown < columns:
        said.append(f"{columns} columns ({shown} shown)")
    return ["  ".join(said)] if said else []


def _visible(heads: list[str], types: list[str], cells: list[list[str]], width: int) -> list[int]:
    """The columns that fit: as many as possible from the left, and the last one."""
    least = [min(_natural(i, heads, types, cells), 12) + 3 for i in range(len(heads))]
    if sum(least) + 1 <= width:
        return list(range(len(heads)))
    room = width - 1 - least[-1]
    shown: list[int] = []
    for index in range(len(heads) - 1):
        if room < least[index]:
            break
        room -= least[index]
        shown.append(index)
    return [*shown, len(heads) - 1]


def _natural(i: int, heads: list[str], types: list[str], cells: list[list[str]]) -> int:
    values = (measure(row[i]) for row in cells)
    return max(measure(heads[i]), measure(types[i]), *values, LEAST_WIDTH_CHARACTERS)


def _widths(
    heads: list[str], types: list[str], cells: list[list[str]], shown: list[int], width: int
) -> list[int]:
    """Natural widths; if their sum is too large, the widest columns are narrowed."""
    widths = [_natural(i, heads, types, cells) for i in shown]
    surplus = sum(w + 3 for w in widths) + 1 - width
    while surplus > 0:
        widest = max(widths)
        if widest <= LEAST_WIDTH_CHARACTERS:
            break
        index = widths.index(widest)
        others = max((w for w in widths if w < widest), default=LEAST_WIDTH_CHARACTERS)
        cut = max(1, min(surplus, widest - max(others, LEAST_WIDTH_CHARACTERS)))
        widths[index] -= cut
        surplus -= cut
    return widths


def measure(text: str) -> int:
    """The number of terminal cells that a text occupies."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def _folded(text: str, width: int) -> list[str]:
    """A text in lines of at most ``width`` characters."""
    return textwrap.wrap(text, width) or [""]


def _cut(text: str, width: int) -> str:
    if measure(text) <= width:
        return text
    prefix = ""
    for character in text:
        if measure(prefix + character) > width - 1:
            break
        prefix += character
    return prefix + "…"


def _aligned(text: str, width: int, to_right: bool) -> str:
    text = _cut(text, width)
    space = " " * (width - measure(text))
    return space + text if to_right else text + space


def _centred(text: str, width: int) -> str:
    text = _cut(text, width)
    space = width - measure(text)
    return " " * (space // 2) + text + " " * (space - space // 2)


def _line(cells: Sequence[str]) -> str:
    return "│ " + " │ ".join(cells) + " │"


def _rule(corners: str, widths: Sequence[int]) -> str:
    left, middle, right = tuple(corners)
    return left + middle.join("─" * (w + 2) for w in widths) + right


def _plain(text: str) -> str:
    """The text for ASCII-only terminals."""
    return text.translate(_ASCII).encode("ascii", "replace").decode()
