"""Leaks: nothing at rest but the number of files; a token shows which files meet a range, which of
them in the same part of it (a dyadic interval), that it was asked before, and the bits it opens.
Answers: ranges: = < <= > >= BETWEEN IN, LIKE 'abc%', keys of joined tables, as a choice of files.
Stored as: encrypted Bloom filters of interval-tree nodes, one a file and column.
Spec: spec/eds.md.
Broken by: who sees many tokens and knows the queries narrows down the files' ranges.
"""

from __future__ import annotations

from collections.abc import Sequence

from louver.trusted.vault.catalog import Column
from louver.trusted.vault.index_keys import mappable
from louver.trusted.vault.levels import allows
from louver.trusted.vault.protection import FILES, Protection
from louver.trusted.vault.scheme_row import (
    VOLUMES_OF_FILES,
    Answer,
    Leak,
    Representation,
    Scheme,
    in_bytes,
)
from louver.trusted.vault.types import code_domain


def _applies(column: Column, protection: Protection) -> Sequence[str]:
    """A column of a lake that may be asked for by ranges."""
    if protection.scheme != FILES or not allows(protection.ceiling, "access"):
        return ()
    return ("eds",) if code_domain(column.type) and mappable(column.type) else ()


SCHEME = Scheme(
    name="eds",
    stored_as="an encrypted Bloom filter a file: the tree nodes above its least and greatest value",
    spec="spec/eds.md",
    ceiling="access",
    at_rest=Leak(
        "size",
        "eds.rest",
        "the server knows how many columns of {table} have an index",
    ),
    lengths=None,
    operations={
        "A = u, A < u, A BETWEEN u AND v, A IN (…), A LIKE 'u%'": Leak(
            "access",
            "eds.range",
            "the server can tell which files of {table} hold a value in a range of {column} that"
            " was asked for",
            VOLUMES_OF_FILES,
        ),
        "A = B of a table that is read first": Leak(
            "access",
            "eds.probe",
            "the server can tell which files of {table} may hold {column} of rows of {source} that"
            " a query read",
            VOLUMES_OF_FILES,
        ),
        "each token of either": Leak(
            "access",
            "eds.token",
            "the server can tell which files of {table} meet token {token} of {column}, which of"
            " them meet it in the same part of its range, and when it is asked again (values"
            " {values})",
            VOLUMES_OF_FILES,
        ),
    },
    broken_by="many tokens of known queries narrow down the range of each file",
    representations=(Representation("eds", "", in_bytes),),
    applies=_applies,
    answers={"RANGE": Answer(leak="eds.range", exact=False, tokens="eds.token", keys="eds.probe")},
)
