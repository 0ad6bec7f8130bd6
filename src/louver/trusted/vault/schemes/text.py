"""Leaks: at rest the number of values; a search shows which rows have one of its words or pieces.
Answers: LIKE, whole words, prefixes, as filters whose result is tested again locally.
Stored as: BLOB: a salted filter of the keyed tokens of each text.
Spec: spec/text.md.
Broken by: attacks on searches by count (Cash, Grubbs, Perry, Ristenpart, CCS 2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from louver.trusted.vault import native
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.exact_values import Exact
from louver.trusted.vault.key_source import KeySource
from louver.trusted.vault.protection import ONION, SEALED, Protection
from louver.trusted.vault.scheme import word
from louver.trusted.vault.scheme_row import Answer, Entry, Leak, Representation, Scheme, in_bytes
from louver.wire.messages import Constant


def _applies(column: Column, protection: Protection) -> Sequence[str]:
    wanted = word(protection, "text") and protection.bundled("equality")
    return ("text",) if wanted and _takes(column.type) else ()


def _takes(type_: str) -> bool:
    return type_ == "VARCHAR"


SCHEME = Scheme(
    name="text",
    stored_as="a filter of keyed words, prefixes and pieces per row, salted by the row",
    spec="spec/text.md",
    ceiling="equality",
    at_rest=Leak(
        "size",
        "text.rest",
        "the server knows how many searchable texts of {column} in {table} there are",
    ),
    lengths=Leak(
        "size",
        "text.lengths",
        "the server knows roughly how many words each value of {column} in {table} has",
        "guessing by the number of words, where it differs much",
    ),
    operations={
        "A LIKE u": Leak(
            "equality",
            "text.match",
            "the server can tell which rows of {table} have a word or piece in {column} that was"
            " asked for",
            "counting matches: Cash, Grubbs, Perry and Ristenpart, CCS 2015",
            counted=True,
        ),
    },
    broken_by="counting matches against known texts: Cash et al., CCS 2015",
    representations=(Representation("text", "t", in_bytes),),
    applies=_applies,
    answers={"LIKE": Answer(leak="text.match", operation="text_match", by_row=True, exact=False)},
    functions=("text_match",),
    takes=_takes,
    # Onions are searchable by themselves.
    policy=Entry(
        "text",
        (False, True),
        bundles={ONION: True},
        says=lambda column: True if column.scheme == SEALED else None,
    ),
)


def step(table: Table, column: Column) -> Any:
    """A filter of every text's tokens."""
    return native.module().recipe.text_step((table.id, column.id, column.generation))


def encode(keys: KeySource, table: Table, column: Column, value: Exact, sign: str) -> Constant:
    """The tokens of a pattern."""
    identity = (table.id, column.id, column.generation)
    return keys.keyring.text_tokens(*identity, sign, str(value))
