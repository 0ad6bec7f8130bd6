"""Fixtures of the rewriter: ``input ; remote SQL ; home SQL ; leaks``, one file per rule.

``python -m tests.planner.fixtures`` writes the last three parts anew; read the difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from louver.trusted.backends import duckdb, lake
from louver.trusted.backends.backend import Backend
from louver.trusted.backends.printer import Printer
from louver.trusted.executor.local.local_engine import DuckDBLocalEngine
from louver.trusted.executor.plan_leakage import facts_of
from louver.trusted.planner import lake_explain as of_lakes
from louver.trusted.planner import postcondition
from louver.trusted.planner.ir import Key, Template, Update
from louver.trusted.planner.planner import Planner
from louver.trusted.planner.render import remote_text, slots_of
from louver.trusted.planner.sql import lexer
from louver.trusted.vault import schemes
from louver.trusted.vault.catalog import Catalog, Column, HomeObject, Table

ROWS = [module.SCHEME for module in schemes.modules()]
"""What the planner knows of the schemes; their modules fill the table as they are imported."""
FOLDER = Path(__file__).parent.parent / "fixtures" / "rules"
TABLES = {
    "T": "CREATE TABLE T (A INTEGER, B INTEGER, C DECIMAL(10,2), D DATE, P INTEGER, G VARCHAR)",
    "U": "CREATE TABLE U (X INTEGER, Y BIGINT, Q INTEGER)",
    "V": "CREATE TABLE V (K INTEGER, N VARCHAR, M DECIMAL(10,2), W DATE, Z INTEGER)",
    "W": "CREATE TABLE W (L INTEGER, O DATE, J INTEGER, H INTEGER, TAIL VARCHAR)",
    "F": "CREATE TABLE F (E INTEGER, I DATE, N VARCHAR, R DECIMAL(10,2), S INTEGER)",
    "I": "CREATE TABLE I (CUST BIGINT, YEAR INTEGER, CODE VARCHAR, ZONE INTEGER, NOTE VARCHAR)",
}
# The keys of I: one column, two columns, one of which is plain, and one that may be NULL.
TAGS = {"CUST_key": [1], "YEAR_CODE_key": [2, 3], "NOTE_key": [5]}
# What the server holds of the columns of V and W beside their sealed forms.
HELD = {
    "K": ("eq",), "L": ("eq",), "N": ("eq", "text"), "M": ("sum", "sum_high", "sum_count"),
    "W": ("eq", "ord"), "O": ("eq", "ord"), "Z": ("eq", "ord", "sum", "sum_high", "sum_count"),
    "J": ("ore",), "H": ("sdb", "ord"), "TAIL": ("ord",),
}  # fmt: skip
GROUPS = {"K": "key", "L": "key", "W": "day", "O": "day"}
NULLABLE = ("N", "M")
SECRET = {"A": 0, "B": 0, "C": 0, "D": 0, "X": 0, "Y": 0}


@dataclass(slots=True)
class Case:
    """One input and what the planner makes of it."""

    input: str
    remote: str = ""
    home: str = ""
    leaks: str = ""

    def __str__(self) -> str:
        parts = (("remote", self.remote), ("home", self.home), ("leaks", self.leaks))
        return self.input + "".join(f"\n--- {name}\n{text}" for name, text in parts)


def read(path: Path) -> list[Case]:
    """The cases of a fixture file."""
    cases = []
    for block in path.read_text().split("\n=====\n"):
        parts = re.split(r"\n--- (?:remote|home|leaks)\n?", block.strip() + "\n")
        cases.append(Case(*(part.strip() for part in parts)))
    return cases


def write(path: Path, cases: list[Case]) -> None:
    """A fixture file."""
    path.write_text("\n=====\n".join(str(case).rstrip() for case in cases) + "\n")


def world() -> tuple[Catalog, DuckDBLocalEngine]:
    """Two tables whose server columns bear the paper's names."""
    catalog, home = Catalog("fixture"), DuckDBLocalEngine()
    for index, (name, sql) in enumerate(TABLES.items(), 1):
        item = HomeObject("TABLE", "main", name, sql)
        home.binder.execute(sql)
        table = Table("main", name, index, row_count=100)
        for id_, (column, type_) in enumerate(home.describe(f"FROM {name}"), 1):
            stored = Column(column, type_, id_, minimum=-1000, maximum=1000)
            if column in SECRET:
                stored.encrypted, stored.scheme = True, "sdb"
                stored.stored = {"rnd": f"{column}_sealed", "sdb": f"{column}_e"}
            elif name in ("V", "W"):
                coded(stored)
            elif name == "F":
                of_files(stored)
            elif column == "G" or (name == "I" and column != "YEAR"):
                stored.encrypted, stored.scheme, stored.ceiling = True, "sealed", "access"
                stored.stored, stored.minimum, stored.maximum = {}, None, None
                stored.stored["rnd"], stored.nullable = f"{column}_sealed", column in ("G", "NOTE")
                stored.unique = column in ("CUST", "NOTE")
            else:
                stored.stored = {"plain": column}
            table.columns.append(stored)
        suffix = "" if index == 1 else str(index)
        table.helper_one = f"S{suffix}_e"
        table.helper_random = f"R{suffix}_e"
        table.helper_unit = f"U{suffix}_e"
        if name == "F":
            table.lake = {"on": True}
        if name == "I":
            table.tags = {stored: list(ids) for stored, ids in TAGS.items()}
        if name == "W":
            table.packs = {"W_pack": [3]}
        catalog.add(table)
        catalog.objects.append(item)
    return catalog, home


def coded(column: Column) -> None:
    """A sealed column with codes."""
    column.encrypted, column.scheme, column.ceiling = True, "onion", "order"
    if column.name == "H":
        column.scheme, column.ceiling = "sdb", "plaintext"
    column.group, column.nullable = GROUPS.get(column.name, ""), column.name in NULLABLE
    column.has_null = column.nullable
    column.low, column.bits, column.coarse = -(1 << 31), 32, 24 if column.name == "H" else 0
    column.minimum, column.maximum = (-1000, 1000) if column.name == "H" else (None, None)
    column.stored = {"rnd": f"{column.name}_sealed"}
    for kind in HELD[column.name]:
        column.stored[kind] = f"{column.name}_{kind}"
        if kind in ("eq", "ord"):
            column.layers[kind] = "closed"


def of_files(column: Column) -> None:
    """A column of a lake's files; S has no index."""
    column.encrypted, column.scheme, column.ceiling = True, "files", "access"
    column.minimum, column.maximum = None, None
    column.stored = {"file": f"c{column.id}"}
    if column.name != "S":
        column.stored["eds"] = f"c{column.id}"


def powers(update: Update) -> dict[int, int]:
    """Where the vault would know better: every update but to the same key needs a power."""
    if update.source == update.target:
        return {}
    return dict.fromkeys(sorted(slots_in(update.source) | slots_in(update.target)), 5)


def slots_in(key: Key) -> set[int]:
    """The table occurrences of a key formula."""
    slots: set[int] = set()
    if key.op in ("column", "ones", "random") and isinstance(key.args[-1], int):
        slots.add(key.args[-1])
    for arg in key.args:
        if isinstance(arg, Key):
            slots |= slots_in(arg)
    return slots


def backend_of(table: Table) -> Backend:
    """The backend that holds a table of `world`."""
    return lake.BACKEND if table.lake else duckdb.BACKEND


def run(
    case: Case,
    catalog: Catalog,
    home: DuckDBLocalEngine,
    backends: Callable[[Table], Backend] = backend_of,
) -> Case:
    """What the planner makes of an input today."""
    planner = Planner(home, lambda: 2048, backends)
    (text,) = lexer.split(case.input)
    plan, shape = planner.plan(text, [], catalog)
    remotes = []
    tables = {table.id: table for table in catalog.tables.values()}
    for remote in plan.remotes:
        backend = backends(tables[remote.sources[0].table])
        if not backend.computes:
            remotes.append(of_lakes.written(remote))
            continue
        slots = slots_of(remote, tables, backend, materialized=True)
        printer = Printer(backend, slots, b"n", powers)
        sql = postcondition.check(remote_text(remote, printer), remote, tables, backend)
        remotes.append(Template(sql, ()).text(shape.literals))
    leaks = [f"{fact.level}: {fact.text}" for fact in facts_of(plan, catalog)]
    return Case(case.input, "\n".join(remotes), plan.home_sql or text.home, "\n".join(leaks))


def files() -> Iterator[Path]:
    """Every fixture file."""
    yield from sorted(FOLDER.glob("*.sql"))


def regenerate() -> None:
    """Write every fixture anew."""
    catalog, home = world()
    for path in files():
        write(path, [run(case, catalog, home) for case in read(path)])


if __name__ == "__main__":
    regenerate()
