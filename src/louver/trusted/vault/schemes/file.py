"""Leaks: how many files a table has, their sizes, the rows of each, when each was written; a query
shows which files and which of their columns it fetched.
Answers: reading; changes rewrite whole files.
Stored as: Parquet files under modular encryption, a data key each, bound to table and file.
Spec: spec/lake.md.
Broken by: nothing known; sizes of files tell how well their columns compress.
"""

from __future__ import annotations

from collections.abc import Sequence

from louver.trusted.vault.catalog import Column
from louver.trusted.vault.protection import FILES, Protection
from louver.trusted.vault.scheme_row import (
    BY_FILE,
    VOLUMES_OF_FILES,
    Leak,
    Representation,
    Scheme,
    in_bytes,
)


def _applies(_: Column, protection: Protection) -> Sequence[str]:
    return ("file",) if protection.scheme == FILES else ()


SCHEME = Scheme(
    name="file",
    stored_as="encrypted Parquet files, with a data key each",
    spec="spec/lake.md",
    ceiling="size",
    at_rest=Leak(
        "size",
        "file.rest",
        "the server knows how many files, columns and rows {table} has, how large the files are,"
        " and when each was written",
    ),
    lengths=Leak(
        "size",
        "file.lengths",
        "the server knows how many bytes {column} takes in each file of {table} that is read",
        "guessing by size, where columns compress very differently",
    ),
    operations={
        "reading some of the files": Leak(
            "access",
            "files",
            "the server can tell which files of {table} a query read ({column})",
            VOLUMES_OF_FILES,
            counted=True,
        ),
    },
    broken_by="nothing known; sizes of files tell how well columns compress",
    representations=(Representation("file", "", in_bytes),),
    applies=_applies,
    answers={},
    reading=BY_FILE,
)
