"""Names of local data in the local engine: for good, or for as long as a statement needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from louver.names import fold
from louver.trusted.executor.local.local_engine import LocalEngine, translated


@contextmanager
def standing(
    home: LocalEngine, frames: Mapping[str, object], changed: Callable[[], None]
) -> Iterator[None]:
    """Give objects names meanwhile; ``changed`` is called when names mean something else."""
    before = dict(home.files.frames.known)
    try:
        for name, data in frames.items():
            known = before.get(fold(name))
            if known is None or known.data is not data:
                put(home, name, data)
                changed()
        yield
    finally:
        for name, data in frames.items():
            known = before.get(fold(name))
            if known is None:
                drop(home, name)
                changed()
            elif known.data is not data:
                put(home, known.name, known.data)
                changed()


def put(home: LocalEngine, name: str, data: object) -> None:
    """Give an object a name in both instances."""
    with translated():
        home.files.put((home.binder, home.workspace), name, data)
    home.forget_types()


def drop(home: LocalEngine, name: str) -> None:
    """Take a name away, if it is there."""
    if fold(name) in home.files.frames.known:
        home.files.drop((home.binder, home.workspace), name)
        home.forget_types()
