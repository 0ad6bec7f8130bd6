"""What is said of a scheme, and the table of all schemes.

A scheme's row is the one place of what it stores, answers and leaks. The planner, the ledger,
EXPLAIN, advice, the docs and the tests read the rows; `vault.schemes` fills the table. A row is
plain data: what needs keys is in the scheme's module, where the planner cannot reach it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.levels import LEVELS
from louver.trusted.vault.protection import BUNDLES, FILES, Protection
from louver.trusted.vault.stored_types import BYTES
from louver.trusted.vault.types import has_fixed_length

NOTHING_KNOWN = "nothing known"


@dataclass(frozen=True, slots=True)
class Leak:
    """What a server learns: a level, a name for programs, and a sentence with ``{column}`` and
    ``{table}`` in it.

    The name is the kind of fact, and after a slash which of its sentences. ``broken_by`` names the
    attack that uses it. ``counted`` tells that each further condition shows more, because it
    divides the rows anew: these are counted.
    """

    level: str
    name: str
    text: str
    broken_by: str = NOTHING_KNOWN
    counted: bool = False

    @property
    def kind(self) -> str:
        """A word for programs."""
        return self.name.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Representation:
    """One stored column: its name in the catalog, the first letter of its name on the server, and
    its type there, one of `stored_types`.
    """

    name: str
    letter: str
    type: Callable[[Column], str]


def in_bytes(_: Column) -> str:
    """The stored type of most representations."""
    return BYTES


@dataclass(frozen=True, slots=True)
class Layer:
    """A state of an onion: its name in the catalog, the word for people, and the level that it
    shows. Columns of one join group are compared in a state that ``joins``.
    """

    state: str
    called: str
    level: str
    joins: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """How an operation is decided on a representation.

    The server compares natively, or by the backend's ``operation`` on the stored value, the row id
    if ``by_row``, and the constant; it tells the order as -1, 0 or 1, or whether the row matches.
    ``opens`` is the state that the onion must be in, ``pairs`` the state in which two columns of a
    join group compare; ``leak`` names the sentence of what is shown beside that. Rows that must
    not pass may pass where it is not ``exact``, or where a column with NULLs ``hides_nulls``.
    ``tokens`` names the sentence of each token that is sent, ``keys`` that of tokens which are
    made of another table's keys.
    """

    opens: str = ""
    pairs: str = ""
    leak: str = ""
    operation: str = ""
    by_row: bool = False
    exact: bool = True
    hides_nulls: bool = False
    tokens: str = ""
    keys: str = ""


BY_ROW, BY_FILE = "by row", "by file"
"""How the copy that reading opens is kept: each value for itself, bound to its row, or a file at a
time."""
TOTAL, COUNT = "total", "count"
"""What is opened from a sum: the total, or the number of values that are not NULL."""
ROW_ID, PUBLIC = "row id", "public number"
"""Operands of a `SumPart` beside representations."""


@dataclass(frozen=True, slots=True)
class Addends:
    """Values of a column that the server is to add up: `TOTAL` or `COUNT` of them, of at most
    ``rows`` rows a group. ``whole`` tells that all rows of one table are added, whose numbers the
    client knows.
    """

    column: Column
    what: str
    rows: int
    whole: bool


@dataclass(frozen=True, slots=True)
class SumPart:
    """One column of the answer from which a sum is opened: an aggregate of the backend
    (``operation``) over representations of the scheme, the row id (`ROW_ID`) and the scheme's
    public number (`PUBLIC`). ``names_rows`` tells that it grows with the rows that were added.
    """

    name: str
    operation: str
    operands: tuple[str, ...]
    names_rows: bool = False


@dataclass(frozen=True, slots=True)
class Packing:
    """A scheme that keeps several columns of a row in one ciphertext, which is the table's:
    ``takes`` tells whether a column under a protection is among them, ``columns`` is how many fit.
    """

    takes: Callable[[Column, Protection], bool]
    columns: int


@dataclass(frozen=True, slots=True)
class Scheme:
    """One scheme.

    ``operations`` maps what it answers, as people write it, to what that shows, ``answers`` the
    same for the planner. ``lengths`` is what else shows at rest of types of no fixed length;
    ``ceiling`` is the lowest ceiling under which it may be used; ``applies`` gives the
    representations that a column has under a protection. ``layers`` are the states of an onion,
    the outermost first; ``opened`` and ``opened_unique`` are what an open one shows of a column,
    ``paired`` of two. ``using`` tells that USING takes its name, for columns of the types that it
    ``takes``; ``functions`` are what it calls on the server; ``policy`` is the entry of a
    policy file that asks for it, and its words. ``advice`` gives the entry by which a column has
    it, where it has to be written. ``sums`` gives the parts from which the scheme's module opens
    what the server added up (`open_sum`), none where the server cannot. ``reading`` is `BY_ROW` or
    `BY_FILE` if its first representation is the copy that reading opens, of which a column has
    one; ``shares`` tells that its representation is a share, on which the server computes with
    helper columns beside it. ``former`` are its names in earlier releases.
    """

    name: str
    stored_as: str
    spec: str
    ceiling: str
    at_rest: Leak
    lengths: Leak | None
    operations: dict[str, Leak | None]
    broken_by: str
    representations: tuple[Representation, ...]
    applies: Callable[[Column, Protection], Sequence[str]]
    answers: dict[str, Answer]
    layers: tuple[Layer, ...] = ()
    opened: Leak | None = None
    opened_unique: Leak | None = None
    paired: Leak | None = None
    functions: tuple[str, ...] = ()
    using: bool = False
    takes: Callable[[str], bool] = lambda _: True
    policy: tuple[str, tuple[str, ...]] | None = None
    advice: Callable[[Column], str] = lambda _: ""
    sums: Callable[[Addends], Sequence[SumPart]] | None = None
    reading: str = ""
    shares: bool = False
    packs: Packing | None = None
    former: tuple[str, ...] = ()

    def leaks(self) -> list[Leak]:
        """All that the row says, each once."""
        said = (self.at_rest, self.lengths, *self.operations.values())
        return list(dict.fromkeys(leak for leak in said if leak is not None))

    def layer(self, state: str) -> Layer:
        """The layer of this name."""
        return next(layer for layer in self.layers if layer.state == state)

    def rank(self, state: str) -> int:
        """How far open a state is; a column that the catalog says nothing of is closed."""
        return next((n for n, layer in enumerate(self.layers) if layer.state == state), 0)

    @property
    def joined(self) -> str:
        """The state in which columns of a join group compare; "" where none do."""
        return next((layer.state for layer in self.layers if layer.joins), "")


#: What every scheme shows whose values are read, or added up, row by row.
ROWS = Leak(
    "access",
    "rows",
    "the server can tell which rows of {table} a query read ({column})",
    "reconstruction from many queries: Kellaris, Kollios, Nissim and O'Neill, CCS 2016",
    counted=True,
)

_ROWS: dict[str, Scheme] = {}
_LEAKS: dict[str, Leak] = {}
_BY_REPRESENTATION: dict[str, Scheme] = {}


def publish(scheme: Scheme) -> None:
    """Put a row into the table; its sentences are known by their names from now on."""
    if scheme.reading and scheme.ceiling != LEVELS[0]:
        raise ValueError(f"a ceiling could take away the copy that reading opens: {scheme.name}")
    if scheme.packs is not None and packing() is not None:
        raise ValueError("a table does not say which scheme its packed columns are of")
    for leak in scheme.leaks():
        if _LEAKS.setdefault(leak.name, leak) != leak:
            raise ValueError(f"two sentences are called {leak.name}")
    _ROWS[scheme.name] = scheme
    _BY_REPRESENTATION.update((other.name, scheme) for other in scheme.representations)


def withdraw(name: str) -> None:
    """Take a row out again."""
    row = _ROWS.pop(name)
    for item in row.representations:
        del _BY_REPRESENTATION[item.name]
    existing_rows = {leak.name for other in rows() for leak in other.leaks()}
    for leak in row.leaks():
        if leak.name not in existing_rows:
            del _LEAKS[leak.name]


def rows() -> Iterable[Scheme]:
    """Every row; of several schemes that answer something the first one is preferred."""
    return _ROWS.values()


def leak(name: str) -> Leak:
    """The sentence of this name."""
    return _LEAKS[name]


def kind_today(kind: str) -> str:
    """The kind of a fact by its name of today."""
    scheme, dot, rest = kind.partition(".")
    return f"{name_today(scheme)}{dot}{rest}"


def name_today(name: str) -> str:
    """The name of a scheme by one that an earlier release used; any other word as it is."""
    return next((row.name for row in rows() if name in row.former), name)


def scheme_of(representation: str) -> Scheme:
    """The scheme of a stored column."""
    return _BY_REPRESENTATION[representation]


def representation(name: str) -> Representation:
    """The representation of this name."""
    return next(other for other in scheme_of(name).representations if other.name == name)


def summing() -> list[Scheme]:
    """The schemes whose values the server adds up, the preferred one first."""
    return [row for row in rows() if row.sums is not None]


def onions() -> list[Scheme]:
    """The schemes whose values lie under layers."""
    return [row for row in rows() if row.layers]


def held(column: Column, protection: Protection) -> list[str]:
    """The representations that a column has: the one map from ceilings to what is stored. Of
    several copies for reading it has that of the scheme that USING names, else the first.
    """
    by_row = [(row, row.applies(column, protection)) for row in rows()]
    copies = [row for row, names in by_row if row.reading and names]
    copies.sort(key=lambda row: row.name != protection.scheme)
    return [name for row, names in by_row if row not in copies[1:] for name in names]


def reading(column: Column) -> Scheme:
    """The scheme of the copy that reading opens, of an encrypted column."""
    return next(
        row for row in rows() if row.reading and row.representations[0].name in column.stored
    )


def read_from(column: Column) -> str:
    """The server's column of the copy that reading opens, of an encrypted column."""
    return column.stored[reading(column).representations[0].name]


def share_of(column: Column) -> str:
    """The server's column of shares; "" where there is none."""
    names = (row.representations[0].name for row in rows() if row.shares)
    return next((column.stored[name] for name in names if name in column.stored), "")


def has_shares(table: Table) -> bool:
    """Whether a column of the table is stored as shares, which need helpers beside them."""
    return any(share_of(column) for column in table.columns)


def packing() -> Scheme | None:
    """The scheme that packs several columns, of which there is one at most."""
    return next((row for row in rows() if row.packs is not None), None)


def packed(table: Table, column: Column) -> list[tuple[str, str]]:
    """The representations of a column that are the table's, with the server's columns."""
    row = packing()
    if row is None:
        return []
    name = row.representations[0].name
    return [(name, stored) for stored, ids in table.packs.items() if column.id in ids]


def lacks(column: Column, protection: Protection) -> bool:
    """Whether schemes that a column has would store more of it today."""
    fresh = (name for name in held(column, protection) if name not in column.stored)
    return any(scheme_of(name).representations[0].name in column.stored for name in fresh)


def tells_rows(column: Column) -> bool:
    """Whether rows can be distinguished by what is stored of a column: by its plain values, or by
    the lengths of ciphertexts; rewriting a row then does not hide it. A file does not show the
    length of a single value.
    """
    if not column.encrypted:
        return True
    return reading(column).reading == BY_ROW and not has_fixed_length(column.type)


def answering(operation: str) -> list[tuple[str, Answer]]:
    """The representations that answer an operation, the preferred one first."""
    return [
        (row.representations[0].name, row.answers[operation])
        for row in rows()
        if operation in row.answers
    ]


def answered(column: Column, operation: str) -> tuple[str, Answer] | None:
    """The stored representation that answers an operation of a column; None where none does."""
    return next((pair for pair in answering(operation) if pair[0] in column.stored), None)


def using_words() -> tuple[str, ...]:
    """The words after USING, and of policy files."""
    return (*(row.name for row in rows() if row.using), *BUNDLES)


def using(word: str) -> Scheme | None:
    """The scheme that USING names; None for a word that stands for several."""
    return next((row for row in rows() if row.using and row.name == word), None)


def details(column: Column) -> dict[str, Any]:
    """What a policy would say of a column beyond scheme and ceiling, by entry (`policy_words`)."""
    names = {
        row.name for row in rows() if any(r.name in column.stored for r in row.representations)
    }
    said = [text for row in rows() if row.name in names and (text := row.advice(column))]
    return {"text": "text" in names, **tomllib.loads("\n".join(said))}


def policy_words() -> dict[str, tuple[str, ...]]:
    """What policy files may say of a column beyond its scheme, by entry."""
    by_name: dict[str, tuple[str, ...]] = {}
    for row in rows():
        if row.policy is not None:
            key, words = row.policy
            by_name[key] = (*by_name.get(key, ()), *words)
    return by_name


__all__ = ["BUNDLES", "FILES", "Answer", "Layer", "Leak", "Protection", "Representation", "Scheme"]
