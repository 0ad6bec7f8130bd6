"""Files of a warehouse: ranges, whole or not at all, and no way out of the root."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

from louver import errors
from louver.untrusted.lake import objects as lake_objects
from louver.untrusted.lake.objects import LocalObjects, Objects
from louver.untrusted.lake.stores import ByteCache, FileIOObjects


def local(path: Path) -> Objects:
    return LocalObjects(path / "w")


def through_pyiceberg(path: Path) -> Objects:
    return FileIOObjects(PyArrowFileIO(), f"file://{path}/w/")


@pytest.fixture(params=[local, through_pyiceberg])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    make: Callable[[Path], Objects] = request.param
    return make(tmp_path)


def code(error: pytest.ExceptionInfo[errors.Error]) -> str:
    return error.value.code


def test_ranges_and_whole_files(objects: Objects) -> None:
    objects.create("t1/data/a.parquet", b"0123456789")
    objects.create("t1/metadata/empty", b"")
    assert objects.size("t1/data/a.parquet") == 10
    assert objects.read("t1/data/a.parquet", 2, 3) == b"234"
    assert objects.read("t1/data/a.parquet", 10, 0) == b""
    ranges = [("t1/data/a.parquet", 9, 1), ("t1/data/a.parquet", 0, 2), ("t1/metadata/empty", 0, 0)]
    assert objects.read_many(ranges) == [b"9", b"01", b""]
    for _ in range(2):
        assert bytes(objects.map("t1/data/a.parquet")) == b"0123456789"
        assert bytes(objects.map("t1/metadata/empty")) == b""
    assert objects.modified("t1/data/a.parquet") > 1.7e9
    assert list(objects.list("t1")) == ["t1/data/a.parquet", "t1/metadata/empty"]
    assert list(objects.list("")) == list(objects.list("t1/"))
    assert list(objects.list("t2")) == []
    assert (objects.traffic.bytes_out, objects.traffic.statements > 5) == (10, True)
    objects.delete("t1/data/a.parquet")
    objects.delete("t1/data/a.parquet")
    assert list(objects.list("t1/data")) == []


def test_files_are_written_once(objects: Objects) -> None:
    objects.create("a", b"first")
    with pytest.raises(errors.IntegrityError) as caught:
        objects.create("a", b"second")
    assert code(caught) == "lake.exists"
    assert objects.read("a", 0, 5) == b"first"


def test_what_is_not_there(objects: Objects) -> None:
    objects.create("a", b"four")
    for attempt in (lambda: objects.read("b", 0, 1), lambda: objects.size("x/y")):
        with pytest.raises(errors.OperationalError) as missing:
            attempt()
        assert code(missing) == "lake.missing"
    with pytest.raises(errors.OperationalError):
        objects.map("b")
    for offset, length in ((0, 5), (4, 1), (1 << 40, 1), (0, 1 << 60)):
        if length > 1 << 40 and isinstance(objects, FileIOObjects):
            continue
        with pytest.raises(errors.VerificationError) as short:
            objects.read("a", offset, length)
        assert code(short) == "lake.short"


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/./b", "a/", "a\0b", "a\\b", "x" * 5000,
     "a\nb", "\udcff"],
)  # fmt: skip
def test_no_path_leads_out(objects: Objects, path: str) -> None:
    for attempt in (
        lambda: objects.read(path, 0, 1), lambda: objects.size(path), lambda: objects.map(path),
        lambda: objects.create(path, b""), lambda: objects.delete(path),
        lambda: objects.read_many([(path, 0, 0)]),
    ):  # fmt: skip
        with pytest.raises(errors.OperationalError) as caught:
            attempt()
        assert code(caught) == "lake.path"


def test_no_link_leads_out(tmp_path: Path) -> None:
    objects = LocalObjects(tmp_path / "w")
    objects.create("a/file", b"inside")
    (tmp_path / "secret").write_text("outside")
    os.symlink(tmp_path / "secret", tmp_path / "w/link")
    os.symlink(tmp_path, tmp_path / "w/folder")
    os.mkfifo(tmp_path / "w/pipe")
    paths = ("link", "folder/secret", "pipe", "a", "a/file/x")
    for path in paths:
        for attempt in (objects.size, objects.map):
            with pytest.raises(errors.OperationalError) as caught:
                attempt(path)
            assert code(caught) == "lake.path", path
    for path in ("folder/new", "folder/deep/new"):
        with pytest.raises(errors.OperationalError):
            objects.create(path, b"")
    with pytest.raises(errors.OperationalError):
        objects.delete("folder/secret")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["secret", "w"]
    # A link may go, without what it leads to.
    objects.delete("link")
    assert (tmp_path / "secret").exists()
    assert not any("secret" in path for path in objects.list(""))


def test_a_link_to_the_root_is_fine(tmp_path: Path) -> None:
    LocalObjects(tmp_path / "w").create("a", b"x")
    os.symlink(tmp_path / "w", tmp_path / "other")
    assert LocalObjects(tmp_path / "other").read("a", 0, 1) == b"x"


def test_one_of_many_writers_wins(tmp_path: Path) -> None:
    objects = LocalObjects(tmp_path)
    won: list[int] = []

    def work(number: int) -> None:
        try:
            objects.create("deep/er/name", bytes([number]) * 100_000)
        except errors.IntegrityError:
            return
        won.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert objects.read("deep/er/name", 0, 100_000) == bytes(won) * 100_000
    assert list(objects.list("")) == ["deep/er/name"]


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    objects = LocalObjects(tmp_path)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(errors.OperationalError) as caught:
        objects.create("t1", b"data")
    monkeypatch.undo()
    assert code(caught) == "disk.full"
    assert list(objects.list("")) == []


def test_without_links_a_name_is_still_taken_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    objects = LocalObjects(tmp_path)
    objects.create("a", b"first")
    with pytest.raises(errors.IntegrityError):
        objects.create("a", b"second")
    assert objects.read("a", 0, 5) == b"first"
    assert list(objects.list("")) == ["a"]


def test_maps_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_objects, "_MAPS", 3)
    objects = LocalObjects(tmp_path)
    held = []
    for number in range(6):
        objects.create(str(number), bytes([number]) * 10)
        held.append(objects.map(str(number)))
    assert len(objects._maps) == 3
    assert bytes(held[0]) == bytes(10)
    objects.delete("5")
    assert len(objects._maps) == 2


def test_the_cache_is_bounded() -> None:
    cache, reads = ByteCache(25), []

    def fetch(path: str, size: int = 10) -> bytes:
        reads.append(path)
        return bytes(size)

    for path in ("a", "b", "a", "c", "a", "b"):
        cache.get(path, lambda path=path: fetch(path))  # type: ignore[misc]
    assert reads == ["a", "b", "c", "b"]
    assert cache.get("large", lambda: fetch("large", 30)) == bytes(30)
    assert cache._held == 20
    cache.drop("b")
    cache.drop("never")
    assert cache._held == 10
