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
    # --- its control tables: sealed catalog, ledger, epochs ---
    (
        "lake.race",
        "IntegrityError",
        "Another client wrote to the control tables of {place} at the same moment.",
        "Of two writers of the same row the first one wins.",
        "Run the statement again.",
    ),
    (
        "lake.busy",
        "OperationalError",
        "The control tables of {place} are held by another program.",
        "Writers wait for each other for {seconds} seconds and no longer; a client may hang, or "
        "a backup may be running.",
        "Find the program that has louver.sqlite open, and run the statement again.",
    ),
    (
        "lake.statement",
        "ProgrammingError",
        "The control tables of {place} refused a statement: {detail}.",
        "A table is missing, or was made by another release.",
        "Check that the warehouse is the right one; if it is, restore louver.sqlite from a backup.",
    ),
    # --- tables, snapshots and commits ---
    (
        "lake.format",
        "VerificationError",
        "{path} is not what Louver wrote there: {detail}.",
        "It was damaged, replaced or cut short after it was written, or never was Louver's.",
        "Do not use this copy of the data. Restore it from a backup.",
    ),
    (
        "lake.tampered",
        "VerificationError",
        "{path} does not bear this key's signature for the place where it lies: {detail}.",
        "Somebody altered it, put another one in its place, or the key file is another one.",
        "Do not use this copy of the data. Restore it from a backup, or give the right key file.",
    ),
    (
        "lake.rollback",
        "VerificationError",
        "The warehouse shows an older or another history of table {table}: "
        "version {found}, while {seen} was seen before.",
        "It was restored from a backup, or somebody shows an old state.",
        "If you restored it yourself, confirm that with `louver status --forget`; else do not "
        "use this copy.",
    ),
    (
        "lake.catalog",
        "ProgrammingError",
        "The warehouse {place} is an object store and names no catalog.",
        "Only a warehouse in a directory brings its own catalog.",
        "Name an Iceberg catalog, such as catalog=rest with its uri.",
    ),
    (
        "lake.kind",
        "ProgrammingError",
        "{kind} is no format of a lake.",
        "Tables of a lake are Iceberg's or DuckLake's.",
        "Leave format out for Iceberg, or say format=ducklake.",
    ),
    (
        "lake.ducklake",
        "ProgrammingError",
        "There can be no DuckLake at {place}: {detail}.",
        "Its catalog is an SQLite file beside its files, in a directory.",
        "Name a directory and no other properties than format=ducklake.",
    ),
    (
        "lake.table",
        "OperationalError",
        "There is no table {table} in the warehouse {place}.",
        "It was dropped, or the warehouse is another one.",
        "Check the location; if the table is missing there, restore the catalog from a backup.",
    ),
    (
        "lake.table.exists",
        "IntegrityError",
        "There is a table {table} in the warehouse {place} already.",
        "Ids of tables are given once; this one is left of a statement that was cut short.",
        "Run the statement again: it takes a fresh id.",
    ),
    (
        "lake.snapshot",
        "ProgrammingError",
        "Table {table} has no snapshot {snapshot}.",
        "It was never there, or it has expired.",
        "List the snapshots that there are, and name one of them.",
    ),
    (
        "lake.token",
        "ProgrammingError",
        "A token is for no index of table {table}.",
        "It was made for another table, or the table's index was never made.",
        "Make tokens with the key file and the catalog of this table.",
    ),
    (
        "lake.conflict",
        "OperationalError",
        "Somebody else changed table {table} at the same time.",
        "Two writers removed or rewrote the same file, or the table has keys, which were looked at "
        "before the other one wrote; this one came second and changed nothing.",
        "Run the statement again: it sees what the other one wrote.",
    ),
    (
        "lake.crowded",
        "OperationalError",
        "Table {table} could not be changed: others were first, {tries} times.",
        "Many writers commit to this table at the same time.",
        "Run the statement again, or write less often and more at a time.",
    ),
    (
        "lake.unsure",
        "OperationalError",
        "The catalog did not say whether a change of table {table} took place: {detail}.",
        "The connection failed while it answered.",
        "Read the table to see whether the change is there, before you run the statement again.",
    ),
    (
        "lake.hidden",
        "VerificationError",
        "The pruning service left out {count} files of table {table} that may hold wanted rows.",
        "Its answer is not what the signed list and its index give: it is at fault, or it lies.",
        "Do not use this service. SET lake_pruning = off reads every file without asking it.",
    ),
    # --- sessions ---
    (
        "lake.scheme",
        "ProgrammingError",
        "{table}.{column} cannot be USING {scheme}: the columns of a lake lie in encrypted files.",
        "A lake computes nothing; it only finds the files that a query needs.",
        "Leave USING out. MAY REVEAL size keeps a column out of the index.",
    ),
    (
        "lake.transaction",
        "OperationalError",
        "A transaction has changed more than one table of a lake: {tables}.",
        "Each table of an Iceberg catalog is committed by itself, so two could not change at once.",
        "Commit after each table's change. Nothing was changed.",
    ),
    (
        "lake.past",
        "OperationalError",
        "Tables cannot be changed while lake_snapshot is set to {snapshot}.",
        "What is past can be read only.",
        "RESET lake_snapshot first.",
    ),
    (
        "lake.only",
        "ProgrammingError",
        "{name} is for lakes, and {place} is none.",
        "The setting says how files are found and written.",
        "Connect to lake:///directory to use it.",
    ),
    (
        "lake.setting",
        "ProgrammingError",
        "The index setting {name} must be {allowed}.",
        "A table's index has a kind, a size, a hash, an encryption and a reading of NULL.",
        "Give one of the values named, or leave the setting out.",
    ),
    (
        "lake.source",
        "OperationalError",
        "The Iceberg table {source} cannot be taken over into {table}: {detail}.",
        "A table is taken over from one snapshot of one source, to its end; columns have the same "
        "names.",
        "Name the source's newest *.metadata.json, and take it over into a new table.",
    ),
    (
        "lake.type",
        "NotSupportedError",
        "Rows of {table} cannot be written to a file of a lake: {detail}.",
        "A column has a type that Parquet files do not hold.",
        "Give the column another type, such as VARCHAR.",
    ),
)
