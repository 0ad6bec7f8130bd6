"""The shell's commands; docs/reference/cli.md lists them."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "\\d [TABLE]": "list the tables, or describe one",
    "\\dt": "list the tables",
    "\\l [TABLE]": "print the leakage ledger",
    "\\e STATEMENT": "print the plan and its new leakage; nothing is run or sent",
    "\\s": "print what the last query sent to the server",
    "\\t, \\timing": "turn the times of the steps on or off",
    "\\x": "turn expanded output, one value per line, on or off",
    "\\i FILE": "run the statements of a file",
    "\\o [FILE]": "write answers to a file; without FILE, to the terminal again",
    "\\copy ...": "run COPY; its files are those of this machine",
    "\\set [NAME VALUE]": "show or change history (masked, full, off), format, rows or pager",
    "\\r": "discard the statement that is being typed",
    "\\?": "print this list",
    "\\q": "quit",
}
