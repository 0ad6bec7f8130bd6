"""The worlds as lakes: what crosses are statements for control tables, files, and tokens.

All columns of a lake are encrypted; a token shows which files a range meets, so every universe is
monotone but those of `size`. Masked beyond `crossing`:

* the lengths of data files, of metadata and manifests that list them, and of what is read from
  them: the ledger states how large files are, and that tells how well their columns compress;
* the order of requests for parts of files and for new data files, which are made side by side:
  which thread comes first decides it. The names of data files are drawn before, in the order of
  their rows, and are the same in both worlds; so the order in which they are deleted is compared;
* the order in which other files are deleted, which is that of their names when a table is dropped:
  these are random, drawn by PyIceberg, and the server has them;
* other random parts of names (numbered as they appear) and the bytes of tokens (of which number,
  length and whether the same one came before are compared).
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from louver.trusted.client import connect_lake
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.untrusted.lake.plan import plan
from louver.wire import prune
from louver.wire.tap import Tap
from tests.worlds.world import World

_RANDOM = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{12,}|\b\d{15,}\b")
_DATA = re.compile(r"/data/[0-9a-f]{32}\.parquet$")
_TOKEN = re.compile(r" [0-9a-f]{12}\b| \(values [^)]*\)")
_COMPRESSED = (".parquet", ".json", ".avro")


class Pruner:
    """A pruning service that records what it is sent and answers as it should."""

    def __init__(self, warehouse: Any, records: list[Any]) -> None:
        self._warehouse, self._records = warehouse, records

    def plan(self, table: str, snapshot_id: int, where: prune.Where) -> prune.FilePlan:
        """The files that may hold what is wanted."""
        where = prune.decode(prune.encode(where))
        pruned = plan(self._warehouse.objects, self._warehouse.root(table, snapshot_id), where)
        tokens = list(prune.tokens(where))
        kind = type(where).__name__
        paths = sorted(entry.path for entry in pruned.files)
        self._records.append(("plan", kind, table, len(prune.encode(where)), tokens, paths))
        return pruned


class Files:
    """The files of a warehouse, with a record of every request."""

    def __init__(self, inner: Any, records: list[Any]) -> None:
        self._inner, self._records = inner, records

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create(self, path: str, data: Any) -> None:
        """Write a file."""
        self._note("create", path, len(data))
        self._inner.create(path, data)

    def read(self, path: str, offset: int, length: int) -> bytes:
        """Read a part of one."""
        self._note("read", path, offset, length)
        return bytes(self._inner.read(path, offset, length))

    def read_many(self, ranges: Sequence[tuple[str, int, int]]) -> Any:
        """Read several parts."""
        for path, offset, length in ranges:
            self._note("read", path, offset, length)
        return self._inner.read_many(ranges)

    def delete(self, path: str) -> None:
        """Remove a file."""
        self._note("delete", path)
        self._inner.delete(path)

    def _note(self, verb: str, path: str, *sizes: int) -> None:
        self._records.append((verb, path, *(() if path.endswith(_COMPRESSED) else sizes)))


class LakeWorld(World):
    """A session over a lake in a directory of its own."""

    def __init__(self, ring: Any, profile: str, seed: str, attached: bool = False) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._named: dict[str, int] = {}
        super().__init__(ring, "sealed", seed)

    def _session(self) -> Session:
        lake = connect_lake.connected(f"lake:///{Path(self._folder.name)}/lake", self.ring)
        records: Any = self.records
        tap = Tap(lake.engine, records)
        # Both worlds have one database id: each needs pins of its own.
        before = os.environ.get("LOUVER_STATE_DIR")
        os.environ["LOUVER_STATE_DIR"] = f"{self._folder.name}/state"
        try:
            session = Session(tap, self.ring, Policy(), storage=lake.storage)
        finally:
            os.environ.pop("LOUVER_STATE_DIR")
            if before is not None:
                os.environ["LOUVER_STATE_DIR"] = before
        store = session.context.storage.store  # type: ignore[attr-defined]
        store.pruner = Pruner(store.warehouse, records)
        store.warehouse.objects = Files(store.warehouse.objects, records)
        return session

    def seen(self, records: Sequence[Any]) -> list[Any]:
        """What crossed: statements as ever, requests for files, tokens."""
        seen: list[Any] = []
        for unordered, group in groupby(records, key=_unordered):
            entries = [entry for record in group for entry in self._entries(record)]
            seen += sorted(entries, key=repr) if unordered else entries
        return seen

    def _entries(self, record: Any) -> list[Any]:
        if not isinstance(record, tuple):
            return self.crossing.seen([record])
        if record[0] == "plan":
            tokens = sorted(str(self.crossing.mask(token)) for token in record[4])
            return [(*record[:4], tokens, sorted(map(self._numbered, record[5])))]
        # What is deleted unseen, for PyIceberg wrote it, comes in the order of random names.
        path = self._numbered(record[1], new=record[0] != "delete")
        return [(record[0], path, *record[2:])]

    def said(self, fact: str) -> str:
        """A fact without the digest of a token and the values that it is for, which the ledger
        keeps sealed.
        """
        return _TOKEN.sub("", super().said(fact))

    def stored_orders(self) -> list[Any]:
        """A lake holds no codes."""
        return []

    def close(self) -> None:
        """End the session and remove the lake."""
        super().close()
        self._folder.cleanup()

    def _numbered(self, path: str, *, new: bool = True) -> str:
        if _DATA.search(path):
            return path

        def number(match: re.Match[str]) -> str:
            if new:
                self._named.setdefault(match.group(), len(self._named))
            return f"#{self._named.get(match.group(), '')}"

        return _RANDOM.sub(number, path)


def _unordered(record: Any) -> str:
    """What the request is, if it is one of those whose order says nothing."""
    verb, path, *_ = record if isinstance(record, tuple) else ("", "")
    of_data = bool(_DATA.search(path))
    if verb == "delete":
        return "" if of_data else verb
    return "made side by side" if verb == "read" or (verb == "create" and of_data) else ""
