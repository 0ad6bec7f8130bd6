"""What a provider computes on its tables with shares, as Python sees it: joined answers equal what
plain Python computes, whole or in parts; nothing that does not fit is computed.

That all kernels agree and that no bytes make them panic is tested in Rust.
"""

from __future__ import annotations

import mmap
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver import errors
from louver.trusted.vault.schemes import fss
from louver.untrusted.providers import native
from tests.generated import cases

BLOCK = native.BLOCK
LONG = st.integers(-(2**31), 2**31 - 1)
EMPTY = np.zeros(0, np.uint64)


def random_records(seed: int, count: int, width: int) -> bytes:
    """Records that are never all zero."""
    array = np.random.default_rng(seed).integers(0, 256, (count, width), np.uint8)
    array[:, :8] |= 1
    return array.tobytes()


def number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def xored(parts: list[bytes]) -> bytes:
    return bytes(np.bitwise_xor.reduce([np.frombuffer(part, np.uint8) for part in parts]))


def added(parts: list[bytes]) -> bytes:
    """Numbers of 16 bytes, added."""
    sums = [
        sum(number(part[at : at + BLOCK]) for part in parts)
        for at in range(0, len(parts[0]), BLOCK)
    ]
    return b"".join((total % 2**128).to_bytes(BLOCK, "little") for total in sums)


@settings(max_examples=cases(25))
@given(st.data(), st.integers(1, 64), st.integers(1, 6), st.sampled_from([2, 2, 3]))
def test_a_record_is_selected(data: st.DataObject, bits: int, units: int, parties: int) -> None:
    bits = bits if parties == 2 else min(bits, 12)
    keys = st.integers(0, 2**bits - 1)
    points = sorted(data.draw(st.sets(keys, max_size=40)))
    wanted = [data.draw(keys) for _ in range(3)] + points[:2]
    width, words = units * 16, np.array(points, np.uint64)
    records = random_records(bits, len(points), width)
    tags = native.record_tags(3, records, width)
    functions = [fss.Point(bits, at, parties) for at in wanted]
    cut = data.draw(st.integers(0, len(points)))
    replies = []
    for shares in zip(*(function.shares() for function in functions), strict=True):
        whole = native.select(shares, words, len(points), records, width, tags)
        spans = [(0, cut), (cut, len(points))]
        parts = [
            native.select(
                shares,
                words[first:last],
                last - first,
                records[first * width : last * width],
                width,
                tags[first * BLOCK : last * BLOCK],
            )
            for first, last in spans
        ]
        assert whole == [xored([part, other]) for part, other in zip(*parts, strict=True)]
        replies.append(whole)
    for at, function, answers in zip(wanted, functions, zip(*replies, strict=True), strict=True):
        row = points.index(at) if at in points else None
        expected = None if row is None else records[row * width : (row + 1) * width]
        assert function.open(list(answers), 3) == expected
        lie = bytearray(answers[0])
        lie[data.draw(st.integers(0, len(lie) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        with pytest.raises(errors.Error, match="provider"):
            function.open([bytes(lie), *answers[1:]], 3)


@pytest.mark.parametrize("first", [0, 1, 5000])
def test_records_may_follow_each_other_in_a_mapped_file(first: int, tmp_path: Path) -> None:
    count, width = 5000, 48
    records = random_records(first, count, width)
    (tmp_path / "records").write_bytes(records)
    tags = native.record_tags(0, records, width)
    function = fss.Point(14, first + 4321)
    with (tmp_path / "records").open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    view = memoryview(mapped)
    replies = [
        native.select([share], None, count, view, width, tags, first)[0]
        for share in function.shares()
    ]
    assert function.open(replies, 0) == records[4321 * width : 4322 * width]


@settings(max_examples=cases(25))
@given(st.data(), st.integers(1, 64), st.integers(1, 3), st.integers(1, 4), st.booleans())
def test_columns_are_summed(
    data: st.DataObject, bits: int, columns: int, groups: int, counted: bool
) -> None:
    key = st.integers(0, 2**bits - 1)
    columns = 1 if counted else columns
    row = st.tuples(key, st.integers(0, groups - 1), *[LONG] * columns)
    rows = sorted(data.draw(st.lists(row, max_size=30)))
    low, high = sorted((data.draw(key), data.draw(key)))
    points, counts = np.unique(np.array([r[0] for r in rows], np.uint64), return_counts=True)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    of = np.array([r[1] for r in rows], np.uint32)
    values = np.array([r[2:] for r in rows], np.int64).reshape(-1)
    functions: list[fss.Sum | fss.PointSum] = [
        fss.Sum(bits, low, high),
        fss.Sum(bits, None, None),
    ]
    points_asked = [fss.PointSum(bits, low), fss.PointSum(bits, None)]
    for questions, (from_, to) in ((functions, (low, high)), (points_asked, (low, low))):
        expected = [0] * groups * columns
        for at, group, *numbers in rows:
            for column, value in enumerate([1] if counted else numbers):
                expected[group * columns + column] += value if from_ <= at <= to else 0
        replies = [
            native.sum_columns(
                shares, points, starts, of, None if counted else values, columns, groups
            )
            for shares in zip(*(function.shares() for function in questions), strict=True)
        ]
        first, second = ([reply[at] for reply in replies] for at in range(2))
        assert questions[0].open(first) == expected
        assert questions[1].open(second) == [0] * len(expected)


@settings(max_examples=cases(25))
@given(st.data(), st.integers(1, 6), st.integers(0, 7))
def test_rows_are_searched_and_sampled(
    data: st.DataObject, code_bits: int, index_bits: int
) -> None:
    code = st.integers(0, 2**code_bits - 1)
    codes = np.array(data.draw(st.lists(code, max_size=2**index_bits)), np.uint64)
    count, prefix_bits = len(codes), data.draw(st.integers(0, index_bits))
    prefix = data.draw(st.integers(0, 2**prefix_bits - 1))
    wanted = data.draw(code)
    shift = index_bits - prefix_bits
    matches = [i for i in range(count) if i >> shift == prefix and codes[i] == wanted]
    form = (code_bits, index_bits)
    cut = data.draw(st.integers(0, count))
    function = fss.PointSum(prefix_bits + code_bits, prefix << code_bits | wanted)
    replies = []
    for share in function.shares():
        (whole,) = native.search([share], codes, *form, prefix_bits)
        (reply,) = native.search([share], codes[:cut], *form, prefix_bits)
        (other,) = native.search([share], codes[cut:], *form, prefix_bits, cut)
        assert whole == added([reply, other])
        replies.append(whole)
    assert function.open(replies) == [len(matches)]
    width, slots, seeds = 32, 5, [7, 2**64 - 1]
    records = random_records(count, count, width)
    tags = native.record_tags(0, records, width)
    dummy = fss.PointSum(prefix_bits + code_bits, None)
    tables = [
        native.sample(shares, codes, *form, [prefix_bits] * 2, records, width, tags, slots, seeds)
        for shares in zip(function.shares(), dummy.shares(), strict=True)
    ]
    size = width + 2 * BLOCK
    slot = [[table[at : at + size] for at in range(0, len(table), size)] for table in tables]
    assert len(slot[0]) == slots * len(seeds)
    counts = [
        function.open([part[width : width + BLOCK] for part in pair])[0]
        for pair in zip(*slot, strict=True)
    ]
    assert sum(counts[:slots]) == sum(counts[slots:]) == len(matches)
    rows = {records[i * width : (i + 1) * width] for i in matches}
    for pair, number_ in zip(zip(*slot, strict=True), counts, strict=True):
        record = xored([part[:width] for part in pair])
        assert number_ != 0 or not any(record)
        assert number_ != 1 or record in rows


def test_hashes_of_texts_depend_on_salt_columns_and_nothing_else() -> None:
    texts = ["a", "", "ab", "ä"]
    first, other = pa.array(texts), pa.array(texts[::-1])
    high, low = native.hash_texts(b"salt", [first, other])
    for kind in (pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()):
        columns = [first.cast(kind), pa.chunked_array([other.cast(kind)])]
        assert native.hash_texts(b"salt", columns) == (high, low)
    words = np.frombuffer(high + low, np.uint64)
    assert len(set(words.tolist())) == 2 * len(texts)
    assert native.hash_texts(b"sal", [first, other]) != (high, low)
    assert native.hash_texts(b"salt", [other, first]) != (high, low)
    shifted = [pa.array(["ab"]), pa.array(["c"])], [pa.array(["a"]), pa.array(["bc"])]
    assert native.hash_texts(b"", shifted[0]) != native.hash_texts(b"", shifted[1])
    for bad in ([], [first, first[:1]], [pa.array([1])], [pa.array(["a", None])]):
        with pytest.raises(ValueError, match=r"hash|NULL"):
            native.hash_texts(b"", bad)


def test_tags_and_digests_stay_as_they_are() -> None:
    records = bytes(range(64))
    tags = native.record_tags(7, records, 32)
    assert tags == native.record_tags(7, records[:32], 32) + native.record_tags(7, records[32:], 32)
    assert tags != native.record_tags(8, records, 32)
    digest = native.digest([b"abc", np.zeros(5, np.uint8)])
    assert digest.hex() == "fbe3b4baa10fea889225a5dc998631e4debd2b5f2fbb9b1ae5097c280634ad71"
    for width in (0, 8, 48):
        with pytest.raises(ValueError, match="width"):
            native.record_tags(0, records, width)


def test_a_share_says_its_form_and_no_more() -> None:
    said = [native.share_header(fss.Point(20, at).shares()[1]) for at in (0, 77, None)]
    assert said[0] == said[1] == said[2]
    names = ("scheme", "group", "bits", "party", "parties")
    assert [said[0][name] for name in names] == ["point", "tag", 20, 1, 2]
    with pytest.raises(ValueError, match="share"):
        native.share_header(b"\1")


RECORDS, TAGS = random_records(1, 4, 32), bytes(64)
TAGGED, SUMMED = fss.Point(8, 1).shares()[0], fss.PointSum(8, 1).shares()[0]
OTHER = fss.Point(9, 1).shares()[0]
POINTS, NUMBERS = np.arange(4, dtype=np.uint64), np.zeros(4, np.int64)


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (native.select, ([TAGGED, OTHER], None, 4, RECORDS, 32, TAGS), "one domain"),
        (native.select, ([SUMMED], None, 4, RECORDS, 32, TAGS), "no tags"),
        (native.select, ([TAGGED[:-1]], None, 4, RECORDS, 32, TAGS), "shorter"),
        (native.select, ([b""], None, 4, RECORDS, 32, TAGS), "shorter"),
        (native.select, ([TAGGED], None, 3, RECORDS, 32, TAGS), "records: 128 bytes"),
        (native.select, ([TAGGED], None, 4, RECORDS, 32, TAGS[1:]), "tags: 63 bytes"),
        (native.select, ([TAGGED], None, 4, RECORDS, 24, TAGS), "multiple of 16"),
        (native.select, ([TAGGED], None, 4, RECORDS, 32, TAGS, 253), "domain"),
        (native.select, ([TAGGED], POINTS[::-1].copy(), 4, RECORDS, 32, TAGS), "rise"),
        (native.select, ([TAGGED], POINTS[::2], 2, RECORDS[:64], 32, TAGS[:32]), "in a row"),
        (native.select, ([TAGGED], POINTS + np.uint64(253), 4, RECORDS, 32, TAGS), "domain"),
        (native.select, ([TAGGED], NUMBERS.astype(np.float64), 4, RECORDS, 32, TAGS), "64-bit"),
        (native.sum_columns, ([TAGGED], POINTS, None, None, NUMBERS, 1, 1), "2\\^128"),
        (native.sum_columns, ([SUMMED], POINTS, None, None, NUMBERS, 2, 1), "values"),
        (native.sum_columns, ([SUMMED], POINTS, None, None, None, 2, 1), "one column"),
        (native.sum_columns, ([SUMMED], POINTS, None, None, NUMBERS, 1, 0), "one group"),
        (
            native.sum_columns,
            ([SUMMED], POINTS, np.zeros(4, np.uint32), None, NUMBERS, 1, 1),
            "starts",
        ),
        (
            native.sum_columns,
            ([SUMMED], POINTS, None, np.arange(4, dtype=np.uint32), NUMBERS, 1, 3),
            "group that there is not",
        ),
        (native.search, ([SUMMED], POINTS, 4, 4, 5), "prefix is longer"),
        (native.search, ([SUMMED], POINTS, 8, 4, 1), "prefix and a code"),
        (native.search, ([SUMMED], POINTS, 8, 1, 0), "more rows"),
        (native.search, ([SUMMED], POINTS + np.uint64(255), 8, 2, 0), "domain"),
        (native.search, ([SUMMED], POINTS, 60, 5, 0), "at most 64"),
        (native.sample, ([SUMMED], POINTS, 8, 2, [], RECORDS, 32, TAGS, 1, [1]), "prefix"),
        (native.sample, ([SUMMED], POINTS, 8, 2, [0], RECORDS, 32, TAGS, 0, [1]), "one slot"),
        (native.sample, ([SUMMED], POINTS, 8, 2, [0], RECORDS, 32, TAGS, 2**40, [1]), "large"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(*arguments)


@given(st.binary(max_size=300), st.integers(1, 24))
def test_any_bytes_are_a_share_or_refused(data: bytes, bits: int) -> None:
    share = bytearray(fss.Point(bits, 0).shares()[0])
    for at, byte in enumerate(data[:8]):
        share[byte % len(share)] ^= data[at]
    for encoded in (data, bytes(share)):
        for call, rest in (
            (native.select, (None, 1, RECORDS[:32], 32, TAGS[:16])),
            (native.sum_columns, (EMPTY, None, None, None, 1, 1)),
            (native.search, (EMPTY, 1, 1, 1)),
        ):
            with suppress(ValueError):
                call([encoded], *rest)


def test_several_threads_ask_at_once() -> None:
    count, width = 20_000, 64
    records = random_records(9, count, width)
    tags = native.record_tags(0, records, width)

    def ask(at: int) -> bool:
        function = fss.Point(15, at)
        replies = [
            native.select([share], None, count, records, width, tags)[0]
            for share in function.shares()
        ]
        return function.open(replies, 0) == records[at * width : (at + 1) * width]

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(0, count, 1234)))
