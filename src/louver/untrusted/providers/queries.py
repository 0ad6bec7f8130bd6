"""The SQL of a preparation: matching rows with their keys, grouped or ranked within each key.

Everything is ordered explicitly: neither the number of threads nor a machine's memory changes a
result. Aggregates whose result depends on the order of rows, such as sums of DOUBLE, process the
rows in the order of their position; of equally good rows the first one counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from louver import errors
from louver.names import quoted
from louver.untrusted.providers.expressions import Checked, refused
from louver.untrusted.providers.loading import POSITION
from louver.untrusted.providers.sandbox import Limits, Work, listed
from louver.wire.ordinals import has_units
from louver.wire.questions import Partial, Protocol, Shape
from louver.wire.row_codec import carries

_FLOATS = ("FLOAT", "DOUBLE")
#: Texts, blobs and the like: equal values have equal texts.
_TEXT_KEYS = ("VARCHAR", "UUID", "BLOB")
#: Types whose values may be long.
_LONG = ("VARCHAR", "BLOB")
#: Types whose equal values may look different.
_MANY_FACED = ("INTERVAL", "TIME WITH TIME ZONE")


@dataclass(frozen=True, slots=True)
class Base:
    """The rows of a shape: a query or table, and the types of its columns.

    Columns: k0, ... the condition's expressions, the bounded one last; g0, ... groups; a0_0, ...
    arguments and f0, ... filters of partials; c0, ... and o0, ... of rows; the position.
    """

    sql: str
    types: dict[str, str]
    shape: Shape

    @property
    def keys(self) -> list[str]:
        """Columns of the condition."""
        return [name for name in self.types if name[0] == "k"]

    @property
    def groups(self) -> list[str]:
        """Columns of GROUP BY."""
        return [name for name in self.types if name[0] == "g"]


def base(work: Work, checked: Checked, limits: Limits) -> Base:
    """The rows of a shape.

    Raises:
        errors.Error: `provider.refused` for a type that a condition or a result cannot have, and
            for a join of too many rows; `provider.large` for rows that are too wide.
    """
    shape = checked.shape
    query = _rows(checked)
    types = work.types(query)
    casts = []
    for name, columns in types.items():
        if columns.startswith("ENUM("):
            _refuse_order_of_choices(shape, name)
            types[name] = "VARCHAR"
            casts.append(f"CAST({name} AS VARCHAR) AS {name}")
    _check_types(types, bool(shape.interval))
    if casts:
        query = f"SELECT * REPLACE ({listed(casts)}) FROM ({query})"
    conditions = [f"{name} IS NOT NULL" for name in types if name[0] == "k"]
    if conditions:
        query = f"SELECT * FROM ({query}) WHERE {' AND '.join(conditions)}"
    if checked.joined:
        if work.number(f"SELECT count(*) FROM ({query} LIMIT {limits.rows + 1})") > limits.rows:
            raise refused(f"its join has more than {limits.rows} rows")
        work.run(f"CREATE TEMP TABLE louver_base AS {query}")
        query = "SELECT * FROM louver_base"
    whole = Base(query, types, shape)
    _check_size(work, whole, limits)
    return whole


def _check_size(work: Work, base: Base, limits: Limits) -> None:
    """Refuse texts whose records would be too large, before any is created.

    There is a record for each key, or for each row if all rows are searched, and all are as wide as
    the widest. DuckDB does not count the memory of aggregated texts.
    """
    shape = base.shape
    counts = [f"a{at}_" for at, size in enumerate(shape.partials) if size.function == "count"]
    texts = [
        name
        for name, kind in base.types.items()
        if kind in _LONG and name[0] in "cga" and not name.startswith(tuple(counts))
    ]
    if not texts or shape.protocol in (Protocol.SUM, Protocol.PAILLIER):
        return
    measures = {"VARCHAR": "strlen", "BLOB": "octet_length"}
    sizes = [f"coalesce({measures[base.types[name]]}({name}), 0)" for name in texts]
    # Columns are of one row, aggregates of any number.
    widest = [" + ".join(sizes)] if shape.columns else sizes
    total = " + ".join(f"max({size})" for size in widest)
    width = work.number(f"SELECT {total} FROM ({base.sql})")
    if shape.protocol is Protocol.SEARCH:
        rows = base.sql
    else:
        by = listed([*base.keys, *base.groups] or ["0"])
        rows = f"SELECT DISTINCT {by} FROM ({base.sql})"
    size = width * work.number(f"SELECT count(*) FROM ({rows})")
    if size > limits.table_bytes:
        raise errors.make("provider.large", bytes=size, most=limits.table_bytes)


def _rows(checked: Checked) -> str:
    shape = checked.shape
    keys = [*shape.equal, *([shape.interval] if shape.interval else [])]
    items = [(f"k{at}", text) for at, text in enumerate(keys)]
    items += [(f"g{at}", text) for at, text in enumerate(shape.groups)]
    for number, partial in enumerate(shape.partials):
        items += [(f"a{number}_{at}", text) for at, text in enumerate(partial.arguments)]
        items += [(f"f{number}", partial.filter)] if partial.filter else []
    items += [(f"c{at}", text) for at, text in enumerate(shape.columns)]
    items += [(f"o{at}", order.expression) for at, order in enumerate(shape.orders)]
    # A separate line for each text: it may end in a comment.
    chosen = [f"(\n{text}\n) AS {name}" for name, text in items]
    places = [f"{quoted(name)}.{POSITION}" for name in checked.names]
    position = places[0]
    if checked.joined:
        order = listed([f"{position} NULLS FIRST" for position in places])
        position = f"(row_number() OVER (ORDER BY {order})) - 1"
    where = f"\nWHERE (\n{shape.where}\n)" if shape.where else ""
    return f"SELECT {listed([*chosen, f'{position} AS position'])}\nFROM {shape.source}\n{where}"


def _refuse_order_of_choices(shape: Shape, name: str) -> None:
    """An ENUM is sent as text, whose order differs."""
    function = shape.partials[int(name[1:].split("_")[0])].function if name[0] == "a" else ""
    bounded = shape.interval and name == f"k{len(shape.equal)}"
    if name[0] == "o" or function in ("min", "max") or name.endswith("_1") or bounded:
        raise refused("it orders by an ENUM; cast it to VARCHAR or to a number")


def _check_types(types: dict[str, str], bounded: bool) -> None:
    keys = [name for name in types if name[0] == "k"]
    for name, type_name in types.items():
        if name[0] == "f" and type_name != "BOOLEAN":
            raise refused("a filter is not a condition")
        if type_name == '"NULL"' or not carries(type_name):
            raise refused(f"it has values of type {type_name[:80]}")
        if name[0] in "go" and type_name in _MANY_FACED:
            raise refused(f"it groups or sorts by {type_name}")
        if name not in keys:
            continue
        last = bounded and name == keys[-1]
        if not has_units(type_name) and not (
            type_name == "VARCHAR" if last else type_name in _TEXT_KEYS
        ):
            raise refused(f"its condition is over {type_name}; cast it to DECIMAL or VARCHAR")


def ranked(base: Base, by: Sequence[str], limit: int) -> str:
    """The first rows of each key `by`, in the order of the shape; with their rank from 1."""
    return (
        f"SELECT *, row_number() OVER ({_partition(by)}ORDER BY {row_order(base.shape)}) AS rank "
        f"FROM ({base.sql}) QUALIFY rank <= {limit}"
    )


def _partition(by: Sequence[str]) -> str:
    return f"PARTITION BY {listed(by)} " if by else ""


def row_order(shape: Shape) -> str:
    """ORDER BY of single rows; the position breaks ties."""
    items = []
    for at, order in enumerate(shape.orders):
        nulls = "FIRST" if order.nulls_first else "LAST"
        items.append(f"o{at} {'DESC' if order.descending else 'ASC'} NULLS {nulls}")
    return listed([*items, "position"])


def group_order(names: Sequence[str]) -> str:
    """ORDER BY of groups, or nothing."""
    items = listed([f"{name} ASC NULLS FIRST" for name in names])
    return f" ORDER BY {items}" if items else ""


def states(base: Base) -> list[str]:
    """Partial aggregates over rows, as s0, s1, ..., which can be merged with others."""
    return [
        f"{_state(base, number, partial)} AS s{number}"
        for number, partial in enumerate(base.shape.partials)
    ]


def merged(base: Base) -> list[str]:
    """Partial aggregates over partial aggregates, as s0, s1, ..."""
    return [
        f"{_merge(base, number, partial)} AS s{number}"
        for number, partial in enumerate(base.shape.partials)
    ]


def results(base: Base) -> list[str]:
    """The values p0, p1, ... of the states."""
    return [
        f"s{number}.x AS p{number}"
        if partial.function in ("arg_min", "arg_max")
        else f"s{number} AS p{number}"
        for number, partial in enumerate(base.shape.partials)
    ]


def plain_groups(base: Base) -> list[str]:
    """Groups with one representation of equal values: 0.0 for -0.0."""
    return [f"{_one_face(name, base.types[name])} AS {name}" for name in base.groups]


def _one_face(sql: str, type_name: str) -> str:
    return f"({sql} + CAST(0 AS {type_name}))" if type_name in _FLOATS else sql


def _state(base: Base, number: int, partial: Partial) -> str:
    first, second = f"a{number}_0", f"a{number}_1"
    conditions = [f"f{number}"] if partial.filter else []
    function, kind = partial.function, base.types.get(first, "")
    if function == "count":
        state = f"count({first})" if partial.arguments else "count(*)"
    elif function in ("arg_min", "arg_max"):
        better = _one_face(second, base.types[second])
        # The first of equally good rows: the largest of negated positions.
        rank = "position" if function == "arg_min" else "-position"
        whole = f"struct_pack(x := {first}, y := {better}, z := {rank})"
        state = f"{function}({whole}, struct_pack(y := {better}, z := {rank}))"
        conditions += [f"{first} IS NOT NULL", f"{second} IS NOT NULL"]
    elif _depends_on_order(partial, kind):
        state = f"{function}({first} ORDER BY position)"
    elif function in ("min", "max"):
        if kind in _MANY_FACED:
            raise refused(f"{function} of {kind}")
        state = f"{function}({_one_face(first, kind)})"
    else:
        state = f"{function}({first})"
    return f"{state} FILTER (WHERE {' AND '.join(conditions)})" if conditions else state


def _merge(base: Base, number: int, partial: Partial) -> str:
    state = f"s{number}"
    if partial.function == "count":
        return f"CAST(sum({state}) AS BIGINT)"
    if partial.function in ("arg_min", "arg_max"):
        order = f"struct_pack(y := {state}.y, z := {state}.z)"
        return f"{partial.function}({state}, {order}) FILTER (WHERE {state} IS NOT NULL)"
    if _depends_on_order(partial, base.types.get(f"a{number}_0", "")):
        return f"{partial.function}({state} ORDER BY node)"
    return f"{partial.function}({state})"


def _depends_on_order(partial: Partial, type_name: str) -> bool:
    """Whether rounding makes the result depend on the order of rows."""
    inexact = type_name in (*_FLOATS, "UHUGEINT")
    return partial.function == "product" or (partial.function == "sum" and inexact)
