"""Start and end of the process of one command, which most often does a few milliseconds of work.

Three things cost more than that work. DuckDB imports pandas when the first value is bound or the
first Arrow table is registered, only to find out that neither is a DataFrame. The garbage collector
visits every object that imports create, and none of them is garbage. The interpreter takes its
modules apart when it ends. A process of the command line avoids all three; a program that calls
`cli.main` with arguments is left alone.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import NoReturn

#: What DuckDB looks for on its own; no command reads or gives a DataFrame.
_DATA_FRAMES = ("pandas", "polars")


class _Hidden:
    """A finder that reports packages as not installed."""

    @staticmethod
    def find_spec(name: str, *_: Sequence[str] | ModuleType | None) -> ModuleSpec | None:
        """Raise for a hidden package; leave the others to the next finder."""
        if name in _DATA_FRAMES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def hide_data_frames() -> None:
    """Let DuckDB find no package of DataFrames in this process."""
    sys.meta_path.insert(0, _Hidden)


@contextmanager
def without_collection() -> Iterator[None]:
    """Import without garbage collection; what exists afterwards is not visited again."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def leave(code: int) -> NoReturn:
    """End the process: run what was registered for its end, flush, and exit at once."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        # A reader that closed the pipe has its exit code already.
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
