"""Inference attacks on codes: what must fall to them, and what must not."""

from __future__ import annotations

import random
import uuid
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

import louver
from louver.untrusted.attacks import codes, histograms
from louver.untrusted.engines import duckdb_storage
from louver.untrusted.engines.stored import StoredRows
from tests.client.harness import answers, key_file, run

Shares = npt.NDArray[np.floating[Any]]


def counts(shares: Shares, rows: int, seed: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng(seed).multinomial(rows, shares).astype(np.int64)


def first_names(count: int = 200) -> Shares:
    """As first names are: a few are very common (Zipf, and the common ones common everywhere)."""
    shares: Shares = 1.0 / np.arange(1, count + 1) ** 1.1
    return np.random.default_rng(2).permutation(shares / shares.sum())


def ages() -> Shares:
    """Ages of people, 0 to 99."""
    shares: Shares = np.exp(-(((np.arange(100) - 38) / 27.0) ** 2)) + 0.01
    shares /= shares.sum()
    return shares


def recovered(guesses: histograms.Guesses, rows: npt.NDArray[np.int64]) -> float:
    """The share of rows; codes and values stand in the same order here."""
    return float(rows[guesses == np.arange(len(rows))].sum() / rows.sum())


def test_frequency_analysis_finds_common_first_names() -> None:
    mine, other = counts(first_names(), 50_000, 3), counts(first_names(), 200_000, 4)
    guesses = histograms.frequency(mine, other)
    assert recovered(guesses, mine) > 0.6
    assert len(set(guesses.tolist())) == len(guesses)


def test_it_is_the_best_assignment_in_squares() -> None:
    dice = np.random.default_rng(5)
    for _ in range(20):
        f, g = dice.integers(1, 50, 6), dice.integers(1, 50, 7)
        guesses = histograms.frequency(f, g)
        best = _brute_force(f, g)
        assert _squares(f, g, guesses) == best


def _squares(f: Any, g: Any, guesses: Any) -> int:
    left = sum(int(g[j]) ** 2 for j in range(len(g)) if j not in set(guesses.tolist()))
    return left + sum(int(f[i] - g[j]) ** 2 for i, j in enumerate(guesses))


def _brute_force(f: Any, g: Any) -> int:
    import itertools

    tried = itertools.permutations(range(len(g)), len(f))
    return min(_squares(f, g, np.array(permutation)) for permutation in tried)


def test_sorting_opens_a_dense_column() -> None:
    mine, other = counts(ages(), 20_000, 6), counts(ages(), 50_000, 7)
    assert histograms.is_dense(mine, other)
    assert recovered(histograms.sorting(mine, other), mine) == 1.0
    assert (histograms.sorting(mine[:-1], other) == -1).all()


@pytest.mark.parametrize(("rows", "least"), [(20_000, 0.95), (2_000, 0.5)])
def test_cumulative_frequencies_open_ages(rows: int, least: float) -> None:
    mine, other = counts(ages(), rows, 8), counts(ages(), 50_000, 9)
    guesses = histograms.cumulative(mine, other)
    assert recovered(guesses, mine) > least
    matched = guesses[guesses >= 0]
    assert (np.diff(matched) > 0).all(), "lines cross"
    # Equality alone gives far less of such a column.
    assert recovered(histograms.frequency(mine, other), mine) < 0.5 * least


def test_cumulative_beats_frequency_where_values_are_missing() -> None:
    mine, other = counts(first_names(), 5_000, 10), counts(first_names(), 20_000, 11)
    held, known = np.flatnonzero(mine), np.flatnonzero(other)
    order = histograms.cumulative(mine[held], other[known])
    plain = histograms.frequency(mine[held], other[known])

    def share(guesses: Any) -> float:
        right = (guesses >= 0) & (known[guesses] == held)
        return float(mine[held][right].sum() / mine.sum())

    assert share(order) > 0.85 > share(plain)


def test_large_columns_are_matched_by_rank() -> None:
    mine, other = counts(ages(), 20_000, 12), counts(ages(), 50_000, 13)
    guesses = histograms.cumulative(mine, other, cell_limit=10)
    assert recovered(guesses, mine) > 0.6
    assert (np.diff(guesses) >= 0).all()


@pytest.mark.parametrize("attack", [histograms.frequency, histograms.sorting,
                                    histograms.cumulative])  # fmt: skip
def test_nothing_in_nothing_out(attack: Any) -> None:
    none, some = np.zeros(0, dtype=np.int64), np.array([3, 1])
    assert len(attack(none, some)) == 0
    assert (attack(some, none) == -1).all()


# ---------------------------------------------------------------------- as the server sees it


class Server:
    """A server's database with columns of codes, open and closed."""

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        self.stored = StoredRows(
            lambda sql: self.connection.execute(sql).to_arrow_table(), duckdb_storage.tables
        )
        self.dice = random.Random(14)

    def table(self, name: str, type_: str, codes_: Sequence[object]) -> None:
        self.connection.execute(f"CREATE TABLE t_{name[0]} (row_id BIGINT, {name} {type_})")
        self.connection.executemany(
            f"INSERT INTO t_{name[0]} VALUES (?, ?)", list(enumerate(codes_))
        )

    def any_codes(self, count: int) -> list[int]:
        return [self.dice.randrange(-(1 << 63), 1 << 63) for _ in range(count)]


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.connection.close()


def test_closed_layers_show_nothing(server: Server) -> None:
    server.table("q_0123456789ab", "BIGINT", list(server.any_codes(300)))
    server.table("o_0123456789ab", "BIGINT", list(server.any_codes(300)))
    for sight in codes.look(server.stored):
        assert (sight.shown, sight.nulls, len(sight.counts), sight.top) == ("", 0, 0, [])
        assert codes.attempts(sight, counts(ages(), 1000, 15)) == []


def test_open_layers_show_what_they_are(server: Server) -> None:
    some = server.any_codes(20)
    picked = [None, *(server.dice.choice(some) for _ in range(299))]
    server.table("q_0123456789ab", "BIGINT", picked)
    rising = sorted(code >> 1 & (1 << 62) - 1 for code in server.any_codes(50))
    server.table("o_0123456789ab", "BIGINT", list(rising))
    equality, order = sorted(codes.look(server.stored), key=lambda s: s.shown)
    assert (equality.shown, equality.nulls, equality.distinct) == ("equality", 1, 20)
    assert equality.counts.sum() == 299
    assert equality.top[0] == max(picked.count(code) for code in some)
    assert (order.shown, order.distinct) == ("order", 50)
    names = [attempt.attack for attempt in codes.attempts(order, np.ones(50, dtype=np.int64))]
    assert names == ["frequency analysis", "sorting", "cumulative frequencies"]
    names = [attempt.attack for attempt in codes.attempts(equality, np.ones(50, dtype=np.int64))]
    assert names == ["frequency analysis"]


def test_wide_codes_are_looked_at_too(server: Server) -> None:
    some = [str(uuid.UUID(int=server.dice.getrandbits(128))) for _ in range(5)]
    server.table("q_0123456789ab", "UUID", [server.dice.choice(some) for _ in range(100)])
    (sight,) = codes.look(server.stored)
    assert (sight.shown, sight.distinct) == ("equality", 5)


def test_every_leak_of_a_scheme_has_its_attack() -> None:
    from louver.trusted.vault import scheme

    for row in scheme.rows():
        known = {leak.broken_by == scheme.NOTHING_KNOWN for leak in row.leaks()}
        assert known
        for leak in row.leaks():
            safe = leak.level == "size" or leak.name == "ore.rest"
            assert safe or leak.broken_by != scheme.NOTHING_KNOWN, leak.name


# ---------------------------------------------------------------------- the whole command


def people(rows: int, seed: int) -> pa.Table:
    """Names by Zipf's law, ages of all of 0 to 79, towns of few."""
    dice = np.random.default_rng(seed)
    names = [f"name {number:03}" for number in range(40)]
    shares = first_names(40)
    young = ages()[:80] / ages()[:80].sum()
    years = np.concatenate([np.arange(80), dice.choice(80, rows - 80, p=young)])
    return pa.table(
        {
            "name": dice.choice(names, rows, p=shares / shares.sum()),
            "age": pa.array(dice.permutation(years), pa.int32()),
            "town": dice.choice(["Bern", "Oslo", "Rome"], rows, p=[0.6, 0.3, 0.1]),
            "code": dice.permutation(rows),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database in which queries have opened some layers, and an auxiliary table."""
    folder = tmp_path_factory.mktemp("attack")
    pq.write_table(people(20_000, 21), folder / "own.parquet")
    csv.write_csv(people(20_000, 21), folder / "own.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOUVER_STATE_DIR", str(folder / "state"))
        con = louver.connect(f"duckdb:///{folder}/cloud.duckdb", keys=key_file(), profile="cryptdb")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            con.execute(
                "CREATE TABLE staff (name VARCHAR ENC, age INT ENC,"
                " town VARCHAR ENC MAY REVEAL access, code BIGINT ENC)"
            )
            con.load("staff", people(4_000, 22))
            con.sql("SELECT count(*) FROM staff WHERE name = 'name 001'").fetchall()
            con.sql("SELECT count(*) FROM staff WHERE age < 30").fetchall()
            con.sql("SELECT count(*) FROM staff WHERE town = 'Oslo'").fetchall()
        con.close()
    return folder


@pytest.mark.parametrize("file", ["own.parquet", "own.csv"])
def test_the_command_recovers_what_is_open(folder: Path, file: str) -> None:
    done = run("attack", "--json", "--auxiliary", str(folder / file), folder=folder)
    (answer,) = answers(done)
    codes = {(c["column"], c["codes"]): c for c in answer["codes"]}
    assert {key for key, c in codes.items() if c["shown"] != "nothing"} == {
        ("name", "equality"), ("age", "order"),
    }  # fmt: skip
    assert "town" not in {column for column, _ in codes}
    (frequent,) = codes["name", "equality"]["attacks"]
    assert frequent["recovered_rows"] > 2_000 > codes["name", "equality"]["blind_guess_rows"]
    assert frequent["prevented_by"] == "access"
    age = {attack["attack"]: attack for attack in codes["age", "order"]["attacks"]}
    assert age["sorting"]["recovered_rows"] == 4_000
    assert age["sorting"]["recovered_distinct"] == 80
    assert age["sorting"]["prevented_by"] == "equality"
    assert age["cumulative frequencies"]["recovered_rows"] > 1_500
    assert age["frequency analysis"]["recovered_rows"] < 1_000
    for column, kind in codes:
        if codes[column, kind]["shown"] == "nothing":
            assert codes[column, kind]["attacks"] == []


def test_the_command_without_an_auxiliary_table(folder: Path) -> None:
    text = run("attack", folder=folder).stdout
    assert "equality shows: 40 distinct values in 4,000 rows, 0 NULLs" in text
    assert "order shows: 80 distinct values" in text
    assert "equality layer closed: the codes look random" in text
    assert "recovered" not in text


def test_the_command_in_words(folder: Path) -> None:
    text = run("attack", "staff", "--auxiliary", str(folder / "own.csv"), folder=folder).stdout
    assert "sorting: 4,000 of 4,000 rows (100.0 %) and 80 of 80 values recovered" in text
    assert "prevented by the ceiling `equality`" in text
    assert "baseline, always guessing the most frequent value" in text


@pytest.mark.parametrize("file", ["none.csv", "none.xls"])
def test_what_cannot_be_read(folder: Path, file: str) -> None:
    done = run("attack", "--auxiliary", str(folder / file), folder=folder, code=1)
    assert "cannot be used" in done.stderr


def test_names_need_a_key(folder: Path) -> None:
    modulus = format((1 << 600) + 1, "x")
    done = run(
        "attack", "--modulus", modulus, "--auxiliary", str(folder / "own.csv"), folder=folder,
        code=2,
    )  # fmt: skip
    assert "--auxiliary needs a key file" in done.stderr
    text = run("attack", "--modulus", modulus, folder=folder).stdout
    assert "order shows: 80 distinct values" in text
