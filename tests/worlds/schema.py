"""What a session's generator knows of its tables: names, types, ceilings, universes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from tests.worlds.known_faults import left_out
from tests.worlds.values import LEVELS, TYPES, Universe, Values

#: Names of tables; two pairs differ only by letters that DuckDB does not fold.
TABLES = (
    "staff", "Dept", '"ÖL"', '"öl"', "report", '"two words"', "copied", '"Å"', '"å"', "archive",
)  # fmt: skip
PLAIN_NAMES = ("p", "q", '"ä"', '"Ä"', "kind", '"a b"', "n1")
COLLATIONS = ("NOCASE", "NOACCENT", "NOCASE.NOACCENT", "C")
_ALIKE = ('"öl"', '"å"', '"Ä"')
Made = TypeVar("Made", bound=Callable[..., object])
PLAIN = {
    "BIGINT": ("0", "1", "2", "3"),
    "HUGEINT": ("5", "6"),
    "DECIMAL(38,1)": ("0.5", "7.0"),
    "VARCHAR": ("'red'", "'blue'", "'green'"),
    "DATE": ("DATE '2001-02-03'", "DATE '2020-01-01'"),
}


def types() -> list[str]:
    """The types that a column may have."""
    return [t for t in TYPES if t not in ("HUGEINT", "DECIMAL(38,1)") or not left_out("wide")]


def allowed(names: tuple[str, ...]) -> list[str]:
    """Those of the names that may be given."""
    return [name for name in names if name not in _ALIKE or not left_out("names")]


@dataclass(slots=True)
class Col:
    """A column: its level is what the server may know of it, `plaintext` for a plain one."""

    name: str
    type: str
    level: str = "plaintext"
    universe: Universe | None = None
    unique: bool = False
    #: whether it is one of the two columns of a key
    paired: bool = False
    #: computed by the table itself; never written
    generated: bool = False
    collation: str = ""

    @property
    def plain(self) -> bool:
        """Whether it is not ENC."""
        return self.level == "plaintext"

    @property
    def rank(self) -> int:
        """The place of its level."""
        return LEVELS.index(self.level)


@dataclass(slots=True)
class Tab:
    """A table, a view, or a table of the attached connection; `name` is what it is called now."""

    name: str
    cols: list[Col]
    view: bool = False
    attached: bool = False
    #: all columns are ENC, one is dealt, and only that one ever chooses rows to be written
    vault: bool = False
    #: whether other tables refer to it, or it to others
    linked: bool = False
    #: of a temporary table what it holds: "own" literals of the user's, "even" rows that correspond
    #: in both worlds, or "wild" ones
    temp: str = ""
    schema: str = "main"
    bare: str = ""

    def __post_init__(self) -> None:
        self.bare = self.bare or self.name

    @property
    def secret(self) -> list[Col]:
        """Its ENC columns."""
        return [c for c in self.cols if not c.plain]

    def written(self) -> list[Col]:
        """The columns that INSERT may name."""
        return [c for c in self.cols if not c.generated]


@dataclass(frozen=True, slots=True)
class Var:
    """A variable of the session. Its kind is that of temporary tables, and lasts."""

    name: str
    type: str
    kind: str
    universe: Universe | None = None
    #: the lowest level of what a wild one depends on
    level: str = ""

    def __str__(self) -> str:
        return f"getvariable('{self.name}')"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared statement: keys, types, universes and first values of its placeholders."""

    name: str
    wanted: tuple[tuple[str, str, Universe | None, str], ...]
    reads: bool


@dataclass(slots=True)
class State:
    """Everything that the next statement depends on."""

    dice: Random
    values: Values
    profile: str
    tables: list[Tab] = field(default_factory=list)
    objects: list[tuple[str, str]] = field(default_factory=list)
    in_transaction: bool = False
    saved: list[Tab] = field(default_factory=list)
    count: int = 0
    variables: list[Var] = field(default_factory=list)
    prepared: list[Prepared] = field(default_factory=list)
    schemas: list[str] = field(default_factory=lambda: ["main"])
    current: str = "main"
    #: kinds of statements that are made, where not all are, and forms of a kind as "kind:form"
    focus: tuple[str, ...] = ()

    def fresh(self, prefix: str) -> str:
        """A name that was never given."""
        self.count += 1
        return f"{prefix}{self.count}"

    def chance(self, share: float) -> bool:
        """Yes in this share of cases."""
        return self.dice.random() < share

    def pick(self, kind: str, forms: Sequence[tuple[str, str]]) -> str:
        """One of the forms of a kind, each under its name; one of those in focus, if any are."""
        chosen = [text for name, text in forms if f"{kind}:{name}" in self.focus]
        return self.dice.choice(chosen or [text for _, text in forms])

    def focused(self, makers: Sequence[Made]) -> list[Made]:
        """Those of the makers of statements that are in focus."""
        return [maker for maker in makers if kind_of(maker) in self.focus]

    def places(self, universe: Universe, count: int = 1) -> list[int]:
        """Some places of a universe."""
        return [self.dice.randrange(len(universe.pairs[0])) for _ in range(count)]

    def literal(self, col: Col) -> str:
        """A value such as the column holds, or NULL."""
        if col.type == "BIGINT[]":
            return self.dice.choice(("[1]", "[3]", "[5]"))
        if col.universe is None:
            return self.dice.choice(PLAIN[col.type]) if col.plain else "NULL"
        if self.chance(0.04):
            return "NULL"
        if self.chance(0.5 if "variables" in self.focus else 0.08):
            known = [v for v in self.variables if v.kind != "wild" and v.type == col.type]
            known = [v for v in known if v.universe is col.universe]
            if known:
                return str(self.dice.choice(known))
        (number,) = self.places(col.universe)
        return self.values.mark(col.universe, number)

    def any_literal(self, col: Col) -> str:
        """The same for conditions that choose nothing that is written."""
        known = [v for v in self.variables if v.type == col.type]
        if known and self.chance(0.5 if "variables" in self.focus else 0.08):
            return str(self.dice.choice(known))
        return self.literal(col)

    def called(self, schema: str, bare: str) -> str:
        """The name of something in a schema, as it may be given now."""
        return bare if schema == self.current else f"{schema}.{bare}"

    def goes(self, schema: str) -> None:
        """Names without a schema are of this one from now on."""
        self.current = schema
        for table in self.tables:
            if not table.attached and not table.temp:
                table.name = self.called(table.schema, table.bare)

    def base(self) -> list[Tab]:
        """The tables that can be written at the server."""
        return [t for t in self.tables if not t.view and not t.attached and not t.temp]

    def sources(self, vaults: bool = True, attached: bool = True) -> list[Tab]:
        """Everything that can be read; without vaults, what corresponds row by row."""
        known = self.tables if attached else [t for t in self.tables if not t.attached]
        return [t for t in known if vaults or not (t.vault or t.temp in ("wild", "own"))]

    def universe(self, type_: str, level: str) -> Universe | None:
        """The universe of a column with this level; now and then one that could show more."""
        if level == "plaintext":
            return None
        known = self.values.universes
        if level != "size" and self.chance(0.15):
            level = self.dice.choice(LEVELS[LEVELS.index(level) : 4])
        return known[f"{level}_{type_.lower()}"]


def kind_of(maker: Callable[..., object]) -> str:
    """The kind of statements that a function makes."""
    return maker.__name__.strip("_").replace("_", " ")


def enc(profile: str, level: str) -> str:
    """How a column of this level is declared."""
    usual = {"sealed": "access", "cryptdb": "order", "lake": "access"}.get(profile)
    if level == "plaintext":
        return ""
    onion = " USING onion" if profile == "mixed" and level in ("equality", "order") else ""
    return " ENC" if level == usual else f" ENC{onion} MAY REVEAL {level}"
