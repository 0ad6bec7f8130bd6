"""The next item of an iterator, made while the one before is used."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, none of which is None, made by a thread of their own, one ahead."""
    context = copy_context()

    def make() -> T | None:
        return context.run(next, items, None)

    with closed(items), ThreadPoolExecutor(1, "louver-ahead") as thread:
        following = thread.submit(make)
        while (item := following.result()) is not None:
            following = thread.submit(make)
            yield item


@contextmanager
def closed(items: Iterator[object]) -> Iterator[None]:
    """Close an iterator at the end, if it is one that can be."""
    try:
        yield
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()
