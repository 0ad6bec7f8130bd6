"""Files of prepared tables: whole, damaged, dropped; one preparation for all who ask."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from louver import errors
from louver.untrusted.providers import preparing, tables
from louver.untrusted.providers.provider import Provider
from louver.wire.questions import Partial, Prepared, Protocol, Shape
from tests.generated import cases
from tests.providers.prepared import VERSION, stored

ASKED = Shape(Protocol.SELECT, "t", equal=("a",), partials=(Partial("count"),))


@pytest.fixture(scope="module")
def table_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("made")
    provider = Provider(stored(folder, [(at, "b", None, None, 0.5, 1) for at in range(9)]), folder)
    provider.prepare(ASKED, VERSION)
    provider.close()
    (path,) = folder.glob("*.table")
    return path.read_bytes()


@settings(max_examples=cases(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_damaged_files_are_no_tables(
    tmp_path: Path, table_bytes: bytes, data: st.DataObject
) -> None:
    damaged = bytearray(table_bytes)
    kind = data.draw(st.sampled_from(["flip", "cut", "more", "random", "none"]))
    if kind == "flip":
        for at in data.draw(st.lists(st.integers(0, len(table_bytes) - 1), min_size=1, max_size=4)):
            damaged[at] ^= data.draw(st.integers(1, 255))
    elif kind == "cut":
        damaged = damaged[: data.draw(st.integers(0, len(table_bytes) - 1))]
    elif kind == "more":
        damaged += b"\1" * 64
    elif kind == "random":
        damaged = bytearray(data.draw(st.binary(max_size=200)))
    path = tmp_path / "some.table"
    path.write_bytes(damaged)
    try:
        table = tables.read(path, verify=True)
    except errors.Error as error:
        refused = error
    else:
        # What is not covered by the digest is not read either: gaps between the arrays.
        path.write_bytes(table_bytes)
        whole = tables.read(path, verify=True)
        assert table.prepared == whole.prepared
        assert preparing.digest(table.prepared, table.sections) == whole.prepared.digest
        return
    assert kind != "none"
    assert refused.code == "wire.format"


def test_a_file_holds_what_was_written(tmp_path: Path, table_bytes: bytes) -> None:
    path = tmp_path / "some.table"
    path.write_bytes(table_bytes)
    table = tables.read(path, verify=True)
    again = tmp_path / "again.table"
    tables.write(again, table.protocol, table.prepared, table.sections)
    assert again.read_bytes() == table_bytes
    assert table.protocol is Protocol.SELECT
    assert table.array("points.0").tolist() == list(range(9))
    assert not table.array("records.0").flags.writeable


def test_a_shape_is_prepared_once_for_all_who_ask_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = Provider(stored(tmp_path, [(1, "b", None, None, 0.5, 1)]), tmp_path)
    counted: list[int] = []
    plain = preparing.prepare

    def prepare(*given: object) -> object:
        counted.append(1)
        return plain(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(preparing, "prepare", prepare)
    prepared: list[Prepared] = []
    threads = [
        threading.Thread(target=lambda: prepared.append(provider.prepare(ASKED, VERSION)))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(prepared) == 6
    assert len({table.digest for table in prepared}) == 1
    assert counted == [1]
    provider.close()


def test_whoever_listens_can_end_a_preparation(tmp_path: Path) -> None:
    provider = Provider(stored(tmp_path, [(1, "b", None, None, 0.5, 1)]), tmp_path)

    def report(stage: str, done: float) -> None:
        raise errors.make("interrupted")

    with pytest.raises(errors.Error) as caught:
        provider.prepare(ASKED, VERSION, report)
    assert caught.value.code == "interrupted"
    assert provider.prepare(ASKED, VERSION).points == 1
    assert not list(tmp_path.glob("scratch-*"))
    provider.close()
