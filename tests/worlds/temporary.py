"""TEMP tables: as any others, but local alone. Of what kind one is, `schema.Tab` says: rows of an
"even" one may be copied as rows of stored tables may, those of a "wild" one nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.worlds.queries import expression, free, invariant, named, scope_of, source
from tests.worlds.schema import PLAIN, Col, State, Tab
from tests.worlds.session_objects import SessionStatement
from tests.worlds.writes import rows


def temp(state: State) -> SessionStatement:
    """CREATE TEMP TABLE, with columns or of a query."""
    dice = state.dice
    known = _known(state)
    old = dice.choice(known) if known and state.chance(0.3) else None
    name = old.name.removeprefix("temp.") if old else state.fresh("tmp")
    word = dice.choice(("TEMP", "TEMPORARY"))
    if state.chance(0.03):
        # A stored table has this name: refused.
        return f"CREATE TEMP TABLE {dice.choice(state.base()).bare} (i BIGINT)", lambda: None
    definition = _of_query(state, name) if state.chance(0.7) else _declared(state, name)
    if definition is None:
        return None
    table, text = definition
    more = " OR REPLACE" if old else ""
    if old and state.chance(0.3):
        return f"CREATE {word} TABLE IF NOT EXISTS {name} {text}", lambda: None

    def effect() -> None:
        state.tables = [t for t in state.tables if t is not old] + [table]

    return f"CREATE{more} {word} TABLE {name} {text}", effect


def _known(state: State) -> list[Tab]:
    return [t for t in state.tables if t.temp]


def _declared(state: State, name: str) -> tuple[Tab, str]:
    """Columns for literals of the user's."""
    cols = []
    for _ in range(state.dice.randint(1, 3)):
        if state.chance(0.3):
            cols.append(Col(state.fresh("c"), state.dice.choice(("BIGINT", "VARCHAR"))))
            continue
        universes = [u for u in state.values.universes.values() if not u.dealt]
        universe = state.dice.choice(universes)
        column = Col(state.values.name(state.dice), universe.type, universe.level, universe)
        cols.append(column)
    text = ", ".join(f"{c.name} {c.type}" for c in cols)
    return Tab(name, cols, temp="own"), f"({text})"


def _of_query(state: State, name: str) -> tuple[Tab, str] | None:
    tables = [t for t in state.base() if not t.vault]
    tables += [t for t in _known(state) if t.temp == "even"]
    base = source(state, tables=tables, free_joins=False)
    entries = state.dice.sample(base.scope, min(len(base.scope), 3))
    entries = [e for e in entries if e[1].type in PLAIN and not e[1].generated]
    if not entries:
        return None
    cols = [replace(c, name=state.values.name(state.dice), unique=False) for _, c in entries]
    wild = state.chance(0.4) or any(c.collation for _, c in base.scope)
    items = [named(e) for e in entries]
    if wild and state.chance(0.5):
        items = [expression(state, e) for e in entries]
    condition = free(state, base.scope) if wild else invariant(state, base.scope)
    listed = ", ".join(f"{item} AS {c.name}" for item, c in zip(items, cols, strict=True))
    table = Tab(name, cols, temp="wild" if wild else "even")
    tail = f" WHERE {condition}" if wild or state.chance(0.6) else ""
    return table, f"AS SELECT {listed} FROM {base.text}{tail}"


def temp_change(state: State) -> SessionStatement:
    """INSERT, UPDATE, DELETE, MERGE, TRUNCATE, ALTER and DROP of one."""
    known = _known(state)
    if not known:
        return temp(state)
    table = state.dice.choice(known)
    change = state.dice.choice(
        (_values, _values, _insert, _insert, _update, _delete, _drop, _merge)
    )
    return change(state, table)


def _wild(table: Tab) -> Callable[[], None]:
    def effect() -> None:
        table.temp = "wild"

    return effect


def _values(state: State, table: Tab) -> SessionStatement:
    listed = ", ".join(
        f"({', '.join(r)})" for r in rows(state, table.cols, state.dice.randint(1, 4))
    )
    prefix = state.dice.choice(("", "temp."))
    tail = " RETURNING *" if state.chance(0.1) else ""
    # NULL stands in other rows of a loose universe, as in stored tables.
    return f"INSERT INTO {prefix}{table.name} VALUES {listed}{tail}", lambda: None


def _insert(state: State, table: Tab) -> SessionStatement:
    base = source(state, tables=[t for t in state.sources(attached=False) if t is not table])
    col = state.dice.choice(table.cols)
    entries = [e for e in base.scope if e[1].type == col.type]
    if not entries:
        return None
    chosen = state.dice.choice(entries)
    where = free(state, base.scope)
    text = f"INSERT INTO {table.name} ({col.name}) SELECT {named(chosen)} FROM {base.text}"
    return f"{text} WHERE {where}", _wild(table)


def _update(state: State, table: Tab) -> SessionStatement:
    col = state.dice.choice(table.cols)
    scope = scope_of(table.name, table)
    value = expression(state, (table.name, col))
    others = [(t, c) for t in state.sources(attached=False) for c in t.cols if c.type == col.type]
    text = f"UPDATE {table.name} SET {col.name} = "
    if others and state.chance(0.5):
        other, given = state.dice.choice(others)
        return f"{text}(SELECT max(i.{given.name}) FROM {other.name} AS i)", _wild(table)
    return f"{text}{value} WHERE {free(state, scope)}", _wild(table)


def _delete(state: State, table: Tab) -> SessionStatement:
    scope = scope_of(table.name, table)
    if state.chance(0.2):
        return state.dice.choice((f"TRUNCATE {table.name}", f"DELETE FROM {table.name}")), (
            lambda: None
        )
    if state.chance(0.5):
        return f"DELETE FROM {table.name} WHERE {invariant(state, scope)}", lambda: None
    return f"DELETE FROM {table.name} WHERE {free(state, scope)}", _wild(table)


def _merge(state: State, table: Tab) -> SessionStatement:
    origin = state.dice.choice(state.sources(attached=False))
    pairs = [(c, d) for c in table.cols for d in origin.cols if c.type == d.type]
    if not pairs or origin is table:
        return None
    left, other = state.dice.choice(pairs)
    return (
        f"MERGE INTO {table.name} AS t USING {origin.name} AS b ON t.{left.name} = b.{other.name}"
        f" WHEN MATCHED THEN DELETE",
        _wild(table),
    )


def _drop(state: State, table: Tab) -> SessionStatement:
    def effect() -> None:
        state.tables = [t for t in state.tables if t is not table]

    return f"DROP TABLE {table.name}", effect


def temp_copy(state: State) -> SessionStatement:
    """Out of a TEMP table into a stored one: literals where they belong, and rows that must be
    refused into plain columns.
    """
    known = [t for t in _known(state) if t.temp != "even"]
    tables = [t for t in state.base() if not t.vault]
    if not known or not tables:
        return temp(state)
    origin, table = state.dice.choice(known), state.dice.choice(tables)
    if origin.temp == "own":
        return _own_copy(state, origin, table)
    targets = [c for c in table.cols
               if c.plain and c.universe is None and not (c.unique or c.generated)]  # fmt: skip
    if not targets:
        return None
    target, col = state.dice.choice(targets), state.dice.choice(origin.cols)
    head = f"INSERT INTO {table.name} ({target.name})"
    count = f"(SELECT count(*) FROM {origin.name} WHERE {free(state, scope_of('', origin))})"
    forms: list[tuple[str, str]] = []
    # Which rows a comparison chooses counts as `access`: what is plain may go where it came from.
    if target.type == col.type and not col.plain:
        forms += 2 * [("values", f"{head} SELECT {col.name} FROM {origin.name}")]
        forms.append(("update", f"UPDATE {table.name} SET {target.name} = (SELECT max({col.name})"
                                f" FROM {origin.name})"))  # fmt: skip
        forms.append(("delete", f"DELETE FROM {table.name} WHERE {target.name} IN (SELECT"
                                f" {col.name} FROM {origin.name})"))  # fmt: skip
    if target.type == "BIGINT":
        forms.append(("count", f"{head} VALUES ({count})"))
        forms.append(("count", f"UPDATE {table.name} SET {target.name} = {count}"))
    names = [name for kind, name in state.objects if kind == "sequence"]
    forms += [("draw", f"SELECT nextval('{name}') AS x FROM {origin.name}") for name in names]
    return (state.pick("temp copy", forms), lambda: None) if forms else None


def _own_copy(state: State, origin: Tab, table: Tab) -> SessionStatement:
    pairs = [
        (c, d) for c in table.written() for d in origin.cols
        if c.type == d.type and c.universe is d.universe and not c.unique
        and c.plain == (c.universe is None)
    ]  # fmt: skip
    if not pairs:
        return None
    target, col = state.dice.choice(pairs)
    where = invariant(state, scope_of("a", origin))
    return (
        f"INSERT INTO {table.name} ({target.name}) SELECT a.{col.name} FROM {origin.name} AS a"
        f" WHERE {where}",
        lambda: None,
    )


TEMPORARY = (temp, temp_change, temp_change, temp_copy)
