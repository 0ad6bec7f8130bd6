"""What a session keeps locally: variables and prepared statements.

A variable's kind is "own" for a literal of the user's, "even" for what corresponds in both worlds,
and "wild" for what does not, which must reach no column that shows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.worlds.queries import free, named, scope_of
from tests.worlds.reads import read
from tests.worlds.schema import PLAIN, Prepared, State, Var
from tests.worlds.values import Universe
from tests.worlds.writes import write

SessionStatement = tuple[str, Callable[[], None]] | None
"""A statement, and what it does to the generator's state where it succeeds."""
_LITERAL = re.compile("\x01(([a-z][^\x01\x02|]*)\\|[^\x01\x02]*)\x02")
_WRITES = ("values", "copy", "update", "delete", "upsert", "exotic", "drawn")


def _nothing() -> None:
    """The statement changes nothing that the generator knows."""


# ---------------------------------------------------------------------- variables


def set_variable(state: State) -> SessionStatement:
    """SET VARIABLE and RESET VARIABLE; a variable keeps its type and kind."""
    known = state.dice.choice(state.variables) if state.variables else None
    if known is not None and state.chance(0.15):
        return f"RESET VARIABLE {known.name}", _nothing
    again = known if state.chance(0.3) else None
    kind = state.dice.choice(("own", "own", "plain", "even", "even", "wild", "wild", "wild"))
    if again is not None:
        kind = "plain" if again.universe is None and again.kind == "own" else again.kind
    makers = {"own": _own, "plain": _plain, "even": _even, "wild": _wild}
    action = makers[kind](state, again)
    if action is None:
        return None
    variable, value = action
    joint = state.dice.choice((" = ", " = ", " TO "))

    def effect() -> None:
        if variable not in state.variables:
            state.variables.append(variable)

    return f"SET VARIABLE {variable.name}{joint}{value}", effect


Made = tuple[Var, str] | None


def _own(state: State, again: Var | None) -> Made:
    universes = [u for u in state.values.universes.values() if not u.dealt]
    universe = again.universe if again and again.universe else state.dice.choice(universes)
    variable = again or Var(state.fresh("x"), universe.type, "own", universe)
    return variable, literal(state, universe)


def _plain(state: State, again: Var | None) -> Made:
    variable = again or Var(state.fresh("x"), state.dice.choice(("BIGINT", "VARCHAR")), "own")
    return variable, state.dice.choice(PLAIN[variable.type])


def _even(state: State, again: Var | None) -> Made:
    """One value of a column, or the greatest of a plain one."""
    entries = [
        (table, col) for table in state.sources(vaults=False, attached=False) for col in table.cols
        if not col.generated and not col.collation
        and (col.plain == (col.universe is None)) and (col.rank or col.plain)
    ]  # fmt: skip
    if again is not None:
        entries = [e for e in entries
                   if (e[1].universe, e[1].type) == (again.universe, again.type)]  # fmt: skip
    if not entries:
        return None
    table, col = state.dice.choice(entries)
    variable = again or Var(state.fresh("x"), col.type, "even", col.universe)
    if col.universe is None:
        return variable, f"(SELECT max({col.name}) FROM {table.name})"
    where = f"{col.name} = {state.values.mark(col.universe, state.places(col.universe)[0])}"
    return variable, f"(SELECT DISTINCT {col.name} FROM {table.name} WHERE {where})"


def _wild(state: State, again: Var | None) -> Made:
    entries = [(t, c) for t in state.sources(attached=False) for c in t.secret
               if c.type in PLAIN and t.temp != "own"]  # fmt: skip
    if again is not None:
        entries = [e for e in entries if e[1].level == again.level]
        entries = [e for e in entries if again.type in ("BIGINT", e[1].type)]
    if not entries:
        return None
    table, col = state.dice.choice(entries)
    counted = again.type == "BIGINT" if again else state.chance(0.5)
    counted = counted and col.type != "BIGINT"
    type_ = "BIGINT" if counted else col.type
    variable = again or Var(state.fresh("x"), type_, "wild", level=col.level)
    source = f"FROM {table.name} AS a"
    if counted:
        return variable, f"(SELECT count(*) {source} WHERE {free(state, [('a', col)])})"
    return variable, f"(SELECT max(a.{col.name}) {source})"


def literal(state: State, universe: Universe) -> str:
    """A value of a universe; of a loose one, the worlds have others as long."""
    (number,) = state.places(universe)
    second = state.dice.choice(universe.alike(number)) if universe.loose else number
    return state.values.mark(universe, number, second)


def kept_write(state: State) -> SessionStatement:
    """What is kept and does not correspond, on its way to where it would show: to be refused."""
    wild = [v for v in state.variables if v.kind == "wild"]
    targets = [
        (table, col, variable)
        for table in state.base() for col in table.cols for variable in wild
        if col.plain and col.universe is None and not col.unique and not col.generated
        and col.type == variable.type
    ]  # fmt: skip
    if not targets:
        return set_variable(state)
    table, col, value = state.dice.choice(targets)
    head = f"INSERT INTO {table.name} ({col.name})"
    forms = [
        ("values", f"{head} VALUES ({value})"),
        ("values", f"{head} SELECT {value}"),
        ("update", f"UPDATE {table.name} SET {col.name} = {value}"),
        ("delete", f"DELETE FROM {table.name} WHERE {col.name} < {value}"),
        ("merge", f"MERGE INTO {table.name} AS t USING (SELECT {value} AS y) AS b ON t.{col.name}"
                  f" = b.y WHEN MATCHED THEN DELETE"),
    ]  # fmt: skip
    if value.level == "size":
        # Which rows a comparison chooses counts as `access`.
        chosen = f"{head} SELECT a.{col.name} FROM {table.name} AS a WHERE a.{col.name}"
        forms += [("chosen", f"{chosen} >= {value}"), ("chosen", f"{head} SELECT NULL WHERE {value}"
                   f" IS NULL")]  # fmt: skip
    if col.type == "BIGINT":
        forms.append(("range", f"{head} SELECT 1 FROM range({value} % 3)"))
        forms += [
            ("draw", f"SELECT count(nextval('{name}')) AS x FROM range({value} % 7)")
            for kind, name in state.objects if kind == "sequence"
        ]  # fmt: skip
    return state.pick("kept write", forms), _nothing


# ---------------------------------------------------------------------- prepared statements


def prepare(state: State) -> SessionStatement:
    """PREPARE of a drawn statement, most of whose literals are given later."""
    change = _plain_change(state) if state.chance(0.35) or "plain" in state.focus else None
    reads = False
    if change is None:
        reads = state.chance(0.5)
        kind, change = read(state) if reads else write(state)
        if not reads and kind not in _WRITES:
            return None
    if "current_query" in change or "PIVOT" in change:
        return None
    name = state.fresh("q")
    if state.prepared and state.chance(0.15):
        name = state.dice.choice(state.prepared).name
    style = state.dice.choice(("?", "$", "$k"))
    wanted: list[tuple[str, str, Universe | None, str]] = []

    def key(match: re.Match[str]) -> str:
        universe = state.values.universes.get(match[2])
        if universe is not None and state.chance(0.15):
            return match[0]
        type_ = "BIGINT" if universe is None else universe.type
        number = len(wanted) + 1
        wanted.append((f"k{number}" if style == "$k" else str(number), type_, universe, match[0]))
        return "?" if style == "?" else f"{style}{number}"

    text = _LITERAL.sub(key, change)
    statement = Prepared(name, tuple(wanted), reads)

    def effect() -> None:
        state.prepared = [p for p in state.prepared if p.name != name] + [statement]

    return f"PREPARE {name} AS {text}", effect


def _plain_change(state: State) -> str | None:
    """A change of a plain column by a number that is given later."""
    targets = [
        (t, c) for t in state.base() for c in t.cols
        if c.type == "BIGINT" and c.plain and c.universe is None and not (c.unique or c.generated)
    ]  # fmt: skip
    if not targets:
        return None
    table, col = state.dice.choice(targets)
    given = "\x01number|0|0\x02"
    forms = [
        ("values", f"INSERT INTO {table.name} ({col.name}) VALUES ({given})"),
        ("select", f"INSERT INTO {table.name} ({col.name}) SELECT a.{col.name} + {given}"
                   f" FROM {table.name} AS a LIMIT 3"),
        ("update", f"UPDATE {table.name} SET {col.name} = {given}"),
        ("delete", f"DELETE FROM {table.name} WHERE {col.name} > {given}"),
    ]  # fmt: skip
    names = [name for kind, name in state.objects if kind == "sequence"]
    forms += [("draw", f"SELECT nextval('{name}') AS x FROM range({given} % 7)") for name in names]
    return state.pick("prepare", forms)


def execute(state: State) -> SessionStatement:
    """EXECUTE with other values, now and then too few or too many."""
    if not state.prepared:
        return prepare(state)
    statement = state.dice.choice(state.prepared)
    named_ = [key for key, *_ in statement.wanted if key.startswith("k")]
    given = [_argument(state, statement, *item[1:]) for item in statement.wanted]
    if named_:
        given = [f"{key} := {value}" for key, value in zip(named_, given, strict=True)]
        state.dice.shuffle(given)
    if state.chance(0.04):
        given = given[:-1] if given and state.chance(0.5) else [*given, "1"]
    tail = f"({', '.join(given)})" if given else ""
    return f"EXECUTE {statement.name}{tail}", _nothing


def _argument(
    state: State, statement: Prepared, type_: str, universe: Universe | None, first: str
) -> str:
    often = 0.7 if "variables" in state.focus else 0.15
    if universe is None:
        known = [v for v in state.variables if v.type == "BIGINT" and v.universe is None]
        known = [v for v in known if v.kind == "wild"] or known
        return str(state.dice.choice(known)) if known and state.chance(often) else "2"
    known = [v for v in state.variables if v.type == type_]
    if not statement.reads:
        known = [v for v in known if v.universe is universe and v.kind != "wild"]
    if known and state.chance(often):
        return str(state.dice.choice(known))
    if universe.dealt or state.chance(0.3):
        return first
    return literal(state, universe)


def deallocate(state: State) -> SessionStatement:
    """DEALLOCATE; of what is not there nothing is said."""
    name = state.dice.choice([*(p.name for p in state.prepared), "nothing"])

    def effect() -> None:
        state.prepared = [p for p in state.prepared if p.name != name]

    return f"DEALLOCATE {name}", effect


def shown(state: State) -> SessionStatement:
    """A query of what is kept."""
    table = state.dice.choice(state.sources())
    where = free(state, scope_of("a", table))
    values = ", ".join(map(str, state.variables[-3:])) or "1"
    item = named(("a", state.dice.choice(table.cols)))
    return state.dice.choice((
        f"SELECT {values}",
        f"SELECT {item} AS x, {values.split(', ', maxsplit=1)[0]} AS y FROM {table.name} AS a"
        f" WHERE {where}",
        "SELECT count(*) AS n FROM duckdb_variables()",
    )), _nothing  # fmt: skip


SESSION_OBJECTS = (
    set_variable, set_variable, kept_write, prepare, prepare, execute, execute, execute,
    deallocate, shown,
)  # fmt: skip
