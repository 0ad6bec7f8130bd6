"""Settings that a session has made, and what becomes of them when a transaction ends.

As in PostgreSQL, SET within a transaction that is undone is undone, SET LOCAL ends with it, and
RESET goes back to what the session began with.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from louver.names import fold
from louver.trusted.executor import settings
from louver.trusted.executor.context import Context
from louver.trusted.planner.sql.dialect import spoken
from louver.untrusted.engines.engine import Limited

PATH = "search_path"
LIMITS = ("statement_timeout", "lock_timeout")
"""These are of the user's own queries alone (`local.postgres.session_settings.LIMITS`)."""


@dataclass(slots=True)
class Given:
    """The values by folded names: those of the session, those of its transaction alone, and those
    that it began with.
    """

    session: dict[str, str] = field(default_factory=dict)
    local: dict[str, str] = field(default_factory=dict)
    startup: dict[str, str] = field(default_factory=dict)

    @property
    def effective(self) -> dict[str, str]:
        """What is set now."""
        return {**self.startup, **self.session, **self.local}


def of(context: Context) -> Given:
    """The session's own."""
    return context.state.cache(Given)


def copied(context: Context) -> Given:
    """How they are now, to be restored."""
    own = of(context)
    return Given(dict(own.session), dict(own.local), dict(own.startup))


def began(context: Context) -> None:
    """A transaction has begun: it leaves what is set now, or what it sets, if it is committed."""
    before = copied(context)

    def end(committed: bool) -> None:
        restore(context, Given(of(context).session if committed else before.session))

    context.state.endings.append(end)


def restore(context: Context, wanted: Given) -> None:
    """Set what is to be set from now on, wherever that differs from what is."""
    own, before = of(context), of(context).effective
    own.session, own.local = dict(wanted.session), dict(wanted.local)
    _apply_all(context, before)


def begin(context: Context, startup: dict[str, str], session: dict[str, str]) -> None:
    """Begin anew, for another client: with what RESET goes back to, and what was set since."""
    own, before = of(context), of(context).effective
    own.startup, own.session, own.local = dict(startup), dict(session), {}
    _apply_all(context, before)


def started(context: Context) -> dict[str, str]:
    """What is set now is what RESET goes back to from now on."""
    own = of(context)
    own.startup, own.session = {**own.startup, **own.session}, {}
    return dict(own.startup)


def _apply_all(context: Context, before: dict[str, str]) -> None:
    after = of(context).effective
    for name in {**before, **after}:
        if before.get(name) != after.get(name):
            _apply(context, name, after.get(name))


def put(context: Context, name: str, value: str | None, *, local: bool) -> None:
    """SET, SET LOCAL, or RESET for no value."""
    changed = copied(context)
    changed.local.pop(name, None)
    if value is None:
        changed.session.pop(name, None)
    elif local:
        changed.local[name] = value
    else:
        changed.session[name] = value
    restore(context, changed)


def _apply(context: Context, name: str, value: str | None) -> None:
    string = spoken().string
    quoted = '"' + name.replace('"', '""') + '"' if "." not in name else name
    sql = f"RESET {quoted}"
    if name in LIMITS and isinstance(context.engine, Limited):
        context.engine.limit(name, value)
    if value is not None and name in LIMITS:
        sql = f"SET LOCAL {quoted} = {string(value)}"
    elif value is not None:
        sql = f"SELECT pg_catalog.set_config({string(name)}, {string(value)}, false)"
    if fold(name) == PATH:
        settings.change_path(context, sql)
    else:
        context.local.change_setting(name, sql)
