"""Sessions of the private server do not grow with the statements that they plan and finish."""

from __future__ import annotations

import pyarrow as pa
import pytest

from louver.trusted.executor.local.postgres import own_caches
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.executor.local.postgres.engine import PostgresLocalEngine
from louver.trusted.executor.local.postgres.statements import PostgresStatements
from tests.local_postgres.conftest import Open

_BYTES = (
    "SELECT used_bytes FROM pg_catalog.pg_backend_memory_contexts WHERE name = 'CacheMemoryContext'"
)


def _bytes(connection: PostgresConnection) -> int:
    ((count,),) = connection.fetchall(_BYTES)
    return int(count)


def _run(engine: PostgresLocalEngine, first: int, last: int) -> tuple[int, int]:
    """What the binder and the workspace have in their caches after such statements."""
    rows = pa.table({"a": [1, 2], "b": ["x", None], "c": [0.5, 1.5]})
    own = [("a", "int"), ("b", "text"), ("c", "double precision")]
    statements = PostgresStatements(engine.binder, engine.workspace)
    for number in range(first, last):
        statements.passed(f"SELECT a AS c_{number} FROM known WHERE a = {number}")
        engine.finish({("", "r"): (own, rows)}, f"SELECT a + {number} FROM r WHERE b = 'x'")
    return _bytes(engine.binder), _bytes(engine.workspace)


def test_caches_of_catalogs_stay_small(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_caches, "MOST_UNDONE", 100)
    engine = open_engine(("TABLE", "CREATE TABLE known (a int, b text)"))
    _run(engine, 0, 150)
    warm = _run(engine, 150, 250)
    later = _run(engine, 250, 650)
    assert all(now < before + 100_000 for now, before in zip(later, warm, strict=True))
    monkeypatch.setattr(own_caches, "MOST_UNDONE", 1_000_000)
    grown = _run(engine, 650, 1_050)
    # Else this test shows nothing of the workspace.
    assert grown[0] < later[0] + 100_000
    assert grown[1] > later[1] + 200_000


def test_what_is_cached_is_dropped_between_transactions_only(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_caches, "MOST_UNDONE", 3)
    engine = open_engine()
    for connection in engine.instances:
        connection.execute("CREATE TEMP TABLE held (a int)")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO held VALUES (1)")
        for _ in range(10):
            with connection.undone():
                connection.execute("INSERT INTO held VALUES (2)")
        connection.execute("COMMIT")
        with monkeypatch.context() as patch:
            # What ends the dropping, such as a cancellation, does not end the statement.
            patch.setattr(own_caches, "CATALOGS", ("absent",))
            for _ in range(10):
                with connection.undone():
                    pass
        assert connection.fetchall("SELECT a FROM held") == [(1,)]
