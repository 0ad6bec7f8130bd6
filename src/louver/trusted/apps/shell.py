"""The shell of `louver sql`: reads statements until a semicolon, and a few words of its own.

Its history lives in memory only: statements hold values that must not lie about in a file.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from louver import errors
from louver.trusted.apps import answers, terminal
from louver.trusted.apps.commands import explain, leakage
from louver.trusted.client.dbapi import Connection
from louver.trusted.client.relation import Relation

#: The shell's own words; docs/reference/cli.md lists them.
WORDS: dict[str, str] = {
    "\\d [TABLE]": "list the tables, or describe one",
    "\\l [TABLE]": "the leakage ledger",
    "\\e STATEMENT": "how it would run and what a query would reveal; nothing is run or sent",
    "\\s": "what the server was sent by the last query",
    "\\t": "switch the times of the steps on or off",
    "\\?": "this list",
    "\\q": "leave",
}

_END = "louver_end_of_text"


class Shell:
    """A conversation on a terminal."""

    def __init__(self, connection: Connection, options: argparse.Namespace) -> None:
        self._connection = connection
        self._options = options
        self._timing = False
        self._sent: list[str] = []

    def run(self) -> int:
        """Talk until the user leaves."""
        with_history()
        place = self._connection.context.engine.place or "in memory"
        terminal.say(f"louver: {place}. End statements with ;  \\? helps, \\q leaves.")
        pending: list[str] = []
        while True:
            try:
                line = input("      > " if pending else "louver> ")
            except EOFError:
                terminal.say("")
                return 0
            except KeyboardInterrupt:
                terminal.say("")
                pending.clear()
                continue
            if not pending and line.strip().startswith(("\\", ".")):
                if not self._guarded(lambda text=line: self._word(text)):  # type: ignore[misc]
                    return 0
                continue
            pending.append(line)
            if complete("\n".join(pending)):
                text, pending = "\n".join(pending), []
                self._guarded(lambda text=text: self._statements(text))  # type: ignore[misc]

    def _guarded(self, act: Callable[[], bool]) -> bool:
        """Run it; an error is told and the conversation goes on."""
        try:
            return act()
        except errors.Error as error:
            terminal.fail(error, self._options.json)
        except KeyboardInterrupt:
            terminal.say("\nlouver: interrupted; the statement was undone")
        return True

    def _statements(self, text: str) -> bool:
        for statement in answers.statements(text):
            self._sent = self._shown(statement).remote_sql()
        return True

    def _shown(self, statement: str) -> Relation:
        relation, times = answers.shown(self._connection, statement, self._options)
        if self._timing:
            steps = ", ".join(f"{step} {spent:.1f}" for step, spent in times.items())
            terminal.say(f"milliseconds: {steps}")
        return relation

    def _word(self, line: str) -> bool:
        """One of the shell's own words; False to leave."""
        word, _, rest = line.strip().partition(" ")
        rest = rest.strip().rstrip(";")
        match word:
            case "\\q" | ".quit" | ".exit":
                return False
            case "\\d" | ".tables" | ".schema":
                self._shown(f"DESCRIBE {one(rest)}" if rest else "SHOW TABLES")
            case "\\l":
                for told in leakage.sentences(self._connection, rest or None):
                    terminal.out(told)
            case "\\e":
                terminal.out(explain.told(self._connection, one(rest)))
            case "\\s":
                for sent in self._sent:
                    terminal.out(sent)
            case "\\t":
                self._timing = not self._timing
                terminal.say(f"times are {'on' if self._timing else 'off'}")
            case "\\?" | ".help":
                for name, meaning in WORDS.items():
                    terminal.say(f"  {name:<12}{meaning}")
            case _:
                raise errors.make(
                    "usage", detail=f"{word} is not a command of this shell (see \\?)"
                )
        return True


def one(text: str) -> str:
    """A text that is part of one statement, and does not end it."""
    if len(answers.statements(f"SELECT {text}")) > 1:
        raise errors.make("sql.syntax", detail="this command of the shell takes one statement")
    return text


def complete(text: str) -> bool:
    """Whether a text ends with a semicolon that stands outside of strings and comments."""
    from louver.trusted.planner.sql import lexer

    if not text.strip():
        return True
    if ";" not in text:
        return False
    try:
        lexer.tokens(text)
    except errors.Error:
        return False
    # Only a semicolon of the outermost text splits off what is put behind it.
    parts = lexer.split(f"{text}\n{_END}")
    return bool(parts) and parts[-1].home.strip() == _END


def with_history() -> None:
    """Arrow keys and search, where Python has readline."""
    try:
        import readline
    except ImportError:
        return
    readline.set_auto_history(True)
