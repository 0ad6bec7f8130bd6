"""Leaks: which rows have the same value, and which are NULL, from the first row on.
Answers: = and IN, as filters whose rows are tested again locally.
Stored as: BIGINT: the first eight bytes of a keyed hash of the value.
Spec: this file.
Broken by: frequency analysis (Naveed, Kamara, Wright, CCS 2015).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.exact_values import Exact, exact
from louver.trusted.vault.key_source import KeySource
from louver.trusted.vault.protection import Protection
from louver.trusted.vault.scheme import Answer, Leak, Representation, Scheme
from louver.trusted.vault.stored_types import CODE
from louver.trusted.vault.types import code_domain
from louver.wire.messages import Constant


def _applies(_: Column, protection: Protection) -> Sequence[str]:
    return ("toy",) if protection.scheme == "toy" else ()


def _takes(type_: str) -> bool:
    return code_domain(type_) in ("int", "text", "date")


_FILTER = Answer(leak="toy.asked", exact=False)
SCHEME = Scheme(
    name="toy",
    stored_as="a tag of 8 bytes",
    spec="tests/toy/scheme.py",
    ceiling="equality",
    at_rest=Leak(
        "equality",
        "toy.rest",
        "the server can tell by their tags which rows of {table} have the same {column}",
        "frequency analysis: Naveed, Kamara and Wright, CCS 2015",
    ),
    lengths=None,
    operations={
        "A = u, A IN (…)": Leak(
            "equality",
            "toy.asked",
            "the server can tell which tags of {column} in {table} were asked for",
            "frequency analysis, of questions",
            counted=True,
        ),
    },
    broken_by="frequency analysis: Naveed, Kamara and Wright, CCS 2015",
    representations=(Representation("toy", "y", lambda _: CODE),),
    applies=_applies,
    answers={"=": _FILTER, "IN": _FILTER},
    using=True,
    takes=_takes,
)


def seal(
    keys: KeySource, table: Table, column: Column, values: pa.Array, row_ids: pa.Array
) -> dict[str, pa.Array]:
    """A tag for every value; NULL stays NULL."""
    domain = code_domain(column.type) or ""
    exacts = [exact(values.slice(number, 1), domain) for number in range(len(values))]
    tags = [None if exact is None else _tag(keys, table, column, exact) for exact in exacts]
    return {"toy": pa.array(tags, pa.int64())}


def encode(keys: KeySource, table: Table, column: Column, value: Exact, sign: str) -> Constant:
    """The tag of a constant."""
    return _tag(keys, table, column, value)


def _tag(keys: KeySource, table: Table, column: Column, value: Exact) -> int:
    context = f"{table.id}.{column.id}.{column.generation}"
    digest = keys.keyring.mac("toy", f"{context} {value!r}".encode())
    return int.from_bytes(digest[:8], "big", signed=True)
