"""What lies sealed beside the data, as it is after the seal was opened; and the pins at home."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any, cast

from fuzz.decoders import Target, joined, pieces
from louver.trusted.executor.ledger import Ledger
from louver.trusted.vault.catalog import Catalog, Column, Table
from louver.trusted.vault.pin import Pin


class OpenKeys:
    """Keys that seal nothing: every body opens as itself, as if the key's holder had made it."""

    key_id = "0" * 16

    def seal_blob(self, purpose: str, context: bytes, plain: bytes) -> bytes:
        return plain

    def open_blob(self, purpose: str, context: bytes, sealed: bytes) -> bytes:
        return sealed

    def mac(self, purpose: str, data: bytes) -> bytes:
        return b"m" * 32


def _catalog(data: bytes) -> None:
    if data[:1] == b"\0":
        Catalog.from_bytes(data[1:])
        return
    results = Catalog.from_json(data[1:])
    if Catalog.from_json(results.to_json()).to_json() != results.to_json():
        raise AssertionError("a catalog that changes on its way")


def _catalog_seeds() -> list[bytes]:
    result = Catalog.create()
    result.version = 1
    plain = Column(id=1, name="age", type="INTEGER")
    sealed = Column(id=2, name="name", type="VARCHAR", encrypted=True)
    result.add(Table(id=1, schema="main", name="staff", columns=[plain, sealed]))
    return [
        b"\0" + result.to_bytes(),
        b"\1" + Catalog.create().to_json(),
        b"\1" + result.to_json(),
    ]


class _Server:
    """An engine that answers every question with the records of an input."""

    address = ""
    in_transaction = False

    def __init__(self, bodies: list[bytes]) -> None:
        self._bodies = bodies

    def run(self, _: object) -> int:
        return 0

    def query(self, _: object) -> _Server:
        return self

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows without Arrow, which would take half of the time."""
        return [{"sequence": at, "body": body} for at, body in enumerate(self._bodies, 1)]


def _ledger(data: bytes) -> None:
    keys = OpenKeys()
    ledger = Ledger(cast("Any", _Server(pieces(data, 3))), keys, Pin(keys, "fuzz", None))
    ledger.table()
    ledger.facts()


def _ledger_seeds() -> list[bytes]:
    def record(previous: str, *facts: list[Any]) -> bytes:
        body = {
            "previous": previous,
            "when": "2026-01-02T03:04:05+00:00",
            "statement": "SELECT ?",
            "facts": list(facts),
        }
        return json.dumps(body, separators=(",", ":")).encode()

    fact = ["staff", ["name"], "equality", "eq", "equal values show"]
    first = record("0" * 64, fact)
    head = hashlib.sha256(bytes(32) + (1).to_bytes(8, "big") + first).hexdigest()
    return [joined(record("0" * 64)), joined(first), joined(first, record(head, fact))]


class _File:
    """A path whose file holds an input."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def open(self, _: str) -> io.BytesIO:
        return io.BytesIO(self._data)

    def __str__(self) -> str:
        return "pin"


def _pin(data: bytes) -> None:
    pin = Pin(OpenKeys(), "fuzz", cast("Path", _File(data)))
    pin.read()
    pin.lake_seen(1)
    pin.read().check_catalog(1 << 62, "", "", "here")


def _pin_seeds() -> list[bytes]:
    bodies = ['{"version":3,"hash":"ab","ledger_length":1}', '{"lake":{"1":[4,"ff"]},"epoch":2}']
    return [
        json.dumps({"format": 1, "body": body, "mac": (b"m" * 32).hex()}).encode()
        for body in bodies
    ]


TARGETS = [
    Target("catalog", _catalog, _catalog_seeds),
    Target("ledger", _ledger, _ledger_seeds),
    Target("pin", _pin, _pin_seeds),
]
