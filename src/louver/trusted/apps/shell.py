"""The shell of `louver sql`: reads statements up to a semicolon, and a few commands.

Its history is kept in memory only, because statements contain values.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from louver import errors
from louver.trusted.apps import answers, terminal
from louver.trusted.apps.commands import explain, leakage
from louver.trusted.client.dbapi import Connection
from louver.trusted.client.relation import Relation

#: The shell's commands; docs/reference/cli.md lists them.
WORDS: dict[str, str] = {
    "\\d [TABLE]": "list the tables, or describe one",
    "\\l [TABLE]": "print the leakage ledger",
    "\\e STATEMENT": "print the plan and its new leakage; nothing is run or sent",
    "\\s": "print what the last query sent to the server",
    "\\t": "turn the times of the steps on or off",
    "\\?": "print this list",
    "\\q": "quit",
}

_END = "louver_end_of_text"


class Shell:
    """An interactive session on a terminal."""

    def __init__(self, connection: Connection, options: argparse.Namespace) -> None:
        self._connection = connection
        self._options = options
        self._timing = False
        self._sent: list[str] = []

    def run(self) -> int:
        """Read and run statements until the user quits."""
        with_history()
        location = self._connection.session.context.engine.address or "in memory"
        terminal.say(f"louver: {location}. End statements with ;  \\? for help, \\q to quit.")
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
        """Run it; an error is printed and the shell goes on."""
        try:
            return act()
        except errors.Error as error:
            terminal.fail(error, self._options.json)
        except KeyboardInterrupt:
            terminal.say("\nlouver: interrupted; the statement was rolled back")
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
        """Run one of the shell's commands; False to quit."""
        word, _, rest = line.strip().partition(" ")
        rest = rest.strip().rstrip(";")
        match word:
            case "\\q" | ".quit" | ".exit":
                return False
            case "\\d" | ".tables" | ".schema":
                self._shown(f"DESCRIBE {single(rest)}" if rest else "SHOW TABLES")
            case "\\l":
                for sentence in leakage.sentences(self._connection, rest or None):
                    terminal.out(sentence)
            case "\\e":
                terminal.out(explain.explained(self._connection, single(rest)))
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
                raise errors.make("usage", detail=f"{word} is not a shell command (see \\?)")
        return True


def single(text: str) -> str:
    """The text itself; raises if it contains more than one statement."""
    if len(answers.statements(f"SELECT {text}")) > 1:
        raise errors.make("sql.syntax", detail="this shell command takes one statement")
    return text


def complete(text: str) -> bool:
    """Whether a text ends with a semicolon outside of strings and comments."""
    from louver.trusted.planner.sql import lexer

    if not text.strip():
        return True
    if ";" not in text:
        return False
    try:
        lexer.tokens(text)
    except errors.Error:
        return False
    # Only a semicolon outside of all nesting separates the appended end mark.
    parts = lexer.split(f"{text}\n{_END}")
    return bool(parts) and parts[-1].home.strip() == _END


def with_history() -> None:
    """Enable arrow keys and search if Python has readline."""
    try:
        import readline
    except ImportError:
        return
    readline.set_auto_history(True)
