"""Errors of lakes: files in a warehouse, snapshots, indexes, the pruning service."""

from __future__ import annotations

from louver.error_table.row import Row

ROWS: tuple[Row, ...] = (
    # --- files of a warehouse ---
    (
        "lake.path",
        "OperationalError",
        "{path} is not the path of a file inside the warehouse {place}.",
        "Paths are relative to the warehouse, have no .. in them and follow no link.",
        "Do not trust who named this path: nothing that Louver writes has one like it.",
    ),
    (
        "lake.missing",
        "OperationalError",
        "There is no file {path} in the warehouse {place}.",
        "It was deleted: with the snapshot that it belongs to, or by somebody with access.",
        "Read the current snapshot; if the file is missing there, restore it from a backup.",
    ),
    (
        "lake.exists",
        "IntegrityError",
        "The file {path} exists already in the warehouse {place} and is left as it is.",
        "Files of a lake are written once, under a name that nobody else has.",
        "Run the statement again: it takes a fresh name.",
    ),
    (
        "lake.short",
        "VerificationError",
        "The file {path} in the warehouse {place} ends before the bytes that it should have.",
        "It was cut short or replaced after it was written.",
        "Do not use this copy of the data. Restore it from a backup.",
    ),
    (
        "lake.io",
        "OperationalError",
        "The warehouse {place} could not be read or written: {detail}.",
        "The operating system or the object store refused; nothing was half done.",
        "Check the path, its owner, the credentials and the medium, and try again.",
    ),
)
