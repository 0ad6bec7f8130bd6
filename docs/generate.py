"""Write the pages of docs/reference from the code; with --check, say which are out of date.

Each page has one function below that returns its text. `make docs` writes the pages,
`make lint` checks them.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path

from louver import errors
from louver.trusted.apps import reference
from louver.trusted.apps.demo import ceilings
from louver.trusted.vault import scheme, schemes
from louver.trusted.vault.scheme import Leak

FOLDER = Path(__file__).resolve().parent / "reference"
GENERATED = "<!-- Written by docs/generate.py; change the code, then run `make docs`. -->\n"

#: The first part of a code, and what its errors are about.
AREAS = {
    "key": "The key file",
    "url": "Database URLs",
    "language": "Languages",
    "engine": "Engines",
    "profile": "Profiles",
    "database": "The database",
    "connection": "The connection",
    "attach": "Attached connections",
    "server": "Database servers",
    "source": "Databases that are encrypted or exported",
    "disk": "Disk space",
    "lake": "Lakes",
    "serve": "Services",
    "rights": "Services",
    "provider": "Private questions",
    "catalog": "The catalog",
    "pin": "Local state",
    "ledger": "The leakage ledger",
    "value": "Stored values",
    "memory": "Memory",
    "result": "Computed values",
    "row": "Rows",
    "rows": "Row ids",
    "reply": "Replies",
    "wire": "Messages",
    "table": "Tables",
    "column": "Columns",
    "relation": "Relations",
    "frame": "Local data",
    "sql": "Statements",
    "enc": "ENC clauses",
    "leak": "Ceilings",
    "parameter": "Parameters",
    "prepared": "Prepared statements",
    "setting": "Settings",
    "cursor": "Cursors",
    "transaction": "Transactions",
    "interrupted": "Interruption",
    "load": "Loading",
    "csv": "CSV files",
    "file": "Files",
    "policy": "Policies",
    "package": "Optional packages",
    "usage": "The command line",
    "native": "The native module",
    "internal": "Internal errors",
    "duckdb": "DuckDB's own errors",
    "postgres": "Errors of the local PostgreSQL",
    "local": "Features of the local engine",
}

ERRORS_INTRODUCTION = """\
Every error has a code for programs, and a message, a cause and a fix for people. In Python they
are the attributes `code`, `message`, `cause` and `fix`; the classes are those of PEP 249 and four
of our own, all in `louver.errors`. With `--json` the command line prints
`{"ok": false, "code": ..., "error": ..., "fix": ...}`. Words in \\<angle brackets> are filled in.
The exit code is 3 for `LeakageRefused`, 2 for `usage` and 1 for the rest.
"""


SCHEMES_INTRODUCTION = """\
What each scheme answers, what the server learns by that, and which attack uses it; made from the
rows in `louver.trusted.vault.schemes`. A level is what a server may end up knowing of a column:
`size`, `access` (which rows a query touched), `equality`, `order`, `plaintext`. A column shows what
its stored forms show at rest, from the first row on; what an operation shows, it shows from the
first query on that needs it, and for good. How the attacks work, and how to run them on your own
data: docs/attacks.md. In sentences, `c` is a column of `t`.
"""


#: What stands for the names and other words of a sentence.
EXAMPLE = {
    "table": "`t`",
    "column": "`c`",
    "pair": "`t.c` and `u.d`",
    "source": "`u`",
    "target": "`v`",
    "other": "`d`",
    "nulls": "",
    "token": "number …",
    "values": "of …",
}


def schemes_page() -> str:
    """Every scheme with what it answers, what that shows, and what breaks it."""
    out = [GENERATED, "# Schemes\n", SCHEMES_INTRODUCTION, *_overview(), ""]
    for row in _rows():
        rest = row.at_rest.text.format(**EXAMPLE)
        lengths = row.lengths.text.format(**EXAMPLE) if row.lengths else ""
        out += [
            f"## {row.name}\n",
            f"* Stored as: {row.stored_as}.",
            f"* Needs a ceiling of at least `{row.ceiling}`.",
            _wrapped(f"* At rest (`{row.at_rest.level}`): {rest}.", "  "),
            *(
                [
                    _wrapped(
                        f"* Of types of no fixed length (`{row.lengths.level}`): {lengths}.", "  "
                    )
                ]
                if row.lengths
                else []
            ),
            *([_widths(row.widths)] if row.widths else []),
            f"* Broken by: {row.broken_by}.",
            f"* Specification: {row.spec}.\n",
        ]
    return "\n".join(out)


def _widths(leak: Leak) -> str:
    said = leak.text.format(**EXAMPLE)
    return _wrapped(f"* Of numbers, dates and timestamps in tiles (`{leak.level}`): {said}.", "  ")


def _rows() -> list[scheme.Scheme]:
    return [module.SCHEME for module in schemes.modules()]


def _overview() -> list[str]:
    """The table scheme × operation × what the server learns × which attack breaks it."""
    out = ["| scheme | operation | level | what the server learns | what breaks it |"]
    out.append("|---|---|---|---|---|")
    for row in _rows():
        leaks: dict[str, Leak | None] = {"at rest": row.at_rest}
        if row.lengths:
            leaks["at rest, of no fixed length"] = row.lengths
        if row.widths:
            leaks["at rest, of numbers in tiles"] = row.widths
        for operation, leak in (leaks | row.operations).items():
            shown = "- | nothing new | -"
            if leak is not None:
                said = leak.text.format(**EXAMPLE)
                said += "; each condition is counted" if leak.counted else ""
                shown = f"`{leak.level}` | {said} | {leak.broken_by}"
            out.append(f"| {row.name} | {operation} | {shown} |")
    return out


def errors_page() -> str:
    """Every error code with its class, message, cause and fix."""
    out = [
        GENERATED,
        "# Errors\n",
        ERRORS_INTRODUCTION,
    ]
    area = ""
    for code, row in errors.ERRORS.items():
        if AREAS[code.split(".")[0]] != area:
            area = AREAS[code.split(".")[0]]
            out.append(f"## {area}\n")
        out.append(f"### {code}\n")
        message, cause, fix = (_brackets(text) for text in (row.message, row.cause, row.fix))
        out += [_wrapped(f"`{row.cls.__name__}`: {message}", "") + "\n"]
        out += [_wrapped(f"* Cause: {cause}", "  "), _wrapped(f"* Fix: {fix}", "  ")]
        out += [_wrapped(f"* Fix of `{pattern}`: {text}", "  ") for pattern, text in row.fixes]
        out[-1] += "\n"
    return "\n".join(out)


def cli_page() -> str:
    """Every command with its options, from the parser."""
    return f"{GENERATED}\n{reference.page()}"


README_MARKS = ("<!-- profiles: measured by `python -m bench profiles` -->", "<!-- end -->")
MEASURED = FOLDER.parent.parent / "bench" / "results" / "profiles.json"
CEILINGS_INTRODUCTION = """\
What one query costs and shows under three ceilings, as `EXPLAIN (LEAKAGE)` prints it
(`python -m louver.trusted.apps.demo.ceilings`). The table has 1,500 rows; `name` and `salary` may
reveal `access`, and `dept` and `born` what is written above each plan. In place of the server's
random names of columns stand the column and its representation. Lines with `+` are what the server
would newly learn, lines with `=` what it knows already. [The guide](../guides/ceilings.md) says how
to choose.
"""


def ceilings_page() -> str:
    """One query under three ceilings."""
    head = f"{GENERATED}\n# One query under three ceilings\n\n{CEILINGS_INTRODUCTION}\n"
    return f"{head}{_example()}"


@cache
def _example() -> str:
    return f"```sql\n{ceilings.QUERY};\n```\n\n```\n{ceilings.shown()}\n```\n"


def readme() -> str:
    """The README with the table of profiles that was measured last."""
    text = (FOLDER.parent.parent / "README.md").read_text(encoding="utf-8")
    before, mark, rest = text.partition(README_MARKS[0] + "\n")
    _, end, after = rest.partition(README_MARKS[1])
    (grid,) = json.loads(MEASURED.read_text(encoding="utf-8"))["grids"]
    lines = [grid["header"], ["---"] * len(grid["header"]), *grid["rows"]]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return f"{before}{mark}{table}{end}{after}"


def _wrapped(text: str, indent: str) -> str:
    """Text in lines that fit; code spans and paths are not cut."""
    return textwrap.fill(
        text, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _brackets(template: str) -> str:
    """A template for people: `{path}` as `<path>`, escaped for Markdown."""
    return template.replace("{", "\\<").replace("}", ">")


#: File name to the function that writes it, in the order of the index.
PAGES: dict[str, Callable[[], str]] = {
    "errors.md": errors_page,
    "cli.md": cli_page,
    "schemes.md": schemes_page,
    "ceilings.md": ceilings_page,
    "../../README.md": readme,
}


def main(arguments: list[str]) -> int:
    """Write or check all pages; 1 when a check finds an old one."""
    old = []
    FOLDER.mkdir(parents=True, exist_ok=True)
    for page, write in PAGES.items():
        path, text = FOLDER / page, write()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if "--check" in arguments:
            old.append(page)
        else:
            path.write_text(text, encoding="utf-8")
            print(f"docs: wrote {path.resolve().relative_to(FOLDER.parent.parent)}")
    if old:
        print(f"docs: out of date: {', '.join(old)}; run `make docs`", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
