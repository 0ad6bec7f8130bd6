"""No pad is used twice and no sealed value is accepted in another row, whatever a server replays.

`LOUVER_SOAK` multiplies the number of examples.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from louver.trusted.executor import row_ids
from louver.trusted.vault.keyring import KeyRing
from tests.generated import cases
from tests.vault.epoch_model import AcceptedError, PadTwiceError, World, first_state

ANY = st.integers(0, 11)
SMALL = st.integers(-2, 3)
#: Mostly the first ones: what follows them is claimed again.
STATES = st.sampled_from([0, 0, 0, 1, 2, 3, 5, 8, 13, 21])
SETTINGS = settings(
    max_examples=cases(5),
    stateful_step_count=10,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


def row(number: int) -> str:
    """Rows with a NULL among them."""
    values = f"({number}, {number}, 'word {number}', {number}), (9, NULL, NULL, 7)"
    return f"INSERT INTO t VALUES {values}"


CHANGES = st.one_of(
    SMALL.map(lambda n: f"UPDATE t SET v = {n}, p = {n + 5} WHERE id < {n}"),
    SMALL.map(lambda n: f"DELETE FROM t WHERE id = {n}"),
    st.sampled_from(["BEGIN", "COMMIT", "ROLLBACK", "CREATE TABLE t2 AS SELECT * FROM t"]),
    SMALL.map(lambda n: f"SELECT count(*) FROM t WHERE v = {n}"),
)


class Machines(RuleBasedStateMachine):
    """What users, machines and the server may do, in any order."""

    start: dict[str, bytes]
    key_file: Path
    looks_at_pads = True

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="louver-epochs-"))
        self.world = World(self.folder, self.key_file, self.start)
        self.world.witness.looks_at_pads = self.looks_at_pads

    def _run(self, machine: int, file: int, accept: bool, sql: str) -> None:
        world = self.world
        key = (machine % len(world.machines), file % len(world.files))
        if world.session(*key, accept=accept) is not None and _makes_sense(world, key, sql):
            world.run(key, sql)

    @rule(machine=ANY, file=ANY, accept=st.booleans(), number=SMALL)
    def insert(self, machine: int, file: int, accept: bool, number: int) -> None:
        """A user writes rows, and perhaps vouches for what is there."""
        self._run(machine, file, accept, row(number))

    @rule(machine=ANY, file=ANY, sql=CHANGES)
    def change(self, machine: int, file: int, sql: str) -> None:
        """A user does something else."""
        self._run(machine, file, False, sql)

    @rule(machine=ANY, file=ANY)
    def read(self, machine: int, file: int) -> None:
        """What the server adds is what the rows give, over all epochs."""
        world = self.world
        key = (machine % len(world.machines), file % len(world.files))
        if world.session(*key, accept=False) is None:
            return
        rows = world.run(key, "SELECT v, p, s FROM t")
        if rows is None:
            return
        sums = world.run(key, "SELECT sum(v), count(v), sum(p) FROM t")
        if sums is not None:
            numbers = [v for v, _, _ in rows if v is not None]
            shares = [p for _, p, _ in rows if p is not None]
            wanted = (sum(numbers) if numbers else None, len(numbers), sum(shares) or None)
            assert (*sums[0][:2], sums[0][2] or None) == wanted

    @rule(machine=ANY, file=ANY, state=STATES, accept=st.booleans())
    def replay(self, machine: int, file: int, state: int, accept: bool) -> None:
        """The server shows a state that it once had, or a user restores a backup, and goes on."""
        world = self.world
        world.replay(file % len(world.files), world.states[state % len(world.states)])
        self._run(machine, file, accept, row(state))

    @rule(machine=ANY, state=STATES)
    def fork(self, machine: int, state: int) -> None:
        """The server keeps two histories, and shows one to some machine."""
        if len(self.world.files) < 3:
            file = self.world.fork_of(self.world.states[state % len(self.world.states)])
            self._run(machine, file, False, row(state))

    @rule(machine=ANY, copied=st.booleans())
    def join(self, machine: int, copied: bool) -> None:
        """Another machine: a copy of one, with its pins, or a new one."""
        if len(self.world.machines) < 3:
            world = self.world
            world.clone(machine % len(world.machines)) if copied else world.arrive()

    @rule(index=ANY)
    def leave(self, index: int) -> None:
        """A session ends, or its process dies."""
        if self.world.sessions:
            self.world.close(sorted(self.world.sessions)[index % len(self.world.sessions)])

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.end()
            shutil.rmtree(self.folder)


def _makes_sense(world: World, key: tuple[int, int], sql: str) -> bool:
    """Whether a statement is no mistake of the user's own."""
    session = world.sessions[key]
    if sql in ("COMMIT", "ROLLBACK"):
        return session.in_transaction
    if sql == "BEGIN":
        return not session.in_transaction
    # Each connection may see the other table or not.
    return not sql.startswith("CREATE") or session.context.catalog.table("main", "t2") is None


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> type[Machines]:
    folder = tmp_path_factory.mktemp("epochs")
    path = folder / "key"
    KeyRing.create(path)
    machines: type[Machines] = type("Machines", (Machines,), {})
    machines.start, machines.key_file = first_state(folder / "first", path, row), path
    return machines


def test_no_pad_twice_and_no_value_elsewhere(machines: Any) -> None:
    run_state_machine_as_test(machines, settings=SETTINGS)


@pytest.mark.parametrize(("pads", "error"), [(True, PadTwiceError), (False, AcceptedError)])
def test_the_model_finds_both_without_random_bits(
    machines: Any, pads: bool, error: type[AssertionError]
) -> None:
    """With equal bits for every epoch a restored or forked history uses pads again."""
    mutated = type("Mutated", (machines,), {"looks_at_pads": pads})
    with mock.patch.object(row_ids, "draw", return_value="00" * 16), pytest.raises(error):
        run_state_machine_as_test(mutated, settings=settings(SETTINGS, max_examples=20))
