"""One database per benchmark and policy, loaded once, and how an answer is compared."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from louver.trusted.planner.sql import lexer
from tests.inside import context_of, session_of
from tests.tpc import sources
from tests.tpc.sources import Benchmark

SCALE = 0.01
#: Sums of floating-point numbers depend on the order of the rows, so stddev_samp and the like
#: agree only this far, relative to the value; every other type must agree exactly.
TOLERANCE = 1e-9
Row = tuple[Any, ...]
_SOLD_AT = (
    "SELECT ss_sold_time_sk FROM store_sales UNION SELECT cs_sold_time_sk FROM catalog_sales"
    " UNION SELECT ws_sold_time_sk FROM web_sales UNION SELECT sr_return_time_sk FROM store_returns"
    " UNION SELECT cr_returned_time_sk FROM catalog_returns"
    " UNION SELECT wr_returned_time_sk FROM web_returns"
)
_UNUSED = {
    "tpcds": (
        "DELETE FROM date_dim WHERE d_year NOT BETWEEN 1988 AND 2003",
        f"DELETE FROM time_dim WHERE t_time_sk NOT IN (SELECT * FROM ({_SOLD_AT}) AS used(sk)"
        " WHERE sk IS NOT NULL)",
    )
}
_PSEUDONYM = re.compile(r"\b(?:[a-z]+_)+[0-9a-f]{12}\b")


@dataclass(frozen=True, slots=True)
class Expected:
    """Plaintext DuckDB's answer."""

    columns: list[tuple[str, str]]
    rows: list[Row]


@dataclass(slots=True)
class Plain:
    """The data of a benchmark in plaintext DuckDB, its queries, and the answers asked so far."""

    benchmark: Benchmark
    con: duckdb.DuckDBPyConnection
    queries: dict[int, str]
    _answers: dict[int, Expected] = field(default_factory=dict)

    @staticmethod
    def make(benchmark: Benchmark, scale: float = SCALE) -> Plain:
        """Generate the data, without days and seconds that nothing refers to, and read the queries.

        At the smallest scale these are three of five cells of TPC-DS.
        """
        con = sources.generate(benchmark, scale)
        for statement in _UNUSED.get(benchmark.name, ()):
            con.execute(statement)
        return Plain(benchmark, con, sources.queries(con, benchmark))

    def answer(self, number: int) -> Expected:
        """The answer of one query."""
        if number not in self._answers:
            self._answers[number] = self.ask(self.queries[number])
        return self._answers[number]

    def ask(self, sql: str) -> Expected:
        """Names, types and rows of any query."""
        relation = self.con.sql(sql)
        columns = list(zip(relation.columns, map(str, relation.types), strict=True))
        return Expected(columns, relation.fetchall())


def load(con: Any, plain: Plain) -> None:
    """Make every table through Louver with all columns ENC, and append its rows."""
    for table, columns in sources.tables(plain.con).items():
        declared = ", ".join(f'"{name}" {type_} ENC' for name, type_ in columns)
        con.execute(f'CREATE TABLE "{table}" ({declared})')
        con.load(table, sources.rows_of(plain.con, table))


def connect(folder: Path, benchmark: Benchmark, policy: str) -> Any:
    """A connection to a new database file and with a new key file, under one of the policies."""
    import louver

    key = folder / f"{benchmark.name}-{policy}.louverkey"
    louver.KeyRing.create(key)
    url = f"duckdb:///{folder}/{benchmark.name}-{policy}.duckdb"
    return louver.connect(url, keys=key, policy=str(sources.policy(policy)))


def check(con: Any, plain: Plain, number: int) -> None:
    """Louver's answer has the names, the types and the rows of plaintext DuckDB's."""
    expected = plain.answer(number)
    cursor = con.execute(plain.queries[number])
    assert [column[:2] for column in cursor.description] == expected.columns
    rows = cursor.fetchall()
    assert not difference(rows, expected.rows)


def split(con: Any, sql: str) -> str:
    """Where the parts of a query run, in a few words.

    The kind of the plan, and what the server is asked: so many queries, of which so many hold
    conditions, join tables, aggregate.
    """
    (text,) = lexer.split(sql)
    plan, _ = context_of(con).plan(text, [])
    counts = {
        "filtered": sum(bool(remote.where) for remote in plan.remotes),
        "joined": sum(bool(remote.joins) for remote in plan.remotes),
        "aggregated": sum(remote.grouped for remote in plan.remotes),
    }
    parts = [f"{count} {what}" for what, count in counts.items() if count]
    return f"{plan.kind}, {', '.join([f'{len(plan.remotes)} asked', *parts])}"


def digest(con: Any, sql: str) -> str:
    """Twelve digits that are others when anything of a query's plan is."""
    return hashlib.sha256(explained(con, sql).encode()).hexdigest()[:12]


def explained(con: Any, sql: str) -> str:
    """A query's plan as text: the texts that the server is sent, the layers that it opens, what is
    opened and finished locally.

    Pseudonyms, which depend on the key, are numbered in the order of their first appearance.
    """
    (text,) = lexer.split(sql)
    names: dict[str, str] = {}
    return _PSEUDONYM.sub(
        lambda match: names.setdefault(match[0], f"name{len(names)}"),
        session_of(con).explained(text, []),
    )


def difference(ours: Sequence[Row], theirs: Sequence[Row]) -> str:
    """What differs between two multisets of rows, in a few words; empty if nothing does."""
    left, right = Counter(map(_key, ours)), Counter(map(_key, theirs))
    more, less = list((left - right).elements()), list((right - left).elements())
    if len(more) == len(less) and all(map(_close, sorted(more, key=repr), sorted(less, key=repr))):
        return ""
    return f"{len(ours)} rows for {len(theirs)}; not expected: {more[:3]}; missing: {less[:3]}"


def cut_by_chance(plain: Plain, number: int) -> bool:
    """Whether a LIMIT takes some of several rows that the order leaves equal: then the answer is
    not determined, and comparing it would prove nothing.

    The rest of the order is fixed once upwards and once downwards, by all columns of the answer.
    """
    text = plain.queries[number]
    limit = re.search(r" LIMIT \d+$", text)
    expected = plain.answer(number)
    if limit is None or len(expected.rows) < int(limit[0].split()[1]):
        return False
    orders = []
    for way in ("ASC", "DESC"):
        rest = "".join(f", {index} {way}" for index in range(1, len(expected.columns) + 1))
        orders.append(plain.ask(text[: limit.start()] + rest + limit[0]).rows)
    return bool(difference(*orders))


def _key(row: Row) -> Row:
    """NaN, which equals nothing, is made to equal itself."""
    return tuple("NaN" if isinstance(v, float) and math.isnan(v) else v for v in row)


def _close(left: Row, right: Row) -> bool:
    return all(
        math.isclose(a, b, rel_tol=TOLERANCE)
        if isinstance(a, float) and isinstance(b, float)
        else a == b
        for a, b in zip(left, right, strict=True)
    )
