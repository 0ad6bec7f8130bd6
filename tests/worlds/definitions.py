"""Statements that define things: tables with every kind of constraint, views, macros, the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.worlds.keys_and_ceilings import composite, set_enc
from tests.worlds.known_faults import left_out
from tests.worlds.queries import free, invariant, named, source
from tests.worlds.schema import (
    COLLATIONS,
    PLAIN_NAMES,
    TABLES,
    Col,
    State,
    Tab,
    allowed,
    enc,
    kind_of,
    types,
)  # fmt: skip
from tests.worlds.values import LEVELS, NUMBERS

Effect = Callable[[], None]
"""What a statement that succeeded does to the generator's state."""


def create(state: State) -> tuple[str, str, Effect]:
    """CREATE TABLE with drawn columns."""
    schema = state.dice.choice((state.current, *state.schemas))
    taken = {t.bare for t in state.tables if t.schema == schema}
    names = [n for n in allowed(TABLES) if n not in taken]
    bare = state.dice.choice(names) if names else state.fresh("t")
    name = state.called(schema, bare)
    vault = state.chance(0.7 if {"vault", "below"} & set(state.focus) else 0.2)
    vault = vault and not all(t.vault for t in state.base()) and state.profile != "sdb"
    cols: list[Col] = []
    if state.profile == "lake":
        cols, vault = _of_lake(state), False
    elif not vault:
        cols.append(Col("id", "BIGINT", unique=state.chance(0.3)))
        for plain in state.dice.sample(allowed(PLAIN_NAMES), state.dice.randint(1, 3)):
            cols.append(Col(plain, state.dice.choice(types())))
    for number in range(0 if state.profile == "lake" else state.dice.randint(1, 4)):
        cols.append(_secret(state, vault and number == 0, vault))
    if vault and state.chance(0.8 if "listed" in state.focus else 0.25):
        cols.append(Col(state.values.name(state.dice), "BIGINT[]", "size"))
    _alike(state, cols)
    if not vault:
        state.dice.shuffle(cols)
    table = Tab(name, cols, vault=vault, schema=schema, bare=bare)
    parts = [_declared(state, c) for c in cols]
    if not vault and state.profile != "lake" and state.chance(0.2):
        composite(cols, parts)
    for make in (_generated, _referring, _checked, _default):
        often = 0.8 if kind_of(make) in state.focus else 0.12
        if not vault and state.profile != "lake" and state.chance(often):
            make(state, table, parts)
    return "create table", f"CREATE TABLE {name} ({', '.join(parts)})", lambda: _add(state, table)


def _add(state: State, table: Tab) -> None:
    if table.bare == table.name:
        table.schema = state.current
    state.tables.append(table)


def _alike(state: State, cols: list[Col]) -> None:
    """Now and then an ENC column's name differs from a plain one's by the size of a letter that
    DuckDB does not fold.
    """
    names = [c.name for c in cols]
    secret = [c for c in cols if not c.plain]
    if '"ä"' not in names or '"Ä"' in names or not secret or left_out("names"):
        return
    if state.chance(0.8 if "alike" in state.focus else 0.15):
        state.dice.choice(secret).name = state.values.same('"Ä"')


def _secret(state: State, dealt: bool, vault: bool) -> Col:
    type_ = state.dice.choice(types())
    level = state.dice.choice(LEVELS[:4])
    if state.profile == "sealed" and state.chance(0.3):
        level = "access"
    if state.profile == "sdb" and type_ == "BIGINT":
        universe = state.values.universes["order_bigint"]
        return Col(state.values.name(state.dice), type_, "plaintext", universe)
    if dealt:
        universe = state.values.universes[f"dealt_{type_.lower()}"]
        often = 0.8 if "unique" in state.focus else 0.3
        return Col(state.values.name(state.dice), type_, "size", universe, state.chance(often))
    if vault:
        level = state.dice.choice(("size", "access"))
    column = Col(state.values.name(state.dice), type_, level, state.universe(type_, level))
    often = 0.5 if "referring" in state.focus else 0.07
    column.unique = not vault and level != "size" and state.chance(often)
    if type_ == "VARCHAR" and state.chance(0.8 if "collated" in state.focus else 0.15):
        column.collation = state.dice.choice(COLLATIONS)
        if not column.unique and state.chance(0.5):
            column.universe, state.values.folds = state.values.universes["folded_varchar"], True
    return column


def _of_lake(state: State) -> list[Col]:
    """All columns of a lake are ENC, and each may be asked for by ranges."""
    cols = []
    for _ in range(state.dice.randint(2, 4)):
        type_, level = state.dice.choice(types()), state.dice.choice(("access", "access", "size"))
        name = "order" if level == "access" else "size"
        universe = state.values.universes[f"{name}_{type_.lower()}"]
        cols.append(Col(state.values.name(state.dice), type_, level, universe))
    return cols


def _declared(state: State, col: Col) -> str:
    shown = " ENC" if col.plain and col.universe is not None else enc(state.profile, col.level)
    if shown and col.type == "BIGINT" and state.chance(0.5):
        shown += " WITH (sum = 'masked')"
    tail = f" COLLATE {col.collation}" * bool(col.collation) + " UNIQUE" * col.unique
    return f"{col.name} {col.type}{shown}{tail}"


def _generated(state: State, table: Tab, parts: list[str]) -> None:
    origin = state.dice.choice([c for c in table.cols if c.type == "BIGINT"] or table.cols)
    level = state.dice.choice(LEVELS)
    if left_out("generated") and LEVELS.index(level) > origin.rank:
        level = origin.level
    name = state.values.name(state.dice) if level != "plaintext" else state.fresh("g")
    value = f"({origin.name} % 7)" if origin.type == "BIGINT" else f"({origin.name})"
    doomed = LEVELS.index(level) > origin.rank
    if not doomed:
        value = f"({origin.name})"
    type_ = origin.type
    parts.append(f"{name} {type_}{enc(state.profile, level)} GENERATED ALWAYS AS {value}")
    table.cols.append(Col(name, type_, level, origin.universe if level != "plaintext" else None,
                          generated=True))  # fmt: skip


def _referring(state: State, table: Tab, parts: list[str]) -> None:
    keys = [(t, c) for t in state.base() for c in t.cols if c.unique]
    if not keys:
        return
    parent, key = state.dice.choice(keys)
    level = state.dice.choice(("plaintext", key.level, "size"))
    if left_out("references") and not key.plain and level == "plaintext":
        level = key.level
    if key.plain:
        level = "plaintext"
    name = state.values.name(state.dice) if level != "plaintext" else state.fresh("f")
    column = Col(name, key.type, level, key.universe)
    parts.append(f"{name} {key.type}{enc(state.profile, level)} REFERENCES {parent.name}"
                 f" ({key.name})")  # fmt: skip
    table.cols.append(column)
    table.linked = parent.linked = True


def _even(col: Col) -> bool:
    """Whether values of the column are as long in one world as in the other, written out. The
    catalog holds declarations, and its length tells about how long these are (THREAT_MODEL, 2).
    """
    if col.universe is not None and col.universe.loose and col.type == "VARCHAR":
        return False
    return col.universe is None or col.type not in NUMBERS


def _checked(state: State, table: Tab, parts: list[str]) -> None:
    col = state.dice.choice(table.cols)
    if col.universe is not None and not col.universe.loose and _even(col):
        parts.append(f"CHECK ({col.name} <> {state.values.mark(col.universe, 3)})")


def _default(state: State, table: Tab, parts: list[str]) -> None:
    forms = [("query", "current_query()"), ("plain", "'red'"), ("secret", "")]
    sequences = [name for kind, name in state.objects if kind == "sequence"]
    forms += [("sequence", f"nextval('{name}')") for name in sequences]
    value = state.pick("default", forms)
    if not value:
        column = _secret(state, False, False)
        if column.universe is not None and not column.unique and _even(column):
            parts.append(f"{_declared(state, column)} DEFAULT {state.literal(column)}")
            table.cols.append(column)
        return
    if value.startswith("nextval"):
        column = Col(state.fresh("s"), "BIGINT", generated=True)
    elif value.startswith("'") or left_out("current_query"):
        column, value = Col(state.fresh("d"), "VARCHAR"), "'red'"
    else:
        column = Col(state.fresh("d"), "VARCHAR", generated=True)
    parts.append(f"{column.name} {column.type} DEFAULT {value}")
    table.cols.append(column)


# ---------------------------------------------------------------------- the rest


def define(state: State) -> tuple[str, str, Effect]:
    """Any other statement about the schema."""
    action = state.dice.choice(state.focused(_KINDS) or _KINDS)
    if state.in_transaction and state.profile in ("cryptdb", "mixed") and action in _ALTERING:
        # DuckDB commits no ALTER behind a change of rows, and to open a layer is one.
        action = _view
    result = action(state)
    if result is None:
        return create(state)
    text, effect = result
    return kind_of(action), text, effect


Made = tuple[str, Effect] | None


def _view(state: State) -> Made:
    tables = [t for t in state.base() if not t.vault]
    base = source(state, tables=tables, free_joins=False)
    entries = state.dice.sample(base.scope, min(len(base.scope), 3))
    name = state.fresh("v")
    cols = [replace(c, name=f"x{i}", unique=False, generated=False)
            for i, (_, c) in enumerate(entries)]  # fmt: skip
    items = ", ".join(f"{named(e)} AS {c.name}" for e, c in zip(entries, cols, strict=True))
    even = [entry for entry in base.scope if _even(entry[1])]
    where = f" WHERE {invariant(state, even)}" if state.chance(0.5) else ""
    table = Tab(name, cols, view=True)
    return f"CREATE VIEW {name} AS SELECT {items} FROM {base.text}{where}", lambda: _add(
        state, table
    )


def _schema_view(state: State) -> Made:
    """What the schema says, under a name of the user's."""
    name = state.fresh("v")
    query = state.pick("schema view", [
        ("information", "SELECT column_name AS x FROM information_schema.columns"),
        ("duckdb", "SELECT column_name AS x FROM duckdb_columns() WHERE NOT internal"),
    ])  # fmt: skip
    return f"CREATE VIEW {name} AS {query}", lambda: state.objects.append(("schema view", name))


def _macro(state: State) -> Made:
    """Scalars, draws of a sequence, and tables that are computed from an ENC column."""
    name = state.fresh("m")
    forms = [("plain", "macro|x + 1")]
    sequences = [name for kind, name in state.objects if kind == "sequence"]
    forms += [("draws", f"macro|nextval('{state.dice.choice(sequences)}')")] if sequences else []
    known = [(t, c) for t in state.base() for c in t.secret if c.type == "BIGINT" and not t.vault]
    if known:
        table, col = state.dice.choice(known)
        body = f"SELECT {col.name} % 3 AS y FROM {table.name} WHERE {col.name} > x"
        forms.append(("table", f"table macro|TABLE {body}"))
    kind, _, body = state.pick("macro", forms).partition("|")
    return f"CREATE MACRO {name}(x) AS {body}", lambda: state.objects.append((kind, name))


def _sequence(state: State) -> Made:
    if sum(kind == "sequence" for kind, _ in state.objects) > 1:
        return None
    name = state.fresh("seq")
    return f"CREATE SEQUENCE {name}", lambda: state.objects.append(("sequence", name))


def _copied(state: State) -> Made:
    """CREATE TABLE AS: the columns of the copy are protected as those that they come from."""
    base = source(state, tables=[t for t in state.base() if not t.vault], free_joins=False)
    entries = state.dice.sample(base.scope, min(len(base.scope), 3))
    entries = [e for e in entries if not (e[1].plain and e[1].universe is not None)]
    if not entries:
        return None
    cols = [
        replace(c, name=state.values.name(state.dice) if not c.plain else state.fresh("c"),
                unique=False, generated=False)
        for _, c in entries
    ]  # fmt: skip
    items = ", ".join(f"{named(e)} AS {c.name}" for e, c in zip(entries, cols, strict=True))
    name = state.fresh("t")
    table = Tab(name, cols)
    where = f" WHERE {invariant(state, base.scope)}" if state.chance(0.4) else ""
    listed = ""
    if state.chance(0.4) and state.profile != "lake":
        clauses = [enc(state.profile, c.level) if state.chance(0.5) else "" for c in cols]
        listed = f" ({', '.join(f'{c.name}{s}' for c, s in zip(cols, clauses, strict=True))})"
    return f"CREATE TABLE {name}{listed} AS SELECT {items} FROM {base.text}{where}", lambda: _add(
        state, table
    )


def _drop(state: State) -> Made:
    known = [t for t in state.tables if not (t.attached or t.linked or t.temp)]
    if len(known) < 4:
        return None
    table = state.dice.choice(known)
    if table is next(t for t in state.base() if not t.vault):
        return None
    kind = "VIEW" if table.view else "TABLE"
    return f"DROP {kind} {table.name}", lambda: state.tables.remove(table)


def _rename(state: State) -> Made:
    table = state.dice.choice(state.base())
    name = state.fresh("r")

    def effect() -> None:
        table.bare, table.name = name, state.called(table.schema, name)

    return f"ALTER TABLE {table.name} RENAME TO {name}", effect


def _rename_column(state: State) -> Made:
    table = state.dice.choice(state.base())
    col = state.dice.choice(table.cols)
    if table.linked or col.generated:
        return None
    name = state.fresh("c") if col.plain else state.values.name(state.dice)

    def effect() -> None:
        col.name = name

    return f"ALTER TABLE {table.name} RENAME COLUMN {col.name} TO {name}", effect


def _add_column(state: State) -> Made:
    table = state.dice.choice(state.base())
    if table.vault:
        return None
    col = _secret(state, False, False) if state.chance(0.7) else Col(state.fresh("c"), "BIGINT")
    col.unique = False
    return (
        f"ALTER TABLE {table.name} ADD COLUMN {_declared(state, col)}",
        lambda: table.cols.append(col),
    )


def _drop_column(state: State) -> Made:
    table = state.dice.choice(state.base())
    if table.vault or len(table.cols) < 4:
        return None
    col = state.dice.choice(table.cols)
    return f"ALTER TABLE {table.name} DROP COLUMN {col.name}", lambda: table.cols.remove(col)


def _ceiling(state: State) -> Made:
    """A ceiling that goes down, or up to what the column's universe bears."""
    known = [(t, c) for t in state.base() for c in t.secret if c.universe and not t.vault]
    if not known:
        return None
    table, col = state.dice.choice(known)
    most = LEVELS.index(col.universe.level) if col.universe else 0
    level = state.dice.choice(LEVELS[: most + 1])

    def effect() -> None:
        if LEVELS.index(level) > col.rank:
            # What had to be refused may be lawful now.
            state.prepared = [p for p in state.prepared if p.reads]
        col.level = level

    return f"ALTER TABLE {table.name} ALTER COLUMN {col.name} MAY REVEAL {level}", effect


def _comment(state: State) -> Made:
    table = state.dice.choice(state.base())
    said = state.literal(state.dice.choice(table.secret)) if table.secret else "'x'"
    if "NULL" in said or "VARCHAR" not in said.upper():
        return None
    return f"COMMENT ON TABLE {table.name} IS {said}", lambda: None


def _index(state: State) -> Made:
    table = state.dice.choice(state.base())
    col = state.dice.choice(table.cols)
    if col.level == "size" or left_out("index"):
        return None
    return f"CREATE INDEX {state.fresh('i')} ON {table.name} ({col.name})", lambda: None


def settings(state: State) -> list[str]:
    """What a session sets at its beginning."""
    if state.profile == "lake":
        return ["SET lake_rows_per_file = 3"]
    if state.chance(0.6):
        return ["SET link_bandwidth = '1KB/s'", "SET link_latency = '0.01ms'"]
    return []


_KINDS = (_view, _view, _macro, _sequence, _copied, _copied, _drop, _rename, _rename_column,
          _add_column, _drop_column, _ceiling, _ceiling, set_enc, _comment, _index,
          _schema_view)  # fmt: skip
_ALTERING = (_rename, _rename_column, _add_column, _drop_column)
DEFINITIONS = frozenset(map(kind_of, _KINDS))
"""The kinds of statements that `define` makes."""

__all__ = ["DEFINITIONS", "create", "define", "free", "settings"]
