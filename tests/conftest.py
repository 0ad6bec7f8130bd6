"""One key file for all tests, a state directory of their own, connections that are closed.

Hypothesis draws the same examples in every run of `make test`, so that no run fails where the one
before passed, and no test of it knows a time; `make soak` draws others, and more (tests/soak.py).
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from louver.trusted.executor import select, state
from louver.trusted.executor.tiles import asking
from louver.trusted.vault import tile_forms
from tests import durations, scheduling, shared
from tests.doubles import KeysDouble
from tests.engines.table import TARGETS
from tests.generated import SOAK, not_due
from tests.postgres import servers

if TYPE_CHECKING:
    from tests.twin import Twin

settings.register_profile(
    "louver",
    deadline=None,
    derandomize=SOAK == 1,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("louver")

# A shell that runs the tests in the background ignores Ctrl-C for them, and they for their
# children; the tests of Ctrl-C need it.
signal.signal(signal.SIGINT, signal.default_int_handler)


if os.environ.get("RAYON_NUM_THREADS") == "1":
    shared.one_thread()  # tests/run.py asks for it where there are as many workers as cores


def pytest_configure(config: pytest.Config) -> None:
    """What all workers share is made once, before they start."""
    durations.register(config)
    if shared.FOLDER not in os.environ:
        folder = tempfile.mkdtemp(prefix="louver-tests-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        shared.make(Path(folder))
        os.environ[shared.FOLDER] = folder


#: Of these folders tables have few rows to a tile: some are in tiles, and some are over. Others
#: count what is sent of rows; there all are stored by themselves.
_FEW_ROWS = {"answers", "blindness", "client", "engines", "observer"}
_NO_TILES = {"executor"}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before fixtures, which may fill tables."""
    few, none = (bool(folders & {*item.path.parts}) for folders in (_FEW_ROWS, _NO_TILES))
    tile_forms.ROWS = 3 if few else 1 << 40 if none else tile_forms.MOST_ROWS
    state.FOLDED_ROWS = 6 if few else 16_384
    # How far a few values compress is told by no length, and how large numbers are by no width.
    tile_forms.LEAST_UNIT = 1 << 16 if few else 64
    tile_forms.LEAST_CLASS = 128 if few else 4
    # Queries of few rows run both over a table of them and over the rows as they come.
    select.MOST_ROWS = 4 if few else 2_048
    asking.LEAST_ROWS = 8 if few else 1_000


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> scheduling.Scheduling:
    """Groups go to workers, not single tests."""
    return scheduling.Scheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What sends signals to its own process runs alone; long groups begin first. Of what is many
    and alike, a sixth runs.
    """
    if left := not_due(items):
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]
    for item in items:
        if "signalled" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.alone)
    items[:] = scheduling.ordered(items)


@pytest.fixture(scope="module", autouse=True)
def databases_of_servers() -> Iterator[None]:
    """Those of a file's tests take room on the disk until its last one has ended."""
    yield
    servers.drop_databases()


@pytest.fixture(scope="session", autouse=True)
def state_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Pins of tests never touch the user's own."""
    folder = shared.state(tmp_path_factory.mktemp("state"))
    before = os.environ.get("LOUVER_STATE_DIR")
    os.environ["LOUVER_STATE_DIR"] = str(folder)
    yield folder
    if before is None:
        del os.environ["LOUVER_STATE_DIR"]
    else:
        os.environ["LOUVER_STATE_DIR"] = before


@pytest.fixture(scope="session")
def key_file() -> Path:
    """The key file of the run."""
    return shared.key_file()


@pytest.fixture
def signalled() -> Iterator[None]:
    """For tests that send a signal to this process: no collection of garbage may run, for what a
    signal raises within one is lost.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.fixture
def open_connection(
    key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Any]]:
    """Opens connections to one fresh database per backend and profile. ``backend`` is the scheme
    of a URL: `duckdb`, `lake`, or an engine of tests/engines/table.py. The language is DuckDB's,
    unless another is given.
    """
    import louver
    from tests.engines import suite

    opened: list[Any] = []

    def open_(profile: str = "sealed", backend: str = "duckdb", **options: Any) -> Any:
        suite.register(backend, monkeypatch)
        url = suite.url_of(backend, tmp_path / f"{profile}.{backend}")
        how = {"language": "duckdb", **options}
        connection = louver.connect(url, keys=key_file, profile=profile, **how)
        opened.append(connection)
        return connection

    yield open_
    for connection in opened:
        connection.close()


@pytest.fixture(params=TARGETS, ids="-".join)
def any_twin(request: pytest.FixtureRequest, open_connection: Callable[..., Any]) -> Iterator[Twin]:
    """A connection beside plaintext DuckDB under each profile and over each backend; Louver may
    fail with an error of its own.
    """
    from tests.twin import Twin

    twin = Twin.beside(open_connection(*request.param), own_errors=True)
    yield twin
    twin.plain.close()


@pytest.fixture
def open_twin(key_file: Path, tmp_path: Path) -> Iterator[Callable[..., Twin]]:
    """Opens connections beside plaintext DuckDB, each on a fresh database file."""
    yield from _twins(key_file, tmp_path)


@pytest.fixture(scope="module")
def open_module_twin(
    key_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Twin]]:
    """The same for a twin that the tests of a module share, where Louver may fail with an error
    of its own.
    """
    yield from _twins(key_file, tmp_path_factory.mktemp("twin"), own_errors=True)


@pytest.fixture
def twin(open_twin: Callable[..., Twin]) -> Twin:
    """A connection with the profile `sealed` beside plaintext DuckDB."""
    return open_twin()


def _twins(
    key_file: Path, folder: Path, *, own_errors: bool = False
) -> Iterator[Callable[..., Twin]]:
    from louver.trusted.executor.policy import Policy
    from tests.twin import Twin

    twins: list[Twin] = []

    def open_(profile: str = "sealed", rules: dict[str, Any] | None = None) -> Twin:
        path = folder / f"twin{len(twins) or ''}.duckdb"
        policy = Policy.parse(rules or {}, "policy", profile)
        twins.append(Twin(path, key_file, policy, own_errors=own_errors))
        return twins[-1]

    yield open_
    for twin in twins:
        twin.close()


@pytest.fixture
def keys(own_state: Path) -> KeysDouble:
    return KeysDouble("0123456789abcdef")


@pytest.fixture
def other_keys(own_state: Path) -> KeysDouble:
    return KeysDouble("fedcba9876543210")


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pins of a test live and die with it."""
    path = tmp_path / "state"
    monkeypatch.setenv("LOUVER_STATE_DIR", str(path))
    return path
