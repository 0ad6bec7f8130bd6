"""Names that DuckDB's connections and relations have and ours do not, with what to use instead."""

from __future__ import annotations

from collections.abc import Sequence

_CURSOR = "fetch from the cursor that execute() returns, or from con.sql()"
_TYPES = "name the type in SQL, as in CAST(a AS INTEGER[])"
_FUNCTIONS = "write CREATE MACRO, or apply the function to con.sql(…).df()"
_FILES = "open the file in Python and give the data to con.from_arrow()"
_EXTENSIONS = "con.read_csv(), read_parquet() and read_json() need no extension"
_PROFILING = "EXPLAIN ANALYZE shows the plan, and times_ms the time of each step"
_TENSORS = "make tensors of the arrays of fetchnumpy()"

RELATION = {
    "fetch_df_chunk": "take batches from to_arrow_reader() and call to_pandas() on each",
    "insert": "con.execute('INSERT INTO t VALUES (?, ?)', values), or insert_into() for a relation",
    "map": "apply the function to df(), and make con.from_df() of what it returns",
    "tf": _TENSORS,
    "torch": _TENSORS,
    "type": "types has the type of each column",
    "update": "con.execute('UPDATE t SET … WHERE …')",
}

CONNECTION = {
    **dict.fromkeys(
        (
            "arrow", "description", "df", "fetch_arrow_table", "fetch_df", "fetch_df_chunk",
            "fetch_record_batch", "fetchall", "fetchdf", "fetchmany", "fetchnumpy", "fetchone",
            "pl", "rowcount", "to_arrow_reader", "to_arrow_table",
        ),
        _CURSOR,
    ),
    **dict.fromkeys(
        (
            "array_type", "decimal_type", "dtype", "enum_type", "list_type", "map_type",
            "row_type", "sqltype", "string_type", "struct_type", "type", "union_type",
        ),
        _TYPES,
    ),
    **dict.fromkeys(("create_function", "remove_function"), _FUNCTIONS),
    **dict.fromkeys(
        (
            "filesystem_is_registered", "list_filesystems", "register_filesystem",
            "unregister_filesystem",
        ),
        _FILES,
    ),
    **dict.fromkeys(("install_extension", "load_extension"), _EXTENSIONS),
    **dict.fromkeys(
        ("disable_profiling", "enable_profiling", "get_profiling_information"), _PROFILING
    ),
    **dict.fromkeys(("tf", "torch"), _TENSORS),
    "append": "con.load(table, data)",
    "checkpoint": "con.execute('CHECKPOINT')",
    "duplicate": "con.cursor() shares the transaction; louver.connect() opens another connection",
    "extract_statements": "execute() runs all statements of a text",
    "get_table_names": "con.sql(query).explain() names the tables that are read",
    "query_progress": "a bar is drawn on a terminal; load() takes progress=",
    "table_function": "con.sql('FROM function(…)')",
}  # fmt: skip


def of_relation(name: str, columns: Sequence[str]) -> AttributeError:
    """The error for a name that a relation with these columns does not have."""
    listed = f" and no such column; its columns are {', '.join(columns[:20])}" if columns else ""
    return _missing("a relation", name, RELATION, listed)


def of_connection(name: str) -> AttributeError:
    """The error for a name that a connection does not have."""
    return _missing("a connection", name, CONNECTION)


def _missing(kind: str, name: str, instead: dict[str, str], listed: str = "") -> AttributeError:
    if name in instead:
        text = f"{kind} has no {name!r}, which DuckDB's has; instead: {instead[name]}"
    else:
        text = f"{kind} has no {name!r}{listed}"
    return AttributeError(text, name=name)
