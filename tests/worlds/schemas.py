"""Schemas and the search path, and statements that only look after the database."""

from __future__ import annotations

from collections.abc import Callable

from tests.worlds.reads import read
from tests.worlds.schema import State
from tests.worlds.session_objects import SessionStatement

_MOST = 3


def schema(state: State) -> SessionStatement:
    """CREATE SCHEMA, DROP SCHEMA of one that has nothing in it."""
    if state.in_transaction or len(state.schemas) >= _MOST or state.profile == "lake":
        return use(state)
    name = state.fresh("s")
    return f"CREATE SCHEMA {name}", lambda: state.schemas.append(name)


def use(state: State) -> SessionStatement:
    """USE, SET schema and SET search_path: what names without a schema mean."""
    if len(state.schemas) < 2:
        return None if state.in_transaction or state.profile == "lake" else schema(state)
    name = state.dice.choice(state.schemas)
    text = state.dice.choice((
        f"USE {name}", f"USE {name}", f"SET schema = '{name}'", f"SET search_path = '{name}'",
        f"SET search_path = '{name},main'", "USE missing", "RESET search_path",
    ))  # fmt: skip
    if text.startswith("RESET"):
        name = "main"
    return text, lambda: state.goes(name)


def bare(state: State) -> SessionStatement:
    """A query of a table by its name alone, wherever it may be found then."""
    known = [t for t in state.base() if t.schema != "main"] or state.base()
    table = state.dice.choice(known)
    return state.dice.choice((
        f"SELECT count(*) AS n FROM {table.bare}", f"FROM {table.bare}",
        f"SELECT current_schema() AS s, count(*) AS n FROM {table.name}",
        f"SELECT a.* FROM {table.schema}.{table.bare} AS a",
    )), _nothing  # fmt: skip


def _nothing() -> None:
    """The statement changes nothing that the generator knows."""


# ---------------------------------------------------------------------- looking after


def maintenance(state: State) -> SessionStatement:
    """VACUUM, ANALYZE, CHECKPOINT, CALL, EXPORT DATABASE."""
    table = state.dice.choice(state.base())
    col = state.dice.choice(table.cols)
    label = table.name.replace('"', "")
    # Within a transaction it depends on what the engine has begun there whether it may.
    word = "VACUUM" if state.in_transaction else "CHECKPOINT"
    forced = "" if state.in_transaction else "FORCE "
    return state.pick("maintenance", [
        ("vacuum", "VACUUM"), ("vacuum", f"VACUUM {table.name}"),
        ("analyze", "ANALYZE"), ("analyze", f"ANALYZE {table.name}"),
        ("analyze", f"ANALYZE {table.name}({col.name})"),
        ("checkpoint", word), ("checkpoint", f"{forced}{word}"),
        ("call", "CALL range(3)"), ("call", f"CALL pragma_table_info('{label}')"),
        ("call", f"CALL query('SELECT count(*) AS n FROM {table.name}')"),
        ("export", f"EXPORT DATABASE '\x01@{state.fresh('export')}\x02'"),
        ("set", "SET default_order = 'ASC'"), ("set", "SET default_null_order = 'nulls_last'"),
        ("set", "RESET default_null_order"), ("show", "SHOW TABLES"),
        ("show", "SELECT current_database() AS d"),
    ]), _nothing  # fmt: skip


def explain(state: State) -> SessionStatement:
    """EXPLAIN in every form, of queries that run, or not."""
    _, query = read(state)
    how = state.dice.choice(("", "ANALYZE ", "ANALYZE ", "(FORMAT json) "))
    if query.startswith(("EXPLAIN", "DESCRIBE")):
        how, query = "", query.removeprefix("EXPLAIN (LEAKAGE) ")
    if "nextval" in query:
        how = ""
    return f"EXPLAIN {how}{query}", _nothing


SCHEMAS: tuple[Callable[[State], SessionStatement], ...] = (
    schema,
    use,
    use,
    bare,
    maintenance,
    explain,
)
