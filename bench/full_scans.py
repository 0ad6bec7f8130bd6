"""Queries of known workloads for which the server sends a table whole, and why."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from sqlglot import exp

from bench import data, isolate, report
from louver import LeakageWarning, errors
from louver.names import fold
from louver.trusted.client.inside import context_of
from louver.trusted.planner.ir import RemoteQuery
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.trees import parse
from tests.slt import declared, script
from tests.tpc import harness, sources

WORKLOADS = {
    "TPC-H": "tpch",
    "TPC-DS": "tpcds",
    "SQL-logic corpus, select1": "select1",
    "SQL-logic corpus, select2": "select2",
}
CORPUS = Path(__file__).parents[2] / "shared" / "data" / "slt"
EVERY, QUICK_EVERY = 10, 40
"""Of the corpus one query of so many is planned: they are alike."""
NOTES = (
    "A table is sent whole if the server is asked for rows of a table with ENC columns without any "
    "condition, grouping or limit. Every column may open up to its order, and no layer is "
    "open yet; queries are planned and not run. Without the normal form, the planner plans only "
    "what the user wrote. A condition is a comparison in WHERE or ON of one occurrence of the "
    "table with something other than another table's column; if none of the tables that are sent "
    "whole has one, no other form of the query can reduce what is sent.",
)


def table(*, quick: bool) -> report.Grid:
    """How many queries of each workload read a table whole."""
    grid = report.Grid(
        "Queries for which the server sends a table whole",
        ["workload", "queries", "without the normal form", "with the normal form",
         "of these, no condition on any such table"], [],
    )  # fmt: skip
    for title, name in WORKLOADS.items():
        item = isolate.run("bench.full_scans:counted", name=name, quick=quick)
        if item["queries"]:
            shares = [_share(item[key], item["queries"]) for key in ("without", "with", "bare")]
            grid.rows.append([title, str(item["queries"]), *shares])
    return grid


def _share(count: int, queries: int) -> str:
    return f"{count} ({count / queries:.0%})"


def counted(name: str, *, quick: bool) -> dict[str, int]:
    """Queries of a workload that were planned, and those that read a table whole."""
    warnings.simplefilter("ignore", LeakageWarning)
    with tempfile.TemporaryDirectory() as folder:
        data.state(Path(folder))
        opened = _benchmark if name in sources.BENCHMARKS else _corpus
        with opened(Path(folder), name, quick) as (con, queries):
            normal = {sql: _planned(con, sql) for sql in queries}
            context_of(con).catalog.touch()
            with mock.patch("louver.trusted.planner.planner.judged", return_value=None):
                written = {sql: _planned(con, sql) for sql in queries}
            return {
                "queries": len(queries),
                "without": sum(bool(tables) for tables in written.values()),
                "with": sum(bool(tables) for tables in normal.values()),
                "bare": sum(
                    bool(tables) and not tables & _restricted(con, sql)
                    for sql, tables in normal.items()
                ),
            }


def sent_whole(con: Any, sql: str) -> set[str]:
    """Tables with ENC columns of which the server is asked for all rows."""
    context = context_of(con)
    (text,) = lexer.split(sql)
    plan, _ = context.plan(text, [])
    occurrences = (occurrence for r in plan.remotes if _is_bare(r) for occurrence in r.sources)
    tables = (context.catalog.by_id(occurrence.table) for occurrence in occurrences)
    return {fold(item.name) for item in tables if any(c.encrypted for c in item.columns)}


def _is_bare(remote: RemoteQuery) -> bool:
    reduced = remote.where or remote.filters or remote.having or remote.probes
    return not (reduced or remote.grouped or remote.limit)


def _planned(con: Any, sql: str) -> set[str]:
    try:
        return sent_whole(con, sql)
    except errors.LeakageRefused:
        return set()


def _restricted(con: Any, sql: str) -> set[str]:
    """Tables of which some occurrence has a condition of its own."""
    owners: dict[str, set[str]] = {}
    for item in context_of(con).catalog.tables.values():
        for column in item.columns:
            owners.setdefault(fold(column.name), set()).add(fold(item.name))
    tree, tables = parse(sql), set()
    for clause in tree.find_all(exp.Where, exp.Join) if tree is not None else ():
        condition = clause.this if isinstance(clause, exp.Where) else clause.args.get("on")
        for leaf in _comparisons(condition):
            columns = list(leaf.find_all(exp.Column))
            columns = [c for c in columns if c.find_ancestor(exp.Select) is clause.parent_select]
            known = {(fold(c.table), *sorted(owners.get(fold(c.name), ()))) for c in columns}
            if len(known) == 1:
                tables |= set(next(iter(known))[1:])
    return tables


def _comparisons(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """The parts of a condition that AND, OR and NOT combine, without joins to a query."""
    if isinstance(condition, exp.And | exp.Or):
        yield from _comparisons(condition.left)
        yield from _comparisons(condition.right)
    elif isinstance(condition, exp.Not | exp.Paren):
        yield from _comparisons(condition.this)
    elif condition is not None and not (
        isinstance(condition, exp.Exists)
        or (isinstance(condition, exp.In) and condition.args.get("query"))
    ):
        yield condition


@contextmanager
def _benchmark(folder: Path, name: str, _: bool) -> Iterator[tuple[Any, Sequence[str]]]:
    plain = harness.Plain.make(sources.BENCHMARKS[name])
    with harness.connect(folder, plain.benchmark, "cryptdb") as con:
        harness.load(con, plain)
        yield con, list(plain.queries.values())


@contextmanager
def _corpus(folder: Path, name: str, quick: bool) -> Iterator[tuple[Any, Sequence[str]]]:
    """One file of the corpus; no queries where it is not there."""
    path = CORPUS / f"{name}.test.xz"
    entries = script.read(path) if path.exists() else []
    with data.louver(folder, "cryptdb") as con:
        for entry in entries:
            if entry.kind == "statement":
                con.execute(declared.encrypt_columns(entry.sql))
        queries = [entry.sql for entry in entries if entry.kind == "query"]
        yield con, list(dict.fromkeys(queries[:: QUICK_EVERY if quick else EVERY]))
