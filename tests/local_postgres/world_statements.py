"""What both worlds run: tables, and statements over them that are drawn one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.local_postgres import world_productions
from tests.local_postgres.world_values import COUNT, SORTED, STORED, Act, Column

_SIGNS = ("=", "=", "=", "<", ">=", "<>")
#: Errors of these statements end no transaction.
_ENDING = ("COMMIT", "ROLLBACK")


@dataclass
class Key:
    """A foreign key of a table: its name, and the table that it refers to."""

    name: str
    table: str


class Statements:
    """Draws statements, and knows what they need: tables, and what the clients are within."""

    #: Whether a statement has the same outcome in both worlds.
    same_outcomes = True
    #: What is written behind ENC.
    ceilings: Sequence[str] = ("",)
    productions = world_productions.ALL

    def __init__(self, random: Random) -> None:
        self.random = random
        self.tables: dict[str, list[Column]] = {}
        self.views: list[str] = []
        self.keys: list[Key] = []
        #: of each client, how many savepoints its transaction has; None without one
        self.within: list[int | None] = [None, None]
        self.failed = [False, False]
        self.known: set[str] = set()
        self.count = 0
        self.pending = deque(self._schema())

    def _schema(self) -> list[Act]:
        texts = [world_productions.ASIDE, self.create("t0"), self.create("t1", "t0")]
        for name in ("t0", "t1"):
            texts.append(f"CREATE VIEW v{name} AS SELECT * FROM {name}")
        return [Act(text) for text in texts]

    def number(self) -> int:
        """A number that no name has."""
        self.count += 1
        return self.count

    def create(self, name: str, parent: str = "") -> str:
        """A table with a plain number and secret columns, one of which may be a key, and another
        one may refer to that of a table that is there.
        """
        random = self.random
        columns, items = [Column("p", "integer", is_secret=False)], ["p integer"]
        for number in range(random.randint(2, 4)):
            type_ = random.choice(SORTED if number < 2 else (*SORTED, *STORED))
            key = self.tables[parent][1] if parent and parent in self.known else None
            refers = key is not None and number == 1 and random.random() < 0.7
            if refers and key is not None:
                type_ = key.type
            column = Column(f"⟨name⟩{number}", type_, is_secret=True)
            rule = f" ENC{random.choice(self.ceilings)}"
            if number == 0 and random.random() < 0.6:
                rule += " PRIMARY KEY"
                self.known.add(name)
            if refers and key is not None:
                named = f"{name}_refers"
                later = random.choice(
                    ("", " DEFERRABLE", " DEFERRABLE INITIALLY DEFERRED", " ON DELETE CASCADE",
                     " ON DELETE SET NULL ON UPDATE CASCADE")
                )  # fmt: skip
                rule += f" CONSTRAINT {named} REFERENCES {parent} ({key.name}){later}"
                self.keys.append(Key(named, parent))
            elif number and random.random() < 0.15:
                rule += f" DEFAULT {self.value(column)}"
            elif number and random.random() < 0.1:
                rule += f" CHECK ({column.name} <> {self.value(column)})"
            columns.append(column)
            items.append(f"{column.name} {type_}{rule}")
        self.tables[name] = columns
        return f"CREATE TABLE {name} ({', '.join(items)})"

    # ------------------------------------------------------------------ parts

    def value(self, column: Column) -> str:
        """A value of a column, of secret ones a mark."""
        if not column.is_secret:
            return str(self.random.randint(0, 9))
        return "NULL" if self.random.random() < 0.05 else self.mark(column.type)

    def mark(self, type_: str) -> str:
        """A value that is not NULL."""
        return f"⟨{type_} {self.random.randrange(COUNT)}⟩"

    def values(self, columns: Sequence[Column]) -> str:
        """A row of constants."""
        return ", ".join(map(self.value, columns))

    def pick(self) -> tuple[str, list[Column]]:
        """A table."""
        return self.random.choice([*self.tables.items()])

    def condition(self, columns: Sequence[Column], alias: str = "t", changes: bool = False) -> str:
        """A condition on a table; ``changes`` says that it decides which rows a change touches."""
        random, column = self.random, self.random.choice(columns)
        signs = ("=", "<>") if column.type in STORED else _SIGNS
        text = f"{alias}.{column.name} {random.choice(signs)} {self.value(column)}"
        if random.random() < 0.25 and column.type not in STORED:
            low, high = self.value(column), self.value(column)
            text = f"{alias}.{column.name} BETWEEN {low} AND {high}"
        if random.random() < 0.1:
            text = f"{alias}.{column.name} IS NOT NULL"
        if random.random() < 0.3:
            other = self.condition(columns, alias, changes)
            text = f"({text} {random.choice(('AND', 'OR'))} {other})"
        return text

    def assignments(self, columns: Sequence[Column]) -> str:
        """What UPDATE sets."""
        random = self.random
        few = random.sample(list(columns), min(len(columns), random.choice((1, 1, 1, 2))))
        return ", ".join(
            f"{c.name} = {random.choice((self.value(c), self.value(c), c.name))}" for c in few
        )

    # ------------------------------------------------------------------ one after the other

    def next(self) -> Act:
        """The next statement."""
        while not self.pending:
            # Beside an open transaction another client mostly waits, which `meeting` draws.
            client = int(self.within == [None, None] and self.random.random() < 0.15)
            if self.failed[client]:
                point = self.within[client]
                undo = point and self.random.random() < 0.5
                self.pending.append(
                    Act(f"ROLLBACK TO ⟨name⟩s{(point or 0) - 1}" if undo else "ROLLBACK",
                        client=client)
                )  # fmt: skip
                break
            weights = [weight for weight, _ in self.productions]
            ((_, production),) = self.random.choices(self.productions, weights)
            drawn = production(self, client)
            if client and drawn in ("BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"):
                client = 0
            self.pending.extend(drawn if isinstance(drawn, list) else [Act(drawn, client=client)])
        return self.pending.popleft()

    def ran(self, act: Act, *, failed: bool) -> None:
        """A statement has run: what is the client within now?"""
        client, word = act.client, act.text.split(" ", 1)[0]
        if word in _ENDING and " TO " not in act.text:
            self.within[client], self.failed[client] = None, False
            return
        depth = self.within[client]
        if failed:
            self.failed[client] = depth is not None
            return
        if act.during:
            self.within[0], self.failed[0] = None, False
        if word == "BEGIN":
            self.within[client] = 0
        elif word == "SAVEPOINT" and depth is not None:
            self.within[client] = depth + 1
        elif word == "RELEASE" and depth:
            self.within[client] = depth - 1
        elif act.text.startswith("ROLLBACK TO"):
            self.failed[client] = False
