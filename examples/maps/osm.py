"""Streets out of an OpenStreetMap extract in its protocol-buffer form (.osm.pbf)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

#: Values of the tag `highway` that are streets for cars.
STREETS = frozenset(
    f"{name}{link}".encode()
    for name in (
        "motorway", "trunk", "primary", "secondary", "tertiary", "unclassified", "residential",
        "living_street", "service",
    )
    for link in ("", "_link")
)  # fmt: skip
#: No block of an extract is larger, says the format.
MOST_BYTES = 32 << 20
#: The unit of places: 1e-9 degrees.
NANO = 1e-9


def read_ways(path: Path) -> tuple[dict[int, tuple[float, float]], list[list[int]]]:
    """Latitude and longitude in degrees by node, and the nodes of every street."""
    places: dict[int, tuple[float, float]] = {}
    ways: list[list[int]] = []
    for block in _blocks(path.read_bytes()):
        parts = list(_fields(block))
        texts = [t for n, v in parts if n == 1 for m, t in _fields(_data(v)) if m == 1]
        numbers = {n: v for n, v in parts if isinstance(v, int)}
        scale = (numbers.get(17, 100), numbers.get(19, 0), numbers.get(20, 0))
        for group in (v for n, v in parts if n == 2):
            for number, value in _fields(_data(group)):
                if number == 1:
                    places.update(_one(_data(value), scale))
                elif number == 2:
                    places.update(_dense(_data(value), scale))
                elif number == 3:
                    way = _way(_data(value), texts)
                    if way:
                        ways.append(way)
    return places, ways


def _blocks(data: bytes) -> Iterator[bytes]:
    """Every block of the kind OSMData, unpacked."""
    at = 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        head = dict(_fields(data[at + 4 : end]))
        size = head.get(3, 0)
        if not isinstance(size, int) or not 0 < size <= MOST_BYTES or end + size > len(data):
            raise ValueError("this is no OpenStreetMap extract")
        blob = dict(_fields(data[end : end + size]))
        at = end + size
        if head.get(1) != b"OSMData":
            continue
        if 1 in blob:
            yield _data(blob[1])
        elif 3 in blob:
            yield zlib.decompressobj().decompress(_data(blob[3]), MOST_BYTES)
        else:
            raise ValueError("blocks that are not packed by zlib are not read")


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Fields of a protocol-buffer message: numbers and their values."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if kind == 2:
            size, at = _varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(kind, len(data) + 1)
        if at + size > len(data):
            raise ValueError("a message of the extract ends early")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise ValueError("a number of the extract ends early")


def _data(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where the extract should have a message")
    return value


def _packed(value: int | bytes) -> list[int]:
    data, at, out = _data(value), 0, []
    while at < len(data):
        number, at = _varint(data, at)
        out.append(number)
    return out


def _deltas(value: int | bytes) -> list[int]:
    return list(accumulate(_signed(number) for number in _packed(value)))


def _signed(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def _place(latitude: int, longitude: int, scale: tuple[int, int, int]) -> tuple[float, float]:
    unit, north, east = scale
    return (north + unit * latitude) * NANO, (east + unit * longitude) * NANO


def _one(data: bytes, scale: tuple[int, int, int]) -> dict[int, tuple[float, float]]:
    found = {n: _signed(v) for n, v in _fields(data) if isinstance(v, int)}
    return {found[1]: _place(found[8], found[9], scale)}


def _dense(data: bytes, scale: tuple[int, int, int]) -> dict[int, tuple[float, float]]:
    found = dict(_fields(data))
    columns = (_deltas(found.get(number, b"")) for number in (1, 8, 9))
    return {n: _place(a, o, scale) for n, a, o in zip(*columns, strict=True)}


def _way(data: bytes, texts: list[int | bytes]) -> list[int]:
    """Nodes of a way, or none where it is no street."""
    found = dict(_fields(data))
    keys, values = _packed(found.get(2, b"")), _packed(found.get(3, b""))
    tags = {texts[key]: texts[value] for key, value in zip(keys, values, strict=True)}
    return _deltas(found.get(8, b"")) if tags.get(b"highway") in STREETS else []
