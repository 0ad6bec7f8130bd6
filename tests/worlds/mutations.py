"""Faults put back into Louver, one at a time: each must be found.

A mutation takes out a check, or a measure, where all callers meet it. One that names what the code
does not hold is an error: it would find nothing for ever.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import sqlglot

from louver.trusted.executor.local.duckdb_statements import DuckDBStatements

_FLOW = "louver.trusted.executor.change.flow"


@contextmanager
def replaced(module: str, name: str, by: Any) -> Iterator[None]:
    """Put something in the place of a function, wherever it was imported to."""
    original = getattr(importlib.import_module(module), name)
    holders = [
        holder
        for module_name, holder in list(sys.modules.items())
        if module_name.startswith("louver.") and getattr(holder, name, None) is original
    ]
    for holder in holders:
        setattr(holder, name, by)
    try:
        yield
    finally:
        for holder in holders:
            setattr(holder, name, original)


@contextmanager
def nothing_is_refused() -> Iterator[None]:
    """No change and no declaration is asked what its values and rows depend on."""
    with (
        replaced(_FLOW, "require", lambda *_, **__: None),
        replaced(_FLOW, "require_insert", lambda *_, **__: None),
        replaced("louver.trusted.executor.schema.declarations", "require", lambda *_: None),
    ):
        yield


@contextmanager
def rows_are_shown() -> Iterator[None]:
    """Under `size`, just the rows are sent that a change touched."""
    sending = "louver.trusted.executor.row_writer"
    with nothing_is_refused(), replaced(sending, "hides_rows", lambda _: False):
        yield


@contextmanager
def rows_keep_their_order() -> Iterator[None]:
    """Rows of a change come as DuckDB holds them: what it moved stands at the end."""
    order = "louver.trusted.executor.send_order"
    with replaced(order, "mixed", lambda rows: rows.drop_columns(["louver_rank"])):
        yield


@contextmanager
def lengths_tell_nothing() -> Iterator[None]:
    """Rows are taken to be told apart by plain values alone, not by the lengths of texts."""
    with replaced("louver.trusted.vault.scheme", "tells_rows", lambda column: not column.encrypted):
        yield


@contextmanager
def lists_are_moved() -> Iterator[None]:
    """A change of a list is taken to show no row, and shows it at the end."""
    with lengths_tell_nothing(), rows_keep_their_order():
        yield


@contextmanager
def bounds_go_by_values() -> Iterator[None]:
    """Bounds are the smallest and the largest value, and a version of the catalog says so."""
    bounds = "louver.trusted.vault.bounds"
    with replaced(bounds, "_stepped", lambda _column, _limits, low, high: (low, high)):
        yield


@contextmanager
def comments_are_sent() -> Iterator[None]:
    """Trees keep comments, and the last look at a text lets them pass."""
    trees, lexer = "louver.trusted.planner.sql.trees", "louver.trusted.planner.sql.lexer"
    with (
        replaced(trees, "parse_all", lambda sql: sqlglot.parse(sql, dialect="duckdb")),
        replaced(lexer, "between", lambda *_: ""),
        replaced(lexer, "blanked", lambda comment: comment),
    ):
        yield


@contextmanager
def names_are_folded_by_python() -> Iterator[None]:
    """All letters are folded, not A to Z alone."""
    with replaced("louver.names", "fold", str.lower):
        yield


@contextmanager
def sequences_are_drawn_from() -> Iterator[None]:
    """Statements that read ENC columns draw numbers as others do."""
    with replaced("louver.trusted.planner.write.sequence_draws", "require", lambda *_: None):
        yield


@contextmanager
def arguments_carry_values() -> Iterator[None]:
    """EXECUTE computes its values and forgets what variables depended on."""
    statements = DuckDBStatements
    computed: Any = statements.exact_value
    with (
        replaced("louver.trusted.executor.prepared", "_reads_variable", lambda _: False),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(statements, "exact_value", lambda *given: (True, computed(*given)[1]))
        yield


@contextmanager
def variables_are_constants() -> Iterator[None]:
    """What a variable was set from is not noted."""
    variables: Any = importlib.import_module("louver.trusted.executor.variables")
    original = variables._keep
    with replaced(
        "louver.trusted.executor.variables", "_keep",
        lambda session, name, _, catalog=None: original(session, name, frozenset(), catalog),
    ):  # fmt: skip
        yield


@contextmanager
def temporary_rows_are_plain() -> Iterator[None]:
    """What a TEMP table was made from is not noted."""
    nothing = importlib.import_module("louver.trusted.planner.write.reads").NOTHING
    with replaced("louver.trusted.executor.define.temporary_tables", "_held", lambda _: nothing):
        yield


@contextmanager
def comments_stand_in_settings() -> Iterator[None]:
    """SET goes on as the user wrote it."""
    with replaced("louver.trusted.planner.sql.lexer", "without_comments", lambda sql: sql):
        yield


@dataclass(frozen=True, slots=True)
class Mutation:
    """A fault, and what has to be generated so that it shows soon."""

    name: str
    fault: Callable[[], Any]
    #: kinds of statements, and forms of a kind as "kind:form"; "read" for queries too, "noise"
    #: for comments
    focus: tuple[str, ...]
    profile: str = "sealed"


def _carried(name: str, *focus: str) -> Mutation:
    return Mutation(name, nothing_is_refused, ("values", *focus))


MUTATIONS = (
    _carried("copies carry values", "copy", "update"),
    _carried("conflicts carry values", "upsert", "merge"),
    _carried("* EXCLUDE carries values", "star copy", "star copy:exclude"),
    _carried("COLUMNS() carries values", "star copy", "star copy:columns"),
    _carried("* REPLACE carries values", "star copy", "star copy:replace"),
    _carried("attached tables carry values", "far"),
    _carried("codes of a higher ceiling carry values", "below", "read", "ordered", "plain"),
    _carried("lateral subqueries choose rows", "exotic", "exotic:lateral"),
    _carried("unnest repeats rows", "exotic", "exotic:unnest"),
    _carried("windows carry values", "exotic", "exotic:window"),
    _carried("macros carry values", "exotic", "exotic:macro", "macro", "macro:table"),
    _carried("pragma_table_info() is copied", "schema rows", "schema rows:pragma"),
    _carried("duckdb_constraints() is copied", "schema rows", "schema rows:constraints", "checked"),
    _carried("duckdb_views() is copied", "schema rows", "schema rows:views", "view"),
    _carried("DESCRIBE is copied", "schema rows", "schema rows:describe"),
    _carried("a view over the schema is copied", "schema rows", "schema rows:view", "schema view"),
    _carried("current_query() is copied", "schema rows", "schema rows:query"),
    _carried("a default is current_query()", "default", "default:query"),
    _carried("plain columns refer to keys", "referring"),
    _carried("columns are computed under a higher ceiling", "generated", "read", "ordered"),
    Mutation("size shows rows", rows_are_shown, ("values", "vault")),
    Mutation("updates of keys move rows", rows_keep_their_order,
             ("values", "vault", "vault:rekey", "unique")),
    Mutation("conflicts move rows", rows_keep_their_order, ("values", "upsert", "referring")),
    Mutation("updates of lists move rows", lists_are_moved,
             ("values", "vault", "vault:update", "listed")),
    Mutation("lengths tell what was deleted", lengths_tell_nothing,
             ("values", "vault", "vault:delete")),
    Mutation("lengths tell what was copied", lengths_tell_nothing,
             ("values", "vault", "vault:copy")),
    Mutation("bounds go by values", bounds_go_by_values, ("values",)),
    Mutation("comments are sent", comments_are_sent,
             ("values", "delete", "read", "plain", "noise")),
    Mutation("names of two tables", names_are_folded_by_python, ("values", "copy")),
    Mutation("names of two columns", names_are_folded_by_python, ("values", "copy", "alike")),
    Mutation("queries draw numbers", sequences_are_drawn_from,
             ("values", "read", "draws", "draws:chosen", "drawn", "drawn:values", "sequence")),
    Mutation("changes draw numbers", sequences_are_drawn_from,
             ("drawn", "drawn:values", "drawn:chosen", "sequence")),
    Mutation("variables carry values", variables_are_constants,
             ("values", "set variable", "kept write", "variables")),
    Mutation("variables draw numbers", sequences_are_drawn_from,
             ("values", "drawn", "drawn:values", "sequence", "set variable", "kept write",
              "kept write:draw")),
    Mutation("EXECUTE carries values", arguments_carry_values,
             ("values", "set variable", "prepare", "prepare:values", "execute", "plain",
              "variables")),
    Mutation("EXECUTE draws numbers", arguments_carry_values,
             ("drawn", "drawn:values", "sequence", "set variable", "prepare", "prepare:draw",
              "execute", "plain", "variables")),
    Mutation("TEMP tables carry values", temporary_rows_are_plain,
             ("values", "temp", "temp copy", "temp change")),
    Mutation("TEMP tables draw numbers", sequences_are_drawn_from,
             ("drawn", "drawn:values", "sequence", "temp", "temp copy", "temp copy:draw")),
    Mutation("settings carry comments", comments_stand_in_settings,
             ("values", "maintenance", "maintenance:set", "noise")),
)  # fmt: skip
