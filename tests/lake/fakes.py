"""Stand-ins for the compiled index and the Parquet files, while these are being made."""

from __future__ import annotations

import hmac
import io
import os
import struct
import sys
import types

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from louver import errors

HEAD = struct.Struct("<4sB8s16s12sI3s")
TOKEN = struct.Struct("<4sB8s16s3s")


def segment(index_id: bytes, hits: list[int], count: int) -> bytes:
    """A segment that every token of its index hits at the given ordinals."""
    lows = np.array([0 if at in hits else 1 for at in range(count)], np.uint64)
    return made_segment(bytes(8), index_id, lows, np.zeros(count, np.uint64) + 2, lows * 0)


def made_segment(spec, index_id, lows, highs, states) -> bytes:
    head = HEAD.pack(b"LVSG", 1, spec, index_id, os.urandom(12), len(lows), bytes(3))
    rows = [np.asarray(x).astype("<u8").tobytes() for x in (lows, highs, states)]
    return head + b"".join(rows)


def token(index_id: bytes, low: int = 0, high: int = 0) -> bytes:
    return TOKEN.pack(b"LVTK", 1, bytes(8), index_id, bytes(3)) + struct.pack("<QQ", low, high)


def segment_header(data):
    if len(data) < HEAD.size:
        raise ValueError("short")
    magic, _, spec, index_id, segment_id, count, _ = HEAD.unpack_from(data)
    if magic != b"LVSG":
        raise ValueError("no segment")
    return {"index_id": index_id, "segment_id": segment_id, "n": count, "spec": spec}


def token_header(data):
    if data[:4] != b"LVTK":
        raise ValueError("no token")
    return {"index_id": data[13:29]}


def sweep(data, token):
    low, high = struct.unpack("<QQ", token[TOKEN.size :])
    count = segment_header(data)["n"]
    lows, highs, states = np.frombuffer(data[HEAD.size :][: 24 * count], "<u8").reshape(3, count)
    hit = ((lows <= high) & (highs >= low) & (states == 0)) | (states == 2)
    return np.packbits(hit, bitorder="little").tobytes()


class Keys:
    def __init__(self, ring, table):
        self._ring, self._table = ring, table

    def _mac(self, purpose, *parts):
        return self._ring.mac(purpose, b"|".join([str(self._table).encode(), *parts]))

    def index_id(self, column_id, generation, spec):
        return self._mac("index", str((column_id, generation)).encode(), spec)[:16]

    def segment(self, column_id, generation, spec, lows, highs, states):
        index_id = self.index_id(column_id, generation, spec)
        data = made_segment(spec, index_id, lows, highs, states)
        return data + self._mac("segment", data)

    def token(self, column_id, generation, spec, low, high, sides=False):
        return token(self.index_id(column_id, generation, spec), low, high)

    def opened(self, token):
        return [1, 2, 3]

    def check(self, column_id, generation, segment, token):
        if not hmac.compare_digest(segment[-32:], self._mac("segment", bytes(segment[:-32]))):
            raise errors.make("result.tampered", detail="a segment")

    def sign(self, purpose, context, data):
        return self._mac(purpose, context, data)

    def verify(self, purpose, context, data, tag):
        if not hmac.compare_digest(self._mac(purpose, context, data), tag):
            raise errors.make("result.tampered", detail="a signature")


class Ring:
    def __init__(self, ring):
        self._ring = ring
        self.seal_blob, self.open_blob = ring.seal_blob, ring.open_blob

    def lake_table(self, table_id):
        return Keys(self._ring, table_id)


def mappable(type_: str) -> bool:
    return type_ in {"BIGINT", "INTEGER", "DATE"}


def map_bounds(values, type_):
    if type_ == "DATE":
        values = values.cast(pa.int32())
    found = pc.min_max(values)
    if found["min"].as_py() is None:
        return None, None, values.null_count
    offset = 1 << 63
    return found["min"].as_py() + offset, found["max"].as_py() + offset, values.null_count


def write_parquet(keys, file_id, table):
    out = io.BytesIO()
    pq.write_table(table, out)
    data = out.getvalue()
    return data, keys.sign("file", file_id, data) + bytes(20), table.num_rows


def read_parquet(keys, file_id, key_metadata, size, reader, columns):
    data = reader([(0, size)])[0]
    keys.verify("file", file_id, data, key_metadata[:32])
    found = pq.read_table(io.BytesIO(data))
    return found.select([name for name in columns if name in found.column_names])


def install():
    from louver import _rust

    def module(name, **members):
        sys.modules[name] = made = types.ModuleType(name)
        vars(made).update(members)
        parent, _, leaf = name.rpartition(".")
        __import__(parent)
        setattr(sys.modules[parent], leaf, sys.modules[name])

    if hasattr(_rust, "mappable"):
        return
    module(
        "louver.untrusted.lake.sweep",
        sweep=sweep,
        segment_header=segment_header,
        token_header=token_header,
    )
    module(
        "louver.trusted.vault.index_keys",
        mappable=mappable,
        map_bounds=map_bounds,
        LakeKeys=Keys,
    )
    module("louver.trusted.lake.parquet", write_parquet=write_parquet, read_parquet=read_parquet)
