"""SET, RESET, SHOW and DISCARD: the names and values that PostgreSQL has, for both local databases.

A setting that would change what is stored, or that only the server could keep, is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot.tokens import Token

from louver import errors
from louver.names import fold, keyword, quoted
from louver.trusted.executor import settings as louver_settings
from louver.trusted.executor import show as shown
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.lake import options
from louver.trusted.executor.postgres import (
    control,
    cursors,
    deferrals,
    given,
    notify,
    prepared,
    server_calls,
)
from louver.trusted.executor.postgres.control import Characteristics, Modes
from louver.trusted.executor.postgres.messages import said
from louver.trusted.executor.postgres.words import Words, refuse
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.postgres_types import own_type

#: Settings of Louver's own.
OWN = frozenset(item.name for item in louver_settings.SETTINGS) - options.NAMES
#: Settings that say how values are read and written, how long a statement may take, and the like.
_FREE = frozenset((
    given.PATH, "timezone", "datestyle", "intervalstyle", "extra_float_digits", "bytea_output",
    "xmlbinary", "xmloption", "application_name", "statement_timeout", "lock_timeout",
    "client_min_messages", "escape_string_warning", "default_text_search_config", "row_security",
    "work_mem", "maintenance_work_mem", "hash_mem_multiplier", "timezone_abbreviations",
    "lc_messages", "lc_monetary", "lc_numeric", "lc_time", "max_stack_depth",
    "max_parallel_workers", "max_parallel_workers_per_gather", "max_parallel_maintenance_workers",
    "vacuum_cost_delay", "vacuum_cost_limit", "vacuum_cost_page_hit", "vacuum_cost_page_miss",
    "vacuum_cost_page_dirty",
))  # fmt: skip
#: Settings that only have these values.
_FIXED = {
    "standard_conforming_strings": ("on",), "client_encoding": ("UTF8",), "array_nulls": ("on",),
    "check_function_bodies": ("off",), "default_tablespace": ("",),
    "transform_null_equals": ("off",),
    "default_table_access_method": ("heap",), "idle_in_transaction_session_timeout": ("0",),
    "idle_session_timeout": ("0",), "transaction_timeout": ("0",), "synchronous_commit": ("on",),
    "session_replication_role": ("origin",), "quote_all_identifiers": ("off",),
    "backslash_quote": ("safe_encoding",),
}  # fmt: skip
_TEXT = own_type("VARCHAR")
_FREE_CATEGORIES = "Query Tuning"
_ISOLATION = {"transaction_isolation": False, "default_transaction_isolation": True}
_READING = {"transaction_read_only": False, "default_transaction_read_only": True}
_DEFERRING = {"transaction_deferrable": False, "default_transaction_deferrable": True}
#: What a transaction is given: whether by later ones.
_MODES = _ISOLATION | _READING | _DEFERRING
_FIELDS = {
    "default_transaction_isolation": "level", "default_transaction_read_only": "read_only",
    "default_transaction_deferrable": "deferrable",
}  # fmt: skip


def change(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """SET or RESET."""
    words = Words(context, text, tokens)
    if keyword(tokens[0].text) == "RESET":
        _reset(context, words)
        return Answer()
    if words.takes("SESSION", "CHARACTERISTICS", "AS", "TRANSACTION"):
        control.set_default(context, control.modes(words))
        return Answer()
    if words.takes("TRANSACTION"):
        if words.peek() == "SNAPSHOT":
            refuse("SET TRANSACTION SNAPSHOT")
        control.set_modes(context, control.modes(words))
        return control.outside(context, "SET TRANSACTION")
    if words.peek() == "CONSTRAINTS":
        deferrals.change(context, text, words)
        return control.outside(context, "SET CONSTRAINTS")
    local = words.takes("LOCAL")
    if not local:
        words.takes("SESSION")
    name, rest = _named(words)
    if not name:
        return Answer()  # there is no other role
    if name in OWN:
        if local:
            refuse(f"SET LOCAL {name}")
        return louver_settings.change(context, text)
    default = words.copied(words)
    _ = default.takes("=") or default.takes("TO")
    if default.takes("DEFAULT") and default.done and _is_known(context, name):
        return _to_default(context, name, local=local)
    value = _read(context, text, name, rest)
    if name in _MODES:
        _set_modes(context, name, value, local=local)
    elif context.in_transaction or not local:
        given.put(context, name, value, local=local)
    return control.outside(context, "SET LOCAL") if local else Answer()


def _is_known(context: Context, name: str) -> bool:
    return "." not in name and context.local.statements.has_setting(name)


def _to_default(context: Context, name: str, *, local: bool) -> Answer:
    """SET … TO DEFAULT: RESET, or what the session began with for the rest of the transaction."""
    if not local:
        _reset_one(context, name)
        return Answer()
    _require_reset(name)
    value = given.of(context).startup.get(name)
    if value is None:
        rows = context.local.ask_schema(f"SELECT reset_val FROM pg_settings WHERE name = '{name}'")
        value = str(rows.column(0)[0].as_py())
    if context.in_transaction:
        given.put(context, name, value, local=True)
    return control.outside(context, "SET LOCAL")


def _named(words: Words) -> tuple[str, str]:
    """The folded name of the setting, and the text behind SET and its scope."""
    behind = Words.copied(words)
    if words.takes("TIME", "ZONE"):
        return "timezone", behind.rest()
    if words.takes("NAMES"):
        return "client_encoding", behind.rest()
    if words.takes("SCHEMA"):
        return given.PATH, behind.rest()
    if words.takes("XML", "OPTION"):
        return "xmloption", behind.rest()
    if words.peek() in ("ROLE", "AUTHORIZATION", "SEED"):
        what = words.peek()
        words.token()
        if what == "SEED" or words.peek() not in ("NONE", "DEFAULT"):
            refuse(f"SET {what}")
        return "", ""
    name = fold(words.name())
    while words.takes("."):
        name += "." + fold(words.name())
    return name, behind.rest()


def _read(context: Context, text: lexer.Text, name: str, rest: str) -> str:
    """The value that a SET gives, in PostgreSQL's own form; raises for one that is not allowed."""
    with context.local.rehearsal() as connection:
        try:
            connection.execute(f"SET LOCAL {rest}")
        except errors.Error:
            context.local.statements.require_syntax(text.home)
            raise
        (value,) = connection.fetchone("SELECT current_setting($1)", [name]) or ("",)
        category = connection.fetchone(
            "SELECT category FROM pg_settings WHERE lower(name) = $1", [name]
        )
        prefix = name.partition(".")[0]
        owned = connection.fetchone("SELECT 1 FROM pg_extension WHERE extname = $1", [prefix])
    own = category is None and owned is None
    require(name, str(value), "" if own else str((category or ("",))[0]) or prefix)
    return str(value)


def require(name: str, value: str, category: str) -> None:
    """Refuse a setting that is not known to be harmless; ``category`` is PostgreSQL's, "" of one
    that the session makes up, such as app.user.
    """
    if name in _FREE or name in _MODES:
        return
    if value in _FIXED.get(name, ()) or category.startswith(_FREE_CATEGORIES):
        return
    if "." in name and not category:
        return
    refuse(f"SET {name}")


def _set_modes(context: Context, name: str, value: str, *, local: bool) -> None:
    if name in _ISOLATION:
        given = Modes(level=keyword(value))
    elif name in _READING:
        given = Modes(read_only=value == "on")
    else:
        given = Modes(deferrable=value == "on")
    if _MODES[name]:
        control.set_default(context, given, local=local)
    else:
        control.set_modes(context, given)


def _reset(context: Context, words: Words) -> None:
    if words.takes("ALL"):
        words.ends()
        reset_all(context)
        return
    if words.takes("TRANSACTION", "ISOLATION", "LEVEL"):
        name = "transaction_isolation"
    elif words.takes("TIME", "ZONE"):
        name = "timezone"
    elif words.peek() in ("ROLE", "SESSION"):
        return  # there is no other one
    else:
        name = fold(words.name())
        while words.takes("."):
            name += "." + fold(words.name())
    words.ends()
    if name in OWN:
        louver_settings.change(context, lexer.Text(f"RESET {name}", "", ()))
        return
    if "." not in name and not context.local.statements.has_setting(name):
        raise said("42704", f'unrecognized configuration parameter "{name}"')
    _reset_one(context, name)


def _reset_one(context: Context, name: str) -> None:
    if name in _MODES:
        _require_reset(name)
        control.reset_default(context, _FIELDS[name])
    given.put(context, name, None, local=False)


def _require_reset(name: str) -> None:
    """Raise for what only the open transaction is."""
    if not _MODES.get(name, True):
        raise said("0A000", f'parameter "{name}" cannot be reset')


def reset_all(context: Context) -> None:
    """RESET ALL, and Louver's own settings."""
    given.restore(context, given.Given())
    control.reset_default(context)
    for name in OWN:
        louver_settings.change(context, lexer.Text(f"RESET {name}", "", ()))


def stays(name: str) -> bool:
    """Whether a setting, by its folded name, is none of those that `given` has: it is Louver's, or
    of later transactions.
    """
    return name in OWN or _MODES.get(name, False)


def started(context: Context) -> dict[str, str]:
    """What is set now is what RESET goes back to: PostgreSQL's settings, by folded names."""
    control.start(context, context.state.cache(Characteristics).default)
    return given.started(context)


def forget_startup(context: Context) -> None:
    """No client is there whose settings those were."""
    given.begin(context, {}, {})
    control.start(context, Modes("READ COMMITTED", read_only=False))


def show(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """SHOW of a setting, and Louver's SHOW LEAKAGE, PROTECTION and CREATE TABLE."""
    words = Words(context, text, tokens)
    if words.peek() in ("LEAKAGE", "PROTECTION", "CREATE"):
        return shown.show(context, text, tokens, parameters)
    if words.takes("TRANSACTION", "ISOLATION", "LEVEL"):
        name = "transaction_isolation"
    elif words.takes("TIME", "ZONE"):
        name = "timezone"
    else:
        name = fold(words.name())
        if name in OWN:
            words.ends()
            answer = louver_settings.value(context, name)
            rows = pa.nulls(0, pa.string()) if answer is None else answer.rows
            return Answer(rows, [(name, _TEXT)])
    own = _mode(context, name)
    if name in given.LIMITS:
        own = given.of(context).effective.get(name, "")
    if own:
        return Answer(pa.table({name: [own]}), [(name, _TEXT)])
    rows = context.local.ask_schema(text.home)
    return Answer(rows, context.local.last_columns)


def _mode(context: Context, name: str) -> str:
    """What a transaction is given, which is not what the local engine's is; "" of others."""
    own, state = context.state.cache(Characteristics), context.state
    if name in _ISOLATION:
        within = state.in_transaction and not _ISOLATION[name]
        return fold(str((own.open if within else own.default).level))
    if name in _READING:
        within = state.in_transaction and not _READING[name]
        reads = state.read_only if within else bool(own.default.read_only)
        return "on" if reads or not state.writable else "off"
    if name in _DEFERRING:
        within = state.in_transaction and not _DEFERRING[name]
        return "on" if (own.open if within else own.default).deferrable else "off"
    return ""


def _drop_views(context: Context) -> None:
    """Temporary views go first, which are the only objects of their schema beside tables."""
    views = [quoted(item.name) for item in context.catalog.objects if item.temporary]
    if views:
        listed = ", ".join(f"pg_temp.{name}" for name in views)
        (text,) = lexer.split(f"DROP VIEW {listed} CASCADE")
        context.run(text, [])


def discard(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """DISCARD ALL | PLANS | SEQUENCES | TEMP | TEMPORARY."""
    words = Words(context, text, tokens)
    what = words.peek()
    words.token()
    words.ends()
    if what not in ("ALL", "PLANS", "SEQUENCES", "TEMP", "TEMPORARY"):
        words.wrong()
    if what == "ALL" and context.in_transaction:
        raise said("25001", "DISCARD ALL cannot run inside a transaction block")
    if what in ("TEMP", "TEMPORARY"):
        _discard_temporary(context)
    if what == "SEQUENCES":
        context.local.change_setting("louver.discarded", "DISCARD SEQUENCES")
    if what == "ALL":
        discard_all(context)
    return Answer()


def discard_all(context: Context) -> None:
    """DISCARD ALL, outside of a transaction."""
    _discard_temporary(context)
    context.local.change_setting("louver.discarded", "DISCARD SEQUENCES")
    reset_all(context)
    prepared.forget_all(context)
    cursors.close_all(context)
    notify.forget_all(context)
    server_calls.unlock_all(context)


def _discard_temporary(context: Context) -> None:
    if context.in_transaction:
        context.local.temporary.keep()
    _drop_views(context)
    context.local.temporary.restore(({}, {}, {}))
    context.local.forget_types()
