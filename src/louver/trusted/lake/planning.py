"""File plans checked by the client: a plan contains only files of the signed list."""

from __future__ import annotations

from itertools import pairwise

from louver import errors
from louver.trusted.lake.parts import index_ids
from louver.trusted.lake.snapshots import Snapshot
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.index_keys import LakeKeys
from louver.untrusted.lake import sweep
from louver.untrusted.lake.files import Buffer
from louver.untrusted.lake.objects import Objects
from louver.untrusted.lake.plan import files_of, plan
from louver.untrusted.lake.root import Segment
from louver.wire.prune import All, Any, Everything, FilePlan, Hit, Where


def without_unknown(table: Table, keys: LakeKeys, snapshot: Snapshot, where: Where) -> Where:
    """The condition without tokens of indexes that the snapshot does not have: an old snapshot, a
    new column, or an index that was switched off. All files match such a token.
    """
    known = snapshot.root.indexes
    possible = index_ids(table, keys)

    def narrowed(part: Where) -> Where:
        match part:
            case Hit(token):
                index_id = _index_id(token)
                if index_id not in known and index_id not in possible:
                    raise errors.make("lake.token", table=table.label)
                return part if index_id in known else Everything()
            case All(parts):
                return All(tuple(narrowed(item) for item in parts))
            case Any(parts):
                return Any(tuple(narrowed(item) for item in parts))
        return part

    return narrowed(where)


def plan_locally(
    objects: Objects, table: Table, keys: LakeKeys, snapshot: Snapshot, where: Where
) -> FilePlan:
    """Plan in this process; every index row that is read is verified."""
    columns = index_ids(table, keys)

    def check(segment: Segment, data: Buffer, token: bytes) -> None:
        column = columns.get(segment.index_id)
        if column is None:
            # An index of former settings: the root names its id, but nothing authenticates it.
            raise errors.make("lake.token", table=table.label)
        keys.check(column.id, column.generation, data, token)

    return plan(objects, snapshot.root, where, check)


def verify_plan(objects: Objects, table: Table, snapshot: Snapshot, answer: FilePlan) -> None:
    """Raise `lake.tampered` unless every file of the answer is a live file of the signed list."""
    if answer.snapshot_id != snapshot.id or answer.total != snapshot.files_total:
        raise _tampered(table, "the plan is for another snapshot")
    if any(entry.number >= other.number for entry, other in pairwise(answer.files)):
        raise _tampered(table, "the plan lists a file twice or out of order")
    by_part: dict[int, list[tuple[int, int]]] = {}
    for position, entry in enumerate(answer.files):
        if entry.number >= snapshot.files_total:
            raise _tampered(table, "the plan lists a file that does not exist")
        at, ordinal = snapshot.locate(entry.number)
        by_part.setdefault(at, []).append((ordinal, position))
    for number, wanted in by_part.items():
        part = snapshot.root.parts[number]
        listed = files_of(objects, snapshot.root.path(part.files), part)
        files = listed.files([ordinal for ordinal, _ in wanted])
        for file, (_, position) in zip(files, wanted, strict=True):
            entry = answer.files[position]
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
