"""A provider's core that computes nothing: it tests what stands around it.

A share says what is to happen: ``sleep:0.5`` waits, ``hold:FOLDER`` says in a folder that it has
begun and waits there to be let go, ``big:1000`` answers so many bytes, ``boom`` fails as a bug
would; any other one is answered with itself, backwards. A shape whose source says so sleeps or is
held too.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from louver import errors
from louver.untrusted.providers.dataset import Interruption, LoadedData, Told
from louver.wire import question_codec as codec
from louver.wire import questions as q

SECRET = "a text that stays here"
CODES = q.KeyCodes((q.Code("BIGINT", "offset", 0, 1, 8),), None, b"", False, 8)


class Provider:
    def __init__(self, loaded: LoadedData, cache: Path, limits: Any) -> None:
        self.loaded = loaded
        self.shapes: set[bytes] = set()

    def prepare(
        self, shape: q.Shape, version: bytes, report: Told | None,
        interruption: Interruption | None = None,
    ) -> q.Prepared:  # fmt: skip
        ended = interruption or Interruption()
        if shape.source.startswith("sleep:"):
            for step in range(4):
                time.sleep(float(shape.source[6:]) / 4)
                ended.check()
                if report is not None:
                    report("sleeping", (step + 1) / 4)
        elif shape.source.startswith("hold:"):
            hold(Path(shape.source[5:]), ended, report)
        elif shape.source not in {table.name for table in self.loaded.tables}:
            raise errors.make("provider.refused", detail=f"there is no table {shape.source}")
        name = codec.shape_id(shape)
        self.shapes.add(name)
        levels = (q.Level(3, 8, 1, 16),)
        return q.Prepared(version, name, b"d" * 32, CODES, (), levels, 3)

    def known(self, shape_id: bytes) -> q.Prepared | None:
        return None

    def answer(self, ask: q.Ask, interruption: Interruption | None = None) -> q.Reply:
        ended = interruption or Interruption()
        if ask.shape_id not in self.shapes:
            raise errors.make("provider.shape")
        return q.Reply(b"".join(self._part(share, ended) for share in ask.shares))

    def close(self) -> None:
        self.shapes.clear()

    def _part(self, share: bytes, ended: Interruption) -> bytes:
        word, _, number = share.partition(b":")
        if word == b"sleep":
            time.sleep(float(number))
        if word == b"hold":
            hold(Path(number.decode()), ended)
        if word == b"big":
            return bytes(int(number))
        if word == b"boom":
            raise RuntimeError(SECRET)
        return share[::-1]


def hold(folder: Path, ended: Interruption, report: Told | None = None) -> None:
    """Wait for the file ``go``; `tests.providers.services.Held` is the other side."""
    (folder / f"begun-{os.urandom(8).hex()}").touch()
    while not (folder / "go").exists():
        time.sleep(0.02)
        ended.check()
        if report is not None:
            report("holding", 0.5)
