"""Whether what a statement writes depends on its own constants and on rows that it reads alone.

PostgreSQL says of its own functions whether they give the same for the same arguments for ever
(`immutable`). Of the others those are listed that ask for the clock, chance, or a setting of
formats, none of which holds a value of a column. What is not listed may read the declared schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from louver.trusted.executor.local.postgres.effects import SCHEMAS_OF_CATALOGS, Reach

#: PostgreSQL's own functions that run a text, or read what a text or number names.
TAKE_NAMES = (
    "query_to_xml", "query_to_xmlschema", "query_to_xml_and_xmlschema", "cursor_to_xml",
    "cursor_to_xmlschema", "table_to_xml", "table_to_xmlschema", "table_to_xml_and_xmlschema",
    "schema_to_xml", "schema_to_xmlschema", "schema_to_xml_and_xmlschema", "database_to_xml",
    "database_to_xmlschema", "database_to_xml_and_xmlschema", "pg_read_file",
    "pg_read_binary_file", "lo_get", "loread", "ts_stat", "ts_rewrite", "pg_get_viewdef",
    "pg_sequence_last_value", "currval", "nextval", "setval", "lastval",
)  # fmt: skip
_IMMUTABLE = "i"
#: Types whose values are configurations of text search, which are PostgreSQL's own.
OF_TEXT_SEARCH = frozenset(("regconfig", "regdictionary"))
#: They are called immutable, and look into the schema nevertheless.
_OF_SCHEMA = frozenset(("pg_partition_root", "satisfies_hash_partition", "ts_lexize"))
_LISTED = frozenset(
    "now transaction_timestamp statement_timestamp clock_timestamp timeofday random random_normal"
    " gen_random_uuid uuidv4 uuidv7 nextval to_char to_date to_timestamp to_number to_tsvector"
    " to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery json_to_tsvector"
    " jsonb_to_tsvector ts_headline concat concat_ws format array_to_string array_to_json"
    " json_build_object json_build_array jsonb_build_object jsonb_build_array to_json to_jsonb"
    " row_to_json date_trunc date_part extract timezone age make_timestamptz generate_series"
    " date_add date_subtract quote_literal quote_nullable textanycat anytextcat enum_first"
    " enum_last enum_range date timestamp timestamptz time timetz array_agg json_agg jsonb_agg"
    " json_object_agg jsonb_object_agg json_agg_strict jsonb_agg_strict json_agg_transfn"
    " jsonb_agg_transfn json_populate_record json_populate_recordset jsonb_populate_record"
    " jsonb_populate_recordset json_to_record json_to_recordset jsonb_to_record"
    " jsonb_to_recordset jsonb_path_exists_tz jsonb_path_match_tz jsonb_path_query_tz"
    " jsonb_path_query_array_tz jsonb_path_query_first_tz overlaps".split()
)
#: Comparisons and sums of dates and times with and without a zone, which depend on the session's.
_OF_ZONES = re.compile(
    r"(date|timestamp|timestamptz|interval)_(eq|ne|lt|le|gt|ge|cmp|pl|mi|larger|smaller)"
    r"(_(date|timestamp|timestamptz|interval))?"
)


def on_rows_alone(reach: Reach, reads_arguments: Callable[[str], bool]) -> bool:
    """Whether a statement reads neither the schema, nor settings that hold values, nor its text.
    ``reads_arguments`` judges the user's functions whose bodies are strings, by their names.
    """
    return (
        reach.read.is_known
        and not reach.read.reads_system
        and not any(schema in SCHEMAS_OF_CATALOGS for schema, _ in reach.relations)
        # What a body calls that has a tree is among the functions.
        and all(
            is_of_arguments(function.name, function.volatility)
            if function.is_own
            else function.body is not None or reads_arguments(function.name)
            for function in reach.functions
        )
    )


def is_of_arguments(name: str, volatility: str) -> bool:
    """Whether a function of PostgreSQL's own depends on its arguments, and no more than the clock,
    chance and formats.
    """
    if volatility == _IMMUTABLE:
        return name not in _OF_SCHEMA
    return name in _LISTED or _OF_ZONES.fullmatch(name) is not None
