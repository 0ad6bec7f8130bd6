"""Loading and reloading of data while questions are answered."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from louver import errors
from louver.untrusted.providers.dataset import Interruption, LoadedData, Told, load
from louver.untrusted.providers.folder import Folder
from louver.untrusted.providers.sources import signature
from louver.untrusted.providers.versions import Answering, Versions

#: A quicker load is not reported; the interval between reports.
_PATIENCE_SECONDS = 1.0
_TELL_SECONDS = 0.5
_SWEEP_SECONDS = 1.0
_TRIES = 3

Make = Callable[[LoadedData], Answering]


class Talk:
    """The provider's output: JSON lines to stdout, or text to stderr."""

    def __init__(self, *, as_json: bool) -> None:
        """Without JSON, progress is shown on a terminal only."""
        self._as_json = as_json
        self._terminal = sys.stderr.isatty()
        self._lock = threading.Lock()
        self._line = 0

    def event(self, words: str, **fields: object) -> None:
        """Report an event."""
        if self._as_json:
            self._json({"ok": True, **fields})
            return
        with self._lock:
            self._clear()
            sys.stderr.write(f"{printable(words)}\n")
            sys.stderr.flush()

    def failure(self, words: str, error: errors.Error, **fields: object) -> None:
        """Report a failure after which the provider continues."""
        if self._as_json:
            self._json({**error.as_dict(), **fields})
        else:
            self.event(f"{words}: {error}")

    def progress(self) -> Told:
        """A progress callback for one load, which reports if it takes long."""
        begin = shown = time.monotonic()

        def report(stage: str, share: float) -> None:
            nonlocal shown
            now = time.monotonic()
            if now - begin < _PATIENCE_SECONDS or now - shown < _TELL_SECONDS:
                return
            shown = now
            if self._as_json:
                self._json(
                    {"ok": True, "event": "progress", "stage": stage, "share": round(share, 3)}
                )
            elif self._terminal:
                with self._lock:
                    line = f"{printable(stage)} … {share:.0%}"
                    sys.stderr.write("\r" + line.ljust(self._line))
                    sys.stderr.flush()
                    self._line = len(line)

        return report

    def _clear(self) -> None:
        if self._line:
            sys.stderr.write("\r" + " " * self._line + "\r")
            self._line = 0

    def _json(self, fields: dict[str, object]) -> None:
        with self._lock:
            sys.stdout.write(json.dumps(fields) + "\n")
            sys.stdout.flush()


class Keeper:
    """Keeps the newest data loaded; one thread at a time works here."""

    def __init__(
        self, data: Sequence[str], folder: Folder, versions: Versions, make: Make, talk: Talk,
        threads: int,
    ) -> None:  # fmt: skip
        """`make` opens the provider of one version."""
        self._data = tuple(data)
        self._folder = folder
        self._versions = versions
        self._make = make
        self._talk = talk
        self._threads = threads
        self._interruption = Interruption()
        self._loaded: object = None
        self.requested = asyncio.Event()

    def first(self) -> None:
        """Load for the first time; errors are raised."""
        self._load()

    def again(self) -> None:
        """Load again; errors are reported, and the older version remains in service."""
        try:
            changed = self._load()
        except errors.Error as error:
            if error.code != "interrupted":
                self._talk.failure("the data was not loaded again", error, event="reload")
            return
        except Exception as error:  # noqa: BLE001 - a provider outlives a failed load
            failed = errors.make("internal", detail=type(error).__name__)
            self._talk.failure("the data was not loaded again", failed, event="reload")
            return
        said = "loaded again" if changed else "loaded again: nothing has changed"
        self._talk.event(said, event="reloaded", changed=changed, **facts(self._versions))

    def end(self) -> None:
        """End a current load; from any thread."""
        self._interruption.end()

    async def run(self, watch_seconds: float | None) -> None:
        """Reload on request or when a file has changed; remove expired versions."""
        loop = asyncio.get_running_loop()
        looked = loop.time()
        before = self._loaded
        while True:
            wait = min(_SWEEP_SECONDS, watch_seconds or _SWEEP_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.requested.wait(), wait)
            due = self.requested.is_set()
            self.requested.clear()
            if watch_seconds is not None and loop.time() - looked >= watch_seconds:
                looked = loop.time()
                now = await asyncio.to_thread(self._signature)
                # A file that is still being written differs at each check.
                due = due or (now is not None and now == before and now != self._loaded)
                before = now
            if due:
                await asyncio.to_thread(self.again)
            # What cannot be removed now is removed with the folder.
            with suppress(Exception):
                await asyncio.to_thread(self._versions.sweep)

    def _load(self) -> bool:
        progress = self._talk.progress()
        for left in reversed(range(_TRIES)):
            self._loaded = self._signature()
            try:
                loaded = load(
                    self._data, self._folder.path, progress, threads=self._threads,
                    interruption=self._interruption,
                )  # fmt: skip
            except errors.Error as error:
                if not left or "changed while" not in error.detail:
                    raise
                continue
            return self._versions.install(loaded, self._make)
        raise AssertionError

    def _signature(self) -> object:
        try:
            return signature(self._data)
        except errors.Error:
            return None


def printable(words: str) -> str:
    """Text safe for a terminal: errors name files, and repeat their content."""
    return "".join(word if word.isprintable() or word == "\n" else "?" for word in words)


def facts(versions: Versions) -> dict[str, object]:
    """The reported facts about the data in service."""
    dataset = versions.describe()
    return {
        "version": dataset.versions[0].hex(),
        "tables": {table.name: table.rows for table in dataset.tables},
    }
