"""Changes that must be refused: rows and values that something encrypted chooses or computes, and
what the schema says of ENC columns, on their way into plain columns.
"""

from __future__ import annotations

from tests.worlds.pending import left_out
from tests.worlds.queries import named
from tests.worlds.schema import State, Tab


def exotic(state: State, table: Tab) -> str:
    """Rows of a plain column that something encrypted chooses, repeats or computes."""
    plain = [c for c in table.cols if c.plain and c.type == "BIGINT" and not c.unique]
    known = [t for t in state.sources(vaults=False) if t.secret and not t.view]
    if not plain or not known:
        return ""
    target, origin = state.dice.choice(plain), state.dice.choice(known)
    entry = ("a", state.dice.choice(origin.secret))
    name, value = named(entry), state.literal(entry[1])
    number = f"{name} % 3" if entry[1].type == "BIGINT" else f"length({name}::VARCHAR) % 3"
    forms = [
        f"SELECT y FROM {origin.name} AS a, LATERAL (SELECT 7 AS y WHERE {name} < {value}) AS l",
        f"SELECT y FROM {origin.name} AS a, unnest(CASE WHEN {name} > {value} THEN [1] ELSE [2, 2]"
        f" END) AS l(y)",
        f"SELECT unnest(range({number})) FROM {origin.name} AS a",
        f"SELECT y FROM {origin.name} AS a, range({number}) AS r(y)",
        f"SELECT {number} FROM {origin.name} AS a",
        f"SELECT count(*) FROM {origin.name} AS a GROUP BY {number}",
        f"SELECT rank() OVER (ORDER BY {name}) FROM {origin.name} AS a",
        f"SELECT (SELECT count(*) FROM {origin.name} AS a WHERE {name} < {value})",
        f"WITH w AS (SELECT {number} AS y FROM {origin.name} AS a) SELECT y FROM w",
        f"SELECT 1 UNION ALL SELECT {number} FROM {origin.name} AS a",
        f"SELECT CASE WHEN {name} > {value} THEN 1 ELSE 2 END AS {target.name}"
        f" FROM {origin.name} AS a",
        f"SELECT sum({number}) FROM {origin.name} AS a",
        f"SELECT x.y FROM (SELECT {number} AS y FROM {origin.name} AS a) AS x",
        f"FROM {origin.name} AS a SELECT {number}",
    ]
    shown = [c for c in origin.cols if c.plain and c.type == "BIGINT"]
    if shown and not left_out("lateral"):
        # Nothing but plain columns is read off; what stands beside them chooses how often.
        item = f"a.{state.dice.choice(shown).name}"
        forms += 3 * [
            f"SELECT {item} FROM {origin.name} AS a, LATERAL (SELECT 7 WHERE {name} < {value})",
            f"SELECT {item} FROM {origin.name} AS a, unnest(CASE WHEN {name} > {value} THEN [1]"
            f" ELSE [2, 2] END) AS l(y)",
            f"SELECT {item} FROM {origin.name} AS a, range({number}) AS l(y)",
            f"SELECT {item} FROM {origin.name} AS a CROSS JOIN LATERAL"
            f" (SELECT unnest(range({number}))) AS l",
        ]
    if entry[1].level == "size":
        forms += [
            f"SELECT 1 FROM {origin.name} AS a WHERE {name} = {value}",
            f"SELECT 1 FROM {origin.name} AS a QUALIFY rank() OVER (ORDER BY {name}) < 3",
        ]
    return f"INSERT INTO {table.name} ({target.name}) {state.dice.choice(forms)}"


def schema_rows(state: State, table: Tab) -> str:
    """What the schema says of ENC columns, into a plain column."""
    plain = [c for c in table.cols if c.plain and c.type == "VARCHAR" and not c.unique]
    if not plain or left_out("schema"):
        return ""
    origin = state.dice.choice([t for t in state.tables if not t.attached])
    label = origin.name.strip('"')
    query = state.dice.choice((
        f"SELECT name FROM pragma_table_info('{label}')",
        "SELECT sql FROM duckdb_tables()",
        "SELECT sql FROM duckdb_views() WHERE NOT internal",
        "SELECT constraint_text FROM duckdb_constraints()",
        "SELECT column_name FROM information_schema.columns",
        "SELECT column_name FROM duckdb_columns() WHERE NOT internal",
        f"SELECT column_name FROM (DESCRIBE {origin.name})",
        f"SELECT column_name FROM (SUMMARIZE {origin.name})",
        "SELECT current_query()",
        f"SELECT name FROM (PRAGMA table_info('{label}'))",
    ))  # fmt: skip
    if "current_query" in query and origin.secret:
        col = state.dice.choice(origin.secret)
        query += f" FROM {origin.name} WHERE {col.name} = {state.literal(col)}"
    return f"INSERT INTO {table.name} ({state.dice.choice(plain).name}) {query}"
