"""A session whose messages are recorded, and canaries: names and values that are searched for in
the messages and in the server's files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from louver import errors
from louver.trusted.client.connect import opened
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.duckdb import DuckDBEngine
from louver.wire import codec
from louver.wire.messages import Statement
from louver.wire.tap import Tap

NAMES = {letter: f"quokka_{letter * 3}" for letter in "abcde"}
OFFSET = 8_317_401_000_000
TEXT = "an-axolotl-in-the-basement"
_CHARSET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def canaries(sql: str) -> str:
    """The statement with canary names, and with all numbers of three digits and more moved far up,
    so that they compare with each other as before.
    """
    pieces, position = [], 0
    for token in lexer.tokens(sql):
        pieces.append(sql[position : token.start])
        word = sql[token.start : token.end + 1]
        if word.lower() in NAMES:
            word = NAMES[word.lower()]
        elif word.isdigit() and int(word) >= 100:
            word = str(OFFSET + int(word))
        elif word.upper() == "INTEGER":
            word = "BIGINT"
        pieces.append(word)
        position = token.end + 1
    return "".join(pieces) + sql[position:]


class RecordedSession:
    """A session behind a tap."""

    def __init__(
        self,
        path: Path | str,
        key_file: Path,
        policy: Policy | str,
        *,
        modulus_bits: int = 2048,
    ) -> None:
        self.path = Path(path)
        self.engine = DuckDBEngine(path)
        self.tap = Tap(self.engine)
        policy = Policy(policy) if isinstance(policy, str) else policy
        keys = KeyRing.open(key_file)
        self.session = Session(self.tap, keys, policy, modulus_bits=modulus_bits, opener=opened)

    def execute(self, sql: str) -> None:
        try:
            self.session.execute(sql)
        except errors.Error:
            return

    def traces(self) -> dict[str, bytes]:
        """The bytes sent to the server, and the bytes of the database's files."""
        self.engine.run(Statement("CHECKPOINT", kind="ddl"))
        traces = {"sent": b"\0".join(codec.encode(message) for message in self.tap.sent())}
        numbers = [str(c) for m in self.tap.sent() if isinstance(m, Statement) for c in m.constants]
        traces["constants"] = "\0".join(numbers).encode()
        for file in self.path.parent.glob(self.path.name + "*"):
            traces[file.name] = file.read_bytes() if file.is_file() else b""
        return traces

    def holds(self, *needles: bytes) -> list[tuple[bytes, str]]:
        """The needles that occur, and the trace where each does."""
        traces = self.traces()
        likely = stems(needles)
        return [
            (needle, trace)
            for trace, data in traces.items()
            if any(stem in data for stem in likely)
            for needle in needles
            if needle in data
        ]


def stems(needles: Sequence[bytes]) -> set[bytes]:
    """Texts of which every needle contains one. They are few where needles are alike, as numbers
    that follow each other are; where none of them occurs, no needle does.
    """
    shortest = [min((n for n in needles if n in needle), key=len) for needle in needles]
    parts = Counter(part for needle in {*shortest} for part in (needle[:-1], needle[1:]))
    return {
        min((needle[:-1], needle[1:]), key=lambda part: -parts[part]) if len(needle) > 6 else needle
        for needle in shortest
    }


def needles(value: int) -> list[bytes]:
    """The encodings of a number that are searched for."""
    return [str(value).encode(), value.to_bytes(8, "little"), value.to_bytes(8, "big")]


def key_bytes(path: Path) -> bytes:
    """The root secret of a key file, decoded here by the rules of Bech32."""
    line = next(line for line in path.read_text().splitlines() if line.startswith("LOUVER-KEY-"))
    data = [_CHARSET.index(c) for c in line.lower().rsplit("1", 1)[1]][:-6]
    number = 0
    for value in data:
        number = number << 5 | value
    extra = len(data) * 5 % 8
    return (number >> extra).to_bytes(len(data) * 5 // 8, "big")
