"""Requests of strangers to the pruning service and to providers, where they are no messages."""

from __future__ import annotations

import contextlib
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from pyiceberg.table import CommitTableRequest

from fuzz.decoders import Target
from louver import errors
from louver.untrusted.lake import control
from louver.untrusted.providers import expressions
from louver.untrusted.servers import files, tables
from louver.wire.control import (
    CATALOG_CREATE,
    CATALOG_INSERT,
    CATALOG_READ,
    LEDGER_CREATE,
    LEDGER_TAIL,
    TABLE_NAMES,
    Batch,
)
from louver.wire.messages import Statement
from louver.wire.questions import Partial, Protocol, Shape, TableFacts

#: Files that are written for one input alone cost no disk here.
_MEMORY = Path("/dev/shm")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise errors.make("serve.request", detail="no text") from error


def _commit(data: bytes) -> None:
    tables._parsed(CommitTableRequest, data)


def _ranges(data: bytes) -> None:
    if data[:1] == b"\0":
        start, end = files._span(_text(data[1:]), 1_000)
        if not 0 <= start <= end <= 1_000:
            raise AssertionError("a range outside of its file")
        return
    for path, start, length in files._ranges(data[1:]):
        if start < 0 or length < 0 or not isinstance(path, str):
            raise AssertionError("a range of impossible figures")


def _expression(data: bytes) -> None:
    """A stranger's SQL for a provider: read by DuckDB's parser, and judged by its tree."""
    source, _, text = _text(data).partition("\0")
    shape = Shape(Protocol.SUM, source, where=text, partials=(Partial("count"),))
    expressions.check(shape, [TableFacts("t", (("a", "INTEGER"), ("b", "VARCHAR")), 5)])


def _control_file(data: bytes) -> None:
    """A database file that somebody else wrote, opened by the client of a lake."""
    folder = Path(_folder().name)
    for old in folder.iterdir():
        old.unlink()
    (folder / control.NAME).write_bytes(data)
    file = control.ControlFile(folder, wait_seconds=0)
    try:
        for statement in (CATALOG_READ, TABLE_NAMES, Statement(LEDGER_TAIL, (0,))):
            with contextlib.suppress(errors.Error):
                file.perform(Batch((statement,)))
    finally:
        file.close()


@lru_cache(maxsize=1)
def _folder() -> TemporaryDirectory[str]:
    """One for all inputs of this process; it goes when the process ends."""
    return TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None)


def _control_seeds() -> list[bytes]:
    rows = Statement(CATALOG_INSERT, (1, "id", "key", b"body"), kind="write")
    with TemporaryDirectory() as folder:
        file = control.ControlFile(folder)
        file.perform(Batch((CATALOG_CREATE, LEDGER_CREATE), keep=True))
        file.perform(Batch((rows,), (1,), keep=True))
        file.close()
        return [Path(folder, control.NAME).read_bytes()]


def _commit_seeds() -> list[bytes]:
    table = b'{"identifier":{"namespace":["louver"],"name":"t1"},"requirements":'
    unchanged = b'[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":5}],"updates":'
    return [
        table + unchanged + b'[{"action":"set-properties","updates":{"a":"b"}}]}',
        table + b'[],"updates":[]}',
    ]


TARGETS = [
    Target("commit", _commit, _commit_seeds),
    Target(
        "ranges",
        _ranges,
        lambda: [b"\0bytes=0-99", b"\0bytes=-5", b'\1[["a/b",0,10],["c",5,0]]', b"\1[]"],
    ),
    Target(
        "expression",
        _expression,
        lambda: [b"t\0a BETWEEN 1 AND 5 OR upper(b) = 'X'", b"t AS s JOIN t USING (a)\0b IN ('x')"],
    ),
    Target("control_file", _control_file, _control_seeds),
]
