"""Changes that must be refused: rows and values that something encrypted chooses or computes, and
what the schema says of ENC columns, on their way into plain columns.
"""

from __future__ import annotations

from tests.worlds.known_faults import left_out
from tests.worlds.queries import named
from tests.worlds.schema import Col, State, Tab


def exotic(state: State, table: Tab) -> str:
    """Rows of a plain column that something encrypted chooses, repeats or computes."""
    plain = [c for c in table.cols if c.plain and c.type == "BIGINT" and not c.unique]
    known = [t for t in state.sources(vaults=False) if t.secret and not t.view]
    known += [t for t in state.tables if t.temp == "wild" and t.secret]
    if not plain or not known:
        return ""
    target, origin = state.dice.choice(plain), state.dice.choice(known)
    entry = ("a", state.dice.choice(origin.secret))
    name, value = named(entry), state.literal(entry[1])
    number = f"{name} % 3" if entry[1].type == "BIGINT" else f"length({name}::VARCHAR) % 3"
    forms = _computed(name, value, number, origin, target)
    forms += [("macro", f"SELECT y FROM {called}(1)") for kind, called in state.objects
              if kind == "table macro"]  # fmt: skip
    shown = [c for c in origin.cols if c.plain and c.type == "BIGINT"]
    if shown and not left_out("lateral"):
        # Nothing but plain columns is read off; what stands beside them chooses how often.
        item = f"SELECT a.{state.dice.choice(shown).name} FROM {origin.name} AS a"
        forms += 3 * [
            ("lateral", f"{item}, LATERAL (SELECT 7 WHERE {name} < {value})"),
            (
                "unnest",
                f"{item}, unnest(CASE WHEN {name} > {value} THEN [1] ELSE [2, 2] END) AS l(y)",
            ),
            ("range", f"{item}, range({number}) AS l(y)"),
            ("lateral", f"{item} CROSS JOIN LATERAL (SELECT unnest(range({number}))) AS l"),
            ("lateral", f"{item} LEFT JOIN LATERAL (SELECT 7 AS y WHERE {name} < {value}) AS l"
                        f" ON true"),
        ]  # fmt: skip
    if entry[1].level == "size":
        forms += [
            ("chosen", f"SELECT 1 FROM {origin.name} AS a WHERE {name} = {value}"),
            ("window", f"SELECT 1 FROM {origin.name} AS a QUALIFY rank() OVER (ORDER BY {name})"
                       f" < 3"),
        ]  # fmt: skip
    return f"INSERT INTO {table.name} ({target.name}) {state.pick('exotic', forms)}"


def _computed(
    name: str, value: str, number: str, origin: Tab, target: Col
) -> list[tuple[str, str]]:
    """Forms that show something encrypted by their values."""
    source = f"FROM {origin.name} AS a"
    return [
        ("lateral", f"SELECT y {source}, LATERAL (SELECT 7 AS y WHERE {name} < {value}) AS l"),
        ("unnest", f"SELECT y {source}, unnest(CASE WHEN {name} > {value} THEN [1] ELSE [2, 2]"
                   f" END) AS l(y)"),
        ("unnest", f"SELECT unnest(range({number})) {source}"),
        ("range", f"SELECT y {source}, range({number}) AS r(y)"),
        ("computed", f"SELECT {number} {source}"),
        ("grouped", f"SELECT count(*) {source} GROUP BY {number}"),
        ("window", f"SELECT rank() OVER (ORDER BY {name}) {source}"),
        ("subquery", f"SELECT (SELECT count(*) {source} WHERE {name} < {value})"),
        ("with", f"WITH w AS (SELECT {number} AS y {source}) SELECT y FROM w"),
        ("with", f"WITH RECURSIVE w(y) AS (SELECT {number} {source} UNION SELECT y + 1 FROM w"
                 f" WHERE y < 2) SELECT y FROM w"),
        ("set", f"SELECT 1 UNION ALL SELECT {number} {source}"),
        ("set", f"SELECT {number} AS y {source} UNION BY NAME SELECT 1 AS y"),
        ("case", f"SELECT CASE WHEN {name} > {value} THEN 1 ELSE 2 END AS {target.name} {source}"),
        ("sum", f"SELECT sum({number}) {source}"),
        ("derived", f"SELECT x.y FROM (SELECT {number} AS y {source}) AS x"),
        ("first", f"{source} SELECT {number}"),
        ("pivot", f"SELECT y FROM (SELECT {number} AS k, 1 AS n {source})"
                  f" PIVOT (sum(n) FOR k IN (0 AS y, 1, 2))"),
        ("unpivot", f"SELECT v FROM (SELECT {number} AS k {source}) UNPIVOT (v FOR n IN (k))"),
    ]  # fmt: skip


def schema_rows(state: State, table: Tab) -> str:
    """What the schema says of ENC columns, into a plain column."""
    plain = [c for c in table.cols if c.plain and c.type == "VARCHAR" and not c.unique]
    if not plain or left_out("schema"):
        return ""
    origin = state.dice.choice([t for t in state.tables if not t.attached and not t.temp])
    label = origin.name.strip('"')
    forms = [
        ("pragma", f"SELECT name FROM pragma_table_info('{label}')"),
        ("pragma", f"SELECT name FROM (PRAGMA table_info('{label}'))"),
        ("tables", "SELECT sql FROM duckdb_tables()"),
        ("views", "SELECT sql FROM duckdb_views() WHERE NOT internal"),
        ("constraints", "SELECT constraint_text FROM duckdb_constraints()"),
        ("information", "SELECT column_name FROM information_schema.columns"),
        ("columns", "SELECT column_name FROM duckdb_columns() WHERE NOT internal"),
        ("describe", f"SELECT column_name FROM (DESCRIBE {origin.name})"),
        ("summarize", f"SELECT column_name FROM (SUMMARIZE {origin.name})"),
        ("query", "SELECT current_query()"),
        ("information", "SELECT sql FROM sqlite_master"),
    ]
    names = [name for kind, name in state.objects if kind == "schema view"]
    forms += [("view", f"SELECT x FROM {name}") for name in names]
    query = state.pick("schema rows", forms)
    if "current_query" in query and origin.secret:
        col = state.dice.choice(origin.secret)
        query += f" FROM {origin.name} WHERE {col.name} = {state.literal(col)}"
    return f"INSERT INTO {table.name} ({state.dice.choice(plain).name}) {query}"
