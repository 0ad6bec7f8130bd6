"""The command line over two real providers: sql, explain, leakage, status, inspect, demo."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import louver
from louver import errors
from louver.trusted.apps.demo import splinter
from louver.trusted.client import connect_providers
from tests.client.harness import answers, run
from tests.providers.services import replaced, serving


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("providers")
    data = replaced(
        folder / "cities.parquet",
        "SELECT * FROM (VALUES ('Rome', 2.8, 'IT'), ('Oslo', 0.7, 'NO'), ('Pisa', 0.1, 'IT'))"
        " t(name, millions, country)",
    )
    with (
        serving(data, f"--record={folder / 'seen'}", fake=False) as first,
        serving(data, fake=False) as second,
    ):
        yield f"providers://{first.address},{second.address}", folder


def test_commands(service: tuple[str, Path]) -> None:
    url, folder = service
    text = "SELECT name FROM cities WHERE country = PRIVATE('IT') ORDER BY millions DESC LIMIT 5"
    (answer,) = answers(run("-u", url, "--json", "sql", text, folder=folder))
    assert [row[0] for row in answer["rows"]] == ["Rome", "Pisa"]
    shown = run("-u", url, "explain", text, folder=folder).stdout
    assert "private  what country is compared with" in shown
    lines = dict(line.split(maxsplit=1) for line in shown.splitlines())
    assert lines["protocol"] == "select, with 2 providers: a condition of class single"
    assert "round" in lines["cost"]
    assert "'IT'" not in shown
    for mark in ("?", "$1", "$where"):
        query = text.replace("PRIVATE('IT')", mark)
        assert run("-u", url, "explain", query, folder=folder).stdout == shown
    (answer,) = answers(run("-u", url, "--json", "explain", text, folder=folder))
    assert answer["protocol"] == "select"
    assert "'IT'" not in json.dumps(answer)
    (answer,) = answers(run("-u", url, "--json", "status", folder=folder))
    assert answer["tables"][0]["rows"] == 3
    assert "version of the data" in run("-u", url, "status", folder=folder).stdout
    assert "cities" in run("-u", url, "sql", "SHOW TABLES; DESCRIBE cities", folder=folder).stdout
    run("-u", url, "leakage", folder=folder)
    run("-u", url, "attack", folder=folder, code=2)


def test_what_a_provider_kept_says_its_shape_and_nothing_else(service: tuple[str, Path]) -> None:
    url, folder = service
    with louver.connect(url) as connection:
        connection.execute("SELECT count(*) FROM cities WHERE name = ?", ["Oslo"]).fetchall()
        (fact,) = connection.leakage().arrow().to_pylist()
        assert "name = ?" in fact["reveals"]
        assert "Oslo" not in str(fact)
    files = sorted(str(path) for path in (folder / "seen").iterdir())
    (answer,) = answers(run("--json", "inspect", "--share", *files, folder=folder))
    kinds = {file["kind"] for file in answer["files"]}
    assert {"shape", "shares"} <= kinds
    for file in answer["files"]:
        assert "Oslo" not in json.dumps(file)
        for share in file.get("shares", ()):
            assert abs(share["deviations"]) < 7
    shown = run("inspect", "--share", *files, folder=folder).stdout
    assert shown.count("A share reveals its length and header") == 1
    whole = run("inspect", "--share", str(folder / "seen"), folder=folder).stdout
    assert len(whole.splitlines()) == len(shown.splitlines())
    (folder / "junk").write_bytes(b"\1\1junk")
    (folder / "empty").mkdir()
    for name in ("junk", "nothing", "empty"):
        refused = run("inspect", "--share", str(folder / name), folder=folder, code=2)
        assert name in refused.stderr


def test_what_is_not_for_providers_is_refused(service: tuple[str, Path]) -> None:
    with louver.connect(service[0]) as connection:
        for call in (
            lambda c: c.load("cities", "x.parquet"),
            lambda c: c.attach("duckdb:///x", "y"),
            lambda c: c.begin(),
            lambda c: c.execute("INSERT INTO cities VALUES ('a', 1, 'b')"),
            lambda c: c.execute("CREATE TABLE x (a INT)"),
            lambda c: c.executemany("DELETE FROM cities WHERE name = ?", [["a"]]),
            lambda c: c.lake,
        ):
            with pytest.raises(errors.NotSupportedError) as caught:
                call(connection)
            assert caught.value.code == "provider.language"
        connection.commit()
        assert connection.execute("SET link_latency = '14ms'").fetchone is not None
        assert connection.sql("SHOW link_latency").fetchall() == [("14ms",)]


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("providers://", "provider.few"),
        ("providers://a:1", "provider.few"),
        ("providers://a:1,b", "url.format"),
        ("providers://a:1,b:0", "url.format"),
        ("providers://a:1;b:2", "url.format"),
        ("providers://a:1 b:2", "url.format"),
        ("providers://a:1,::1:2", "url.format"),
        ("providers://a:1,b:2/flights", "url.format"),
        ("providers://me:s3cret@a:1,b:2", "url.format"),
        ("providers://a:1,b:2?scheme=none", "url.format"),
        ("providers://a:1,b:2?x=y", "url.format"),
        ("providers://a:1,a:1", "provider.same"),
        ("providers://a:1,b:1,c:1,d:1,e:1,f:1", "url.format"),
    ],
)
def test_bad_addresses(url: str, code: str) -> None:
    with pytest.raises(errors.Error) as caught:
        connect_providers.parsed(url)
    assert caught.value.code == code
    assert "s3cret" not in str(caught.value)
    assert "providers://a:7001,b:7001" in caught.value.fix or code == "provider.same"


def test_addresses() -> None:
    assert connect_providers.parsed("providers://[::1]:7,b.example:65535/?tls=off") == (
        ["[::1]:7", "b.example:65535"], {"tls": "off"}
    )  # fmt: skip


def test_one_provider_twice_is_refused(service: tuple[str, Path]) -> None:
    first = service[0].removeprefix("providers://").split(",")[0]
    port = first.rpartition(":")[2]
    with pytest.raises(errors.InterfaceError) as caught:
        louver.connect(f"providers://127.0.0.1:{port},localhost:{port}")
    assert caught.value.code == "provider.same"


def test_nobody_there(service: tuple[str, Path]) -> None:
    first = service[0].removeprefix("providers://").split(",")[0]
    with pytest.raises(errors.OperationalError) as caught:
        louver.connect(f"providers://{first},127.0.0.1:9")
    assert caught.value.code == "provider.unreachable"


def test_the_demonstration(tmp_path: Path) -> None:
    done = run("demo", "splinter", "--rows", "1500", folder=tmp_path, process=True)
    for question in splinter.QUESTIONS:
        for line in question.sql.splitlines():
            assert line.strip() in done.stdout
    assert done.stdout.count("the first provider saw") == len(splinter.QUESTIONS)
    count = done.stdout.count("equal to plaintext DuckDB's answer")
    assert count == len(splinter.QUESTIONS)
    assert max(len(line) for line in done.stdout.splitlines()) <= 101


@pytest.mark.parametrize(
    "condition",
    ['name = "private"(\'Oslo\')', "name = \"PRIVATE\"('Oslo')", "name = main.private('Oslo')",
     "name = private('Oslo') || ''", "concat(name, private('Oslo')) = 'x'"],
)  # fmt: skip
def test_a_secret_however_it_is_written_never_leaves(
    service: tuple[str, Path], condition: str
) -> None:
    url, folder = service
    before = set((folder / "seen").iterdir())
    with louver.connect(url) as connection:
        try:
            rows = connection.execute(f"SELECT count(*) FROM cities WHERE {condition}").fetchall()
        except (errors.ProgrammingError, errors.NotSupportedError):
            pass
        else:
            assert rows == [(1,)]
    for path in set((folder / "seen").iterdir()) - before:
        assert b"Oslo" not in path.read_bytes()


def test_many_questions_of_one_text(service: tuple[str, Path]) -> None:
    with louver.connect(service[0]) as connection:
        cursor = connection.cursor()
        cursor.executemany("SELECT count(*) FROM cities WHERE country = ?", [["NO"], ["IT"]])
        assert cursor.fetchall() == [(2,)]
        with pytest.raises(errors.DataError) as caught:
            connection.execute("SELECT count(*) FROM cities WHERE name = ?", ["\ud800"])
        assert caught.value.code == "provider.constant"
        with pytest.warns(errors.LeakageWarning, match="nothing of this question is private"):
            connection.execute("SELECT count(*) FROM cities WHERE name = 'Oslo'")
        plan = connection.execute("EXPLAIN SELECT count(*) FROM cities WHERE name = ?").fetchall()
        assert "private  what name is compared with" in plan[0][1]
