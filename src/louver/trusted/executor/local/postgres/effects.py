"""What a query or change does beside reading and changing tables, by PostgreSQL's own analyser.

A function that is volatile may do anything, so only those are taken that are known to do nothing
which another session, or a later statement, could see.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from louver import errors
from louver.trusted.executor.local.postgres.node_tree import Read
from louver.trusted.planner.sql.postgres_dialect import DIALECT

#: Volatile functions of PostgreSQL's own that only compute, wait, read declarations, or draw from a
#: sequence; and that give back locks, of which a session can have none.
_HARMLESS = frozenset((
    "random", "random_normal", "setseed", "clock_timestamp", "timeofday", "gen_random_uuid",
    "uuidv4", "uuidv7", "pg_sleep", "pg_sleep_for", "pg_sleep_until", "nextval", "currval",
    "lastval", "setval", "pg_sequence_last_value", "pg_partition_ancestors", "pg_partition_tree",
    "pg_advisory_unlock", "pg_advisory_unlock_shared", "pg_advisory_unlock_all",
))  # fmt: skip
#: Others that say something of the server, its transactions or a session of it, where the local
#: engine has its own; and that run a text, or read what a text names.
_ELSEWHERE = frozenset((
    "txid_current", "txid_current_if_assigned", "txid_current_snapshot", "pg_current_xact_id",
    "pg_current_xact_id_if_assigned", "pg_current_snapshot", "pg_xact_status", "txid_status",
    "pg_blocking_pids", "pg_safe_snapshot_blocking_pids", "pg_listening_channels",
    "pg_backend_pid", "pg_postmaster_start_time", "pg_conf_load_time", "inet_client_addr",
    "inet_client_port", "inet_server_addr", "inet_server_port",
    "table_to_xml", "table_to_xmlschema", "table_to_xml_and_xmlschema", "schema_to_xml",
    "schema_to_xmlschema", "schema_to_xml_and_xmlschema", "database_to_xml",
    "database_to_xmlschema", "database_to_xml_and_xmlschema",
))  # fmt: skip
#: Views that say something of a session, or of a server, and functions behind them: the local
#: engine would say it of its own.
_OF_SERVERS = re.compile(
    r"pg_(cursors?|prepared_(statement|xact)s?|locks?|lock_status|stats|stats_ext\w*"
    r"|statistic(_ext_data)?"
    r"|stat_\w+|statio_\w+|largeobject\w*|replication_\w+|hba_\w+|ident_\w+|file_settings"
    r"|shmem_\w+|backend_memory_contexts|aios|wait_events)"
)
_VOLATILE = "v"
#: It gives the name of the private database, whose function of that name gives the server's.
_CURRENT_CATALOG = "CURRENT_CATALOG (write current_database() instead)"
#: The schemas of PostgreSQL's own tables.
SCHEMAS_OF_CATALOGS = ("pg_catalog", "information_schema", "pg_toast")
_UNSUPPORTED, _SYNTAX = "0A000", "42601"


class Called(Protocol):
    """A function that is called; see `statements.Called`."""

    @property
    def schema(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def volatility(self) -> str: ...
    @property
    def body(self) -> str | None: ...
    @property
    def is_own(self) -> bool: ...


class Reach(Protocol):
    """What a statement reads and calls; see `statements.Reach`."""

    @property
    def read(self) -> Read: ...
    @property
    def relations(self) -> frozenset[tuple[str, str]]: ...
    @property
    def functions(self) -> tuple[Called, ...]: ...
    @property
    def is_known(self) -> bool: ...
    @property
    def changes_temporary(self) -> bool: ...


def refused(reach: Reach, is_quiet: Callable[[str], bool], *, temporary: bool = False) -> str:
    """See `Statements.refused`. ``is_quiet`` judges a function in SQL whose body is a string, which
    the analyser does not read, by its name.
    """
    read = reach.read
    if read.modifies_within and not (temporary and reach.changes_temporary):
        return "A statement that changes rows within a query, by WITH or by a function,"
    if read.locks:
        return "SELECT FOR UPDATE, and other locks of rows,"
    if read.reads_system and any(
        schema not in SCHEMAS_OF_CATALOGS for schema, _ in reach.relations
    ):
        return "A column that PostgreSQL has in every table (ctid, xmin, tableoid …)"
    if read.names_database:
        return _CURRENT_CATALOG
    if read.pads_varchar:
        # A column of varchar is of text in the workspace, where blanks at the end count.
        return "A comparison of char(n) with varchar, without a cast,"
    for schema, name in reach.relations:
        if schema == SCHEMAS_OF_CATALOGS[0] and _OF_SERVERS.fullmatch(name):
            return f"A query of {name}"
    for function in reach.functions:
        if not (_is_harmless(function) or (not function.is_own and is_quiet(function.name))):
            return f"A query that calls {function.name}()"
    return "" if read.is_known else "A statement of this form"


def drawing(reach: Reach) -> str:
    """What draws from a sequence although no word of the statement, nor of what it names, says so:
    the flow rule looks for these words.
    """
    for function in reach.functions:
        if function.is_own and function.name in DIALECT.draws:
            return f"A query that calls {function.name}() by another name"
    return ""


def of_utility(error: errors.Error) -> str:
    """What was refused instead of being analysed; raises where that was something else."""
    if error.sqlstate == _SYNTAX and "INTO is not allowed here" in str(error):
        return "SELECT INTO"
    if error.sqlstate == _UNSUPPORTED and "unquoted SQL function body" in str(error):
        return "A statement of this form"
    raise error


def loud(name: str, volatility: str) -> bool:
    """Whether a function of PostgreSQL's own does more than compute, by what `pg_proc` says."""
    if volatility == _VOLATILE:
        return name not in _HARMLESS
    return name in _ELSEWHERE or _OF_SERVERS.fullmatch(name) is not None


def _is_harmless(function: Called) -> bool:
    if not function.is_own:
        # Its body is part of what was read. One that is not volatile cannot change anything.
        return function.volatility != _VOLATILE or function.body is not None
    return not loud(function.name, function.volatility)
