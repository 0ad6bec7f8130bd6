"""Messages between a client and the providers of public data: shapes, shares and replies.

A `Shape` is the public part of a question: its SQL without the secrets. A provider prepares a table
of intermediate results for it once, and describes in `Prepared` how keys become points and how
records are laid out. An `Ask` carries shares of functions, one or more for each clause, and a
`Reply` what they select or sum. See spec/splinter.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

_ALIGN_BYTES = 16


class Protocol(StrEnum):
    """The protocol of a question (Splinter, section 5.2; the last three are for p >= 3)."""

    SELECT = "select"
    SUM = "sum"
    NODES = "nodes"
    SEARCH = "search"
    BUCKETS = "buckets"
    DYADIC = "dyadic"
    PAILLIER = "paillier"


@dataclass(frozen=True, slots=True)
class Partial:
    """A decomposable aggregate: two partial results can be merged into one.

    ``function`` is one of count, sum, min, max, arg_min, arg_max, product, bool_and, bool_or,
    bit_and, bit_or, bit_xor; ``arguments`` are SQL texts, none for count of all rows;
    ``filter`` is a public condition or empty.
    """

    function: str
    arguments: tuple[str, ...] = ()
    filter: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """One expression of ORDER BY."""

    expression: str
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """The public part of a question, in DuckDB's SQL.

    Attributes:
        protocol: how it is answered.
        source: the FROM clause: a table, or tables joined on public conditions.
        where: public conditions, or empty.
        equal: expressions that a clause compares with a secret by ``=``.
        interval: the expression that a clause bounds by secrets, or empty.
        groups: GROUP BY; empty with `columns`.
        partials: aggregates; empty with `columns`.
        columns: expressions of single rows (TOPK); empty with `partials`.
        orders: the sort order of rows; their position in the table breaks ties.
        limit: the most rows (TOPK's k, with the offset); 0 with `partials`.
    """

    protocol: Protocol
    source: str
    where: str = ""
    equal: tuple[str, ...] = ()
    interval: str = ""
    groups: tuple[str, ...] = ()
    partials: tuple[Partial, ...] = ()
    columns: tuple[str, ...] = ()
    orders: tuple[Order, ...] = ()
    limit: int = 0


@dataclass(frozen=True, slots=True)
class Code:
    """How the values of one condition expression become bits.

    ``kind`` is ``offset`` (code = (unit - low) / step, in `bits` bits) or ``hash`` (hashed together
    with the other equal expressions). ``length`` is the longest text in bytes for an interval over
    texts, otherwise 0.
    """

    type: str
    kind: str
    low: int = 0
    step: int = 1
    bits: int = 0
    length: int = 0


@dataclass(frozen=True, slots=True)
class KeyCodes:
    """How a clause becomes a point, or an interval of points: equal code above interval code."""

    equal: tuple[Code, ...]
    interval: Code | None
    salt: bytes
    hashed: bool
    equal_bits: int

    @property
    def bits(self) -> int:
        """Width of the domain, 1 to 64."""
        return max(1, self.equal_bits + (0 if self.interval is None else self.interval.bits))


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the rows of a record: its name (g0, p0, c0, o0, position) and type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Slot:
    """The space of a field in a row: bytes of a value, and whether some values are NULL."""

    width: int
    nulls: bool


@dataclass(frozen=True, slots=True)
class Level:
    """One table of records.

    Attributes:
        count: the number of records.
        bits: of their domain.
        rows: most rows of an entry.
        width: bytes of a record.
        marked: whether entries have fingerprints.
        slots: the space of each field in a row.
    """

    count: int
    bits: int
    rows: int
    width: int
    marked: bool = False
    slots: tuple[Slot, ...] = ()

    @property
    def stored(self) -> int:
        """Bytes of a record as it is stored and as its tag is computed: a multiple of 16."""
        return max(1, -(-self.width // _ALIGN_BYTES)) * _ALIGN_BYTES


@dataclass(frozen=True, slots=True)
class SumColumn:
    """One summed column of integers: limb number `limb` of partial number `partial`.

    A partial's value is the sum over its limbs of limb * 2**(32 * number), in the units of `type`
    (scaled integers for DECIMAL).
    """

    partial: int
    limb: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """The result of preparing a shape; equal at all providers of one version.

    Attributes:
        version: the data set's version, 32 bytes.
        shape_id: the shape's id, 32 bytes: SHA-256 of its encoding.
        digest: of everything that is evaluated, 32 bytes: providers with other data differ here.
        codes: from secrets to points.
        fields: the columns of a row of a record; sum and paillier: the columns of the answer.
        levels: record tables; select and buckets have one, nodes one per level. Sum and paillier
            have none, or that of `groups`.
        points: distinct keys, that is evaluations of a share.
        groups: sum and paillier: the rows of groups, as one record; empty otherwise.
        group_count: sum and paillier: the number of groups.
        sums: sum and paillier: the columns of integers.
        index_bits: search: bits of the index of a row; 0 otherwise.
    """

    version: bytes
    shape_id: bytes
    digest: bytes
    codes: KeyCodes
    fields: tuple[Field, ...]
    levels: tuple[Level, ...]
    points: int
    groups: bytes = b""
    group_count: int = 0
    sums: tuple[SumColumn, ...] = ()
    index_bits: int = 0


@dataclass(frozen=True, slots=True)
class Ask:
    """Shares for one provider.

    ``query_id`` is random (16 bytes) and never used again; a provider refuses a repeated one.
    ``step`` counts the rounds of a question from 0; ``form`` contains small public numbers of the
    step (search: the prefix bits of each share; sampling: slots and seeds).
    """

    query_id: bytes
    version: bytes
    shape_id: bytes
    step: int
    shares: tuple[bytes, ...]
    form: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """What the shares of an `Ask` select or sum: one part per share, concatenated.

    The lengths of the parts follow from public values (`louver.wire.reply_sizes`). A reply does not
    identify its request: a reply to another one does not verify.
    """

    data: bytes


#: DuckDB's type of NULL, for a column of a type that questions do not support.
LEFT_OUT = '"NULL"'


@dataclass(frozen=True, slots=True)
class TableFacts:
    """One table of a data set: its columns as (name, DuckDB type), and its number of rows."""

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: int


@dataclass(frozen=True, slots=True)
class Dataset:
    """A provider's data set.

    ``instance`` identifies the running provider (16 random bytes), so that a client detects two
    addresses of one machine; ``versions`` are those that it supports, newest first; ``tables`` are
    those of the newest, ``older`` those of the others in their order.
    """

    instance: bytes
    versions: tuple[bytes, ...]
    tables: tuple[TableFacts, ...] = field(default_factory=tuple)
    older: tuple[tuple[TableFacts, ...], ...] = field(default_factory=tuple)

    def tables_of(self, version: bytes) -> tuple[TableFacts, ...] | None:
        """The tables of a version; None if they are not known."""
        known = dict(zip(self.versions, (self.tables, *self.older), strict=False))
        return known.get(version)
