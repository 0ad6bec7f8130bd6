"""Faults put back into Louver, one at a time: each must be found.

A mutation takes out a check where all callers meet it. What the code does not hold (any more, or
yet) is left alone; a test that then finds nothing says so.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import sqlglot

_FLOW = "louver.trusted.runtime.modify.flow"


@contextmanager
def replaced(module: str, name: str, by: Any) -> Iterator[None]:
    """Put something in the place of a function, wherever it was imported to."""
    try:
        original = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        yield
        return
    holders = [
        found
        for place, found in list(sys.modules.items())
        if place.startswith("louver.") and getattr(found, name, None) is original
    ]
    for found in holders:
        setattr(found, name, by)
    try:
        yield
    finally:
        for found in holders:
            setattr(found, name, original)


@contextmanager
def nothing_is_refused() -> Iterator[None]:
    """No change is asked what its values and rows depend on."""
    flow = importlib.import_module(_FLOW)
    with ExitStack() as stack:
        for name in dir(flow):
            if name.startswith("require"):
                stack.enter_context(replaced(_FLOW, name, lambda *_, **__: None))
        yield


@contextmanager
def rows_are_shown() -> Iterator[None]:
    """Under `size`, just the rows are sent that a change touched."""
    sending = "louver.trusted.runtime.modify.sending"
    with nothing_is_refused(), replaced(sending, "hides_rows", lambda _: False):
        yield


@contextmanager
def comments_are_sent() -> Iterator[None]:
    """Trees keep comments, and the last look at a text lets them pass."""
    trees, lexer = "louver.trusted.planner.trees", "louver.trusted.planner.lexer"
    with (
        replaced(trees, "parse_all", lambda sql: sqlglot.parse(sql, dialect="duckdb")),
        replaced(lexer, "between", lambda *_: ""),
    ):
        yield


@contextmanager
def names_are_folded_by_python() -> Iterator[None]:
    """All letters are folded, not A to Z alone."""
    names = "louver.trusted.vault.names"
    with (
        replaced(names, "fold", str.lower),
        replaced(names, "same", lambda one, other: one.lower() == other.lower()),
    ):
        yield


@dataclass(frozen=True, slots=True)
class Mutation:
    """A fault, and what has to be generated so that it shows soon."""

    name: str
    fault: Callable[[], Any]
    #: kinds of writes; "noise" for comments too
    focus: tuple[str, ...]
    profile: str = "sealed"


MUTATIONS = (
    Mutation("stars carry values", nothing_is_refused, ("values", "star_copy")),
    Mutation("copies carry values", nothing_is_refused, ("values", "copy", "update")),
    Mutation("rows depend on values", nothing_is_refused, ("values", "exotic")),
    Mutation("schemas are copied", nothing_is_refused, ("values", "schema_rows")),
    Mutation("conflicts carry values", nothing_is_refused, ("values", "upsert", "merge")),
    Mutation("size shows rows", rows_are_shown, ("values", "vault")),
    Mutation("comments are sent", comments_are_sent, ("values", "delete", "noise")),
    Mutation("names of two tables", names_are_folded_by_python, ("values", "copy")),
)
