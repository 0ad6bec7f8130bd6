"""Two worlds in PostgreSQL's language: sessions that differ in secrets only.

The values of one world correspond to those of the other by their order, so whatever a ceiling may
show is the same in both; the names of ENC columns differ too. What crosses is compared as by
`tests/worlds/crossing.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from louver import errors
from louver.trusted.client.dbapi import Connection
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault.keyring import KeyRing
from louver.wire.tap import Tap
from tests import shared
from tests.postgres import servers
from tests.worlds.crossing import Crossing
from tests.worlds.world import aligned

#: Corresponding values by type, in order, and none beside another: what is below one is never one.
#: Texts are as long in both worlds.
_POOLS: dict[str, tuple[list[str], list[str]]] = {
    "integer": ([str(10 * i) for i in range(1, 12)], [str(1_000 + 37 * i) for i in range(1, 12)]),
    "bigint": ([str(3 * i) for i in range(1, 12)], [str(10**7 + 5 * i) for i in range(1, 12)]),
    "text": ([f"'{c}a'" for c in "abcdefghijk"], [f"'{c}x'" for c in "klmnopqrstu"]),
    "numeric(10,2)": ([f"{i}.25" for i in range(1, 12)], [f"{70 + i}.5" for i in range(1, 12)]),
    "date": (
        [f"date '2020-01-{2 * i:02}'" for i in range(1, 12)],
        [f"date '1999-05-{2 * i + 7:02}'" for i in range(1, 12)],
    ),
}  # fmt: skip
_SIGNS = ("=", "=", "=", "<", ">=", "<>")


@dataclass(frozen=True)
class Column:
    """A column: its name and, if it is ENC, the first letter of its name in each world."""

    name: str
    type: str
    is_secret: bool


class World:
    """One of the two sessions."""

    def __init__(self, number: int, profile: str, seed: str) -> None:
        self._tap, self._seed, self._statements = Tap(servers.new_engine()), seed, 0
        with aligned(seed):
            ring = KeyRing.open(shared.key_file())
            session = Session(self._tap, ring, Policy(profile), language="postgres")
        self.connection = Connection(session)
        self.number, self.crossing = number, Crossing()
        self._read = 0
        self.crossed()

    def crossed(self) -> list[object]:
        """What has crossed since it was asked last."""
        new, self._read = self._tap.records[self._read :], len(self._tap.records)
        return list(self.crossing.seen(new))

    def run(self, text: str, values: Sequence[object] = ()) -> object:
        """Run a statement; its error's code, or how many rows it gave."""
        self._statements += 1
        given = [self.value(item) if isinstance(item, tuple) else item for item in values]
        with aligned(f"{self._seed} {self._statements}"):
            try:
                cursor = self.connection.execute(self.rendered(text), given)
                return len(cursor.fetchall()) if cursor.description else cursor.rowcount
            except errors.Error as error:
                return error.code

    def value(self, item: tuple[str, int]) -> object:
        """A value of a pool, of integers or texts, in Python."""
        type_, position = item
        text = _POOLS[type_][self.number][position]
        return text.strip("'") if type_ == "text" else int(text)

    def rendered(self, text: str) -> str:
        """A statement with this world's values and names."""
        for type_, pools in _POOLS.items():
            for position, value in enumerate(pools[self.number]):
                text = text.replace(f"⟨{type_} {position}⟩", value)
        return text.replace("⟨name⟩", "ck"[self.number])


_KEYED = (
    "CREATE TABLE t"
    " (⟨name⟩0 bigint ENC PRIMARY KEY, p integer, ⟨name⟩1 text ENC, ⟨name⟩2 bigint ENC)"
)
#: Statements that come again, with the kinds of their values.
_REPEATED = (
    ("INSERT INTO t VALUES ($1, $2, $3, $4)", "kpsn"),
    ("UPDATE t SET ⟨name⟩1 = $1 WHERE ⟨name⟩0 = $2", "sk"),
    ("UPDATE t SET ⟨name⟩2 = ⟨name⟩2 + 1, p = $1 WHERE ⟨name⟩0 = $2", "pk"),
    ("UPDATE t SET ⟨name⟩0 = $1 WHERE ⟨name⟩0 = $2", "kk"),
    ("UPDATE t SET ⟨name⟩2 = $1 WHERE ⟨name⟩0 IN ($2, $3)", "nkk"),
    ("UPDATE t SET ⟨name⟩2 = ⟨name⟩2 * 2 WHERE ⟨name⟩0 = $1 RETURNING ⟨name⟩1", "k"),
    ("UPDATE t SET p = $1 WHERE ⟨name⟩0 = $2 AND ⟨name⟩1 = $3", "pks"),
    ("DELETE FROM t WHERE ⟨name⟩0 = $1", "k"),
    ("SELECT * FROM t WHERE ⟨name⟩0 = $1", "k"),
)


def repeated(random: Random) -> tuple[str, list[object]]:
    """A statement of those that come again, with its values: of secret ones their pools."""
    text, kinds = random.choice(_REPEATED)
    pools = {"k": "bigint", "n": "bigint", "s": "text"}
    values: list[object] = []
    for kind in kinds:
        if kind == "p":
            values.append(random.randint(0, 9))
        else:
            null = kind != "k" and random.random() < 0.1
            values.append(None if null else (pools[kind], random.randrange(11)))
    return text, values


class Statements:
    """What both worlds run."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.tables: dict[str, list[Column]] = {}

    def create(self, name: str) -> str:
        """A table with a plain number and secret columns, one of which may be a key."""
        random = self.random
        columns = [Column("p", "integer", is_secret=False)]
        items = ["p integer"]
        for number in range(random.randint(2, 4)):
            type_ = random.choice([*_POOLS])
            column = Column(f"⟨name⟩{number}", type_, is_secret=True)
            rule = " PRIMARY KEY" if number == 0 and random.random() < 0.6 else ""
            columns.append(column)
            items.append(f"{column.name} {type_} ENC{rule}")
        self.tables[name] = columns
        return f"CREATE TABLE {name} ({', '.join(items)})"

    def _value(self, column: Column) -> str:
        if not column.is_secret:
            return str(self.random.randint(0, 9))
        if self.random.random() < 0.05:
            return "NULL"
        return f"⟨{column.type} {self.random.randrange(11)}⟩"

    def _condition(self, columns: list[Column], alias: str = "t") -> str:
        random, column = self.random, self.random.choice(columns)
        text = f"{alias}.{column.name} {random.choice(_SIGNS)} {self._value(column)}"
        if random.random() < 0.25:
            low, high = self._value(column), self._value(column)
            text = f"{alias}.{column.name} BETWEEN {low} AND {high}"
        if random.random() < 0.1:
            text = f"{alias}.{column.name} IS NOT NULL"
        if random.random() < 0.3:
            text = f"({text} {random.choice(('AND', 'OR'))} {self._condition(columns, alias)})"
        return text

    def next(self) -> str:
        """Any statement."""
        random = self.random
        name, columns = random.choice([*self.tables.items()])
        draw = random.random()
        if draw < 0.35:
            given = ", ".join(map(self._value, columns))
            out = random.choice(("", "", " ON CONFLICT DO NOTHING"))
            return f"INSERT INTO {name} VALUES ({given}){out}"
        if draw < 0.4:
            column = random.choice(columns)
            return (
                f"UPDATE v{name} AS t SET {column.name} = DEFAULT WHERE {self._condition(columns)}"
            )
        if draw < 0.5:
            column = random.choice(columns)
            sets = f"{column.name} = {self._value(column)}"
            return f"UPDATE {name} AS t SET {sets} WHERE {self._condition(columns)}"
        if draw < 0.6:
            return f"DELETE FROM {name} AS t WHERE {self._condition(columns)}"
        if draw < 0.64:
            how = random.choice(("FOR UPDATE", "FOR SHARE NOWAIT", "FOR UPDATE SKIP LOCKED"))
            few = random.choice(("", " ORDER BY p LIMIT 1"))
            return f"SELECT * FROM {name} AS t WHERE {self._condition(columns)}{few} {how}"
        if draw < 0.7:
            column = random.choice(columns)
            items = f"count(*), min(t.{column.name}), max(t.{column.name})"
            return f"SELECT {items} FROM {name} AS t WHERE {self._condition(columns)}"
        if draw < 0.8:
            other, others = random.choice([*self.tables.items()])
            first, second = random.choice(columns), random.choice(others)
            if first.type != second.type or first.is_secret != second.is_secret:
                return f"SELECT * FROM {name} AS t ORDER BY {first.name}"
            return (
                f"SELECT t.*, o.p FROM {name} AS t JOIN {other} AS o"
                f" ON t.{first.name} = o.{second.name} WHERE {self._condition(columns)}"
            )
        return f"SELECT * FROM {name} AS t WHERE {self._condition(columns)}"


@contextmanager
def both(profile: str, seed: str) -> Iterator[tuple[World, World]]:
    """The two worlds."""
    worlds = World(0, profile, seed), World(1, profile, seed)
    try:
        yield worlds
    finally:
        for world in worlds:
            world.connection.close()


def play(profile: str, seed: int, length: int) -> tuple[list[str], int]:
    """One session of each world: what differed, and how many statements ran without an error."""
    drawn = Statements(Random(seed))
    texts = [drawn.create(name) for name in ("t0", "t1")]
    texts += [f"CREATE VIEW v{name} AS SELECT * FROM {name}" for name in ("t0", "t1")]
    first: list[tuple[str, list[object]]] = [(text, []) for text in texts]
    return _played(profile, seed, length, first, lambda: (drawn.next(), []))


def play_again(profile: str, seed: int, length: int) -> tuple[list[str], int]:
    """The same of statements that come again with other values."""
    random = Random(seed)
    first: list[tuple[str, list[object]]] = [(_KEYED, [])]
    return _played(profile, seed, length, first, lambda: repeated(random))


def _played(
    profile: str, seed: int, length: int, begin: list[tuple[str, list[object]]],
    draw: Callable[[], tuple[str, list[object]]],
) -> tuple[list[str], int]:  # fmt: skip
    lines, ran = list[str](), 0
    with both(profile, str(seed)) as (first, second):
        for number in range(length):
            text, values = begin[number] if number < len(begin) else draw()
            outcomes = first.run(text, values), second.run(text, values)
            crossed = first.crossed(), second.crossed()
            ran += not isinstance(outcomes[0], str)
            if outcomes[0] != outcomes[1] or crossed[0] != crossed[1]:
                pairs = zip(*crossed, strict=False)
                where = f"[{profile}:{seed}:{number}]"
                lines.append(f"{where} {first.rendered(text)} {values}: {outcomes}")
                lines += [f"  {a}\n  {b}" for a, b in pairs if a != b][:3]
                lines += [f"  {len(crossed[0])} and {len(crossed[1])} messages"]
                break
    return lines, ran
