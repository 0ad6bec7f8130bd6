"""Changes for one rule each: rows that the ceiling `size` hides, columns that go into ones of a
higher ceiling, and numbers of a sequence.
"""

from __future__ import annotations

from tests.worlds.known_faults import left_out
from tests.worlds.queries import expression, free, scope_of
from tests.worlds.schema import State, Tab


def vault(state: State, table: Tab) -> str:
    """Rows chosen by a dealt column under the ceiling `size`, where no plain column stands."""
    vaults = [t for t in state.base() if t.vault]
    if not vaults or left_out("size"):
        return ""
    table = state.dice.choice(vaults)
    col = next(c for c in table.cols if c.universe is not None and c.universe.dealt)
    where = f"{col.name} = {state.literal(col)}"
    others = [c for c in table.written() if c is not col and c.level == "size"]
    forms = [("delete", f"DELETE FROM {table.name} WHERE {where}")]
    if others:
        other = state.dice.choice(others)
        change = f"UPDATE {table.name} SET {other.name} = {state.literal(other)} WHERE {where}"
        forms.append(("update", change))
    # DuckDB moves a row to the end whose key changes; the worlds have as many of each value.
    rekeyed = f"UPDATE {table.name} SET {col.name} = {state.literal(col)} WHERE {where}"
    forms.append(("rekey", rekeyed))
    if not any(c.unique for c in table.cols):
        names = ", ".join(c.name for c in table.written())
        copied = f"SELECT {names} FROM {table.name} WHERE {where}"
        forms.append(("copy", f"INSERT INTO {table.name} ({names}) {copied}"))
    only = [name for name in state.focus if name.startswith("vault:")]
    forms = [form for form in forms if not only or f"vault:{form[0]}" in only]
    return state.pick("vault", forms) if forms else ""


def below(state: State, table: Tab) -> str:
    """A column into one of a higher ceiling; it may show in codes alone."""
    # What a view or a temporary table shows of a column, Louver may know better.
    origin = state.dice.choice([t for t in state.sources() if not t.view and not t.temp])
    pairs = [
        (target, entry)
        for target in table.written() for entry in scope_of("a", origin)
        if not target.unique and target.type == entry[1].type and entry[1].rank < target.rank
        and not target.plain
    ]  # fmt: skip
    if not pairs:
        return ""
    target, entry = state.dice.choice(pairs)
    value = expression(state, entry)
    tail = f" WHERE {free(state, scope_of('a', origin))}" if state.chance(0.3) else ""
    if origin is table and state.chance(0.5):
        return f"UPDATE {table.name} AS a SET {target.name} = {value}{tail}"
    return f"INSERT INTO {table.name} ({target.name}) SELECT {value} FROM {origin.name} AS a{tail}"


def drawn(state: State, table: Tab) -> str:
    """Numbers of a sequence, into a plain column or one whose order does not show; drawn as often
    as rows of something encrypted are chosen, perhaps.
    """
    names = [name for kind, name in state.objects if kind == "sequence"]
    targets = [
        c for c in table.written()
        if c.type == "BIGINT" and not c.unique
        and (c.universe.level != "order" if c.universe is not None else c.plain)
    ]  # fmt: skip
    if not names or not targets or table.vault:
        return ""
    draw = f"nextval('{state.dice.choice(names)}')"
    target, origin = state.dice.choice(targets), state.dice.choice(state.sources(vaults=False))
    head = f"INSERT INTO {table.name} ({target.name})"
    chosen = f"FROM {origin.name} AS a WHERE {free(state, scope_of('a', origin))}"
    return state.pick("drawn", [
        ("values", f"{head} VALUES ({draw})"),
        ("values", f"{head} SELECT {draw}"),
        ("chosen", f"{head} SELECT {draw} {chosen}"),
        ("case", f"{head} SELECT CASE WHEN (SELECT count(*) {chosen}) > 1 THEN {draw} END"),
    ])  # fmt: skip
