"""Statements that change rows.

Each is either *doomed*: it would carry an ENC column into a target under a higher ceiling, so that
it must be refused and may hold anything, exotic forms above all; or it is harmless, and then rows
are chosen and counted only by what the renaming keeps. Nothing here says which statements Louver
has to refuse: a doomed one that runs makes the worlds differ, a harmless one may run or not.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.worlds.known_faults import left_out
from tests.worlds.queries import (
    From,
    bare_name,
    expression,
    free,
    invariant,
    named,
    scope_of,
    source,
)
from tests.worlds.refused_changes import exotic, schema_rows
from tests.worlds.rule_changes import below, drawn, vault
from tests.worlds.schema import Col, State, Tab, kind_of


def write(state: State) -> tuple[str, str]:
    """A change of rows: its kind and its text."""
    tables = state.base()
    if focused := state.focused(_ALL):
        make = state.dice.choice(focused)
        text = make(state, state.dice.choice(tables))
        return kind_of(make), text or _values(state, state.dice.choice(tables))
    kinds = [_values] * 5 + [_copy] * 5 + [_update] * 4 + [_delete] * 2 + [vault] * 2
    kinds += [_merge, _upsert, _upsert, _rekey, _star_copy, _star_copy, exotic, exotic]
    kinds += [schema_rows, drawn, _far, below]
    make = state.dice.choice(kinds)
    text = make(state, state.dice.choice(tables))
    if text and state.chance(0.12) and make not in (_values, _upsert):
        text += " RETURNING *" if make is not _merge else ""
    return kind_of(make), text or _values(state, state.dice.choice(tables))


# ---------------------------------------------------------------------- new rows


def rows(state: State, cols: Sequence[Col], count: int) -> list[list[str]]:
    """Literals for new rows: of loose universes the worlds get other places."""
    new_rows: list[list[str]] = [[] for _ in range(count)]
    for col in cols:
        universe = col.universe
        if universe is None or not universe.loose:
            for row in new_rows:
                row.append(_fresh(state, col))
            continue
        first = state.places(universe, count)
        if col.unique:
            first = state.dice.sample(range(len(universe.pairs[0])), count)
        second = list(first)
        if universe.dealt:
            for group in ([p for p in first if p in universe.alike(k)] for k in (0, 7)):
                if universe.type != "VARCHAR" and group is not first:
                    group = list(first)
                state.dice.shuffle(group)
                deal = iter(group)
                second = [
                    next(deal) if p in group else q for p, q in zip(first, second, strict=True)
                ]
                if universe.type != "VARCHAR":
                    break
        else:
            second = [state.dice.choice(universe.alike(index)) for index in first]
            short = [n for n, index in enumerate(first) if 0 in universe.alike(index)]
            if short and not col.unique:
                (first if state.chance(0.5) else second)[state.dice.choice(short)] = -1
        for row, row_a, other in zip(new_rows, first, second, strict=True):
            row.append(state.values.mark(universe, row_a, other))
    return new_rows


def _fresh(state: State, col: Col) -> str:
    if col.unique and col.plain and col.type == "BIGINT":
        if state.chance(0.25):
            return str(1_000 + state.dice.randint(0, state.count))
        state.count += 1
        return str(1_000 + state.count)
    return state.literal(col)


def _values(state: State, table: Tab) -> str:
    cols = table.written()
    if state.chance(0.25) and len(cols) > 2:
        cols = [c for c in cols if c.unique or state.chance(0.8)] or cols
    if state.chance(0.02) and not table.vault:
        return f"INSERT INTO {table.name} DEFAULT VALUES"
    new_rows = rows(state, cols, state.dice.choice((1, 2, 3, 5, 8)))
    if state.chance(0.1) and not table.vault:
        index = state.dice.randrange(len(cols))
        new_rows = [[*row[:index], "DEFAULT", *row[index + 1 :]] for row in new_rows]
    listed = ", ".join(f"({', '.join(row)})" for row in new_rows)
    names = f" ({', '.join(c.name for c in cols)})"
    if cols == table.cols and state.chance(0.5):
        names = ""
    tail = " RETURNING *" if state.chance(0.08) else ""
    return f"INSERT INTO {table.name}{names} VALUES {listed}{tail}"


def _upsert(state: State, table: Tab) -> str:
    keys = [t for t in state.base() if any(c.unique for c in t.cols) and not t.linked]
    keys = [t for t in keys if not (t.vault and left_out("size"))]
    if not keys:
        return ""
    table = state.dice.choice(keys)
    key = next(c for c in table.cols if c.unique)
    cols = table.written()
    new_rows = rows(state, cols, state.dice.randint(1, 3))
    if sum(c.unique for c in cols) > 1 and any("NULL" in row for row in new_rows):
        # DuckDB takes NULLs of two keys to be in conflict.
        return ""
    listed = ", ".join(f"({', '.join(row)})" for row in new_rows)
    head = f"INSERT INTO {table.name} ({', '.join(c.name for c in cols)}) VALUES {listed}"
    others = [c for c in cols if not c.unique]
    if state.chance(0.2):
        return head.replace("INSERT", f"INSERT OR {state.dice.choice(('REPLACE', 'IGNORE'))}", 1)
    if not others or state.chance(0.3):
        return head + " ON CONFLICT DO NOTHING"
    col = state.dice.choice(others)
    given = state.dice.choice([c for c in cols if c.type == col.type])
    doomed = given.rank < col.rank
    if not doomed and not _kept(given, col):
        given = col
    value = state.dice.choice((f"excluded.{given.name}", state.literal(col), col.name))
    chosen = ""
    if not doomed and state.chance(0.25):
        chosen = f" WHERE {invariant(state, scope_of(table.name, table))}"
    if doomed and state.chance(0.3):
        value = f"CASE WHEN excluded.{given.name} > {state.literal(given)} THEN {value} END"
    return f"{head} ON CONFLICT ({key.name}) DO UPDATE SET {col.name} = {value}{chosen}"


# ---------------------------------------------------------------------- copies


def _items(
    state: State, cols: Sequence[Col], scope: Sequence[tuple[str, Col]]
) -> tuple[list[str], bool]:
    """What goes into each column, and whether that is doomed."""
    items, doomed = [], False
    for col in cols:
        fitting = [e for e in scope if e[1].type == col.type]
        lawful = [e for e in fitting if e[1].rank >= col.rank and _kept(e[1], col)]
        if not fitting or state.chance(0.1):
            items.append(_fresh(state, col) if not col.generated else "NULL")
            continue
        if lawful and state.chance(0.75):
            chosen = state.dice.choice(lawful)
            items.append(_injective(state, chosen, col))
            continue
        chosen = state.dice.choice(fitting)
        if chosen[1].rank < col.rank:
            doomed = True
            items.append(expression(state, chosen) if state.chance(0.5) else named(chosen))
        elif chosen in lawful:
            items.append(named(chosen))
        else:
            items.append("NULL")
    return items, doomed


def _kept(given: Col, target: Col) -> bool:
    """Whether what a target may show of its values is the same of the given one's: plain values
    have no place among those of a universe whose order is shown.
    """
    if target.universe is not None and target.universe.level == "order":
        return given.universe is target.universe and not target.unique
    return not target.unique and (given.plain or given.universe is not None)


def _injective(state: State, entry: tuple[str, Col], target: Col) -> str:
    """An expression that keeps equalities and order, or any where the target shows neither."""
    name, col = named(entry), entry[1]
    if col.type == "BIGINT" and not col.plain and state.chance(0.25):
        return f"{name} + 1"
    loose = target.universe is not None and target.universe.loose
    if loose and col.type != "VARCHAR" and state.chance(0.25):
        return expression(state, entry)
    return name


def _far(state: State, table: Tab) -> str:
    """The same out of tables of an attached connection."""
    known = [t for t in state.tables if t.attached]
    return _copy(state, table, known) if known else ""


def _copy(state: State, table: Tab, known: Sequence[Tab] = ()) -> str:
    if table.vault:
        return ""
    base = source(state, tables=known or state.sources(vaults=False), free_joins=False)
    cols = [c for c in table.written() if c.unique or state.chance(0.8)] or table.written()[:1]
    # How many rows are different shows nothing of columns that may show which are equal.
    sole = state.chance(0.15) and all(c.rank or c.plain for _, c in base.scope)
    sole = sole and not any(c.collation for _, c in base.scope)
    if sole:
        cols = [c for c in cols if not c.plain] or cols
    items, doomed = _items(state, cols, base.scope)
    if state.chance(0.2):
        items = [f"{item} AS {state.fresh('y')}" for item in items]
    doomed = doomed and not _refused_in_part(base)
    where = (
        free(state, base.scope) if doomed and state.chance(0.5) else invariant(state, base.scope)
    )
    base.text += f" WHERE {where}" if state.chance(0.7) else ""
    if not left_out("order") and not sole and state.chance(0.2):
        base.text += f" ORDER BY {named(state.dice.choice(base.scope))}"
    names = ", ".join(c.name for c in cols)
    query = f"SELECT {'DISTINCT ' * sole}{', '.join(items)} FROM {base.text}"
    if state.chance(0.1):
        query = f"WITH w AS ({query}) SELECT * FROM w"
    return f"INSERT INTO {table.name} ({names}) {query}"


def _refused_in_part(base: From) -> bool:
    """Whether the source is one whose columns Louver may know better than the generator."""
    return any(table.view or table.temp for table in base.tables)


def _star_copy(state: State, table: Tab) -> str:
    """INSERT … SELECT of a star with arguments, whose columns fit the target's by their types."""
    if left_out("stars"):
        return ""
    origin = state.dice.choice(state.sources(vaults=False))
    count = state.dice.randint(1, min(3, len(origin.cols)))
    chosen = state.dice.sample(range(len(origin.cols)), count)
    taken = [origin.cols[index] for index in sorted(chosen)]
    rest = [c for c in origin.cols if c not in taken]
    targets: list[Col] = []
    for col in taken:
        fitting = [
            c for c in table.written() if c.type == col.type and c not in targets and not c.unique
        ]
        if not fitting:
            return ""
        higher = [c for c in fitting if c.rank > col.rank]
        targets.append(state.dice.choice(higher if higher and state.chance(0.6) else fitting))
    if table.vault or any(
        c.level == "size" and not t.plain for c, t in zip(taken, targets, strict=True)
    ):
        return ""
    doomed = any(c.rank < t.rank for c, t in zip(taken, targets, strict=True))
    if not doomed and any(not _kept(c, t) for c, t in zip(taken, targets, strict=True)):
        return ""
    left = f" EXCLUDE ({', '.join(c.name for c in rest)})" if rest else ""
    pattern = "|".join(bare_name(c) for c in taken)
    listed = ", ".join(f"'{bare_name(c)}'" for c in taken)
    forms = [
        ("exclude" if rest else "star", f"*{left}"),
        ("exclude" if rest else "star", f"a.*{left}"),
        ("columns", f"COLUMNS('^({pattern})$')"),
        ("columns", f"COLUMNS(c -> c IN ({listed}))"),
        ("columns", f"COLUMNS([{listed}])"),
    ]
    if not left_out("like") and len(taken) == 1 and "%" not in pattern and "_" not in pattern:
        forms.append(("like", f"* LIKE '{pattern}'"))
    unlike = False
    swap = [(c, d) for c in taken for d in origin.cols if c.type == d.type and c is not d]
    if swap:
        out, come = state.dice.choice(swap)
        unlike = come.rank < targets[taken.index(out)].rank
        # What takes the place of the only doomed column may make the statement lawful.
        if unlike or (come.rank >= out.rank and not doomed):
            forms.append(("replace", f"*{left} REPLACE ({come.name} AS {out.name})"))
    star = state.pick("star copy", forms)
    doomed = doomed or ("REPLACE" in star and unlike)
    scope = scope_of("a", origin)
    where = (
        free(state, scope)
        if doomed and not (origin.view or origin.temp)
        else invariant(state, scope)
    )
    names = ", ".join(c.name for c in targets)
    tail = f" WHERE {where}" if state.chance(0.6) else ""
    return f"INSERT INTO {table.name} ({names}) SELECT {star} FROM {origin.name} AS a{tail}"


# ---------------------------------------------------------------------- changes of old rows


def _update(state: State, table: Tab) -> str:
    if table.vault:
        return ""
    base = From("", scope_of(table.name, table), [table])
    joined = ""
    if state.chance(0.25):
        other = state.dice.choice(state.sources(vaults=False, attached=False))
        pairs = [
            (x, y) for x in base.scope for y in scope_of("b", other)
            if x[1].type == y[1].type and x[1].universe is y[1].universe
            and min(x[1].rank, y[1].rank) >= 1 and (x[1].universe or x[1].plain)
        ]  # fmt: skip
        if pairs and other is not table:
            left, right = state.dice.choice(pairs)
            joined = f"{named(left)} = {named(right)}"
            base.scope += scope_of("b", other)
            base.text = f" FROM {other.name} AS b"
            base.tables.append(other)
    cols = [c for c in table.written() if not c.unique]
    if not cols:
        return ""
    cols = state.dice.sample(cols, min(len(cols), state.dice.choice((1, 1, 2))))
    # Of several rows that match one, either may be taken: only its own columns are sure.
    own = scope_of(table.name, table)
    items, doomed = _items(state, cols, own)
    where = invariant(state, own)
    if doomed and state.chance(0.4) and not _refused_in_part(base):
        where = free(state, own)
    if joined:
        where = f"{joined} AND ({where})"
    assigned = ", ".join(f"{c.name} = {item}" for c, item in zip(cols, items, strict=True))
    tail = f" WHERE {where}" if joined or state.chance(0.85) else ""
    return f"UPDATE {table.name} SET {assigned}{base.text}{tail}"


def _rekey(state: State, table: Tab) -> str:
    """One row gets another key, which may be taken."""
    keys = [
        (t, c) for t in state.base() for c in t.written()
        if c.unique and not t.vault and not t.linked and c.universe is not None and c.rank
    ]  # fmt: skip
    if not keys:
        return ""
    table, key = state.dice.choice(keys)
    first, second = state.literal(key), state.literal(key)
    if "NULL" in (first, second) or "getvariable" in first + second:
        return ""
    return f"UPDATE {table.name} SET {key.name} = {first} WHERE {key.name} = {second}"


def _delete(state: State, table: Tab) -> str:
    if table.vault:
        return ""
    if state.chance(0.05):
        return state.dice.choice((f"DELETE FROM {table.name}", f"TRUNCATE {table.name}"))
    return f"DELETE FROM {table.name} WHERE {invariant(state, scope_of(table.name, table))}"


def _merge(state: State, table: Tab) -> str:
    origin = state.dice.choice(state.sources(vaults=False, attached=False))
    if table.vault or origin is table:
        return ""
    right = scope_of("b", origin)
    pairs = [
        (x, y) for x in scope_of("t", table) for y in right
        if x[1].type == y[1].type and x[1].universe is y[1].universe
        and min(x[1].rank, y[1].rank) >= 1 and (x[1].universe or x[1].plain)
    ]  # fmt: skip
    if not pairs:
        return ""
    left, other = state.dice.choice(pairs)
    cols = [c for c in table.written() if not c.unique and c is not left[1]]
    head = (
        f"MERGE INTO {table.name} AS t USING {origin.name} AS b ON {named(left)} = {named(other)}"
    )
    text = head
    if state.chance(0.25):
        text += f" WHEN MATCHED AND {invariant(state, scope_of('t', table))} THEN DELETE"
    if cols and state.chance(0.7):
        col = state.dice.choice(cols)
        given = [e for e in right if e[1].type == col.type and e[1].rank < col.rank]
        value = named(state.dice.choice(given)) if given else state.literal(col)
        text += f" WHEN MATCHED THEN UPDATE SET {col.name} = {value}"
    else:
        text += " WHEN MATCHED THEN DELETE"
    if state.chance(0.5):
        items, _ = _items(state, table.written(), right)
        names = ", ".join(c.name for c in table.written())
        text += f" WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({', '.join(items)})"
    if state.chance(0.15):
        text += " WHEN NOT MATCHED BY SOURCE THEN DELETE"
    return text


_ALL = (_values, _copy, _update, _rekey, _delete, _merge, _upsert, _star_copy, exotic, schema_rows,
        vault, drawn, _far, below)  # fmt: skip
