"""The project's own files in DuckDB's test format, with every column ENC, under each policy."""

from __future__ import annotations

from pathlib import Path

import pytest

import louver
from tests.slt import script
from tests.slt.runner import Run
from tests.slt.sides import Side, duck

FILES = sorted((Path(__file__).parents[1] / "slt" / "duckdb").glob("*.test"))


#: Keys of all types are tested under each policy in tests/executor/test_keys_of_types.py.
CASES = [
    pytest.param(path, policy, id=f"{path.stem}-{policy}")
    for path in FILES
    for policy in (("sdb",) if path.stem == "keys" else ("sealed", "cryptdb", "sdb"))
]


@pytest.mark.parametrize(("path", "policy"), CASES)
def test_every_answer_is_that_of_duckdb(
    path: Path, policy: str, tmp_path: Path, key_file: Path
) -> None:
    def opened(database: Path) -> louver.Connection:
        return louver.connect(f"duckdb:///{database}", keys=key_file, profile=policy)

    run = Run(Side(tmp_path / "louver", opened), Side(tmp_path / "duckdb", duck))
    differences = run.run(script.read(path))
    assert not run.skipped
    assert not differences, "\n".join(map(str, differences))
