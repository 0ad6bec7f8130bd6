"""The root of a snapshot: one small file that names everything a snapshot consists of.

A snapshot's summary names its root (`louver.root`). The root lists the parts of the table: a part
is up to 32,768 data files whose list, encrypted bounds and index segments are stored in side files.
A bitmap shows which of them are still live, so that a commit writes a root and does not touch side
files. The client signs the root, and with it every file list (by digest) and every segment (by id).
See spec/lake.md.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from louver.wire.binary import Reader, Writer, malformed_file

VERSION = 1
MAX_BYTES = 256 << 20
MAC_BYTES = 32
DIGEST_BYTES = 32
INDEX_ID_BYTES = 16
SEGMENT_ID_BYTES = 12
#: Most files of one part, and of a segment.
MAX_PART_FILES = 32_768
MAX_PARTS = 65_536
MAX_SIDES = 1 << 20
MAX_INDEXES = 65_536
#: Ancestors that a root lists; older ones can no longer be distinguished from forgeries.
MAX_HISTORY = 65_536
MAX_NOTE_BYTES = 4_096
#: Files of one snapshot: a row id has 31 bits for the number of a file.
MAX_FILES = (1 << 31) - 1

_MAGIC = b"LVRT"
_NO_SIDE = (1 << 32) - 1
_SIDE = re.compile(r"metadata/louver-[0-9a-f]{32}\.puffin")
_ROOT = re.compile(r"metadata/louver-[0-9a-f]{32}\.root")


@dataclass(frozen=True, slots=True)
class Blob:
    """A range of a side file: the file's index in `Root.sides`, and bytes."""

    side: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Segment:
    """The position of one column's index over one part, and the id of its segment."""

    index_id: bytes
    segment_id: bytes
    blob: Blob


@dataclass(frozen=True, slots=True)
class Part:
    """Data files that are listed together.

    Attributes:
        count: the number of listed files, including removed ones.
        files: the position of the list.
        digest: SHA-256 of the list's head and directory, which contains the digests of its pages.
        bounds: the position of the encrypted bounds, for the client only; None without.
        live: one bit per file, the first in the lowest bit; empty if all are live.
        segments: at most one per index.
    """

    count: int
    files: Blob
    digest: bytes
    bounds: Blob | None
    live: bytes
    segments: tuple[Segment, ...]

    @property
    def live_count(self) -> int:
        """The number of live files."""
        return int.from_bytes(self.live, "little").bit_count() if self.live else self.count


@dataclass(frozen=True, slots=True)
class Ancestor:
    """An earlier snapshot: its id, creation time (ms since 1970), and root digest."""

    snapshot_id: int
    made_ms: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Root:
    """Everything about one snapshot except the data.

    Attributes:
        files, rows, size: totals of the live files; size in bytes.
        indexes: ids of all indexes of the table, also if no part has a segment.
        sides: paths of the side files, relative to the table.
        history: ancestors, the oldest first, the parent last.
        note: the client's encrypted note on the table; empty for none.
    """

    table_id: int
    sequence: int
    snapshot_id: int
    made_ms: int
    files: int
    rows: int
    size: int
    indexes: tuple[bytes, ...]
    sides: tuple[str, ...]
    parts: tuple[Part, ...]
    history: tuple[Ancestor, ...]
    mac: bytes = b""
    note: bytes = b""

    @property
    def prefix(self) -> str:
        """The table's folder, relative to the warehouse, with a trailing slash."""
        return f"louver/t{self.table_id}/"

    def path(self, blob: Blob) -> str:
        """The side file of a blob, relative to the warehouse."""
        return self.prefix + self.sides[blob.side]


def is_root_path(path: str) -> bool:
    """Whether this is the name of a root file, relative to its table."""
    return _ROOT.fullmatch(path) is not None


def digest(data: bytes) -> bytes:
    """The digest of a root file that later roots record."""
    return hashlib.sha256(data).digest()


def body(root: Root) -> bytes:
    """The signed bytes: everything but the MAC."""
    out = Writer()
    out.raw(_MAGIC)
    out.byte(VERSION)
    for number in (root.table_id, root.sequence):
        out.long(number)
    out.signed(root.snapshot_id)
    for number in (root.made_ms, root.files, root.rows, root.size):
        out.long(number)
    out.word(len(root.indexes))
    for index_id in root.indexes:
        out.raw(index_id)
    out.word(len(root.sides))
    for side in root.sides:
        out.text(side)
    out.word(len(root.parts))
    for part in root.parts:
        _put_part(out, part)
    out.word(len(root.history))
    for item in root.history:
        out.signed(item.snapshot_id)
        out.long(item.made_ms)
        out.raw(item.digest)
    out.word(len(root.note))
    out.raw(root.note)
    return out.finish()


def encode(root: Root) -> bytes:
    """A signed root as the bytes of its file."""
    return body(root) + root.mac


def decode(data: bytes | memoryview, name: str = "root") -> Root:
    """Decode the root of `encode`; `lake.format` for other bytes. The client checks the MAC."""
    if len(data) > MAX_BYTES:
        raise malformed_file(name, "it is too large")
    reader = Reader.of_file(data, name)
    if reader.raw(4) != _MAGIC or reader.byte() != VERSION:
        raise reader.malformed("it is of another kind or version")
    table_id, sequence = reader.long(), reader.long()
    snapshot_id = reader.signed()
    made_ms, files, rows, size = (reader.long() for _ in range(4))
    indexes = tuple(reader.raw(INDEX_ID_BYTES) for _ in range(reader.count(MAX_INDEXES)))
    sides = tuple(reader.text(64) for _ in range(reader.count(MAX_SIDES)))
    if not all(_SIDE.fullmatch(side) for side in sides):
        raise reader.malformed("a side file has a strange path")
    parts = tuple(_part(reader, len(sides)) for _ in range(reader.count(MAX_PARTS)))
    history = tuple(
        Ancestor(reader.signed(), reader.long(), reader.raw(DIGEST_BYTES))
        for _ in range(reader.count(MAX_HISTORY))
    )
    note = reader.raw(reader.count(MAX_NOTE_BYTES))
    mac = reader.raw(MAC_BYTES)
    reader.end()
    root = Root(
        table_id, sequence, snapshot_id, made_ms, files, rows, size,
        indexes, sides, parts, history, mac, note,
    )  # fmt: skip
    _require_sound(root, reader)
    return root


def _require_sound(root: Root, reader: Reader) -> None:
    """Check that the parts of a root are consistent."""
    if root.files != sum(part.live_count for part in root.parts) or root.files > MAX_FILES:
        raise reader.malformed("its number of files is not that of its parts")
    known = set(root.indexes)
    if len(known) != len(root.indexes):
        raise reader.malformed("an index is listed twice")
    for part in root.parts:
        ids = [segment.index_id for segment in part.segments]
        if len(set(ids)) != len(ids) or not known.issuperset(ids):
            raise reader.malformed("a segment is of no known index, or there twice")


def _put_part(out: Writer, part: Part) -> None:
    out.word(part.count)
    _put_blob(out, part.files)
    out.raw(part.digest)
    _put_blob(out, part.bounds)
    out.byte(1 if part.live else 0)
    out.raw(part.live)
    out.word(len(part.segments))
    for segment in part.segments:
        out.raw(segment.index_id)
        out.raw(segment.segment_id)
        _put_blob(out, segment.blob)


def _part(reader: Reader, sides: int) -> Part:
    count = reader.count(MAX_PART_FILES)
    if not count:
        raise reader.malformed("a part is empty")
    files = _blob(reader, sides)
    part_digest = reader.raw(DIGEST_BYTES)
    bounds = _blob(reader, sides)
    partly = reader.byte()
    live = reader.raw(-(-count // 8)) if partly == 1 else b""
    if partly > 1 or int.from_bytes(live, "little") >> count:
        raise reader.malformed("a part's bitmap is malformed")
    segments = []
    for _ in range(reader.count(MAX_INDEXES)):
        index_id, segment_id = reader.raw(INDEX_ID_BYTES), reader.raw(SEGMENT_ID_BYTES)
        segments.append(Segment(index_id, segment_id, _require(reader, _blob(reader, sides))))
    return Part(count, _require(reader, files), part_digest, bounds, live, tuple(segments))


def _put_blob(out: Writer, blob: Blob | None) -> None:
    out.word(_NO_SIDE if blob is None else blob.side)
    out.long(0 if blob is None else blob.offset)
    out.long(0 if blob is None else blob.length)


def _blob(reader: Reader, sides: int) -> Blob | None:
    side, offset, length = reader.word(), reader.long(1 << 48), reader.long(1 << 40)
    if side == _NO_SIDE and not offset and not length:
        return None
    if side >= sides:
        raise reader.malformed("a side file is not listed")
    return Blob(side, offset, length)


def _require(reader: Reader, blob: Blob | None) -> Blob:
    if blob is None:
        raise reader.malformed("a blob is missing")
    return blob
