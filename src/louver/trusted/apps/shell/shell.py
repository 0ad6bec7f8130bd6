"""The shell of `louver sql`: reads statements up to a semicolon, and a few commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from louver import errors
from louver.names import fold
from louver.trusted.apps import answers, formats, terminal
from louver.trusted.apps.commands import explain, leakage, sql
from louver.trusted.apps.shell import history, reading
from louver.trusted.apps.shell.output import Output
from louver.trusted.apps.shell.words import WORDS
from louver.trusted.client.dbapi import Connection
from louver.trusted.client.inside import session_of
from louver.trusted.client.relation import Relation
from louver.trusted.planner.sql.dialect import spoken

_END = "louver_end_of_text"
#: Words that a user of psql or duckdb types to leave or to get help.
_LEAVING = ("exit", "quit", "help")
_CHOICES = {
    "history": history.MODES, "format": ("default", *formats.FORMS, "json"), "pager": ("on", "off"),
}  # fmt: skip


class Quit(Exception):
    """The user leaves."""


class Shell:
    """Runs statements and commands, typed on a terminal or read from a text."""

    def __init__(self, connection: Connection, options: argparse.Namespace) -> None:
        self._connection = connection
        self._options = argparse.Namespace(**vars(options))
        self._output = Output()
        self._reader: reading.Reader | None = None
        self._timing = False
        self._sent: list[str] = []
        self._settings = {
            "history": "masked", "format": "json" if options.json else options.form or "default",
            "rows": str(options.rows), "pager": "on",
        }  # fmt: skip

    def run(self) -> int:
        """Read and run statements until the user quits. Returns the exit code."""
        context = session_of(self._connection).context
        self._reader = reading.reader(lambda: context.catalog, ends)
        location = context.engine.address or "in memory"
        terminal.say(f"louver: {location}. End statements with ;  \\? for help, \\q to quit.")
        pending = ""
        while True:
            try:
                text = self._reader.read(pending)
            except EOFError:
                terminal.say("")
                if self._may_leave():
                    return self.finish()
                continue
            except KeyboardInterrupt:
                terminal.say("")
                pending = ""
                continue
            try:
                edits = not isinstance(self._reader, reading.PlainReader)
                pending = self._lines(text, "" if edits else pending, self._guarded)
            except Quit:
                if self._may_leave():
                    return self.finish()
                pending = ""
            except KeyboardInterrupt:
                # Between two statements; `_guarded` reports what stopped one.
                terminal.say("")
                pending = ""

    def script(self, texts: list[str]) -> int:
        """Run texts to their end, or to the first error. Returns the exit code."""
        try:
            for text in texts:
                self._text(text)
        except Quit:
            pass
        return self.finish()

    def finish(self) -> int:
        """Close files and roll back an open transaction, which is an error of its own."""
        self._output.close()
        return sql.end_transaction(self._connection, as_json=self._options.json)

    def _text(self, text: str) -> None:
        """The statements and commands of a text."""
        if not any(line.lstrip().startswith("\\") for line in text.split("\n")):
            self._statements(text)
            return
        rest = self._lines(text, "", lambda act: act())
        self._statements(rest)

    def _lines(self, text: str, pending: str, run: Callable[[Callable[[], None]], None]) -> str:
        """Run what is complete in ``pending`` and ``text``; returns what is not."""
        for line in text.split("\n"):
            word = line.strip()
            if word.startswith("\\") and not within_quotes(pending):
                if word.split()[0] in ("\\r", "\\reset"):
                    pending = ""
                    continue
                run(lambda word=word: self._word(word))  # type: ignore[misc]
            elif not pending.strip() and word.startswith(".") and word[1:2].isalpha():
                run(lambda word=word: self._word(word))  # type: ignore[misc]
            elif (leaving := fold(word.rstrip(";").strip())) in _LEAVING and self._reader:
                if not pending.strip():
                    run(lambda word=leaving: self._word(_of_word(word)))  # type: ignore[misc]
                else:
                    terminal.say(_hint(leaving))
                    pending += "\n" + line if within_quotes(pending) else ""
            else:
                pending = f"{pending}\n{line}" if pending else line
                if complete(pending):
                    statements, pending = pending, ""
                    run(lambda text=statements: self._statements(text))  # type: ignore[misc]
        return pending

    def _guarded(self, act: Callable[[], None]) -> None:
        """Run it; an error is printed and the shell goes on."""
        try:
            act()
        except errors.Error as error:
            terminal.fail(error, self._options.json)
        except KeyboardInterrupt:
            terminal.say("\nlouver: interrupted; the statement was rolled back")

    def _may_leave(self) -> bool:
        """Whether the shell may end: an open transaction is committed or given up first."""
        if not session_of(self._connection).in_transaction or self._reader is None:
            return True
        if not sys.stdin.isatty():
            return True
        try:
            reply = self._reader.ask("A transaction is open: commit, rollback or stay? [c/r/S] ")
        except (EOFError, KeyboardInterrupt):
            return False
        if fold(reply.strip())[:1] == "c":
            self._guarded(self._connection.commit)
            return not session_of(self._connection).in_transaction
        if fold(reply.strip())[:1] == "r":
            self._connection.rollback()
            return True
        return False

    def _statements(self, text: str) -> None:
        for statement in answers.statements(text):
            self._sent = self._shown(statement).remote_sql()

    def _shown(self, statement: str) -> Relation:
        with self._output.answering():
            relation, times = answers.shown(self._connection, statement, self._options)
        if self._timing:
            steps = ", ".join(f"{step} {spent:.1f}" for step, spent in times.items())
            terminal.say(f"milliseconds: {steps}")
        return relation

    def _word(self, line: str) -> None:
        """Run one of the shell's commands; raises `Quit` to leave."""
        word, _, rest = line.partition(" ")
        rest = rest.strip().rstrip(";").strip()
        match word.rstrip(";"):
            case "\\q" | ".quit" | ".exit":
                raise Quit
            case "\\d" | "\\dt" | ".tables" | ".schema":
                own = spoken()
                self._shown(own.description(single(rest)) if rest else own.listing)
            case "\\l":
                self._print(leakage.sentences(self._connection, rest or None))
            case "\\e":
                self._print([explain.explained(self._connection, single(rest))])
            case "\\s":
                self._print(self._sent)
            case "\\t" | "\\timing":
                self._timing = _switched(rest, self._timing)
                terminal.say(f"times are {'on' if self._timing else 'off'}")
            case "\\x":
                expanded = _switched(rest, self._options.form == "line")
                self._set("format", "line" if expanded else "default")
                terminal.say(f"expanded output is {'on' if expanded else 'off'}")
            case "\\i" | ".read":
                self._include(rest)
            case "\\o":
                self._output.to_file(_unquoted(rest) or None)
            case "\\copy":
                self._statements(f"COPY {single(rest)}")
            case "\\set":
                self._set(*rest.split(maxsplit=1)) if rest else self._print(self._list())
            case "\\?" | ".help":
                for name, meaning in WORDS.items():
                    terminal.say(f"  {name:<18}{meaning}")
            case _:
                raise errors.make("usage", detail=f"{word} is not a shell command (see \\?)")

    def _print(self, lines: list[str]) -> None:
        with self._output.answering():
            for line in lines:
                terminal.out(line)

    def _include(self, name: str) -> None:
        """Run a file; its first error ends it."""
        try:
            text = Path(_unquoted(name)).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            detail = f"{name or 'a file without a name'} cannot be read: {reason}"
            raise errors.make("usage", detail=detail) from None
        self._text(text)

    def _list(self) -> list[str]:
        return [f"{name:<10}{value}" for name, value in self._settings.items()]

    def _set(self, name: str = "", value: str = "") -> None:
        r"""Change a setting: \set history full."""
        if value not in _CHOICES.get(name, ()) and not (name == "rows" and value.isdecimal()):
            listed = {**{n: "|".join(v) for n, v in _CHOICES.items()}, "rows": "NUMBER"}
            detail = ", ".join(f"\\set {n} {v}" for n, v in listed.items())
            raise errors.make("usage", detail=f"\\set takes one of: {detail}")
        self._settings[name] = value
        if name == "history" and self._reader is not None:
            self._reader.remember(value)
        self._output.paging = self._settings["pager"] == "on"
        self._options.rows = int(self._settings["rows"])
        form = self._settings["format"]
        self._options.json = form == "json"
        self._options.form = None if form in ("default", "json") else form


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
    if ";" not in text or within_quotes(text):
        return False
    # Only a semicolon outside of all nesting separates the appended end mark.
    parts = lexer.split(f"{text}\n{_END}")
    return bool(parts) and parts[-1].home.strip() == _END


def within_quotes(text: str) -> bool:
    """Whether a text ends inside a string, a quoted name or a comment."""
    from louver.trusted.planner.sql import lexer

    if not text.strip():
        return False
    try:
        lexer.tokens(text)
    except errors.Error:
        return True
    last = lexer.split(f"{text}\n;{_END}")
    return bool(last) and last[-1].home.strip() != _END


def ends(text: str) -> bool:
    """Whether Enter runs what was typed: its last line is a command, or completes a statement."""
    before, _, last = text.rpartition("\n")
    word = last.strip()
    if word.startswith("\\") and not within_quotes(before):
        return True
    if fold(word.rstrip(";")) in _LEAVING and not within_quotes(before):
        return True
    return complete(text) or (not before.strip() and word.startswith(".") and word[1:2].isalpha())


def _of_word(word: str) -> str:
    return "\\?" if word == "help" else "\\q"


def _hint(word: str) -> str:
    """What to do instead of leaving in the middle of a statement."""
    if word == "help":
        return "Use \\? for help, or \\r to discard the statement that is being typed."
    return "A statement is being typed: end it with ;  or discard it with \\r. Use \\q to quit."


def _switched(word: str, now: bool) -> bool:
    if word and fold(word) not in ("on", "off"):
        raise errors.make("usage", detail=f"{word} is not on or off")
    return fold(word) == "on" if word else not now


def _unquoted(name: str) -> str:
    return name[1:-1] if len(name) > 1 and name[0] == name[-1] and name[0] in "'\"" else name
