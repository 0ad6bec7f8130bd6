"""Writers that stop half-way, disks that fill up, catalogs that do not answer: a table stays what
it was or becomes what it should be, and what is left over can be tidied up.
"""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.utils.concurrent import ExecutorFactory

from louver import errors
from louver.trusted.lake.store import LakeStore
from louver.trusted.vault.catalog import Table
from louver.untrusted.lake.catalogs import GuardedSql
from louver.untrusted.lake.objects import LocalObjects
from tests.lake.tables import new_store, new_table, numbers, once, read, rows
from tests.sources import ROOT


class Stopped(BaseException):
    """The process ends here; nobody catches it."""


@pytest.fixture
def store(tmp_path: Path) -> LakeStore:
    return new_store(tmp_path)


@pytest.fixture
def table(store: LakeStore) -> Table:
    table = new_table(store)
    store.append(table, once(rows(0, 30)), 10)
    return table


def stop_at(monkeypatch, count: int, error: BaseException, after: bool = False) -> None:
    """The n-th file that is written from now on is the last, or is not written any more.

    A process that has stopped does not tidy up either.
    """
    left = [count]
    create, delete = LocalObjects.create, LocalObjects.delete

    def creating(self, path, data):
        left[0] -= 1
        last = left[0] <= 0
        if last and not after:
            raise error
        create(self, path, data)
        if last:
            raise error

    def deleting(self, path):
        if left[0] <= 0 and isinstance(error, Stopped):
            raise error
        delete(self, path)

    monkeypatch.setattr(LocalObjects, "create", creating)
    monkeypatch.setattr(LocalObjects, "delete", deleting)


def join_threads() -> None:
    """PyIceberg's threads go on when the writer has stopped; all others are joined by then."""
    ExecutorFactory.get_or_create().shutdown()
    ExecutorFactory._instance = None


@dataclass(frozen=True)
class Copies:
    """A folder with a table of 30 rows, as often as it is wanted, always in the same place: paths
    in metadata are absolute.
    """

    folder: Path
    table: Table
    copy: Path

    def fresh(self) -> LakeStore:
        shutil.rmtree(self.folder)
        shutil.copytree(self.copy, self.folder)
        return new_store(self.folder)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    folder = tmp_path_factory.mktemp("copies")
    (folder / "now").mkdir()
    store = new_store(folder / "now")
    table = new_table(store)
    store.append(table, once(rows(0, 30)), 10)
    shutil.copytree(folder / "now", folder / "copy")
    return Copies(folder / "now", table, folder / "copy")


CHANGES = {
    "append": lambda s, t: s.append(t, once(rows(100, 20)), 10),
    "replace": lambda s, t: s.replace(
        t, s.snapshot(t), pa.array([0, 1 << 32], pa.int64()), once(rows(100, 5))
    ),
    "compact": lambda s, t: s.compact(t, 7),
    "reindex": lambda s, t: s.reindex(t),
}
AFTER = {
    "append": [*range(30), *range(100, 120)],
    "replace": [n for n in range(30) if n not in {0, 10}] + list(range(100, 105)),
    "compact": list(range(30)),
    "reindex": list(range(30)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_writer_that_stops_anywhere_leaves_the_old_rows(
    copies: Copies, monkeypatch, change: str, after: bool
) -> None:
    table = copies.table
    for step in range(1, 40):
        store = copies.fresh()
        with monkeypatch.context() as patch:
            stop_at(patch, step, Stopped(), after)
            try:
                CHANGES[change](store, table)
            except Stopped:
                join_threads()
            else:
                assert step > 3
                assert numbers(read(store, table)) == AFTER[change]
                return
        fresh = new_store(copies.folder)
        assert numbers(read(fresh, table)) == list(range(30))
        paths = set(fresh.warehouse.objects.list("louver/t5/"))
        assert fresh.clean(table) == [], "they could be somebody's who is still writing"
        gone = set(fresh.clean(table, grace_seconds=0))
        assert set(fresh.warehouse.objects.list("louver/t5/")) == paths - gone
        assert numbers(read(fresh, table)) == list(range(30))
        CHANGES[change](fresh, table)
        assert numbers(read(fresh, table)) == AFTER[change]
        assert fresh.clean(table, grace_seconds=0) == []
    pytest.fail("the change never ended")


@pytest.mark.parametrize("change", CHANGES)
def test_a_full_disk_is_named_and_leaves_nothing(
    store: LakeStore, table: Table, monkeypatch, change: str
) -> None:
    before = set(store.warehouse.objects.list("louver/t5/"))
    full = errors.make("disk.full", place="the disk", detail=errno.errorcode[errno.ENOSPC])
    for step in range(1, 40):
        with monkeypatch.context() as patch:
            stop_at(patch, step, full)
            try:
                CHANGES[change](store, table)
            except errors.OperationalError as error:
                code = error.code
            else:
                assert step > 3
                return
        assert code == "disk.full", step
        left = set(store.warehouse.objects.list("louver/t5/")) - before
        # PyIceberg leaves its own files behind; ours are gone.
        assert all("louver-" not in path and "/data/" not in path for path in left), (step, left)
        assert numbers(read(store, table)) == list(range(30))
    pytest.fail("the change never ended")


def test_a_lost_answer_is_not_a_second_commit(store: LakeStore, table: Table, monkeypatch) -> None:
    commit = GuardedSql.commit_table

    def losing(self, *args, **options):
        commit(self, *args, **options)
        raise CommitStateUnknownException("the connection broke")

    with monkeypatch.context() as patch:
        patch.setattr(GuardedSql, "commit_table", losing)
        store.append(table, once(rows(100, 5)))
    assert numbers(read(store, table)) == [*range(30), *range(100, 105)]


def test_an_answer_that_nobody_knows_deletes_nothing(
    store: LakeStore, table: Table, monkeypatch
) -> None:
    def failing(self, *args, **options):
        raise CommitStateUnknownException("the connection broke")

    before = set(store.warehouse.objects.list("louver/t5/data/"))
    with monkeypatch.context() as patch:
        patch.setattr(GuardedSql, "commit_table", failing)
        with pytest.raises(errors.OperationalError, match="did not confirm"):
            store.append(table, once(rows(100, 5)))
    assert len(set(store.warehouse.objects.list("louver/t5/data/")) - before) == 1
    assert numbers(read(store, table)) == list(range(30))


#: Writers in processes of their own, forked when everything is loaded and nothing runs yet.
WRITERS = """
    import os, sys
    from pathlib import Path
    from tests.lake.tables import new_store, once, rows, table_of
    writers = []
    for number in range(3):
        if not (writer := os.fork()):
            store = new_store(Path(sys.argv[1]))
            table = table_of(store)
            for place in range(4):
                store.append(table, once(rows(1000 * number + 10 * place, 10)), 5)
            os._exit(0)
        writers.append(writer)
    sys.exit(any(os.waitpid(writer, 0)[1] for writer in writers))
"""


def test_writers_in_processes(store: LakeStore, tmp_path: Path) -> None:
    table = new_table(store)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WRITERS), str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    wanted = [1_000 * number + index for number in range(3) for index in range(40)]
    assert numbers(read(store, table)) == wanted
    assert store.snapshot(table).sequence == 12
