"""What one server is asked: tables by id, expressions as trees, and how the answer is opened."""

from __future__ import annotations

from dataclasses import dataclass, replace

from louver.trusted.planner.ir.nodes import Node, SharedExpr, Summed, Term, terms_of


@dataclass(frozen=True, slots=True)
class TableRef:
    """One table occurrence of a plan: ``table`` is the id of the table in the catalog that runs
    the plan, ``alias`` the statement's name for it. Everything else is looked up by the id.
    """

    slot: int
    alias: str
    table: int

    @property
    def server_alias(self) -> str:
        """The name of the occurrence in the text that the server is sent."""
        return f"t{self.slot}"


SEALED = "sealed"
"""The kind of an output that is the copy of a column that reading opens."""


@dataclass(frozen=True, slots=True)
class Output:
    """One column of a server's answer and how the client opens it.

    ``kind``: ``plain`` (taken as it is), `SEALED` (opened by the key of ``column`` and bound to
    the row number of ``slot``, or to that of ``row``), ``share`` (opened by the key of ``secret``),
    ``summed`` (a sum that a scheme opens, from the outputs named in ``parts``), ``average`` (the
    quotient of the outputs named in ``parts``), ``raw`` (a part of another one), ``absent``
    (nothing is asked for: the query does not read the column). ``type`` is DuckDB's type locally.
    ``tiled`` tells that values may be in tiles.
    """

    name: str
    kind: str
    type: str
    node: Node | None = None
    secret: SharedExpr | None = None
    slot: int = 0
    column: int = 0
    parts: tuple[str, ...] = ()
    row: Node | None = None
    summed: Summed | None = None
    tiled: bool = False


@dataclass(frozen=True, slots=True)
class Joined:
    """One more table of FROM: ``kind`` is CROSS JOIN, JOIN or LEFT JOIN."""

    source: TableRef
    kind: str
    on: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Probe:
    """Keys of another table that choose the files of a lake's, or the rows of a server's:
    ``column`` is the id of the column that they are looked for in, ``home`` the table that they are
    of, ``key`` its column.

    Of a lake, ``filters`` are conditions on that table under the name ``alias``, with ``⟪i⟫`` for
    the statement's i-th number. Where keys are ``merged``, one range holds them all: how many there
    are would show which are equal. Of a server, ``node`` compares what it holds of the column with
    one constant, and up to ``most`` keys are asked for; for more the table is read.
    """

    column: int
    home: tuple[str, str]
    key: str
    alias: str
    filters: tuple[str, ...]
    merged: bool = False
    node: Node | None = None
    most: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """Rows of one table looked up in two steps. ``first`` reads the row numbers and the columns of
    ``condition``, which is decided locally; ``rest`` reads the other columns, of the rows that pass
    by their numbers, or of all rows where that costs less. None where there are no others.

    ``condition`` is the local engine's text over the columns of ``first``, which it calls
    `LOOKUP_ROWS`, with ``⟪i⟫`` for the statement's i-th number; ``matches`` rows are expected to
    pass it.
    """

    first: RemoteQuery
    rest: RemoteQuery | None
    condition: str
    matches: float = 0.0


LOOKUP_ROWS = "louver_looked"
"""What the condition of a look-up calls the rows that it decides on."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class RemoteQuery:
    """One query for the server, and the home table that its opened answer fills.

    ``counted`` names the answer's column that counts all rows of the one table, if there is one.
    ``inner`` are the tables within the conditions of WHERE. ``rows`` and ``width`` are what the
    answer is expected to have: rows, and bytes of each; 0 where nothing is expected. ``probes``
    are keys that are read before. ``filters`` are conditions within aggregates. With a ``lookup``
    the rows are read in its two steps; whether they are may depend on how many there are
    (``weighed``). ``finished``: the opened rows go to the local engine, and to no one else.
    """

    home: tuple[str, str]
    sources: tuple[TableRef, ...]
    joins: tuple[Joined, ...]
    outputs: tuple[Output, ...]
    where: tuple[Node, ...] = ()
    group: tuple[Node, ...] = ()
    grouped: bool = False
    having: tuple[Node, ...] = ()
    order: tuple[Node, ...] = ()
    limit: str = ""
    whole_table: bool = False
    counted: str = ""
    inner: tuple[TableRef, ...] = ()
    rows: float = 0.0
    width: int = 0
    probes: tuple[Probe, ...] = ()
    filters: tuple[Node, ...] = ()
    lookup: Lookup | None = None
    weighed: bool = False
    finished: bool = False

    def row_slots(self) -> list[int]:
        """The table occurrences whose row numbers the client needs to open the answer."""
        needed: set[int] = set()
        for output in self.outputs:
            if output.kind == SEALED and output.row is None:
                needed.add(output.slot)
            elif output.secret is not None:
                needed |= output.secret.slots
        if self.whole_table and not self.grouped:
            needed |= {source.slot for source in self.sources}
        return sorted(needed)

    def for_engine(self) -> RemoteQuery:
        """The same, `finished`, its steps too."""
        lookup = self.lookup
        if lookup is not None:
            rest = lookup.rest and lookup.rest.for_engine()
            lookup = replace(lookup, first=lookup.first.for_engine(), rest=rest)
        return replace(self, finished=True, lookup=lookup)

    def may_be_tiled(self) -> bool:
        """Whether values of the answer may be in tiles, which are asked for after it."""
        return any(output.tiled for output in self.outputs)

    def table_of(self, slot: int) -> int:
        """The id of the table that an occurrence of FROM is of."""
        return next(source.table for source in self.sources if source.slot == slot)

    def conditions(self) -> list[Node]:
        """What decides which rows are taken."""
        joins = (node for join in self.joins for node in join.on)
        return [*self.where, *self.filters, *joins, *self.order]

    def terms(self) -> list[Term]:
        """Everything that the query could use if the server kept it."""
        nodes = [output.node for output in self.outputs if output.node is not None]
        nodes += [*self.where, *self.group, *self.having, *self.order]
        nodes += [node for join in self.joins for node in join.on]
        return [term for node in nodes for term in terms_of(node)]


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Conditions that the server applies before it sends the rows that a change reads, with the
    statement's numbers, or the look-up of these rows. What that shows is in the ledger already,
    from the plan that they are of.
    """

    source: TableRef
    nodes: tuple[Node, ...]
    literals: tuple[str, ...]
    lookup: Lookup | None = None
