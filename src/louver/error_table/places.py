"""Errors of key files, databases, catalog and ledger, and of what servers return."""

from __future__ import annotations

from louver.error_table.row import Row

ROWS: tuple[Row, ...] = (
    # --- the key file ---
    (
        "key.unset",
        "KeyFileError",
        "No key file was given.",
        "A connection needs the key file of its database; there is no default.",
        'Pass keys="my.louverkey" (on the command line --keys FILE or LOUVER_KEYS), '
        "or make a new one with `louver key new FILE`.",
    ),
    (
        "key.missing",
        "KeyFileError",
        "There is no key file at {path}.",
        "The path is wrong, or the key file has not been made yet.",
        "Check the path, or make a key file with `louver key new {path}`.",
    ),
    (
        "key.text",
        "KeyFileError",
        "An argument holds a key itself; a key is read from its file only.",
        "The text LOUVER-KEY-… stands where the path of a key file, a URL or another argument "
        "belongs.",
        "Give the path of the key file; if others may have seen the key, in the history of a "
        "shell for one, move to a new key.",
    ),
    (
        "key.mode",
        "KeyFileError",
        "The key file {path} can be read by others (mode {mode}).",
        "Anyone who reads the key file can open all data, so looser modes than 0600 are refused.",
        "Run `chmod 600 {path}`; if others may have read it already, move to a new key.",
    ),
    (
        "key.format",
        "KeyFileError",
        "{path} is not a key file of Louver: {detail}.",
        "The file is of another kind, or its key line was cut or edited.",
        "Give the file that `louver key new` made, or restore it from your backup.",
    ),
    (
        "key.checksum",
        "KeyFileError",
        "The key line of {path} is damaged: its checksum does not fit.",
        "A character of the key line was changed, added or lost.",
        "Restore the key file from your backup; a damaged key opens nothing.",
    ),
    (
        "key.exists",
        "KeyFileError",
        "{path} exists already and is left as it is.",
        "Writing over a key file would make the data that it protects unreadable for ever.",
        "Choose another name for the new key file.",
    ),
    (
        "key.io",
        "KeyFileError",
        "The key file {path} could not be read or written: {detail}.",
        "The operating system refused access to the file or its folder.",
        "Check the path, its owner and the free space.",
    ),
    (
        "key.wrong",
        "KeyFileError",
        "The key file with id {key_id} does not open this database.",
        "The database was encrypted under another key file.",
        "Give the key file with which the database was made; `louver key show FILE` prints ids.",
    ),
    # --- where the data lies ---
    (
        "url.scheme",
        "InterfaceError",
        "A database URL cannot begin with {scheme}.",
        "The part before :// names the kind of machine out there, and this kind is unknown.",
        "Use duckdb:///file, lake:///folder, lake+https://host or providers://a:7001,b:7001.",
    ),
    (
        "url.unsupported",
        "NotSupportedError",
        "This release cannot connect to {scheme} databases.",
        "The kind is known, but its engine is not part of this release.",
        "Use duckdb:///file, or a release that has the engine.",
    ),
    (
        "url.format",
        "InterfaceError",
        "The database URL cannot be read: {detail}.",
        "Something is missing in the URL or stands in the wrong place.",
        "Write duckdb:///relative/file or duckdb:////absolute/file, lake:///folder, "
        "lake+https://host:port or providers://a:7001,b:7001.",
    ),
    # --- engines ---
    (
        "engine.type",
        "NotSupportedError",
        "{engine} has no column type that holds {type} without a loss.",
        "A plain column is stored as it is, so the engine must have its type.",
        "Declare the column ENC: sealed values are bytes, which every engine stores.",
    ),
    (
        "engine.schema",
        "NotSupportedError",
        "{engine} has no schemas, so there is no place for {schema}.",
        "Tables of an engine without schemas are in the schema main.",
        "Create the table in the schema main.",
    ),
    (
        "engine.operation",
        "NotSupportedError",
        "{engine} does not compute {operation}.",
        "The declaration asks for something that works only where the server runs this operation.",
        "Leave it out of the declaration, or use an engine that computes it.",
    ),
    (
        "profile.unknown",
        "InterfaceError",
        "There is no profile {profile}.",
        "A profile says what a bare ENC means; the names are {known}.",
        "Use one of {known}.",
    ),
    (
        "database.locked",
        "OperationalError",
        "The database {place} is in use by another program.",
        "An embedded DuckDB file can be open for writing in one process at a time.",
        "Close the other connection and try again.",
    ),
    (
        "database.io",
        "OperationalError",
        "The database {place} could not be read or written: {detail}.",
        "The operating system or the database refused; nothing was changed.",
        "Check the path, its owner and the medium, and try again.",
    ),
    (
        "database.closed",
        "InterfaceError",
        "The connection to the database is closed.",
        "The engine was closed while a statement still wanted to use it.",
        "Open a new connection with louver.connect().",
    ),
    (
        "connection.closed",
        "InterfaceError",
        "The connection is closed.",
        "close() was called, or a with block has ended.",
        "Open a new connection with louver.connect().",
    ),
    (
        "disk.full",
        "OperationalError",
        "No space is left for {place}; the statement was undone.",
        "The file system is full, or a quota is reached.",
        "Free some space and run the statement again.",
    ),
    # --- catalog and ledger, which lie beside the data ---
    (
        "catalog.gone",
        "CatalogError",
        "The database {place} was here before, and now there is none.",
        "The file was deleted, or another place is meant.",
        "Restore it from a backup; if you deleted it yourself, run `louver status --accept` once "
        "and begin anew.",
    ),
    (
        "catalog.missing",
        "CatalogError",
        "The database {place} has tables, but no catalog of Louver.",
        "It was not made by Louver, or its catalog was deleted.",
        "Bring a plain database over with `louver encrypt FILE`; else restore the file "
        "from a backup.",
    ),
    (
        "catalog.tampered",
        "VerificationError",
        "The catalog of {place} was altered outside Louver.",
        "Its seal does not fit its contents. Nobody without the key file can seal a catalog.",
        "Do not use this copy. Restore the database from a backup and find out who wrote to it.",
    ),
    (
        "catalog.rollback",
        "VerificationError",
        "The catalog of {place} is older than or different from the one seen here last "
        "(seen version {seen}, found {found}).",
        "The server went back to an earlier state or shows clients different states. "
        "A restored backup looks the same.",
        "If you restored a backup yourself, run `louver status --accept` once; if not, "
        "treat the server as hostile.",
    ),
    (
        "catalog.conflict",
        "OperationalError",
        "Another client changed the database while this statement ran; it was undone.",
        "Two clients wrote at the same time; the first to commit wins.",
        "Run the statement again.",
    ),
    (
        "catalog.format",
        "CatalogError",
        "The catalog of {place} cannot be read: {detail}.",
        "It was written by a later release, or it is damaged.",
        "Update Louver; if that does not help, restore the database from a backup.",
    ),
    (
        "pin.format",
        "VerificationError",
        "What was remembered of this database in {path} was altered or is damaged: {detail}.",
        "The file that pins the last version seen does not bear this key's seal.",
        "If you trust the database as it is, delete the file; the next connection pins anew.",
    ),
    (
        "pin.io",
        "OperationalError",
        "What was last seen of the database could not be kept at {path}: {detail}.",
        "The folder for Louver's state at home cannot be read or written.",
        "Check the folder's owner and the free space, or set LOUVER_STATE_DIR to another.",
    ),
    (
        "catalog.replaced",
        "VerificationError",
        "Another database lies at {place} than the one seen there last.",
        "The server shows another database of the same key, or the file was exchanged.",
        "If you exchanged it yourself, run `louver status --accept` once; if not, "
        "treat the server as hostile.",
    ),
    (
        "ledger.tampered",
        "VerificationError",
        "The leakage ledger of {place} was altered: {detail}.",
        "An entry is forged, missing, repeated or out of order.",
        "Do not rely on its figures. Restore the database from a backup.",
    ),
    (
        "ledger.rollback",
        "VerificationError",
        "The leakage ledger of {place} is shorter than the one seen here last "
        "(seen {seen} entries, found {found}).",
        "The server went back to an earlier state; what it was shown since is still known to it.",
        "If you restored a backup yourself, run `louver status --accept` once; if not, "
        "treat the server as hostile.",
    ),
    (
        "ledger.write",
        "OperationalError",
        "The leakage ledger could not be written, so the statement was not sent: {detail}.",
        "What a statement reveals is recorded before the statement goes out.",
        "Mend the cause, mostly a full disk or a lock, and run the statement again.",
    ),
    # --- what comes back from a server ---
    (
        "value.tampered",
        "VerificationError",
        "{table}.{column}: the value in row {row} is not the one that was stored there.",
        "It was altered, swapped with another row or column, or sealed under another key.",
        "Do not use this copy of the data. Restore it from a backup.",
    ),
    (
        "result.tampered",
        "VerificationError",
        "A value that the server computed cannot be right: {detail}.",
        "It lies outside what the stored values allow, so the server did not compute what "
        "was asked or its data was altered.",
        "Do not use this copy of the data. Restore it from a backup.",
    ),
    (
        "result.sum",
        "VerificationError",
        "A sum of {table}.{column} that the server computed cannot be right.",
        "It lies outside what the stored values allow. A server that lies can learn about a value "
        "from this error, so from now on {table}.{column} is added up on this machine; queries "
        "still run.",
        "Do not use this copy of the data; restore it from a backup. `louver status` lists such "
        "columns, and `louver status --resume-sums` lets the server add them up again.",
    ),
    (
        "row.missing",
        "VerificationError",
        "{table}: the server returned {found} different rows where {expected} are stored.",
        "Rows were dropped or repeated by the server.",
        "Do not use this copy of the data. Restore it from a backup.",
    ),
    (
        "reply.format",
        "VerificationError",
        "The server's reply does not fit the question: {detail}.",
        "A reply must have the columns and types that were asked for.",
        "Run the statement again; if it fails again, do not trust the server.",
    ),
    (
        "wire.format",
        "OperationalError",
        "A message cannot be read: {detail}.",
        "It was cut short, is longer than allowed, or comes from another release.",
        "Run the same release on both sides.",
    ),
    (
        "rows.exhausted",
        "OperationalError",
        "No row numbers are left in this database.",
        "Row numbers are never used twice; this database has seen too many writing sessions "
        "or rows in one session.",
        "Export the data with `louver export` and load it into a new database.",
    ),
    # --- attached connections ---
    (
        "attach.name",
        "ProgrammingError",
        "A connection cannot be attached as {name}.",
        "A schema of this name is there already, or the name is DuckDB's own.",
        "Choose another name: ATTACH 'url' AS name.",
    ),
    (
        "attach.same",
        "ProgrammingError",
        "{url} holds tables that are here already.",
        "It is this database, one that is attached, or a copy of one.",
        "Query it where it is; a copy is opened by a connection of its own.",
    ),
    (
        "attach.unknown",
        "ProgrammingError",
        "No connection is attached as {name}.",
        "It was detached, or never was.",
        "ATTACH 'url' AS name first.",
    ),
    (
        "attach.file",
        "ProgrammingError",
        "{path} cannot be attached.",
        "It is not a plain DuckDB file that can be read: {detail}.",
        "Name a file that DuckDB wrote; data of other kinds is read by read_csv, read_parquet and "
        "the like.",
    ),
    (
        "attach.read_only",
        "NotSupportedError",
        "This statement cannot name the attached file {name}.",
        "A file is attached to be read, by queries, INSERT, UPDATE, DELETE, MERGE, COPY and CREATE "
        "TABLE AS. Nothing is written into it, and no view, macro or variable may need it.",
        "Copy what is needed with CREATE TABLE ... AS SELECT; write the file with DuckDB itself; "
        "DETACH it if another {name} is meant.",
    ),
    (
        "attach.object",
        "NotSupportedError",
        "{object} of the attached file {name} cannot be read.",
        "It is a macro, a table with generated columns, or a view whose text may name what is "
        "outside of the file: what it computes may come from this database.",
        "Read the other tables of the file.",
    ),
    (
        "attach.lost",
        "OperationalError",
        "The attached file {name} is not there any more.",
        "{path} has been removed or replaced, or a schema has got its name.",
        "DETACH {name}, and attach the file again, under another name if need be.",
    ),
    (
        "attach.reads",
        "NotSupportedError",
        "This statement cannot name tables of the attached connection {name}.",
        "They are read by SELECT, INSERT ... SELECT and CREATE TABLE AS alone: no view, macro or "
        "index can hold them, and no other change reads or writes them.",
        "Copy what is needed with CREATE TABLE ... AS SELECT; change tables over their own "
        "connection.",
    ),
)
