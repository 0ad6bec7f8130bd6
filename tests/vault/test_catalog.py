"""The catalog: its form, its store, and every way in which a server might cheat with it."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver import errors
from louver.trusted.vault import bounds, catalog_text
from louver.trusted.vault.catalog import Catalog, Column, HomeObject, Table
from louver.trusted.vault.catalog_store import CatalogStore
from louver.trusted.vault.pin import Keys, Pins
from louver.untrusted.engines.duckdb import DuckDBEngine, place_of
from louver.wire.messages import Statement
from louver.wire.tap import Tap


def filled() -> Catalog:
    catalog = Catalog("00" * 16, next_table_id=77)
    table = Table("Main", 'St"aff', catalog.take_table_id(), helper_one="h1")
    table.columns = [
        Column("Name", "VARCHAR", catalog.take_column_id(), True, "sealed", "access"),
        Column("Pay", "HUGEINT", catalog.take_column_id(), True, "sdb", "plaintext", 3),
    ]
    table.columns[1].stored = {"sdb": "c_1f", "rnd": "c_2a"}
    bounds.widen(table.columns[1], -(1 << 127), (1 << 126) - 1, has_null=True)
    table.kept = {"ff": "p_1"}
    catalog.add(table)
    catalog.objects.append(HomeObject("view", "main", "v", "CREATE VIEW v AS SELECT 1"))
    catalog.sdb_hint = b"\x00\xff"
    catalog.settings = {"profile": "sealed", "list": [1, None]}
    return catalog


def test_bytes_round_trip() -> None:
    catalog = filled()
    again = Catalog.from_bytes(catalog.to_bytes())
    assert again == catalog
    assert again.fingerprint() == catalog.fingerprint()
    assert again.table("MAIN", 'st"AFF') is not None


def test_copies_share_nothing() -> None:
    catalog = filled()
    copy = catalog.copy()
    assert copy == catalog
    table = copy.table("main", 'st"aff')
    assert table is not None
    table.columns[1].stored["rnd"] = "other"
    table.kept.clear()
    copy.settings["list"].append(2)
    copy.objects[0].sql = ""
    assert catalog == Catalog.from_bytes(catalog.to_bytes())
    assert copy != catalog


def test_names_and_bounds() -> None:
    catalog = filled()
    table = catalog.table("main", 'st"aff')
    assert table is not None
    assert table.local_name == '"Main"."St""aff"'
    assert table.label == 'St"aff'
    assert table.has_encrypted
    pay = table.column("PAY")
    assert pay is not None
    assert table.column("nope") is None
    bounds.widen(pay, 0, 5, has_null=False)
    assert (pay.minimum, pay.maximum, pay.has_null) == (-(1 << 127), (1 << 126) - 1, True)
    bounds.widen(pay, 0, (1 << 127) - 1, has_null=False)
    assert (pay.minimum, pay.maximum, pay.has_null) == (-(1 << 127), (1 << 127) - 1, True)


@settings(deadline=None)
@given(
    st.none() | st.integers(-(10**39) + 1, 10**39 - 1),
    st.none() | st.integers(-(10**39) + 1, 10**39 - 1),
    st.booleans(),
    st.lists(st.text("0123456789abcdef", min_size=16, max_size=16), max_size=40),
)
def test_its_length_tells_nothing_of_values(
    low: int | None, high: int | None, has_null: bool, marks: list[str]
) -> None:
    lengths = set()
    for values in ((None, None, False, []), (low, high, has_null, marks)):
        catalog = filled()
        for table in catalog.tables.values():
            for column in table.columns:
                if column.encrypted:
                    column.minimum, column.maximum, column.has_null, seen = values
                    column.seen = []
                    column.see(seen)
        text = catalog.to_json()
        lengths.add((len(text), len(catalog_text.pack(text))))
        assert Catalog.from_json(text).to_json() == text
    assert len(lengths) == 1


def test_two_databases_of_one_key_start_at_other_table_ids_as_long() -> None:
    numbers = {str(Catalog.create().next_table_id) for _ in range(20)}
    assert (len(numbers), {len(number) for number in numbers}) == (20, {9})


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_catalog_or_an_error(data: bytes) -> None:
    for candidate in (data, catalog_text.pack(data)):
        with pytest.raises(errors.CatalogError):
            Catalog.from_bytes(candidate)


@settings(deadline=None)
@given(st.data())
def test_a_catalog_with_a_changed_field_is_an_error_or_a_catalog(data: st.DataObject) -> None:
    text = filled().to_json()
    at = data.draw(st.integers(0, len(text) - 1))
    size = data.draw(st.integers(0, 20))
    changed = text[:at] + data.draw(st.binary(max_size=8)) + text[at + size :]
    with contextlib.suppress(errors.CatalogError):
        Catalog.from_json(changed)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cloud.duckdb"


def opened(path: Path, keys: Keys) -> tuple[DuckDBEngine, CatalogStore, Catalog]:
    engine = DuckDBEngine(path)
    store = CatalogStore(engine, keys)
    return engine, store, store.load()


def saved(store: CatalogStore, catalog: Catalog, note: str) -> None:
    catalog.settings["note"] = note
    store.save(catalog)
    store.committed()


def test_a_new_database_is_found_again(path: Path, keys: Keys) -> None:
    engine, store, catalog = opened(path, keys)
    assert store.current_version() == catalog.version == 1
    saved(store, catalog, "a canary in the catalog")
    engine.close()
    assert b"canary" not in path.read_bytes()
    engine, store, again = opened(path, keys)
    assert again == catalog
    assert again.fingerprint() == catalog.fingerprint()


def test_versions_chain(path: Path, keys: Keys) -> None:
    _, store, catalog = opened(path, keys)
    first = catalog.fingerprint()
    saved(store, catalog, "x")
    assert catalog.previous == first
    assert catalog.version == store.current_version() == 2


def test_a_rollback_of_the_user_leaves_the_old_version(path: Path, keys: Keys) -> None:
    engine, store, catalog = opened(path, keys)
    draft = catalog.copy()
    engine.begin()
    store.save(draft)
    store.save(draft)
    assert (draft.version, store.current_version()) == (3, 3)
    engine.rollback()
    store.rolled_back()
    assert store.current_version() == catalog.version == 1
    saved(store, catalog, "y")
    assert store.load() == catalog
    with pytest.raises(errors.OperationalError):
        store.save(draft)


def test_reading_ones_own_draft_pins_nothing(path: Path, keys: Keys) -> None:
    engine, store, catalog = opened(path, keys)
    engine.begin()
    store.save(catalog.copy())
    assert store.load().version == 2
    other = CatalogStore(engine, keys)
    assert other.load().version == 2
    engine.rollback()
    store.rolled_back()
    assert store.load().version == 1
    engine.close()
    assert opened(path, keys)[2].version == 1


def test_two_clients_conflict_and_one_wins(path: Path, keys: Keys) -> None:
    engine, store, catalog = opened(path, keys)
    side = engine.side()
    other = CatalogStore(side, keys)
    theirs = other.load()
    saved(store, catalog, "mine")
    assert other.current_version() == 2
    with pytest.raises(errors.OperationalError) as caught:
        other.save(theirs)
    assert caught.value.code == "catalog.conflict"
    assert theirs.version == 1
    theirs = other.load()
    engine.begin()
    store.save(catalog)
    with pytest.raises(errors.OperationalError) as caught:
        other.save(theirs)
    assert caught.value.code == "catalog.conflict"
    engine.commit()
    store.committed()
    assert other.load().version == 3


def test_a_wrong_key_says_so(path: Path, keys: Keys, other_keys: Keys) -> None:
    opened(path, keys)[0].close()
    with pytest.raises(errors.KeyFileError) as caught:
        opened(path, other_keys)
    assert caught.value.code == "key.wrong"


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("UPDATE louver_catalog SET body = body || 'x'::BLOB", "catalog.tampered"),
        ("UPDATE louver_catalog SET version = version + 1", "catalog.tampered"),
        ("UPDATE louver_catalog SET version = -5", "catalog.format"),
        ("UPDATE louver_catalog SET database_id = 'other'", "catalog.tampered"),
        ("UPDATE louver_catalog SET key_id = 'other'", "key.wrong"),
        ("UPDATE louver_catalog SET body = ''::BLOB", "catalog.tampered"),
        ("DELETE FROM louver_catalog", "catalog.format"),
        ("INSERT INTO louver_catalog SELECT * FROM louver_catalog", "catalog.format"),
        ("DROP TABLE louver_catalog", "catalog.missing"),
    ],
)
def test_tampering_is_found(path: Path, keys: Keys, sql: str, code: str) -> None:
    engine, store, catalog = opened(path, keys)
    saved(store, catalog, "z")
    engine.run(Statement(sql, kind="write"))
    engine.close()
    with pytest.raises(errors.DatabaseError) as caught:
        opened(path, keys)
    assert caught.value.code == code


def test_an_older_state_is_found(path: Path, tmp_path: Path, keys: Keys) -> None:
    engine, store, catalog = opened(path, keys)
    engine.close()
    shutil.copy(path, tmp_path / "old")
    engine, store, catalog = opened(path, keys)
    saved(store, catalog, "newer")
    engine.close()
    shutil.copy(tmp_path / "old", path)
    with pytest.raises(errors.VerificationError) as caught:
        opened(path, keys)
    assert caught.value.code == "catalog.rollback"


@pytest.mark.parametrize("more", [0, 1])
def test_another_history_is_found(
    path: Path, tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    """Two clients that were shown different states, of the same and of the next version."""
    opened(path, keys)[0].close()
    shutil.copy(path, tmp_path / "fork")
    engine, store, catalog = opened(path, keys)
    saved(store, catalog, "here")
    engine.close()
    shutil.copy(tmp_path / "fork", path)
    with monkeypatch.context() as patched:
        patched.setenv("LOUVER_STATE_DIR", str(tmp_path / "elsewhere"))
        engine, store, catalog = opened(path, keys)
        for _ in range(1 + more):
            saved(store, catalog, "here")
        engine.close()
    with pytest.raises(errors.VerificationError) as caught:
        opened(path, keys)
    assert caught.value.code == "catalog.rollback"


def test_another_database_in_its_place_is_found(path: Path, tmp_path: Path, keys: Keys) -> None:
    opened(path, keys)[0].close()
    opened(tmp_path / "second.duckdb", keys)[0].close()
    shutil.copy(tmp_path / "second.duckdb", path)
    engine = DuckDBEngine(path)
    with pytest.raises(errors.VerificationError) as caught:
        CatalogStore(engine, keys).load()
    assert caught.value.code == "catalog.replaced"
    engine.close()
    path.unlink()
    Pins(keys).forget(engine.address)
    assert opened(path, keys)[2].version == 1


def test_an_emptied_database_is_found(path: Path, keys: Keys) -> None:
    opened(path, keys)[0].close()
    path.unlink()
    DuckDBEngine(path).close()
    with pytest.raises(errors.CatalogError) as caught:
        opened(path, keys)
    assert caught.value.code == "catalog.missing"


def test_a_deleted_database_is_missed(path: Path, keys: Keys) -> None:
    opened(path, keys)[0].close()
    path.unlink()
    for code in ("catalog.gone", "catalog.missing"):
        engine = DuckDBEngine(path)
        with pytest.raises(errors.Error) as caught:
            CatalogStore(engine, keys).load()
        assert caught.value.code == code
        engine.close()
    path.unlink()
    Pins(keys).forget(place_of(str(path)))
    opened(path, keys)[0].close()


def test_a_plain_database_is_not_taken_over(path: Path, keys: Keys) -> None:
    engine = DuckDBEngine(path)
    engine.run(Statement("CREATE TABLE t (k INT)", kind="ddl"))
    with pytest.raises(errors.CatalogError) as caught:
        CatalogStore(engine, keys).load()
    assert caught.value.code == "catalog.missing"


def test_a_commit_that_was_not_pinned_is_accepted(path: Path, keys: Keys) -> None:
    """As after a crash between the server's commit and the pin."""
    engine, store, catalog = opened(path, keys)
    store.save(catalog)
    engine.close()
    engine, store, again = opened(path, keys)
    assert again.version == 2
    assert store.pin.read().version == 2


def test_kill_9_in_a_transaction_leaves_data_and_catalog_together(
    path: Path, tmp_path: Path, keys: Keys
) -> None:
    code = (
        "import os, signal, sys\nimport pyarrow as pa\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
        "from tests.doubles import KeysDouble\n"
        "from louver.trusted.vault.catalog_store import CatalogStore\n"
        "from louver.untrusted.engines.duckdb import DuckDBEngine\n"
        "from louver.wire.messages import Statement\n"
        "engine = DuckDBEngine(sys.argv[1])\n"
        "store = CatalogStore(engine, KeysDouble('0123456789abcdef'))\n"
        "catalog = store.load()\n"
        "engine.run(Statement('CREATE TABLE t (k BIGINT)', kind='ddl'))\n"
        "for ends in (True, False):\n"
        "    engine.begin()\n"
        "    engine.append('t', pa.table({'k': list(range(1000))}))\n"
        "    catalog.settings['rows'] = catalog.settings.get('rows', 0) + 1000\n"
        "    store.save(catalog)\n"
        "    if ends:\n"
        "        engine.commit()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    engine, _, catalog = opened(path, keys)
    assert catalog.settings == {"rows": 1000}
    assert engine.value(Statement("SELECT count(*) FROM t")) == 1000


def test_in_memory_leaves_no_pin(keys: Keys, own_state: Path) -> None:
    store = CatalogStore(DuckDBEngine(), keys)
    saved(store, store.load(), "m")
    assert store.pin.path is None
    assert not own_state.exists()


def test_asking_for_the_version_is_cheap(path: Path, keys: Keys) -> None:
    _, store, _ = opened(path, keys)
    best = min(_timed(store) for _ in range(5))
    assert best < 0.001


def _timed(store: CatalogStore) -> float:
    """Seconds of a processor: others who work on this machine do not count."""
    begin = time.process_time()
    for _ in range(100):
        store.current_version()
    return (time.process_time() - begin) / 100


def test_nothing_of_the_catalog_crosses_in_clear(path: Path, keys: Keys) -> None:
    tap = Tap(DuckDBEngine(path))
    store = CatalogStore(tap, keys)
    catalog = store.load()
    table = Table("main", "canary_table", catalog.take_table_id())
    table.columns = [Column("canary_column", "INT", catalog.take_column_id(), True)]
    catalog.add(table)
    saved(store, catalog, "canary_note")
    assert tap.search(b"canary") == []
