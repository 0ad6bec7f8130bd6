"""What is said of a scheme: its row, which is the one place of what it stores, answers and leaks.

A row is plain data: what needs keys is in the scheme's module, where the planner cannot reach it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from louver.trusted.vault.catalog import Column
from louver.trusted.vault.protection import Protection, Word
from louver.trusted.vault.stored_types import BYTES

NOTHING_KNOWN = "nothing known"
# Published attacks that use what a server is shown. What `louver attack` runs is marked so.
_RUN = " (`louver attack`)"
CAO = f"Cao, Liu, Lu and Ren, PVLDB 2021, by ciphertext alone{_RUN}"
FREQUENCY = f"frequency analysis: Naveed, Kamara and Wright, CCS 2015{_RUN}"
ORDER = (
    "sorting and cumulative frequencies: Naveed, Kamara and Wright, CCS 2015; "
    f"Grubbs et al., S&P 2017{_RUN}"
)
VOLUMES = "reconstruction from many queries: Kellaris, Kollios, Nissim and O'Neill, CCS 2016"
VOLUMES_OF_FILES = f"{VOLUMES}, at the grain of files"
ZEROS = f"reading off zeros and NULLs; signs tell values apart{_RUN}"
TOGETHER = "on both columns together"


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
class Entry:
    """What a policy file and WITH may say of a column: ``name = word``.

    ``words`` are those of this scheme; of all words of one name, the first is meant where nothing
    is said, unless ``bundles`` has another for the word after USING, or ``tiled`` is another where
    sealed values are in tiles. ``off`` is the word for doing without the scheme. ``says`` gives the
    word by which a column that has the scheme came to have it, None where nothing has to be
    written.
    """

    name: str
    words: tuple[Word, ...]
    bundles: Mapping[str, Word] = field(default_factory=dict)
    tiled: Word | None = None
    off: Word | None = None
    says: Callable[[Column], Word | None] = lambda _: None


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
    same for the planner. ``lengths`` is what else shows at rest of types of no fixed length,
    ``widths`` of all others where a backend has tiles;
    ``ceiling`` is the lowest ceiling under which it may be used; ``applies`` gives the
    representations that a column has under a protection. ``layers`` are the states of an onion,
    the outermost first; ``opened`` and ``opened_unique`` are what an open one shows of a column,
    ``paired`` of two. ``using`` tells that USING takes its name, for columns of the types that it
    ``takes``; ``functions`` are what it calls on the server; ``policy`` is the entry of a
    policy file that asks for it; ``profile`` is the one under which ENC alone means it. ``sums``
    gives the parts from which the scheme's module opens what the server added up (`open_sum`),
    none where the server cannot. ``reading`` is `BY_ROW` or `BY_FILE` if its first representation
    is the copy that reading opens, of which a column has one; ``shares`` tells that its
    representation is a share, on which the server computes with helper columns beside it;
    ``packs`` that tables have its representation, not columns; ``tags`` that it is one of each key.
    ``former`` are its names in earlier
    releases.
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
    policy: Entry | None = None
    profile: str = ""
    sums: Callable[[Addends], Sequence[SumPart]] | None = None
    reading: str = ""
    shares: bool = False
    packs: Packing | None = None
    tags: bool = False
    former: tuple[str, ...] = ()
    widths: Leak | None = None

    def leaks(self) -> list[Leak]:
        """All that the row says, each once."""
        said = (self.at_rest, self.lengths, self.widths, *self.operations.values())
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
    VOLUMES,
    counted=True,
)
