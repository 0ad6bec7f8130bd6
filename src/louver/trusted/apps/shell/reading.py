"""Reading lines: with editing, completion and history on a terminal, else plainly."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Protocol

from louver.trusted.vault.catalog import Catalog

PROMPT = "louver> "
CONTINUATION = "      > "


class Reader(Protocol):
    """What a shell reads from."""

    def read(self, pending: str) -> str:
        """The next lines; raises EOFError at the end and KeyboardInterrupt after Ctrl-C."""
        ...

    def ask(self, question: str) -> str:
        """The answer to a question."""
        ...

    def remember(self, mode: str) -> None:
        """Change what the history file stores."""


class PlainReader:
    """Lines without editing, for terminals that have none."""

    def read(self, pending: str) -> str:
        """The next line."""
        return input(CONTINUATION if pending else PROMPT)

    def ask(self, question: str) -> str:
        """The answer to a question."""
        return input(question)

    def remember(self, mode: str) -> None:
        """There is no history file."""


class EditingReader:
    """A prompt with several lines, completion, search and a history file."""

    def __init__(self, catalog: Callable[[], Catalog], ends: Callable[[str], bool]) -> None:
        # Imported here: only a terminal needs them.
        from prompt_toolkit import PromptSession
        from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
        from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

        from louver.trusted.apps.shell.completion import Names
        from louver.trusted.apps.shell.history import MaskedHistory, path

        bindings = KeyBindings()

        @bindings.add("enter")
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if ends(buffer.text):
                buffer.validate_and_handle()
            else:
                buffer.insert_text("\n")

        self._history = MaskedHistory(path(), catalog)
        self._session: PromptSession[str] = PromptSession(
            message=PROMPT,
            multiline=True,
            prompt_continuation=CONTINUATION,
            history=self._history,
            completer=Names(catalog),
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            key_bindings=bindings,
            enable_history_search=False,
        )

    def read(self, pending: str) -> str:
        """The next statement or command; what is pending can be edited further."""
        return self._session.prompt(default=f"{pending}\n" if pending else "")

    def ask(self, question: str) -> str:
        """The answer to a question; it is not remembered."""
        from prompt_toolkit import prompt

        return prompt(question)

    def remember(self, mode: str) -> None:
        """Change what the history file stores."""
        self._history.mode = mode


def edits() -> bool:
    """Whether stdin and stdout are a terminal that can move its cursor."""
    dumb = os.environ.get("TERM", "dumb") == "dumb"
    return sys.stdin.isatty() and sys.stdout.isatty() and not dumb


def reader(catalog: Callable[[], Catalog], ends: Callable[[str], bool]) -> Reader:
    """The reader that fits the terminal."""
    return EditingReader(catalog, ends) if edits() else PlainReader()
