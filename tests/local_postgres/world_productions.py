"""The grammar of what both worlds run: each production draws a statement, or several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tests.local_postgres.world_values import SORTED, STORED, Act, Column

if TYPE_CHECKING:
    from tests.local_postgres.world_statements import Statements

Drawn = str | list[Act]
Production = Callable[["Statements", int], Drawn]
_LOCKS = ("FOR UPDATE", "FOR SHARE NOWAIT", "FOR UPDATE SKIP LOCKED", "FOR NO KEY UPDATE")
_MODES = ("ACCESS SHARE", "ROW EXCLUSIVE", "SHARE", "ACCESS EXCLUSIVE")


def insert(drawn: Statements, _: int) -> Drawn:
    """One row or several."""
    random, (name, columns) = drawn.random, drawn.pick()
    rows = ", ".join(f"({drawn.values(columns)})" for _ in range(random.choice((1, 1, 1, 2, 3))))
    out = random.choice(("", "", " ON CONFLICT DO NOTHING"))
    return f"INSERT INTO {name} VALUES {rows}{out}{returning(drawn, columns)}"


def upsert(drawn: Statements, _: int) -> Drawn:
    """A row that may be there already."""
    name, columns = drawn.pick()
    if name not in drawn.known:
        return insert(drawn, 0)
    column = drawn.random.choice(columns)
    new = drawn.random.choice((drawn.value(column), f"excluded.{column.name}"))
    target = drawn.random.choice((f"({columns[1].name})", f"ON CONSTRAINT {name}_pkey"))
    return (
        f"INSERT INTO {name} AS t VALUES ({drawn.values(columns)}) ON CONFLICT {target}"
        f" DO UPDATE SET {column.name} = {new}{returning(drawn, columns)}"
    )


def returning(drawn: Statements, columns: Sequence[Column]) -> str:
    """What a change gives back."""
    column = drawn.random.choice(columns)
    return drawn.random.choice(
        ("", "", "", " RETURNING *", f" RETURNING {column.name}, p + 1", " RETURNING 1")
    )


def update(drawn: Statements, _: int) -> Drawn:
    """Constants, or columns of the same row."""
    name, columns = drawn.pick()
    condition = drawn.condition(columns, changes=True)
    return (
        f"UPDATE {name} AS t SET {drawn.assignments(columns)} WHERE {condition}"
        f"{returning(drawn, columns)}"
    )


def update_view(drawn: Statements, _: int) -> Drawn:
    """Through a view."""
    name, columns = drawn.pick()
    if name not in ("t0", "t1"):
        return update(drawn, 0)
    column = drawn.random.choice(columns)
    condition = drawn.condition(columns, changes=True)
    return f"UPDATE v{name} AS t SET {column.name} = DEFAULT WHERE {condition}"


def delete(drawn: Statements, _: int) -> Drawn:
    """Rows by a condition."""
    name, columns = drawn.pick()
    condition = drawn.condition(columns, changes=True)
    return f"DELETE FROM {name} AS t WHERE {condition}{returning(drawn, columns)}"


def lock(drawn: Statements, _: int) -> Drawn:
    """Locks of rows."""
    name, columns = drawn.pick()
    few = drawn.random.choice(("", " ORDER BY p LIMIT 1", f" ORDER BY {columns[1].name} LIMIT 2"))
    condition = drawn.condition(columns, changes=True)
    if drawn.random.random() < 0.15:
        return f"LOCK TABLE {name} IN {drawn.random.choice(_MODES)} MODE NOWAIT"
    return f"SELECT * FROM {name} AS t WHERE {condition}{few} {drawn.random.choice(_LOCKS)}"


def locking_change(drawn: Statements, _: int) -> Drawn:
    """A change of rows that are locked first."""
    random, (name, columns) = drawn.random, drawn.pick()
    key = random.choice(columns[:2])
    few = random.choice((" LIMIT 1", " ORDER BY t.p LIMIT 2", ""))
    sign = random.choice(("IN", "IN", "=", "NOT IN"))
    condition = drawn.condition(columns, changes=True)
    inner = f"SELECT t.{key.name} FROM {name} AS t WHERE {condition}{few}"
    where = f"{key.name} {sign} ({inner} {random.choice(_LOCKS)})"
    if random.random() < 0.3:
        return f"DELETE FROM {name} WHERE {where}"
    return f"UPDATE {name} SET {drawn.assignments(columns)} WHERE {where}"


def only_value(drawn: Statements, _: int) -> Drawn:
    """Equality with a query's only value."""
    random, (name, columns), (other, others) = drawn.random, drawn.pick(), drawn.pick()
    pairs = [
        (a, b) for a in columns for b in others
        if a.type == b.type and a.is_secret == b.is_secret and a.type in SORTED
    ]  # fmt: skip
    if not pairs:
        return query(drawn, 0)
    first, second = random.choice(pairs)
    value = random.choice((f"max(o.{second.name})", f"min(o.{second.name})", f"o.{second.name}"))
    few = random.choice((" LIMIT 1", " ORDER BY p LIMIT 1", "")) if value[0] == "o" else ""
    changes = random.random() < 0.4
    inner = f"SELECT {value} FROM {other} AS o WHERE {drawn.condition(others, 'o', changes)}{few}"
    where = f"t.{first.name} {random.choice(('=', '=', '<', 'IN'))} ({inner})"
    if changes:
        start = random.choice(
            (f"UPDATE {name} AS t SET {drawn.assignments(columns)}", f"DELETE FROM {name} AS t")
        )
        return f"{start} WHERE {where}"
    return f"SELECT * FROM {name} AS t WHERE {where}"


def merge(drawn: Statements, _: int) -> Drawn:
    """MERGE of constants, or of another table."""
    random, (name, columns), (other, others) = drawn.random, drawn.pick(), drawn.pick()
    key = random.choice(columns)
    if random.random() < 0.5:
        alike = [c for c in others if c.type == key.type and c.is_secret == key.is_secret]
        if not alike:
            return query(drawn, 0)
        source, joined = f"{other} AS s", random.choice(alike).name
    else:
        rows = ", ".join(f"({drawn.value(key)}::{key.type})" for _ in range(2))
        source, joined = f"(VALUES {rows}) AS s(k)", "k"
    on = f"t.{key.name} = s.{joined}"
    met = random.choice(("DELETE", "DO NOTHING", f"UPDATE SET {drawn.assignments(columns)}"))
    extra = f" AND {drawn.condition(columns, changes=True)}" if random.random() < 0.3 else ""
    new = f"INSERT VALUES ({drawn.values(columns)})" if random.random() < 0.5 else "DO NOTHING"
    return (
        f"MERGE INTO {name} AS t USING {source} ON {on} WHEN MATCHED{extra} THEN {met}"
        f" WHEN NOT MATCHED THEN {new}"
    )


def aggregate(drawn: Statements, _: int) -> Drawn:
    """Of a whole table."""
    name, columns = drawn.pick()
    column = drawn.random.choice(columns)
    items = f"count(*), min(t.{column.name}), max(t.{column.name})"
    if column.type in (*STORED, "uuid"):
        items = f"count(t.{column.name}), count(DISTINCT t.{column.name})"
    return f"SELECT {items} FROM {name} AS t WHERE {drawn.condition(columns)}"


def join(drawn: Statements, _: int) -> Drawn:
    """Two tables, or an order."""
    random, (name, columns), (other, others) = drawn.random, drawn.pick(), drawn.pick()
    first, second = random.choice(columns), random.choice(others)
    if first.type != second.type or first.is_secret != second.is_secret:
        return f"SELECT * FROM {name} AS t ORDER BY {first.name}"
    return (
        f"SELECT t.*, o.p FROM {name} AS t JOIN {other} AS o"
        f" ON t.{first.name} = o.{second.name} WHERE {drawn.condition(columns)}"
    )


def query(drawn: Statements, _: int) -> Drawn:
    """Rows by a condition."""
    name, columns = drawn.pick()
    return f"SELECT * FROM {name} AS t WHERE {drawn.condition(columns)}"


def transaction(drawn: Statements, client: int) -> Drawn:
    """Transactions and savepoints, under names that differ."""
    random, depth = drawn.random, drawn.within[client]
    if depth is None:
        level = random.choice(("", "", " ISOLATION LEVEL REPEATABLE READ"))
        return f"BEGIN{level}"
    texts = ["COMMIT", "COMMIT", "ROLLBACK", f"SAVEPOINT ⟨name⟩s{depth}"]
    if depth:
        texts += [f"ROLLBACK TO ⟨name⟩s{depth - 1}", f"RELEASE SAVEPOINT ⟨name⟩s{depth - 1}"]
    return random.choice(texts)


def constraints(drawn: Statements, client: int) -> Drawn:
    """When deferrable keys are checked."""
    names = [key.name for key in drawn.keys if drawn.within[client] is not None]
    if not names:
        return insert(drawn, client)
    which = drawn.random.choice(("ALL", *names))
    return f"SET CONSTRAINTS {which} {drawn.random.choice(('DEFERRED', 'IMMEDIATE'))}"


def truncate(drawn: Statements, _: int) -> Drawn:
    """A table, mostly with those that refer to it."""
    name, _columns = drawn.pick()
    return (
        f"TRUNCATE {name}{drawn.random.choice((' CASCADE', ' CASCADE', '', ' RESTART IDENTITY'))}"
    )


def copy_in(drawn: Statements, client: int) -> Drawn:
    """Rows as data."""
    random, (name, columns) = drawn.random, drawn.pick()
    few = [columns[0], *random.sample(columns[1:], random.randint(1, len(columns) - 1))]
    lines = [
        ",".join("" if (v := drawn.value(c)) == "NULL" else f'"{v}"' for c in few)
        for _ in range(random.randint(1, 4))
    ]
    listed = ", ".join(column.name for column in few)
    text = f"COPY {name} ({listed}) FROM STDIN (FORMAT csv)"
    return [Act(text, data="\n".join(lines) + "\n", client=client)]


def copy_out(drawn: Statements, client: int) -> Drawn:
    """A table or a query as data."""
    name, columns = drawn.pick()
    what = drawn.random.choice(
        (name, f"{name} ({columns[1].name})",
         f"(SELECT * FROM {name} AS t WHERE {drawn.condition(columns)})")
    )  # fmt: skip
    return [Act(f"COPY {what} TO STDOUT", data="", client=client)]


def message(drawn: Statements, client: int) -> Drawn:
    """Channels, whose names differ, and payloads, whose lengths do."""
    random, channel = drawn.random, f"⟨name⟩c{drawn.random.randint(0, 1)}"
    payload = drawn.mark("payload")
    if random.random() < 0.2:
        return [Act(f"SELECT pg_notify($1, $2 || {payload})", ("⟨payload 0⟩", payload),
                    client=client)]  # fmt: skip
    return random.choice(
        (f"LISTEN {channel}", f"NOTIFY {channel}, {payload}", f"NOTIFY {channel}", "poll",
         f"SELECT pg_notify('{channel}', {payload})", f"UNLISTEN {channel}", "UNLISTEN *")
    )  # fmt: skip


def advisory(drawn: Statements, client: int) -> Drawn:
    """Locks of numbers, which differ, and are refused where a query gives them."""
    random, number = drawn.random, drawn.mark("number")
    shared = random.choice(("", "_shared"))
    if random.random() < 0.3:
        name, columns = drawn.pick()
        column = random.choice(columns)
        return random.choice(
            (f"SELECT pg_try_advisory_lock({column.name}) FROM {name}",
             f"SELECT pg_try_advisory_lock((SELECT max({column.name}) FROM {name}))",
             f"SELECT * FROM {name} WHERE pg_try_advisory_xact_lock({column.name})")
        )  # fmt: skip
    if random.random() < 0.3:
        names = (f"pg_try_advisory_lock{shared}", f"pg_advisory_unlock{shared}")
        return [Act(f"SELECT {name}($1)", (number,), client=client) for name in names]
    return random.choice(
        (f"SELECT pg_try_advisory_lock{shared}({number})",
         f"SELECT pg_advisory_unlock{shared}({number})", "SELECT pg_advisory_unlock_all()",
         f"SELECT pg_try_advisory_xact_lock{shared}({number})")
    )  # fmt: skip


def cursor(drawn: Statements, client: int) -> Drawn:
    """A cursor from its declaration to its end."""
    random, (name, columns) = drawn.random, drawn.pick()
    cursor = f"⟨name⟩cursor{drawn.number()}"
    order = f" ORDER BY {random.choice(columns).name}" if random.random() < 0.5 else ""
    text = f"SELECT * FROM {name} AS t WHERE {drawn.condition(columns)}{order}"
    hold = " WITH HOLD" if drawn.within[client] is None or random.random() < 0.2 else ""
    steps = [f"DECLARE {cursor} SCROLL CURSOR{hold} FOR {text}"]
    for _ in range(random.randint(1, 3)):
        how = random.choice(("NEXT", "2", "ALL", "PRIOR", "ABSOLUTE 2", "BACKWARD ALL"))
        steps.append(f"{random.choice(('FETCH', 'FETCH', 'MOVE'))} {how} FROM {cursor}")
    return [Act(step, client=client) for step in (*steps, f"CLOSE {cursor}")]


def prepared(drawn: Statements, client: int) -> Drawn:
    """A statement of the session's, under a name that differs, with constants again and again."""
    random, (name, columns) = drawn.random, drawn.pick()
    named = f"⟨name⟩q{drawn.number()}"
    column = random.choice(columns)
    if random.random() < 0.5:
        marks = ", ".join(f"${k}" for k in range(1, len(columns) + 1))
        text, row = f"INSERT INTO {name} VALUES ({marks})", columns
    else:
        text, row = f"SELECT * FROM {name} AS t WHERE t.{column.name} = $1", [column]
    calls = [f"EXECUTE {named}({drawn.values(row)})" for _ in range(random.randint(1, 4))]
    return [Act(step, client=client) for step in
            (f"PREPARE {named} AS {text}", *calls, f"DEALLOCATE {named}")]  # fmt: skip


def repeated(drawn: Statements, client: int) -> Drawn:
    """A text with placeholders that comes again with other values, which is remembered."""
    random, (name, columns) = drawn.random, drawn.pick()
    column, other = random.choice(columns), random.choice(columns)
    texts: list[tuple[str, list[Column]]] = [
        (f"INSERT INTO {name} VALUES ({', '.join(f'${k + 1}' for k in range(len(columns)))})"
         f"{returning(drawn, columns)}", columns),
        (f"SELECT * FROM {name} AS t WHERE t.{column.name} = $1", [column]),
        (f"UPDATE {name} AS t SET {other.name} = $1 WHERE t.{column.name} = $2", [other, column]),
        (f"DELETE FROM {name} AS t WHERE t.{column.name} = $1", [column]),
    ]  # fmt: skip
    text, row = random.choice(texts)
    return [
        Act(text, tuple(map(drawn.value, row)), client=client) for _ in range(random.randint(2, 5))
    ]


ASIDE = "CREATE TABLE aside (p integer PRIMARY KEY, ⟨name⟩9 integer ENC)"


def aside(drawn: Statements) -> str:
    """What a client has done before it meets another one: in a table that no other one changes."""
    value = drawn.mark("integer")
    texts = (f"INSERT INTO aside VALUES ({drawn.number()}, {value})",
         f"UPDATE aside SET ⟨name⟩9 = {value} WHERE p < {drawn.number()}",
         "SELECT * FROM aside", "DELETE FROM aside WHERE p > 2")  # fmt: skip
    # That a row has the value already is shown at `access`.
    return drawn.random.choice(texts if drawn.same_outcomes else texts[:1])


def meeting(drawn: Statements, _: int) -> Drawn:
    """Two clients change a table at once; the later one waits, and changes what there is then."""
    random = drawn.random
    if drawn.within != [None, None]:
        return [Act(random.choice(("COMMIT", "ROLLBACK")), client=c)
                for c, depth in enumerate(drawn.within) if depth is not None]  # fmt: skip
    changes = (update, update, delete, upsert, insert, locking_change, merge, only_value, lock)
    first, second = random.choice(changes)(drawn, 0), random.choice(changes)(drawn, 1)
    if not isinstance(first, str) or not isinstance(second, str):
        return query(drawn, 0)
    acts, alone = [Act("BEGIN"), Act(first)], random.random() < 0.4
    if not alone:
        level = random.choice(("", "", "", " ISOLATION LEVEL REPEATABLE READ"))
        acts.append(Act(f"BEGIN{level}", client=1))
        for _ in range(random.randint(0, 2)):
            acts.append(Act(aside(drawn), client=1))
    acts.append(Act(second, client=1, during=random.choice(("COMMIT", "COMMIT", "ROLLBACK"))))
    if not alone:
        acts.append(Act(random.choice(("COMMIT", "COMMIT", "ROLLBACK")), client=1))
    return acts


def define(drawn: Statements, _: int) -> Drawn:
    """Columns, indexes, tables and views."""
    random, (name, columns) = drawn.random, drawn.pick()
    number = drawn.number()
    column = random.choice(columns)
    fresh = Column(f"⟨name⟩n{number}", random.choice((*SORTED, *STORED)), is_secret=True)
    few = ", ".join(c.name for c in random.sample(columns, 2))
    default = f" DEFAULT {drawn.value(fresh)}" if random.random() < 0.5 else ""
    draw = random.random()
    if draw < 0.25:
        columns.append(fresh)
        enc = f"ENC{random.choice(drawn.ceilings)}"
        return f"ALTER TABLE {name} ADD COLUMN {fresh.name} {fresh.type} {enc}{default}"
    if draw < 0.35 and len(columns) > 4:
        gone = columns.pop()
        return f"ALTER TABLE {name} DROP COLUMN {gone.name} CASCADE"
    if draw < 0.45:
        at = random.randrange(1, len(columns))
        old = columns[at]
        columns[at] = Column(fresh.name, old.type, is_secret=True)
        return f"ALTER TABLE {name} RENAME COLUMN {old.name} TO {fresh.name}"
    if draw < 0.55:
        whole = [i for i, c in enumerate(columns) if c.type == "integer" and c.is_secret]
        if whole:
            old = columns[whole[0]]
            return f"ALTER TABLE {name} ALTER COLUMN {old.name} TYPE bigint"
        return f"ALTER TABLE {name} ALTER COLUMN {column.name} TYPE {column.type}"
    if draw < 0.7:
        return f"CREATE INDEX i{number} ON {name} ({few})"
    if draw < 0.8:
        return f"CREATE TABLE made{number} AS SELECT {few} FROM {name} AS t"
    if draw < 0.9:
        condition = drawn.condition(columns)
        return f"CREATE VIEW w{number} AS SELECT {few} FROM {name} AS t WHERE {condition}"
    if column.is_secret:
        change = random.choice((f"SET DEFAULT {drawn.value(column)}", "DROP DEFAULT"))
        return f"ALTER TABLE {name} ALTER COLUMN {column.name} {change}"
    return f"COMMENT ON COLUMN {name}.{column.name} IS {drawn.mark('payload')}"


#: Productions and how often they are drawn.
ALL: list[tuple[int, Production]] = [
    (24, insert), (4, upsert), (9, update), (3, update_view), (6, delete), (4, lock),
    (5, locking_change), (5, only_value), (4, merge), (4, aggregate), (6, join), (10, query),
    (14, transaction), (3, constraints), (1, truncate), (4, copy_in), (3, copy_out), (4, message),
    (3, advisory), (2, cursor), (2, prepared), (5, repeated), (5, meeting), (6, define),
]  # fmt: skip
