"""Sessions of several languages in one process: every text is read in that of its own session."""

from __future__ import annotations

import ast
import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import louver
from louver import errors
from louver.trusted.client.dbapi import Connection
from louver.trusted.client.inside import session_of
from louver.trusted.executor.session import Session
from louver.trusted.planner.split import precomputed
from louver.trusted.planner.sql import dialect, lexer, trees
from louver.trusted.planner.sql.dialect import DUCKDB, Dialect, speaking, spoken
from tests import shared
from tests.postgres import servers
from tests.sources import ROOT

TRUSTED = ROOT / "src" / "louver" / "trusted"
Open = Callable[..., Connection]
_numbers = itertools.count()

POSTGRES = dialect.named("postgres") or DUCKDB
#: Texts that the two languages read otherwise, of those that are remembered by their text.
QUESTION = "SELECT a FROM t WHERE b = ?"
PLACED = "SELECT $1 + a$1"
UNICODE = f'SELECT U&"\\0061" + {lexer.PARAMETER_PREFIX}x'


@pytest.fixture
def open_both(open_connection: Open) -> Iterator[Callable[[], tuple[Connection, Connection]]]:
    """A session in DuckDB's language and one in PostgreSQL's, each over a database of its own."""
    opened = []

    def pair() -> tuple[Connection, Connection]:
        url = servers.database_url(f"turns_{next(_numbers)}")
        other = louver.connect(url, keys=str(shared.key_file()), language="postgres")
        opened.append(other)
        return open_connection("sealed"), other

    yield pair
    for connection in opened:
        connection.close()


def readings() -> tuple[object, ...]:
    """What is remembered by texts, and differs."""
    return (
        lexer.split(QUESTION)[0].parameters,
        lexer.split(PLACED)[0].parameters,
        [(token.token_type, token.text) for token in lexer.tokens(UNICODE)],
        lexer.renumbered("$1 + a$1", 2),
        precomputed.parsed("a == 1") is None,
        trees.parse("SELECT * FROM t SEMI JOIN u ON a") is None,
    )


def test_what_is_remembered_by_a_text_is_of_one_language() -> None:
    for _ in range(2):
        ours = readings()
        with speaking(POSTGRES):
            other = readings()
        assert all(mine != theirs for mine, theirs in zip(ours, other, strict=True))
        assert ours == readings()


def test_a_block_ends_as_it_began() -> None:
    assert spoken() is DUCKDB
    with speaking(POSTGRES):
        with speaking(DUCKDB):
            assert spoken() is DUCKDB
        assert spoken() is POSTGRES
        with pytest.raises(ZeroDivisionError), speaking(DUCKDB):
            raise ZeroDivisionError
        assert spoken() is POSTGRES
    assert spoken() is DUCKDB


def test_threads_speak_by_themselves() -> None:
    both = threading.Barrier(2)

    def read(own: Dialect) -> list[tuple[object, ...]]:
        with speaking(own):
            both.wait(timeout=30)
            return [readings() for _ in range(50)]

    with speaking(POSTGRES), ThreadPoolExecutor(2) as pool:
        ours, theirs = pool.map(read, (DUCKDB, POSTGRES))
        assert pool.submit(spoken).result() is DUCKDB
    with speaking(POSTGRES):
        assert theirs == [readings()] * 50
    assert ours == [readings()] * 50


def test_two_sessions_take_turns(open_both: Callable[[], tuple[Connection, Connection]]) -> None:
    ours, other = open_both()
    for connection in (ours, other):
        connection.execute("CREATE TABLE t (a INTEGER ENC, b VARCHAR)")
        connection.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    for _ in range(2):
        assert ours.execute("SELECT a FROM t WHERE b = ?", ["y"]).fetchall() == [(2,)]
        with pytest.raises(errors.Error) as caught:
            other.execute("SELECT a FROM t WHERE b = ?", ["y"])
        assert caught.value.code == "parameter.excess"
        assert other.execute("SELECT a FROM t WHERE b = $1", ["y"]).fetchall() == [(2,)]
        assert spoken() is DUCKDB


def test_rows_and_relations_are_read_later(
    open_both: Callable[[], tuple[Connection, Connection]],
) -> None:
    ours, other = open_both()
    for connection in (ours, other):
        connection.execute("CREATE TABLE t (a INTEGER ENC)")
        connection.execute("INSERT INTO t VALUES (1), (2), (3)")
    mine, theirs = ours.sql("FROM t"), other.sql("SELECT * FROM t")
    rows = zip(ours.execute("FROM t"), other.execute("SELECT a FROM t"), strict=True)
    assert sorted(next(rows)) == [(1,), (1,)]
    # `==` is no operator of PostgreSQL's, and `a ? b` has no placeholder there.
    assert mine.filter("a == 2").fetchall() == [(2,)]
    assert theirs.filter("a = 2").fetchall() == [(2,)]
    with pytest.raises(errors.Error, match="placeholder"):
        mine.filter("a ? 1")
    with pytest.raises(errors.Error) as caught:
        theirs.filter("a ? 1")
    assert "placeholder" not in caught.value.message
    assert len(list(rows)) == 2
    with speaking(POSTGRES):
        assert ours.execute("SELECT count(*) FROM t WHERE a > ?", [1]).fetchone() == (2,)
        assert spoken() is POSTGRES


def test_a_session_runs_texts_of_its_own_language_only(open_connection: Open) -> None:
    session = session_of(open_connection("sealed"))
    assert isinstance(session, Session)
    (own,) = lexer.split("SELECT 1")
    with speaking(POSTGRES):
        (foreign,) = lexer.split("SELECT 1")
    assert session.run(own, []).rows is not None
    with pytest.raises(errors.Error) as caught:
        session.run(foreign, [])
    assert caught.value.code == "internal"


def test_a_definition_of_a_second_name_is_undone(
    open_both: Callable[[], tuple[Connection, Connection]],
) -> None:
    _, other = open_both()
    other.execute("CREATE TABLE t (a INTEGER ENC)")
    with pytest.raises(errors.Error) as caught:
        other.execute('CREATE TABLE "T" (a INTEGER ENC)')
    assert caught.value.code == "table.capitals"
    other.execute("INSERT INTO t VALUES (1)")
    assert other.execute("SELECT relname FROM pg_class WHERE relname IN ('t', 'T')").fetchall() == [
        ("t",)
    ]


def test_a_database_has_one_language() -> None:
    keys = str(shared.key_file())
    for language in ("postgres", "latin"):
        with pytest.raises(errors.Error) as caught:
            louver.connect("duckdb:///:memory:", keys=keys, language=language)
        assert caught.value.code == "language.unknown"
    url = servers.database_url(f"turns_{next(_numbers)}")
    louver.connect(url, keys=keys, language=None).close()
    with louver.connect(url, keys=keys) as opened:
        assert opened.execute("SELECT 7 / 2 AS x").fetchall() == [(3,)]
    with pytest.raises(errors.Error) as caught:
        louver.connect(url, keys=keys, language="duckdb")
    assert caught.value.code == "language.other"
    url = servers.database_url(f"turns_{next(_numbers)}")
    louver.connect(url, keys=keys, language="duckdb").close()
    with louver.connect(url, keys=keys) as opened:
        assert opened.execute("SELECT 7 / 2 AS x").fetchall() == [(3.5,)]
    with pytest.raises(errors.Error) as caught:
        louver.connect(url, keys=keys, language="postgres")
    assert caught.value.code == "language.other"


def test_only_databases_of_duckdb_s_language_are_attached() -> None:
    keys = str(shared.key_file())
    url = servers.database_url(f"turns_{next(_numbers)}")
    with louver.connect(keys=keys) as own, louver.connect(url, keys=keys) as other:
        for con, name in ((own, url), (other, "duckdb:///:memory:"), (other, "plain.duckdb")):
            with pytest.raises(errors.Error) as caught:
                con.attach(name, "x")
            assert caught.value.code == "attach.language"
        url = servers.database_url(f"turns_{next(_numbers)}")
        own.attach(url, "x")
    with louver.connect(url, keys=keys, language="duckdb") as con:
        assert con.execute("SELECT 7 // 2").fetchall() == [(3,)]


def _functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path in sorted(TRUSTED.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                yield path.relative_to(TRUSTED).as_posix(), node


def _called(node: ast.AST) -> set[str]:
    return {
        part.attr if isinstance(part, ast.Attribute) else part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute | ast.Name)
    }


def test_no_generator_yields_while_it_speaks() -> None:
    """Its caller would go on in the generator's language; a context manager's block shall."""
    generators = {
        f"{name}:{function.name}"
        for name, function in _functions()
        if "contextmanager" not in {word for part in function.decorator_list
                                    for word in _called(part)}
        for block in ast.walk(function)
        if isinstance(block, ast.With)
        and {"speaking", "contained"} & {w for item in block.items for w in _called(item)}
        and any(isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(block))
    }  # fmt: skip
    assert generators == set()


def test_what_reads_texts_is_remembered_by_the_dialect() -> None:
    readers = {
        "spoken",
        "tokens",
        "split",
        "tokenized",
        "parse",
        "parse_one",
        "parse_all",
        "_split",
    }
    #: looks for words that are the same in every language
    same = {"executor/local/transaction_time.py:_asks"}
    caching = {"cache", "lru_cache", "cached"}
    remembered = set()
    for name, function in _functions():
        words = {word for part in function.decorator_list for word in _called(part)}
        given = {word for part in function.args.args for word in _called(part)}
        if words & caching and readers & _called(function) and "Dialect" not in given:
            remembered.add(f"{name}:{function.name}")
    assert remembered == same
