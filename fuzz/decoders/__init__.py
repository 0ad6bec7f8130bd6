"""What is fuzzed of the Python part: for each decoder one function that takes any bytes.

A function raises `louver.errors.Error` where the bytes are not what it decodes, and nothing else;
it checks what must hold of bytes that it accepts. See docs/fuzzing.md.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from louver import errors

CORPUS = Path(__file__).resolve().parent.parent / "corpus"


@dataclass(frozen=True, slots=True)
class Target:
    """A decoder under test.

    Attributes:
        name: of the target and of its corpus.
        run: decodes; raises `errors.Error` for other bytes.
        seeds: well-formed inputs, from which mutation starts.
    """

    name: str
    run: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]

    def check(self, data: bytes) -> None:
        """Run it: any error but the one that is meant for bytes from anywhere goes through."""
        with contextlib.suppress(errors.Error):
            self.run(data)

    def corpus(self) -> list[bytes]:
        """The inputs of the corpus: one a line, in hexadecimal."""
        text = (CORPUS / f"{self.name}.hex").read_text(encoding="ascii")
        return [bytes.fromhex(line) for line in text.splitlines()]


def pieces(data: bytes, most: int) -> list[bytes]:
    """An input as several arguments: each led by its length, two bytes."""
    results: list[bytes] = []
    while data and len(results) < most:
        size = int.from_bytes(data[:2], "little")
        results.append(data[2 : 2 + size])
        data = data[2 + size :]
    return results


def joined(*parts: bytes) -> bytes:
    """What `pieces` takes apart."""
    return b"".join(len(part).to_bytes(2, "little") + part for part in parts)


def all_targets() -> dict[str, Target]:
    """Every target by its name."""
    from fuzz.decoders import lake, requests, vault, wire

    targets = [*wire.TARGETS, *lake.TARGETS, *vault.TARGETS, *requests.TARGETS]
    return {target.name: target for target in targets}
