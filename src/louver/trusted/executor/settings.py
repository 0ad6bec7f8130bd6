"""SET and RESET: Louver's own settings, and those of DuckDB that cannot undo its promises."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.front import Common
from louver.trusted.executor.lake import options
from louver.trusted.executor.lake.options import Option as Setting
from louver.trusted.executor.policy import NO_DEFAULT
from louver.trusted.planner.settings import DEFAULT, PlannerSettings
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.scheme import profiles
from louver.wire.messages import Statement

#: Louver's own settings; docs/guides/sql.md lists them, which a test checks.
SETTINGS = (
    Setting(
        "local_processing",
        "on, off",
        "on",
        "whether a query that the server cannot compute within the ceilings is finished on your "
        "machine; off refuses it (leak.home_off)",
    ),
    Setting(
        "link_bandwidth",
        "bytes per second, as '125MB/s', '1GB/s', '500kB/s'",
        "125MB/s",
        "how fast the way to the server is; the planner weighs what is sent against what the "
        "server computes",
    ),
    Setting(
        "link_latency",
        "a time, as '1ms', '20ms', '0.1s'",
        "1ms",
        "how long a statement travels to the server and back, beside what it carries",
    ),
    Setting(
        "default_encryption",
        "none, sealed, cryptdb, sdb",
        "none",
        "what new columns are where neither the statement nor the policy says anything of them: "
        "plain, or ENC as under this profile",
    ),
    Setting(
        "default_counted",
        "on, off",
        "off",
        "whether tables that are created are counted: a server that leaves out rows of one is "
        "found out, and one client at a time changes it",
    ),
    *options.OPTIONS,
)
_WORDS = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}
_OWN = ("local_processing", "link_bandwidth", "link_latency")
_ENCRYPTION = "default_encryption"
_COUNTED = "default_counted"
_NEW_TABLES = (_ENCRYPTION, _COUNTED)
#: Earlier names of settings.
_ALIASES = {"finish_at_home": "local_processing"}
_MEASURE = re.compile(r"\s*'?\s*(?P<number>\d{1,15}(?:\.\d{1,9})?)\s*(?P<unit>[A-Za-z/]+)?\s*'?\s*")
_BYTES = {"b/s": 1.0, "kb/s": 1e3, "mb/s": 1e6, "gb/s": 1e9}
_TIMES = {"ms": 1.0, "us": 1e-3, "s": 1e3}
_MOST = 1e15
#: What changes the meaning of a query must change on both sides of the wire.
BOTH_SIDES = (
    "timezone", "calendar", "default_null_order", "null_order", "default_order",
    "integer_division", "ieee_floating_point_ops", "default_collation",
)  # fmt: skip
#: Settings on which the value of an expression depends.
EXPRESSION_SETTINGS = ("integer_division", "ieee_floating_point_ops", "default_collation")
#: DuckDB's settings that are of use locally and harmless.
_AT_HOME = (
    "threads", "worker_threads", "memory_limit", "max_memory", "preserve_insertion_order",
    "max_expression_depth", "pivot_limit", "pivot_filter_threshold", "order_by_non_integer_literal",
    "scalar_subquery_error_on_multiple_rows", "old_implicit_casting", "explain_output",
    "lambda_syntax",
    # How quickly the local DuckDB computes, and what it draws on a terminal.
    "enable_progress_bar", "enable_progress_bar_print", "progress_bar_time", "disabled_optimizers",
    "perfect_ht_threshold", "prefer_range_joins", "ordered_aggregate_threshold",
    "nested_loop_join_threshold", "merge_join_threshold", "asof_loop_join_threshold",
    "late_materialization_max_rows", "index_scan_percentage", "index_scan_max_count",
    "dynamic_or_filter_threshold", "partitioned_write_flush_threshold",
    "partitioned_write_max_open_files", "streaming_buffer_size", "write_buffer_row_group_count",
    "allocator_background_threads", "allocator_flush_threshold", "scheduler_process_partial",
    "parquet_metadata_cache", "enable_http_metadata_cache",
    "checkpoint_threshold", "wal_autocheckpoint", "max_vacuum_tasks",
)  # fmt: skip
#: What names without a schema mean: on the client only, for texts that are sent name every schema.
_PATH = ("schema", "search_path")
#: PRAGMAs of DuckDB's that change nothing which a user of Louver could see.
NOTHING = frozenset(
    f"{verb}_{name}"
    for verb in ("enable", "disable")
    for name in ("verification", "object_cache", "progress_bar", "print_progress_bar", "optimizer")
)
_SET = re.compile(
    r"\s*(?P<verb>SET|RESET)\s+(?:(?:GLOBAL|SESSION|LOCAL)\s+)?"
    r"(?P<name>TIME\s+ZONE|\"[^\"]+\"|\w+)(?:\s*(?:=|\bTO\b)?\s*(?P<value>.+?))?\s*$",
    re.IGNORECASE | re.DOTALL,
)


def change(context: Common, text: lexer.Text) -> Answer:
    """Run a SET or RESET."""
    name, value = read(text)
    if name in _OWN:
        context.state.planning = _changed(context.state.planning, name, value)
        return Answer()
    if name in _NEW_TABLES and isinstance(context, Context):
        if name == _ENCRYPTION:
            state = context.state
            state.default_encryption = state.begun_encryption if value is None else _profile(value)
        else:
            context.state.counts = value is not None and _switch(name, value)
        return Answer()
    if name in options.NAMES:
        context.storage.change_option(name, value)
        context.catalog.touch()
        return Answer()
    if name in _PATH and isinstance(context, Context):
        if value is not None:
            _literal(name, value)
        change_path(context, text.home)
        return Answer()
    if name not in BOTH_SIDES and name not in _AT_HOME:
        if name == "variable" or context.local.statements.has_setting(name):
            raise errors.make("setting.refused", name=name)
        raise errors.make("setting.unknown", name=name)
    if name in EXPRESSION_SETTINGS and any(
        t.has_generated for t in context.catalog.tables.values()
    ):
        statement = f"SET {name} while a table has generated columns, which are stored,"
        raise errors.make("sql.unsupported", statement=statement)
    if name in BOTH_SIDES and isinstance(context, Context):
        context.backend.require_setting(name)
    sql = f"RESET {name}" if value is None else f"SET {name} = {_literal(name, value)}"
    context.local.change_setting(name, sql)
    if isinstance(context, Context) and name in BOTH_SIDES and name in context.backend.settings:
        context.engine.run(Statement(sql, kind="ddl"))
    return Answer()


def change_path(context: Context, sql: str = "") -> None:
    """Run a statement that sets the search path; without one, take over what it has become."""
    context.catalog.path = context.local.change_path(sql)
    context.state.flows.clear()


def read(text: lexer.Text) -> tuple[str, str | None]:
    """The name that a SET or RESET is about, in lower case, and its value; None to reset it."""
    match = _SET.match(lexer.without_comments(text.home))
    if match is None:
        raise errors.make("sql.syntax", detail="SET takes a name and a value")
    resetting = keyword(match["verb"]) == "RESET"
    if not resetting and match["value"] is None:
        raise errors.make("sql.syntax", detail="SET takes a name and a value")
    name = fold(re.sub(r"\s+", "", match["name"].strip('"')))
    name = _ALIASES.get(name, name)
    return name, None if resetting else match["value"]


def _changed(before: PlannerSettings, name: str, value: str | None) -> PlannerSettings:
    """Louver's settings with one of them changed; without a value, back to its default."""
    default = DEFAULT.link
    if name == "local_processing":
        return replace(before, local_processing=value is None or _switch(name, value))
    if name == "link_bandwidth":
        speed = default.bandwidth if value is None else _measured(name, value, _BYTES)
        return replace(before, link=replace(before.link, bandwidth=speed))
    latency_ms = default.latency_ms if value is None else _measured(name, value, _TIMES)
    return replace(before, link=replace(before.link, latency_ms=latency_ms))


def _profile(value: str) -> str:
    """A value of default_encryption."""
    known = (NO_DEFAULT, *profiles())
    word = fold(value.strip("'\" "))
    if word not in known:
        raise errors.make("setting.value", name=_ENCRYPTION, value=value, known=", ".join(known))
    return word


def _measured(name: str, value: str, units: dict[str, float]) -> float:
    """A positive number with a unit, which may be left out for the first of `units`."""
    match = _MEASURE.fullmatch(value)
    unit = fold(match["unit"] or next(iter(units))) if match else ""
    number = float(match["number"]) * units[unit] if match and unit in units else 0.0
    if not 0 < number < _MOST:
        example = next(setting.values for setting in SETTINGS if setting.name == name)
        raise errors.make("setting.value", name=name, value=value, known=example)
    return number


def _switch(name: str, value: str) -> bool:
    word = fold(value.strip("'\" "))
    if word not in _WORDS:
        raise errors.make("setting.value", name=name, value=value, known="on, off")
    return _WORDS[word]


def _literal(name: str, value: str) -> str:
    """One literal or word; an expression has no business in a setting."""
    tokens = lexer.tokens(value)
    signed = len(tokens) == 2 and tokens[0].text in "+-"
    if len(tokens) != 1 and not signed:
        raise errors.make("setting.value", name=name, value=value, known="a single value")
    return value


def value(context: Common, name: str) -> Answer | None:
    """SHOW setting, where there is one of this name."""
    own = _ALIASES.get(fold(name), fold(name))
    if own in _OWN:
        planning = context.state.planning
        link = planning.link
        setting = {
            "local_processing": "on" if planning.local_processing else "off",
            "link_bandwidth": f"{link.bandwidth / 1e6:.12g}MB/s",
            "link_latency": f"{link.latency_ms:.12g}ms",
        }[own]
        return Answer(pa.table({name: [setting]}), [(name, "VARCHAR")])
    if own in _NEW_TABLES and isinstance(context, Context):
        counted = "on" if context.state.counts else "off"
        default = context.state.default_encryption if own == _ENCRYPTION else counted
        return Answer(pa.table({name: [default]}), [(name, "VARCHAR")])
    if fold(name) in options.NAMES:
        return Answer(pa.table({name: [context.storage.option(fold(name))]}), [(name, "VARCHAR")])
    if fold(name) not in (*BOTH_SIDES, *_AT_HOME):
        return None
    rows = context.local.statements.setting(fold(name))
    if rows is None:
        return None
    return Answer(rows.rename_columns([name]), [(name, "VARCHAR")])
