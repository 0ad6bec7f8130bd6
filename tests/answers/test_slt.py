"""The sqllogictest corpus, with every column ENC, under two profiles: every answer is plaintext
DuckDB's, and nothing that was sent or lies in the server's files holds a name or a value.

The corpus lies outside of the project; where it is not there, a part of it that the project
makes itself runs instead.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

import louver
from tests.generated import is_due
from tests.recorded import NAMES, RecordedSession, canaries, key_bytes, needles
from tests.slt import script
from tests.slt.runner import Run
from tests.slt.sides import Borrowed

CORPUS = Path(__file__).parents[3] / "shared" / "data" / "slt"
OWN = Path(__file__).parents[1] / "slt"
#: The queries of a file are many and alike: one of so many runs at each commit, per profile.
PARTS = 12
FILES = sorted(CORPUS.glob("*.test.xz")) + sorted(OWN.glob("*.test"))


@pytest.mark.parametrize("profile", ["sdb", "sealed"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_corpus(path: Path, profile: str, tmp_path: Path, key_file: Path) -> None:
    watched = RecordedSession(tmp_path / "watched.duckdb", key_file, profile)
    entries = [replace(entry, sql=canaries(entry.sql)) for entry in script.read(path)]
    # Each query of the sixth that is due runs under one of the two profiles.
    mine = 0 if profile == "sdb" else PARTS // 2
    entries = [
        entry for number, entry in enumerate(entries)
        if entry.kind == "statement" or is_due(number + mine, PARTS)
    ]  # fmt: skip
    sides = (
        Borrowed(tmp_path / "a", louver.Connection(watched.session)),
        Borrowed(tmp_path / "b", duckdb.connect()),
    )
    # What these files state are another engine's answers.
    differences = Run(*sides, strict=False).run(entries)
    assert not differences, "\n".join(str(entry) for entry in differences[:5])
    values = {int(v) for entry in entries for v in re.findall(r"\b8317401\d{6}\b", entry.sql)}
    hidden = [needle for value in values for needle in needles(value)]
    hidden += [name.encode() for name in NAMES.values()]
    hidden += [name.upper().encode() for name in NAMES.values()]
    secret = key_bytes(key_file)
    hidden += [secret[start : start + 8] for start in range(0, 32, 8)]
    assert not watched.holds(*hidden)
    watched.session.close()
