"""The lake's index through Python: known answers, an independent second writing, hostile bytes."""

from __future__ import annotations

import hashlib
import json
import mmap
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver import errors
from louver.trusted.vault.index_keys import ANY_VALUE, NO_VALUE, RANGE, LakeKeys, map_values
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.lake.sweep import segment_header, sweep, token_header
from tests.generated import cases
from tests.lake import eds_reference as reference
from tests.lake.eds_blake3 import keyed_blake3

VECTORS = json.loads(reference.VECTORS.read_text(encoding="utf-8"))
KEY_FILES = json.loads((reference.VECTORS.parent / "keyfile.json").read_text())["good"]
TABLE, COLUMN, GENERATION = VECTORS["place"]
#: The forms that the product has: AES-128, XOR per bit; `rust/papers` checks those of the paper.
CASES = [case for case in VECTORS["cases"] if case["spec"][:6] in ("000001", "020001")]
KINDS = [case["spec"] for case in CASES]
OTHERS = [case["spec"] for case in VECTORS["cases"] if case not in CASES]
TOP = reference.TOP
Range = tuple[int, int]


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> KeyRing:
    text = next(entry["text"] for entry in KEY_FILES if entry["root"] == VECTORS["root"])
    path = tmp_path_factory.mktemp("keys") / "key.txt"
    path.touch(0o600)
    path.write_text(text)
    return KeyRing.open(path)


@pytest.fixture(scope="module")
def keys(ring: KeyRing) -> LakeKeys:
    return ring.lake_table(TABLE)


def index(spec: str) -> reference.Index:
    root = bytes.fromhex(VECTORS["root"])
    return reference.Index(root, TABLE, COLUMN, GENERATION, bytes.fromhex(spec))


def segment(
    keys: LakeKeys, spec: str, ranges: list[Range], states: list[int] | None = None
) -> bytes:
    lows, highs = zip(*ranges, strict=True)
    return keys.segment(
        COLUMN, GENERATION, bytes.fromhex(spec), pa.array(lows, pa.uint64()),
        pa.array(highs, pa.uint64()), pa.array(states or [RANGE] * len(ranges), pa.uint8()),
    )  # fmt: skip


def token(keys: LakeKeys, spec: str, low: int, high: int, sides: bool = False) -> bytes:
    return keys.token(COLUMN, GENERATION, bytes.fromhex(spec), low, high, sides)


def file_numbers(bitmap: bytes, count: int) -> set[int]:
    assert len(bitmap) == -(-count // 8)
    positions = {at for at in range(len(bitmap) * 8) if bitmap[at // 8] >> at % 8 & 1}
    assert all(at < count for at in positions), "bits beyond the last file are 0"
    return positions


def test_the_second_writing_gives_the_known_answers() -> None:
    assert json.loads(json.dumps(reference.vectors())) == VECTORS


def test_the_second_writing_knows_the_tree() -> None:
    tree = json.loads((reference.VECTORS.parent / "eds_tree.json").read_text())
    for value, nodes in tree["coverage_height64"].items():
        assert reference.path(int(value)) == [int(node) for node in nodes]
    for path in tree["minimum_cover_height64"]:
        cover = reference.cover(int(path["s"]), int(path["t"]))
        assert sorted(cover) == [int(node) for node in path["nodes"]]


@pytest.mark.parametrize("case", CASES, ids=KINDS)
def test_tokens_are_the_known_ones(keys: LakeKeys, case: dict[str, Any]) -> None:
    spec = case["spec"]
    assert keys.index_id(COLUMN, GENERATION, bytes.fromhex(spec)).hex() == case["index_id"]
    ranges = [(int(low), int(high)) for low, high in VECTORS["ranges"]]
    blob = segment(keys, spec, ranges)
    for question in case["tokens"]:
        text = token(keys, spec, int(question["low"]), int(question["high"]), question["sides"])
        assert text[:132].hex() == question["begin"]
        assert hashlib.sha256(text).hexdigest() == question["sha256"]
        assert set(question["hits"]) <= file_numbers(sweep(blob, text), len(ranges))
        opened = keys.opened(text)
        assert opened == sorted(set(opened))
        keys.check(COLUMN, GENERATION, blob, text)


@pytest.mark.parametrize("spec", KINDS)
def test_segments_are_those_of_the_second_writing(keys: LakeKeys, spec: str) -> None:
    ranges = [(i << 40, (i + 2) << 40) for i in range(150)]
    blob = segment(keys, spec, ranges)
    header = segment_header(blob)
    assert (header["n"], header["bytes"]) == (len(ranges), len(blob))
    assert blob == index(spec).segment(header["segment_id"], ranges)


def test_a_large_segment_has_a_tag_a_row(keys: LakeKeys) -> None:
    spec = bytes([0, 0, 1, 8]).hex() + (65_536).to_bytes(4, "little").hex()
    ranges = [(i, i) for i in range(130)]
    blob = segment(keys, spec, ranges)
    assert len(blob) == 48 + 65_536 * (24 + 16)
    numbers = index(spec)
    key, row = numbers.keys["tags"], blob[48 + 24 * 77 :][:24]
    tag = keyed_blake3(key, blob[:48] + (77).to_bytes(4, "little") + row)[:16]
    assert blob[48 + 24 * 65_536 + 16 * 77 :][:16] == tag
    text = token(keys, spec, 5, 9)
    altered = bytearray(blob)
    altered[48 + 24 * keys.opened(text)[3]] ^= 1
    with pytest.raises(errors.VerificationError, match="altered"):
        keys.check(COLUMN, GENERATION, bytes(altered), text)
    # A row that this token does not read is for others to find.
    closed = next(row for row in range(65_536) if row not in set(keys.opened(text)))
    altered = bytearray(blob)
    altered[48 + 24 * closed] ^= 1
    keys.check(COLUMN, GENERATION, bytes(altered), text)
    with pytest.raises(errors.VerificationError):
        keys.check(COLUMN, GENERATION, bytes(altered), None)


numbers = st.one_of(
    st.integers(0, TOP), st.sampled_from([0, 1, 1 << 63, (1 << 63) - 1, TOP - 1, TOP])
)
ranges_ = st.tuples(numbers, numbers).map(lambda pair: (min(pair), max(pair)))


@settings(max_examples=cases(60), deadline=None)
@given(
    spec=st.sampled_from(KINDS),
    files=st.lists(st.tuples(ranges_, st.sampled_from([RANGE, NO_VALUE, ANY_VALUE])), min_size=1),
    span=ranges_,
    sides=st.booleans(),
)
def test_no_file_is_lost(
    keys: LakeKeys, spec: str, files: list[tuple[Range, int]], span: Range, sides: bool
) -> None:
    blob = segment(keys, spec, [entry for entry, _ in files], [state for _, state in files])
    numbers = file_numbers(sweep(blob, token(keys, spec, *span, sides)), len(files))
    wanted = {
        at
        for at, ((low, high), state) in enumerate(files)
        if state == ANY_VALUE or (state == RANGE and low <= span[1] and high >= span[0])
    }
    assert wanted <= numbers


def test_few_files_are_kept_in_vain(keys: LakeKeys) -> None:
    spec = bytes([2, 0, 1, 8]).hex() + (16_384).to_bytes(4, "little").hex()
    ranges = [(i * 1000, i * 1000 + 900) for i in range(5000)]
    blob = segment(keys, spec, ranges, [RANGE] * 4999 + [NO_VALUE])
    for low, high in [(0, 0), (901, 999), (1000, 5000), (10**7, TOP)]:
        wanted = {i for i, (a, b) in enumerate(ranges[:-1]) if a <= high and b >= low}
        numbers = file_numbers(sweep(blob, token(keys, spec, low, high)), 5000)
        assert wanted <= numbers
        assert len(numbers - wanted) <= 3


def test_a_mapped_file_is_swept_by_several_threads(keys: LakeKeys, tmp_path: Path) -> None:
    spec, path = KINDS[1], tmp_path / "segment"
    path.write_bytes(segment(keys, spec, [(i, i + 5) for i in range(1000)]))
    text = token(keys, spec, 100, 200)
    wanted = sweep(path.read_bytes(), text)
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        with ThreadPoolExecutor(4) as pool:
            view = memoryview(mapped)
            assert set(pool.map(lambda _: sweep(view, text), range(20))) == {wanted}
            view.release()
        mapped.close()


@settings(max_examples=cases(150), deadline=None)
@given(data=st.data())
def test_hostile_bytes_raise_and_no_more(keys: LakeKeys, data: st.DataObject) -> None:
    spec = KINDS[0]
    good = [segment(keys, spec, [(1, 5)]), token(keys, spec, 2, 3)]
    changed = []
    for content in good:
        mutable = bytearray(content)
        for _ in range(data.draw(st.integers(0, 3))):
            position = data.draw(st.integers(0, len(content) - 1) | st.integers(0, 47))
            mutable[position] = data.draw(st.integers(0, 255))
        cut = data.draw(st.just(len(content)) | st.integers(0, len(content)))
        changed.append(bytes(mutable[:cut]))
    noise = data.draw(st.binary(max_size=80))
    for blob, text in [(changed[0], good[1]), (good[0], changed[1]), (noise, good[1])]:
        for act in (
            lambda blob=blob, text=text: sweep(blob, text),
            lambda blob=blob: segment_header(blob),
            lambda text=text: token_header(text),
            lambda text=text: keys.opened(text),
        ):
            try:
                act()
            except ValueError:
                continue
        if blob not in good:
            with pytest.raises(errors.VerificationError):
                keys.check(COLUMN, GENERATION, blob)


def test_what_does_not_belong_together_is_refused(ring: KeyRing, keys: LakeKeys) -> None:
    blob = segment(keys, KINDS[0], [(1, 5)])
    other = token(keys, KINDS[1], 1, 5)
    with pytest.raises(ValueError, match="one index"):
        sweep(blob, other)
    with pytest.raises(errors.VerificationError, match="belongs to another"):
        ring.lake_table(TABLE + 1).check(COLUMN, GENERATION, blob)
    with pytest.raises(errors.VerificationError, match="belongs to another"):
        keys.check(COLUMN, GENERATION + 1, blob)
    with pytest.raises(ValueError, match="wrong order"):
        token(keys, KINDS[0], 5, 1)
    for lows, highs, states in [([5], [1], [0]), ([1], [1], [3]), ([], [], []), ([1], [], [0])]:
        arrays = pa.array(lows, pa.uint64()), pa.array(highs, pa.uint64())
        with pytest.raises(ValueError, match=r"file|differ"):
            keys.segment(
                COLUMN, GENERATION, bytes.fromhex(KINDS[0]), *arrays, pa.array(states, pa.uint8())
            )


@pytest.mark.parametrize("spec", OTHERS)
def test_forms_of_the_paper_are_refused(keys: LakeKeys, spec: str) -> None:
    reason = "a form that this release does not read"
    known = index(spec)
    blob = known.segment(bytes(12), [(1, 5)])
    text = known.token(1, 5, False)
    for act in (
        lambda: segment(keys, spec, [(1, 5)]), lambda: token(keys, spec, 1, 5),
        lambda: sweep(blob, text), lambda: segment_header(blob), lambda: token_header(text),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=reason):
            act()
    with pytest.raises(errors.VerificationError, match=reason):
        keys.check(COLUMN, GENERATION, blob)


def test_signatures(keys: LakeKeys) -> None:
    for case in VECTORS["signatures"]:
        context, data, tag = (bytes.fromhex(case[name]) for name in ("context", "data", "tag"))
        assert keys.sign(case["purpose"], context, data) == tag
        keys.verify(case["purpose"], context, data, tag)
        with pytest.raises(errors.VerificationError):
            keys.verify(case["purpose"], context, data + b"x", tag)


def test_keys_do_not_leave(keys: LakeKeys) -> None:
    assert repr(keys) == f"LakeKeys(ea393a02ec260660, table {TABLE})"
    for secret in (keys, keys.native):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(secret)


def test_known_maps() -> None:
    kinds: dict[str, Any] = {
        "BIGINT": lambda t: pa.array([int(t)], pa.int64()),
        "UBIGINT": lambda t: pa.array([int(t)], pa.uint64()),
        "HUGEINT": lambda t: pa.array([int(t).to_bytes(16, "little", signed=True)], pa.binary(16)),
        "DOUBLE": lambda t: pa.array([float(t)]),
        "VARCHAR": lambda t: pa.array([t]),
    }
    for name, pairs in VECTORS["maps"].items():
        type_ = "VARCHAR" if name == "letters" else name
        for text, number in pairs:
            mapped = map_values(kinds[type_](text), type_, letters=name == "letters")
            assert mapped.to_pylist() == [int(number)], (name, text)
