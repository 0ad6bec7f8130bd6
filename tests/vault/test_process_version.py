"""What a process knows of the version of a catalog is the newest one, or nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest

import louver
from louver.trusted.vault.process_version import Part
from louver.trusted.vault.writers import Versions
from louver.untrusted.engines.duckdb import DuckDBEngine
from louver.wire import control
from louver.wire.messages import Statement
from tests.generated import cases, generator


def parts(count: int, path: Path) -> list[Part]:
    return [Part(f"duckdb:{path}") for _ in range(count)]


def test_nothing_is_known_without_an_address() -> None:
    part = Part("")
    part.begin()
    part.looked(part.changes, 3)
    assert part.version is None


def test_a_look_from_before_a_save_says_nothing(tmp_path: Path) -> None:
    reader, writer = parts(2, tmp_path)
    changes = reader.changes
    writer.begin_saving()
    writer.end_saving()
    reader.looked(changes, 1)
    assert reader.version is None
    reader.looked(reader.changes, 2)
    assert writer.version == 2


def test_nothing_is_known_while_somebody_saves(tmp_path: Path) -> None:
    reader, first, second = parts(3, tmp_path)
    reader.looked(reader.changes, 1)
    first.begin_saving()
    first.begin_saving()
    second.begin_saving()
    first.end_saving()
    first.end_saving()
    reader.looked(reader.changes, 2)
    assert reader.version is None
    second.end_saving()
    reader.looked(reader.changes, 3)
    assert reader.version == 3


class _Overtaken(Part):
    """Another session saves a version just after this one has heard of the one before."""

    other: Part

    @property
    def version(self) -> int | None:
        known = super().version
        self.other.begin_saving()
        self.other.end_saving()
        return known


def test_what_was_known_is_no_look(tmp_path: Path) -> None:
    """A version that was saved between hearing of one and going on does not become the known one
    again.
    """
    path = tmp_path / "x.duckdb"
    engine = DuckDBEngine(path)
    engine.run(control.CATALOG_CREATE)
    row = (2, "id", "key", b"")
    engine.run(Statement(control.CATALOG_INSERT, row, kind="write"))
    reader, other = _Overtaken(f"duckdb:{path}"), Part(f"duckdb:{path}")
    reader.other = other
    other.looked(other.changes, 1)
    assert Versions(engine, reader).current() == 1
    assert Versions(engine, other).current() == 2
    assert other.version == 2
    engine.close()


@pytest.mark.parametrize("number", range(cases(200)))
def test_interleavings(number: int, tmp_path: Path) -> None:
    """Any order of looks and saves: what is known is what the database has committed."""
    random: Random = generator(f"process version {number}")
    clients, committed = parts(4, tmp_path), 0
    looking: dict[int, tuple[int, int]] = {}
    saving: set[int] = set()
    for _ in range(40):
        client, act = random.randrange(4), random.randrange(4)
        part = clients[client]
        if act == 0:
            looking[client] = (part.changes, committed)
        elif act == 1 and client in looking:
            part.looked(*looking.pop(client))
        elif act == 2:
            part.begin_saving()
            saving.add(client)
        elif client in saving:
            committed += random.randrange(2)
            saving.remove(client)
            if random.randrange(2):
                # Somebody looks between the commit and the client's word of it.
                other = clients[random.randrange(4)]
                other.looked(other.changes, committed)
            part.end_saving()
        assert clients[0].version in (None, committed)


def test_sessions_at_once_see_every_change_of_the_schema(tmp_path: Path, key_file: Path) -> None:
    """A column that one session adds is there for the next statement of each."""
    url = f"duckdb:///{tmp_path}/x.duckdb"
    wrong: list[Any] = []
    with louver.connect(url, keys=key_file) as first:
        first.execute("CREATE TABLE t (c0 INT ENC PRIMARY KEY)")
        added = threading.Event()
        count = [1]

        def reads() -> None:
            with louver.connect(url, keys=key_file) as other:
                while not added.is_set():
                    least = count[0]
                    row = other.execute("SELECT * FROM t WHERE c0 = ?", [1])
                    if len(row.description or ()) < least:
                        wrong.append((least, len(row.description or ())))

        threads = [threading.Thread(target=reads) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(1, 12):
            first.execute(f"ALTER TABLE t ADD COLUMN c{number} INT ENC")
            count[0] = number + 1
        added.set()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_another_process_may_have_had_the_file(tmp_path: Path, key_file: Path) -> None:
    """Between two sessions of this one."""
    url = f"duckdb:///{tmp_path}/x.duckdb"
    with louver.connect(url, keys=key_file) as client:
        client.execute("CREATE TABLE t (a INT ENC PRIMARY KEY); INSERT INTO t VALUES (1)")
        assert len(client.execute("FROM t").description or ()) == 1
    other = (
        f"import louver; c = louver.connect({url!r}, keys={str(key_file)!r});"
        " c.execute('ALTER TABLE t ADD COLUMN b INT ENC DEFAULT 5'); c.close()"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", other], check=True)
    with louver.connect(url, keys=key_file) as client, louver.connect(url, keys=key_file) as second:
        for session in (client, second):
            assert session.execute("SELECT * FROM t WHERE a = ?", [1]).fetchall() == [(1, 5)]
