"""Worlds whose values have nothing in common but their lengths, for what no ceiling lets show.

Columns that may show which rows a statement touches (`access`) are only stored, read and copied;
what decides which rows a change touches is plain. Of columns under `size` any condition may.
"""

from __future__ import annotations

from random import Random

from tests.local_postgres import world_productions as productions
from tests.local_postgres.world_productions import Drawn, Production, returning
from tests.local_postgres.world_statements import Statements
from tests.local_postgres.world_values import COUNT, STORED, Act, Column

_HIDDEN = "g"
"""The first letter of tables whose columns do not even show which rows were touched."""
#: Whose NULL is as long as a value: where lengths differ, the random order shows.
_TYPES = ("integer", "integer", "bigint", "text", "date")
#: Its values are equal where they are equal in the other world: its codes may show that, and must
#: not show which other column has such a value.
_EQUAL = Column("⟨name⟩equal", "integer", is_secret=True)


class Free(Statements):
    """Draws statements over such tables."""

    same_outcomes = False

    def _schema(self) -> list[Act]:
        names = ("f0", "g0", "g1")
        texts = [productions.ASIDE, *(self.create(name) for name in names)]
        texts += [f"CREATE VIEW v{name} AS SELECT * FROM {name}" for name in names]
        for name in names:
            rows = ", ".join(f"({self.values(self.tables[name])})" for _ in range(4))
            texts.append(f"INSERT INTO {name} VALUES {rows}")
        return [Act(text) for text in texts]

    def create(self, name: str, parent: str = "") -> str:
        random, ceiling = self.random, "size" if name[0] == _HIDDEN else "access"
        # A hidden table is written anew in random order, which equal plain values do not show.
        columns = [Column("p", "smallint" if name[0] == _HIDDEN else "integer", is_secret=False)]
        for number in range(random.randint(2, 4)):
            type_ = random.choice(_TYPES if name[0] == _HIDDEN else (*_TYPES, *STORED))
            columns.append(Column(f"⟨name⟩{number}", type_, is_secret=True))
        self.tables[name] = columns
        self.ceilings = [f" MAY REVEAL {ceiling}"]
        items = [f"{c.name} {c.type} ENC MAY REVEAL {ceiling}" for c in columns[1:]]
        if name[0] != _HIDDEN:
            columns.append(_EQUAL)
            items.append(f"{_EQUAL.name} {_EQUAL.type} ENC MAY REVEAL equality")
        return f"CREATE TABLE {name} (p {columns[0].type}, {', '.join(items)})"

    def value(self, column: Column) -> str:
        if column.type == "smallint":
            return "5"
        if column == _EQUAL:
            return f"⟨integer {self.random.randrange(COUNT)}⟩"
        return super().value(column)

    def mark(self, type_: str) -> str:
        first, other = (self.random.randrange(COUNT) for _ in range(2))
        return f"⟨{type_} {first} {other}⟩"

    def hidden(self) -> tuple[str, list[Column]]:
        """A table under `size`."""
        return self.random.choice([item for item in self.tables.items() if item[0][0] == _HIDDEN])

    def by_plain(self, alias: str = "t") -> str:
        """A condition on the plain column."""
        sign, value = self.random.choice(("=", "<", ">=", "<>")), self.random.randint(0, 9)
        return f"{alias}.p {sign} {value}"


def insert(drawn: Free, _: int) -> Drawn:
    """Constants, or rows of a table that a plain column chooses."""
    random, (name, columns) = drawn.random, drawn.pick()
    if random.random() < 0.7:
        rows = ", ".join(f"({drawn.values(columns)})" for _ in range(random.choice((1, 1, 2))))
        return f"INSERT INTO {name} VALUES {rows}{returning(drawn, columns)}"
    listed = ", ".join(
        c.name if random.random() < 0.7 or not c.is_secret else drawn.value(c) for c in columns
    )
    return f"INSERT INTO {name} SELECT {listed} FROM {name} AS t WHERE {drawn.by_plain()}"


def update(drawn: Free, _: int) -> Drawn:
    """Any rows of a table that hides which ones, to values that may be theirs."""
    random, (name, columns) = drawn.random, drawn.hidden()
    column = random.choice(columns[1:])
    alike = [c for c in columns[1:] if c.type == column.type]
    other = random.choice(alike)
    condition = drawn.condition(columns[1:] if random.random() < 0.8 else columns)
    new = random.choice(
        (drawn.value(column), drawn.value(column), other.name, column.name,
         f"CASE WHEN {drawn.condition(columns[1:])} THEN {drawn.mark(column.type)}"
         f" ELSE {other.name} END",
         f"(SELECT max(o.{other.name}) FROM {name} AS o)")
    )  # fmt: skip
    target = f"v{name}" if random.random() < 0.15 and name in ("g0", "g1") else name
    where = random.choice((f" WHERE {condition}", f" WHERE {condition}", ""))
    return f"UPDATE {target} AS t SET {column.name} = {new}{where}{returning(drawn, columns)}"


def update_from(drawn: Free, _: int) -> Drawn:
    """Rows of a hidden table that meet another one's."""
    random, (name, columns), (other, others) = drawn.random, drawn.hidden(), drawn.hidden()
    pairs = [(a, b) for a in columns[1:] for b in others[1:] if a.type == b.type]
    if not pairs:
        return query(drawn, 0)
    (a, b), column = random.choice(pairs), random.choice(columns[1:])
    value = drawn.value(column)
    return random.choice(
        (f"UPDATE {name} AS t SET {column.name} = {value} FROM {other} AS o"
         f" WHERE t.{a.name} = o.{b.name}",
         f"UPDATE {name} AS t SET {a.name} = o.{b.name} FROM {other} AS o WHERE t.p = o.p",
         f"MERGE INTO {name} AS t USING {other} AS s ON t.{a.name} = s.{b.name}"
         f" WHEN MATCHED THEN UPDATE SET {column.name} = {value}",
         f"UPDATE {name} AS t SET {column.name} = {value} WHERE t.{a.name} ="
         f" (SELECT max(o.{b.name}) FROM {other} AS o)",
         f"UPDATE {name} AS t SET {column.name} = {value} WHERE t.{a.name} IN"
         f" (SELECT o.{b.name} FROM {other} AS o)")
    )  # fmt: skip


def delete(drawn: Free, _: int) -> Drawn:
    """By the plain column."""
    name, columns = drawn.pick()
    if _EQUAL in columns and drawn.random.random() < 0.4:
        return f"DELETE FROM {name} AS t WHERE t.{_EQUAL.name} = {drawn.value(_EQUAL)}"
    return f"DELETE FROM {name} AS t WHERE {drawn.by_plain()}{returning(drawn, columns)}"


def lock(drawn: Free, _: int) -> Drawn:
    """By the plain column; hidden rows are not locked."""
    name, _columns = drawn.pick()
    few = drawn.random.choice(("", " ORDER BY p LIMIT 2"))
    locked = f"SELECT p FROM {name} AS t WHERE {drawn.by_plain()}{few} FOR UPDATE SKIP LOCKED"
    return drawn.random.choice((locked, f"DELETE FROM {name} WHERE p IN ({locked})"))


def query(drawn: Free, client: int) -> Drawn:
    """Any query: nothing of it is decided by the server."""
    random = drawn.random
    kinds = (productions.query, productions.query, productions.join, productions.aggregate)
    if random.random() < 0.6:
        return random.choice(kinds)(drawn, client)
    name, columns = drawn.pick()
    others = [c for c in columns[1:] if c.type == "integer" and c != _EQUAL]
    if _EQUAL in columns and others and random.random() < 0.6:
        equal, other = _EQUAL.name, random.choice(others).name
        return random.choice(
            (f"SELECT * FROM {name} WHERE {equal} = (SELECT max({other}) FROM {name})",
             f"SELECT * FROM {name} WHERE {equal} IN (SELECT {other} FROM {name} WHERE p < 5)",
             f"SELECT * FROM {name} AS t JOIN {name} AS o ON t.{equal} = o.{other}",
             f"SELECT {equal}, count(*) FROM {name} GROUP BY 1",
             f"SELECT * FROM {name} WHERE {equal} = {drawn.value(_EQUAL)} AND {equal} <> {other}",
             f"SELECT * FROM {name} WHERE {equal} = {drawn.value(_EQUAL)}"
             f" AND {other} = (SELECT min({other}) FROM {name})")
        )  # fmt: skip
    column, condition = random.choice(columns), drawn.condition(columns)
    return random.choice(
        (f"SELECT {column.name}, count(*) FROM {name} AS t GROUP BY 1",
         f"SELECT * FROM {name} AS t WHERE {condition} ORDER BY {column.name} DESC LIMIT 2",
         f"SELECT DISTINCT {column.name} FROM {name} AS t WHERE {condition}",
         f"SELECT p, rank() OVER (ORDER BY {column.name}) FROM {name} AS t",
         f"SELECT EXISTS (SELECT 1 FROM {name} AS t WHERE {condition})",
         f"SELECT * FROM {name} AS t WHERE {column.name} = (SELECT max({column.name})"
         f" FROM {name})")
    )  # fmt: skip


def repeated(drawn: Free, client: int) -> Drawn:
    """Texts with placeholders."""
    random, (name, columns) = drawn.random, drawn.pick()
    column = random.choice(columns)
    marks = ", ".join(f"${k + 1}" for k in range(len(columns)))
    texts = [
        (f"INSERT INTO {name} VALUES ({marks})", columns),
        (f"SELECT * FROM {name} AS t WHERE t.{column.name} = $1", [column]),
    ]
    if name[0] == _HIDDEN and column.is_secret:
        other = random.choice(columns[1:])
        texts.append(
            (f"UPDATE {name} AS t SET {other.name} = $1 WHERE t.{column.name} = $2",
             [other, column])
        )  # fmt: skip
    text, row = random.choice(texts)
    return [
        Act(text, tuple(map(drawn.value, row)), client=client) for _ in range(random.randint(2, 4))
    ]


def meeting(drawn: Free, _: int) -> Drawn:
    """Two clients at once."""
    random = drawn.random
    if drawn.within != [None, None]:
        return "COMMIT"
    changes = (update, update, insert, delete, update_from)
    first, second = random.choice(changes)(drawn, 0), random.choice(changes)(drawn, 1)
    ends = ("COMMIT", "COMMIT", "ROLLBACK")
    acts = [Act("BEGIN"), Act(str(first))]
    if random.random() < 0.5:
        acts += [Act("BEGIN", client=1), Act(productions.aside(drawn), client=1)]
        acts.append(Act(str(second), client=1, during=random.choice(ends)))
        return [*acts, Act(random.choice(ends), client=1)]
    return [*acts, Act(str(second), client=1, during=random.choice(ends))]


def define(drawn: Free, _: int) -> Drawn:
    """Columns, indexes, copies."""
    random, (name, columns), number = drawn.random, drawn.pick(), drawn.number()
    fresh = Column(f"⟨name⟩n{number}", random.choice(_TYPES), is_secret=True)
    ceiling = "size" if name[0] == _HIDDEN else "access"
    default = f" DEFAULT {drawn.value(fresh)}" if random.random() < 0.5 else ""
    column = random.choice([c for c in columns[1:] if c != _EQUAL])
    draw = random.random()
    if draw < 0.3:
        columns.append(fresh)
        enc = f"ENC MAY REVEAL {ceiling}"
        return f"ALTER TABLE {name} ADD COLUMN {fresh.name} {fresh.type} {enc}{default}"
    if draw < 0.4 and len(columns) > 3 and columns[-1] != _EQUAL:
        return f"ALTER TABLE {name} DROP COLUMN {columns.pop().name} CASCADE"
    if draw < 0.5 and column.type == "integer":
        change = random.choice(("bigint", f"integer USING {column.name} + 1"))
        at = columns.index(column)
        columns[at] = Column(column.name, change.split()[0], is_secret=True)
        return f"ALTER TABLE {name} ALTER COLUMN {column.name} TYPE {change}"
    if draw < 0.6:
        return f"CREATE INDEX i{number} ON {name} ({column.name}, p)"
    if draw < 0.8:
        return f"CREATE TABLE {name[0]}made{number} AS SELECT * FROM {name} AS t"
    if draw < 0.9:
        condition = drawn.condition(columns)
        return f"CREATE VIEW w{number} AS SELECT * FROM {name} AS t WHERE {condition}"
    return f"ALTER TABLE {name} ALTER COLUMN {column.name} SET DEFAULT {drawn.value(column)}"


def of_free(production: object) -> Production:
    """As the type of productions has it."""
    return production  # type: ignore[return-value]


Free.productions = [
    (14, of_free(insert)), (14, of_free(update)), (8, of_free(update_from)), (5, of_free(delete)),
    (3, of_free(lock)), (16, of_free(query)), (8, productions.transaction),
    (1, productions.truncate), (3, productions.copy_in), (3, productions.copy_out),
    (3, productions.message), (2, productions.cursor), (5, of_free(repeated)),
    (4, of_free(meeting)), (6, of_free(define)),
]  # fmt: skip


def free(random: Random) -> Free:
    """For `worlds.play`."""
    return Free(random)
