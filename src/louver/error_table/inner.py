"""Errors of Louver itself, and DuckDB's own, which are passed on with their message."""

from __future__ import annotations

from louver.error_table.row import Row

ROWS: tuple[Row, ...] = (
    # --- Louver itself ---
    (
        "native.missing",
        "InternalError",
        "Louver's compiled part cannot be loaded: {detail}.",
        "The package was not built, or was built for another Python or processor.",
        "Run `make setup` in the source tree, or install Louver again.",
    ),
    (
        "internal.check",
        "InternalError",
        "The plan failed its last check, so nothing was sent: {detail}.",
        "Louver would have sent something that it could not account for. That is a bug in "
        "Louver, and no data left your machine.",
        "Please report the statement; SET finish_at_home = on may run it.",
    ),
    (
        "internal",
        "InternalError",
        "Louver found itself in a state that must not be: {detail}.",
        "This is a bug in Louver.",
        "Please report it with the statement that led to it.",
    ),
    (
        "value.form",
        "DataError",
        "A value of the statement or of its answer cannot be passed on.",
        "Values go through Apache Arrow, which does not hold all that DuckDB does.",
        "Cast the column to another type in the query, for example to VARCHAR.",
    ),
    (
        "memory.full",
        "OperationalError",
        "There is not enough memory at home to run the statement.",
        "Rows are opened and finished in the memory of this process.",
        "Ask for fewer rows or columns at once.",
    ),
    # --- DuckDB's own errors, passed on with its message ---
    *(
        (f"duckdb.{kind}", cls, "{detail}", cause, "Read the message; it is DuckDB's own.")
        for kind, cls, cause in (
            ("binder", "ProgrammingError", "A name or a type in the statement does not fit."),
            ("catalog", "ProgrammingError", "An object is missing or exists already."),
            ("parser", "ProgrammingError", "The statement is not SQL."),
            ("syntax", "ProgrammingError", "The statement is not SQL."),
            ("constraint", "IntegrityError", "A constraint would no longer hold."),
            ("conversion", "DataError", "A value cannot be turned into the wanted type."),
            ("out_of_range", "DataError", "A result is too large or too small for its type."),
            ("type_mismatch", "DataError", "Two types do not go together."),
            ("sequence", "DataError", "A sequence has come to its end or was not used yet."),
            ("invalid_input", "ProgrammingError", "An argument is outside what is allowed."),
            ("invalid_type", "ProgrammingError", "A type cannot be used here."),
            ("not_implemented", "NotSupportedError", "DuckDB does not have this."),
            ("dependency", "ProgrammingError", "Another object depends on this one."),
            ("transaction", "OperationalError", "Two transactions got in each other's way."),
            ("connection", "OperationalError", "The connection cannot be used."),
            ("io", "OperationalError", "A file could not be read or written."),
            ("http", "OperationalError", "A remote file could not be read."),
            ("out_of_memory", "OperationalError", "The memory limit was reached."),
            ("permission", "OperationalError", "This is switched off in the settings."),
            ("serialization", "OperationalError", "A stored object could not be read."),
            ("fatal", "InternalError", "DuckDB has stopped working on this database."),
            ("internal", "InternalError", "A bug in DuckDB."),
            ("error", "DatabaseError", "DuckDB reported an error of no particular kind."),
        )
    ),
)
