"""The modules that a statement is handed through are the ones that ARCHITECTURE.md lists.

A module is on the walk where one of its functions is given the session, its context or the parts of
its storage, or is a method of what holds one: such a function can do anything with a database. What
only computes (parsers, printers, schemes, the planner, the local engine) is called from there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from louver.trusted.client.dbapi import Connection
from louver.trusted.executor.context import Context
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.executor.storage import Parts
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.duckdb import MEMORY, DuckDBEngine
from tests.sources import ROOT

WALKS = {
    "SELECT": (
        "SELECT name, salary + 1000 AS s FROM staff WHERE salary * 12 > 100000 AND age < 25",
        12,
    ),
    "INSERT": ("INSERT INTO staff VALUES ('Cleo', 4000, 40)", 15),
}
HANDED = (Context, Parts, Session)
_LISTED = re.compile(r"^\d+\. `([\w/]+)\.py`", re.MULTILINE)


@pytest.fixture(scope="module")
def con(key_file: Path) -> Iterator[Connection]:
    session = Session(DuckDBEngine(MEMORY), KeyRing.open(key_file), Policy(), modulus_bits=512)
    connection = Connection(session)
    connection.execute(
        "CREATE TABLE staff (name TEXT ENC MAY REVEAL equality,"
        " salary BIGINT ENC USING sdb MAY REVEAL plaintext, age INT);"
        "INSERT INTO staff VALUES ('Ada', 10000, 20), ('Bob', 1, 30)"
    )
    yield connection
    connection.close()


def is_handed(frame: FrameType) -> bool:
    """Whether a function has been given a session, or is a method of what holds one."""
    code = frame.f_code
    given = [
        frame.f_locals.get(name)
        for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    ]
    held = getattr(given[0], "__dict__", {}).values() if given else ()
    return any(isinstance(value, HANDED) for value in (*given, *held))


def walk(con: Connection, sql: str) -> list[str]:
    """The modules that a statement is handed through, in the order of the first time."""
    passed: dict[str, None] = {}

    def entered(frame: FrameType, event: str, _argument: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("louver.trusted.") and is_handed(frame):
            passed[module.removeprefix("louver.trusted.").replace(".", "/")] = None

    sys.setprofile(entered)
    try:
        con.execute(sql)
    finally:
        sys.setprofile(None)
    return list(passed)


def listed(word: str) -> list[str]:
    """What ARCHITECTURE.md lists under the heading of a walk."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = re.search(rf"^## The walk of an? {word}\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    return _LISTED.findall(section[1])


@pytest.mark.parametrize("word", WALKS)
def test_a_walk_is_as_documented(con: Connection, word: str) -> None:
    sql, most = WALKS[word]
    for _ in range(2):
        con.execute(sql)  # plans, verdicts and stored products are there from now on
    passed = walk(con, sql)
    assert passed == listed(word)
    assert len(passed) <= most


def test_a_detour_would_be_seen(con: Connection) -> None:
    assert "executor/show" in walk(con, "EXPLAIN SELECT name FROM staff")
