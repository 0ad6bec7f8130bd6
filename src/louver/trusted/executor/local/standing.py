"""Names of local data in the local engine: for good, or for as long as a statement needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from louver.names import fold
from louver.trusted.executor.local.engine import LocalEngine


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
                home.put_frame(name, data)
                changed()
        yield
    finally:
        for name, data in frames.items():
            known = before.get(fold(name))
            if known is None:
                home.drop_frame(name)
                changed()
            elif known.data is not data:
                home.put_frame(known.name, known.data)
                changed()
