"""Plans that the client believes: no file is in them that is not in the signed list."""

from __future__ import annotations

from itertools import pairwise

from louver import errors
from louver.trusted.lake.keys import TableKeys
from louver.trusted.lake.parts import index_ids
from louver.trusted.lake.snapshots import Snapshot
from louver.trusted.vault.catalog import Table
from louver.untrusted.lake import sweep
from louver.untrusted.lake.files import Buffer
from louver.untrusted.lake.objects import Objects
from louver.untrusted.lake.plan import files_of, plan
from louver.untrusted.lake.root import Segment
from louver.wire.prune import All, Any, Everything, Hit, Kept, Where


def without_unknown(table: Table, keys: TableKeys, snapshot: Snapshot, where: Where) -> Where:
    """The condition without tokens of indexes that the snapshot has none of yet, all of whose
    files would be kept: an old snapshot, a new column, or an index that was switched off.
    """
    known = snapshot.root.indexes
    possible = index_ids(table, keys)

    def kept(part: Where) -> Where:
        match part:
            case Hit(token):
                index_id = _index_id(token)
                if index_id not in known and index_id not in possible:
                    raise errors.make("lake.token", table=table.label)
                return part if index_id in known else Everything()
            case All(parts):
                return All(tuple(kept(item) for item in parts))
            case Any(parts):
                return Any(tuple(kept(item) for item in parts))
        return part

    return kept(where)


def plan_at_home(
    objects: Objects, table: Table, keys: TableKeys, snapshot: Snapshot, where: Where
) -> Kept:
    """A plan made here; every index row that it reads is verified."""
    columns = index_ids(table, keys)

    def check(segment: Segment, data: Buffer, token: bytes) -> None:
        column = columns.get(segment.index_id)
        if column is None:
            # An index of former settings: nothing vouches for it, but the root names its id.
            raise errors.make("lake.token", table=table.label)
        keys.check(column.id, column.generation, data, token)

    return plan(objects, snapshot.root, where, check)


def verify_kept(objects: Objects, table: Table, snapshot: Snapshot, kept: Kept) -> None:
    """Raise `lake.tampered` unless every file of the answer is a live one of the signed list."""
    if kept.snapshot_id != snapshot.id or kept.total != snapshot.files_total:
        raise _tampered(table, "the plan is for another snapshot")
    if any(one.number >= other.number for one, other in pairwise(kept.files)):
        raise _tampered(table, "the plan lists a file twice or out of order")
    by_part: dict[int, list[tuple[int, int]]] = {}
    for place, entry in enumerate(kept.files):
        if entry.number >= snapshot.files_total:
            raise _tampered(table, "the plan lists a file that does not exist")
        at, ordinal = snapshot.place(entry.number)
        by_part.setdefault(at, []).append((ordinal, place))
    for number, wanted in by_part.items():
        part = snapshot.root.parts[number]
        listed = files_of(objects, snapshot.root.path(part.files), part)
        files = listed.files([ordinal for ordinal, _ in wanted])
        for file, (_, place) in zip(files, wanted, strict=True):
            entry = kept.files[place]
            same = (entry.file_id, entry.size, entry.rows, entry.key_metadata) == tuple(file)
            if not same or entry.path != snapshot.root.prefix + file.path:
                raise _tampered(table, "the plan lists a file that was not written")


def _index_id(token: bytes) -> bytes:
    try:
        return bytes(sweep.token_header(token)["index_id"])
    except ValueError as error:
        raise errors.make("wire.format", detail="a token is malformed") from error


def _tampered(table: Table, detail: str) -> errors.Error:
    return errors.make("lake.tampered", path=f"table {table.label}", detail=detail)
