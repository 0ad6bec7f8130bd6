"""Roots, side files and lists of files: what is written is read, and nothing else is."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from louver import errors
from louver.trusted.lake import bounds
from louver.untrusted.lake import files, root, side
from louver.untrusted.lake.files import File, FileList
from louver.untrusted.lake.root import Ancestor, Blob, Part, Root, Segment
from tests.sources import ROOT

SIDE = f"metadata/louver-{'0' * 32}.puffin"
blobs = st.builds(Blob, st.just(0), st.integers(0, 1 << 47), st.integers(0, 1 << 39))


@st.composite
def parts(draw, indexes):
    count = draw(st.integers(1, 300))
    live = draw(
        st.one_of(st.just(b""), st.binary(min_size=-(-count // 8), max_size=-(-count // 8)))
    )
    if live:
        live_bits = int.from_bytes(live, "little") & ((1 << count) - 1)
        live = live_bits.to_bytes(len(live), "little")
    chosen = draw(st.lists(st.sampled_from(indexes), unique=True)) if indexes else []
    segments = tuple(
        Segment(index, draw(st.binary(min_size=12, max_size=12)), draw(blobs)) for index in chosen
    )
    digest = draw(st.binary(min_size=32, max_size=32))
    return Part(count, draw(blobs), digest, draw(st.none() | blobs), live, segments)


@st.composite
def rooted(draw):
    ids = st.binary(min_size=16, max_size=16)
    indexes = draw(st.lists(ids, unique=True, max_size=4))
    parts_drawn = draw(st.lists(parts(indexes), max_size=4))
    number = st.integers(0, (1 << 63) - 1)
    ancestors = st.builds(
        Ancestor,
        st.integers(-(1 << 63), (1 << 63) - 1),
        number,
        st.binary(min_size=32, max_size=32),
    )
    return Root(
        draw(number), draw(number), draw(st.integers(-(1 << 63), (1 << 63) - 1)), draw(number),
        sum(part.live_count for part in parts_drawn), draw(number), draw(number), tuple(indexes),
        (SIDE,),
        tuple(parts_drawn), tuple(draw(st.lists(ancestors, max_size=3))), os.urandom(32),
        draw(st.binary(max_size=50)),
    )  # fmt: skip


@given(rooted())
def test_a_root_is_read_as_it_was_written(sample: Root) -> None:
    assert root.decode(root.encode(sample)) == sample


@given(rooted(), st.data())
def test_altered_bytes_are_a_root_or_an_error(sample: Root, data) -> None:
    raw = bytearray(root.encode(sample))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)))
    for altered in (bytes(raw), bytes(raw[:cut]), bytes(raw) + b"x"):
        try:
            decoded = root.decode(altered)
        except errors.VerificationError:
            continue
        assert root.encode(decoded) == altered, "one root, one form"


@given(st.binary(max_size=300))
def test_any_bytes_are_an_error(raw: bytes) -> None:
    for data in (raw, b"LVRT\x01" + raw):
        with pytest.raises(errors.VerificationError):
            root.decode(data)


def listed(count: int) -> list[File]:
    return [
        File(os.urandom(16), 1_000 + position, position, bytes([position % 251]) * (position % 90))
        for position in range(count)
    ]


def reader(blob: bytes, count: int, digest: bytes | None = None) -> FileList:
    def fetch(ranges):
        return [blob[at : at + size] for at, size in ranges]

    return FileList(fetch, count, len(blob), digest or files.digest(blob, count), "list")


@pytest.mark.parametrize("count", [1, 127, 128, 129, 1_000, 32_768])
def test_a_list_is_read_as_it_was_written(count: int) -> None:
    listing = listed(count)
    blob = files.encode(listing)
    assert list(reader(blob, count).files(range(count))) == listing
    some = sorted({0, count // 2, count - 1})
    assert list(reader(blob, count).files(some)) == [listing[position] for position in some]
    assert listing[0].path == f"data/{listing[0].file_id.hex()}.parquet"


@given(st.data())
def test_an_altered_list_is_found_out(data) -> None:
    listing = listed(300)
    blob = bytearray(files.encode(listing))
    known = files.digest(bytes(blob), 300)
    at = data.draw(st.integers(0, len(blob) - 1))
    blob[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(errors.VerificationError):
        list(reader(bytes(blob), 300, known).files(range(300)))


@given(st.binary(max_size=400), st.integers(1, 300))
def test_any_bytes_are_no_list(raw: bytes, count: int) -> None:
    """Also where the digest fits: a client may have been led to sign nonsense."""
    for blob in (raw, files._HEAD.pack(b"LVFL", 1, 0, 128, count) + raw):
        with pytest.raises(errors.VerificationError):
            list(reader(blob, count).files(range(count)))


def test_a_side_file_is_a_puffin_file() -> None:
    from pyiceberg.table.puffin import PuffinFile

    blobs = [(side.INDEX, b"one"), (side.FILES, b""), (side.BOUNDS, os.urandom(100))]
    data = side.encode(blobs)
    decoded = side.decode(data)
    assert [(e.kind, data[e.offset : e.offset + e.length]) for e in decoded] == blobs
    assert all(e.offset % 64 == 0 for e in decoded)
    length = int.from_bytes(data[-12:-8], "little")
    assert len(json.loads(data[-12 - length : -12])["blobs"]) == 3
    listed = PuffinFile(data).footer.blobs
    assert [(blob.offset, blob.length) for blob in listed] == [
        (e.offset, e.length) for e in decoded
    ]


@given(st.binary(max_size=200))
def test_any_bytes_are_no_side_file(raw: bytes) -> None:
    whole = side.encode([(side.INDEX, b"x" * 10)])
    with pytest.raises(errors.VerificationError):
        side.decode(raw)
    for at in range(0, len(whole), 7):
        altered = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        try:
            entries = side.decode(altered)
        except errors.VerificationError:
            continue
        assert all(4 <= e.offset <= e.offset + e.length <= len(whole) for e in entries)


VECTORS = json.loads((ROOT / "spec/vectors/lake.json").read_text(encoding="utf-8"))


def test_a_list_of_the_vectors_is_read() -> None:
    wanted = VECTORS["files"]
    blob, digest = bytes.fromhex(wanted["blob"]), bytes.fromhex(wanted["digest"])
    files_read = list(reader(blob, wanted["count"], digest).files(range(wanted["count"])))
    assert [[f.file_id.hex(), f.size, f.rows, f.key_metadata.hex()] for f in files_read] == (
        wanted["listed"]
    )
    assert files.encode(files_read) == blob


def test_a_root_of_the_vectors_is_read() -> None:
    wanted = VECTORS["root"]
    data = bytes.fromhex(wanted["file"])
    decoded = root.decode(data)
    for name in ("table_id", "sequence", "snapshot_id", "made_ms", "files", "rows", "size"):
        assert getattr(decoded, name) == wanted[name]
    assert (decoded.note.hex(), decoded.parts[0].live.hex()) == (wanted["note"], wanted["live"])
    assert decoded.parts[0].files.offset == wanted["offset"]
    assert root.encode(decoded) == data
    assert root.digest(data).hex() == wanted["digest"]


def test_bounds_of_the_vectors_are_read() -> None:
    wanted = VECTORS["bounds"]
    plain = bytes.fromhex(wanted["plain"])
    decoded = bounds.decode(plain, "bounds")
    assert decoded.count == wanted["count"]
    for column, (flags, lows, highs) in wanted["columns"].items():
        extent = decoded.columns[int(column)]
        assert extent.flags.tolist() == flags
        assert [str(value) for value in extent.lows.tolist()] == lows
        assert [str(value) for value in extent.highs.tolist()] == highs
    assert bounds.encode(decoded) == plain


@given(st.binary(max_size=300))
def test_any_bytes_are_no_bounds(raw: bytes) -> None:
    whole = bytes.fromhex(VECTORS["bounds"]["plain"])
    for data in (raw, whole[:-1], whole + b"x", whole[:9] + raw):
        if data != whole:
            try:
                decoded = bounds.decode(data, "bounds")
            except errors.VerificationError:
                continue
            assert bounds.encode(decoded) == data
