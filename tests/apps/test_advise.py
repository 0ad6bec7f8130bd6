"""`louver advise`: its report, and that a database made as it says is cheaper and right."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pytest

from louver.trusted.apps import cli
from louver.trusted.client import advice
from louver.trusted.vault import tile_forms
from tests.inside import context_of
from tests.planner.test_advise import Q1, Q3, Q6, YEARS

TABLES = {
    "lineitem": "SELECT (i % 15000) + 1 AS l_orderkey, CAST(1 + i % 50 AS DECIMAL(15,2)) AS"
    " l_quantity, CAST(900 + (i * 7919) % 90000 AS DECIMAL(15,2)) AS l_extendedprice,"
    " CAST((i % 11) / 100 AS DECIMAL(15,2)) AS l_discount, ['A', 'N', 'R'][1 + i % 3] AS"
    " l_returnflag, ['O', 'F'][1 + i % 2] AS l_linestatus, DATE '1992-01-02' +"
    " CAST((i * 31) % 2500 AS INTEGER) AS l_shipdate, 'comment ' || i AS l_comment"
    " FROM range(40000) r(i)",
    "orders": "SELECT i + 1 AS o_orderkey, 1 + i % 1500 AS o_custkey, DATE '1992-01-02' +"
    " CAST((i * 17) % 2400 AS INTEGER) AS o_orderdate, CAST(900 + (i * 7919) % 90000 AS"
    " DECIMAL(15,2)) AS o_totalprice, 0::INTEGER AS o_shippriority FROM range(15000) r(i)",
    "customer": "SELECT i + 1 AS c_custkey, 'Customer ' || i AS c_name, ['BUILDING', 'AUTO',"
    " 'MACHINES', 'HOUSE', 'FURNITURE'][1 + i % 5] AS c_mktsegment FROM range(1500) r(i)",
}
WORKLOAD = ";\n".join((Q1, Q3, Q6, YEARS))


@pytest.fixture
def plaintext() -> Any:
    with duckdb.connect() as duck:
        for name, query in TABLES.items():
            duck.execute(f"CREATE TABLE {name} AS {query}")
        yield duck


def filled(connection: Any, duck: Any) -> None:
    for name in TABLES:
        columns = duck.execute(f"DESCRIBE {name}").fetchall()
        listed = ", ".join(f"{c[0]} {c[1]} ENC WITH (sum = 'masked')" for c in columns)
        connection.execute(f"CREATE TABLE {name} ({listed})")
        connection.load(name, duck.execute(f"FROM {name}").fetch_arrow_table())


def kept_as(connection: Any) -> dict[tuple[str, str], tuple[object, ...]]:
    """How every column is protected, and which columns share a join group with it."""
    catalog = context_of(connection).catalog
    columns = [(t, c) for t in catalog.tables.values() for c in t.columns]
    return {
        (t.name, c.name): (
            c.type,
            c.scheme,
            c.ceiling,
            c.expression,
            "sum" in c.stored,
            sorted(f"{u.name}.{d.name}" for u, d in columns if c.group and d.group == c.group),
        )
        for t, c in columns
        if not t.name.endswith("_before")
    }


EXTRAS = (
    "ALTER TABLE lineitem ALTER COLUMN l_comment SET DEFAULT 'none'",
    "CREATE INDEX by_comment ON lineitem (l_comment)",
    "COMMENT ON TABLE lineitem IS 'it''s a table'",
    "COMMENT ON COLUMN lineitem.l_comment IS 'free text'",
)


def test_the_script_without_the_policy_is_what_was_advised(
    open_connection: Any, plaintext: Any
) -> None:
    """As a user does it: paste the script into a connection that knows of no policy."""
    connection = open_connection()
    filled(connection, plaintext)
    for sql in EXTRAS:
        connection.execute(sql)
    known = len(connection.leakage())
    advised = advice.report(context_of(connection), WORKLOAD)
    assert len(connection.leakage()) == known
    assert not advised.failed
    assert advised.after().seconds < advised.before().seconds / 5
    before = kept_as(connection)
    beside = "SELECT sql FROM duckdb_indexes() UNION ALL SELECT comment FROM duckdb_tables()"
    beside += " UNION ALL SELECT comment FROM duckdb_columns() UNION ALL"
    beside += " SELECT column_default FROM duckdb_columns()"
    described = sorted(map(str, connection.execute(beside).fetchall()))
    for statement in advised.script.statements:
        connection.execute(statement)
    wanted = {**before, **supposed_as(connection, advised)}
    actual = kept_as(connection)
    assert actual == wanted
    for name in TABLES:
        columns = ", ".join(c for t, c in before if t == name)
        rows = connection.execute(f"SELECT {columns} FROM {name}").fetchall()
        expected = plaintext.execute(f"SELECT {columns} FROM {name}").fetchall()
        assert sorted(map(str, rows)) == sorted(map(str, expected))
    assert advised.script.last
    for statement in advised.script.last:
        connection.execute(statement)
    again = sorted(map(str, connection.execute(beside).fetchall()))
    assert [text for text in described if text not in again] == []
    cheaper = advice.report(context_of(connection), WORKLOAD)
    assert cheaper.before().seconds < advised.before().seconds / 5
    for number, sql in enumerate((Q1, Q3, Q6, YEARS), 1):
        kind = json.loads(connection.sql(sql).explain(format="json"))["split"]
        assert kind == advised.plans[number][1].plan.kind, sql
        expected = plaintext.execute(sql).fetchall()
        assert sorted(map(str, connection.execute(sql).fetchall())) == sorted(map(str, expected))
    # Nothing much is left to be wished for.
    assert cheaper.after().seconds > cheaper.before().seconds / 2


def supposed_as(connection: Any, advised: advice.Report) -> dict[Any, Any]:
    """The protection of the columns that the policy of the report names, and of generated ones."""
    policy = tomllib.loads(advised.policy)
    joined = {
        label: sorted(
            f"{table}.{column}"
            for table, columns in policy.items()
            for column, entry in columns.items()
            if entry.get("join") == label
        )
        for columns in policy.values()
        for entry in columns.values()
        if (label := entry.get("join"))
    }
    now = kept_as(connection)
    return {
        (table, column): (
            now[table, column][0],
            entry["scheme"],
            entry["may_reveal"],
            now[table, column][3],
            entry.get("sum") == "masked",
            joined.get(entry.get("join"), []),
        )
        for table, columns in policy.items()
        for column, entry in columns.items()
    }


def test_no_message_proposes_plaintext() -> None:
    from louver import errors

    assert [c for c, e in errors.ERRORS.items() if "REVEAL plaintext" in str(e)] == []


def test_every_recommendation_says_what_it_costs(open_connection: Any, plaintext: Any) -> None:
    connection = open_connection()
    filled(connection, plaintext)
    advised = advice.report(context_of(connection), WORKLOAD)
    shown = {item.title: [fact.text for fact in item.reveals] for item in advised.items}
    said = "the server can order the rows of lineitem by l_shipdate, and tell roughly how close"
    assert any(said in text for text in shown["lineitem.l_shipdate may reveal order"])
    (keys,) = [texts for title, texts in shown.items() if "o_custkey" in title]
    assert any("have in o_custkey a value that c_custkey of customer had" in text for text in keys)
    warned = {text for item in advised.items for text in item.warnings}
    assert any("l_returnflag has only 3 different values" in text for text in warned)
    assert tomllib.loads(advised.policy)["lineitem"]["l_shipdate"]["may_reveal"] == "order"


def test_the_command(
    key_file: Path, open_connection: Any, plaintext: Any, tmp_path: Path, capsys: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    # Of rows in tiles reading costs so little that no computed column pays.
    monkeypatch.setattr(tile_forms, "ROWS", 1 << 40)
    connection = open_connection()
    filled(connection, plaintext)
    connection.close()
    workload = tmp_path / "workload.sql"
    workload.write_text(f"{Q6};\nINSERT INTO orders SELECT * FROM orders;\nSELECT nothing;")
    command = [
        "advise", str(workload), "--url", f"duckdb:///{tmp_path}/sealed.duckdb",
        "--keys", str(key_file),
    ]  # fmt: skip
    assert cli.main(command) == 0
    printed = capsys.readouterr()
    assert "ALTER TABLE lineitem ALTER COLUMN l_shipdate MAY REVEAL order" in printed.out
    assert "GENERATED ALWAYS AS (l_extendedprice * l_discount)" in printed.out
    assert "query 2 was skipped: this is not a query" in printed.err
    assert "query 3 was skipped" in printed.err
    assert cli.main([*command, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"]
    assert {item["kind"] for item in answer["recommendations"]} == {"ceiling", "computed"}
    workload.write_text("DROP TABLE orders")
    assert cli.main(command) == 2
