"""Leaks: nothing at rest but the number of values; once its layer is open, which rows have the same
value, and which are NULL; once it is open for joins, also which values of two columns are equal.
Answers: = <> IN, IS NULL, DISTINCT, GROUP BY, COUNT(DISTINCT), equi-joins within a join group.
Stored as: BIGINT or UUID: a permutation of the value, under a pad of the row while it is closed.
Spec: spec/eq.md.
Broken by: frequency analysis (Naveed, Kamara, Wright, CCS 2015) once it is open.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from louver.trusted.vault import native as compiled
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.exact_values import Exact, among, in_domain, native
from louver.trusted.vault.key_source import KeySource
from louver.trusted.vault.keyring import KeyRing
from louver.trusted.vault.protection import Protection
from louver.trusted.vault.scheme_row import (
    FREQUENCY,
    TOGETHER,
    Answer,
    Layer,
    Leak,
    Representation,
    Scheme,
)
from louver.trusted.vault.stored_types import CODE, WIDE_CODE
from louver.trusted.vault.types import code_domain, code_width, value_range
from louver.wire.messages import Constant

_OPEN = Leak(
    "equality",
    "eq.open",
    "the server can tell which rows of {table} have the same {column}{nulls}",
    FREQUENCY,
)
# No two rows are alike, but a value that is asked for or stored again is known again.
_UNIQUE = Leak(
    "equality",
    "eq.open/unique",
    "the server can tell that all values of {column} in {table} differ, and knows each of them"
    " again{nulls}",
    FREQUENCY,
)
_JOIN = Leak(
    "equality",
    "eq.join",
    "the server can tell which values of {pair} are equal",
    f"{FREQUENCY}, {TOGETHER}",
)
_MET = Leak(
    "equality",
    "eq.met",
    "the server can tell which rows of {table} have in {column} a value that {other} of {target}"
    " had when it was read",
    f"{FREQUENCY}, {TOGETHER}",
)
_NATIVE = Answer(opens="det")


def _applies(column: Column, protection: Protection) -> Sequence[str]:
    return ("eq",) if protection.bundled("equality") and code_domain(column.type) else ()


def _stored_type(column: Column) -> str:
    return WIDE_CODE if _is_wide(column.type) else CODE


def _is_wide(type_: str) -> bool:
    return code_width(code_domain(type_) or "") == 16


SCHEME = Scheme(
    name="eq",
    stored_as="an equality code of 8 or 16 bytes, under a pad per row until a query opens it",
    spec="spec/eq.md",
    ceiling="equality",
    at_rest=Leak(
        "size",
        "eq.rest",
        "the server knows how many equality codes of {column} in {table} there are",
    ),
    lengths=None,
    operations={
        "A = u, A <> u, A IN (…)": _OPEN,
        "IS NULL": _OPEN,
        "DISTINCT, GROUP BY, COUNT(DISTINCT)": _OPEN,
        "A = B of one join group": _JOIN,
        "A = B, by values of B that were read first": _MET,
        "all of these, of a UNIQUE column": _UNIQUE,
    },
    broken_by="frequency analysis once open: Naveed, Kamara and Wright, CCS 2015",
    representations=(Representation("eq", "q", _stored_type),),
    applies=_applies,
    answers={
        "=": Answer(opens="det", pairs="join"),
        "<>": Answer(opens="det", pairs="join"),
        **dict.fromkeys(("IN", "IS NULL", "COUNT", "DISTINCT", "GROUP BY"), _NATIVE),
    },
    layers=(
        Layer("closed", "closed", "size"),
        Layer("det", "equality", "equality"),
        Layer("join", "join", "equality", joins=True),
    ),
    opened=_OPEN,
    opened_unique=_UNIQUE,
    paired=_JOIN,
)


def step(table: Table, column: Column) -> Any:
    """Codes under the layers that are still there."""
    identity, domain = (table.id, column.id, column.generation), code_domain(column.type) or ""
    state = column.layers.get("eq", "closed")
    return compiled.module().recipe.eq_step(
        identity, column.group, domain, state == "join", state == "closed"
    )


def constant_step(table: Table, column: Column) -> tuple[tuple[int, int, int], str, str, bool]:
    """What `codes` are made by."""
    identity, domain = (table.id, column.id, column.generation), code_domain(column.type) or ""
    return identity, column.group, domain, column.layers.get("eq") == "join"


def codes(keys: KeyRing, table: Table, column: Column, values: pa.Array) -> pa.Array:
    """Codes without the outermost layer; NULL for NULL."""
    domain = code_domain(column.type) or ""
    if column.layers.get("eq") == "join":
        return keys.eq_join_codes(column.group, domain, values)
    return keys.eq_codes(table.id, column.id, column.generation, column.group, domain, values)


def key_codes(keys: KeySource, table: Table, column: Column, values: pa.Array) -> pa.Array:
    """The codes of values of other columns, by which rows that have them are asked for."""
    return codes(keys.keyring, table, column, values)


def matches(
    keys: KeySource,
    table: Table,
    columns: Sequence[Column],
    values: Sequence[pa.Array],
    constants: Sequence[Constant],
) -> pa.Array:
    """Whether values have the code of one of the constants; no for NULL."""
    (column,), (bare,) = columns, values
    return among(codes(keys.keyring, table, column, bare), constants)


def encode(keys: KeySource, table: Table, column: Column, value: Exact, sign: str) -> Constant:
    """The code of a constant; of a value that the column cannot hold, the code that none has."""
    domain = code_domain(column.type) or ""
    array = in_domain(value, domain)
    if array is None and domain == "int":
        array = _outside(column.type)
    if array is None:
        wide = _is_wide(column.type) or isinstance(value, str | bytes)
        return str(uuid.UUID(int=0)) if wide else 0
    return native(codes(keys.keyring, table, column, array))


def _outside(type_: str) -> pa.Array | None:
    """A random number that no value of an integer type is: its code looks like any other's."""
    limits = value_range(type_)
    if limits is None or limits[1] >= 1 << 62:
        return None
    return pa.array([limits[1] + 1 + secrets.randbelow(1 << 61)], pa.int64())
