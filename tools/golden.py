"""`python -m tools.golden FOLDER`: write the golden files of a release.

A golden file is a database that a release wrote, with the key file that opens it (it protects these
three rows and nothing else). `test_golden` opens those of all releases with the current code.
"""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from pathlib import Path

import louver
from louver.trusted.vault.keyring import KeyRing

STATEMENTS = (
    "CREATE TABLE staff (id INTEGER PRIMARY KEY, name VARCHAR ENC, salary BIGINT ENC USING sdb,"
    " born DATE ENC USING sdb, share DECIMAL(8,3) ENC USING sdb, tags VARCHAR[] ENC)",
    "INSERT INTO staff VALUES (1, 'Ada', 9000, '1815-12-10', 0.125, ['a', 'b']),"
    " (2, 'Grace', -8500, '1906-12-09', NULL, []), (3, NULL, 0, NULL, -12.5, NULL)",
    "CREATE VIEW rich AS SELECT name FROM staff WHERE salary > 0",
    "SELECT sum(salary) FROM staff",
)


def main(words: list[str]) -> int:
    """Write `database.gz` and `key.txt` into a folder that does not exist yet."""
    if len(words) != 1:
        sys.stderr.write("usage: python -m tools.golden FOLDER\n")
        return 2
    folder = Path(words[0])
    if folder.exists():
        sys.stderr.write(f"golden: {folder} exists; golden files of a release do not change\n")
        return 1
    with tempfile.TemporaryDirectory() as temporary:
        database, keys = Path(temporary, "golden.duckdb"), Path(temporary, "golden.louverkey")
        os.environ["LOUVER_STATE_DIR"] = str(Path(temporary, "state"))
        KeyRing.create(keys)
        with louver.connect(f"duckdb:///{database}", keys=keys) as connection:
            for statement in STATEMENTS:
                connection.execute(statement)
        folder.mkdir(parents=True)
        (folder / "database.gz").write_bytes(gzip.compress(database.read_bytes(), mtime=0))
        (folder / "key.txt").write_bytes(keys.read_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
