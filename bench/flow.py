"""How many harmless INSERT … SELECT forms the flow rule refuses.

Forms are combined of a select list, a source and a clause; each reads plain columns alone, of a
table that has encrypted ones too. Those that DuckDB binds are judged.
"""

from __future__ import annotations

from collections import Counter
from itertools import product

import duckdb

from louver import errors
from louver.trusted.planner.sql import lexer, trees
from louver.trusted.planner.write import information_flow, permit
from louver.trusted.planner.write.reads import Reads
from louver.trusted.vault.catalog import Catalog, Column, HomeObject, Table

VIEW = "CREATE VIEW v AS SELECT a, b, l FROM t"
LISTS = {
    "column": "a",
    "expression": "a * 2 + coalesce(b, 1)",
    "function": "round(abs(a), 1)",
    "case": "CASE WHEN a > 1 THEN b ELSE a END",
    "aggregate": "sum(a)",
    "filter": "count(*) FILTER (WHERE a > 1)",
    "window": "row_number() OVER (ORDER BY a)",
    "scalar subquery": "(SELECT max(a) FROM t)",
    "unnest": "unnest(l)",
    "star exclude": "* EXCLUDE (b, l)",
    "columns": "COLUMNS('^a$')",
    "lambda": "list_sum(list_transform(l, lambda x: x + 1))",
    "cast": "a::VARCHAR::INTEGER",
}
SOURCES = {
    "table": "t",
    "alias": "t AS q",
    "view": "v",
    "subquery": "(SELECT a, b, l FROM t) q",
    "cte": "c",
    "join on": "t JOIN (SELECT a AS a2 FROM t) u ON a = a2",
    "join using": "t JOIN (SELECT a FROM t) u USING (a)",
    "left join": "t LEFT JOIN (SELECT a AS a2 FROM t) u ON a = a2",
    "values": "(VALUES (1, 2, [3])) q(a, b, l)",
    "lateral": "t, LATERAL (SELECT t.a + 1 AS z) q",
    "union all": "(SELECT a, b, l FROM t UNION ALL SELECT b, a, l FROM t) q",
}
CLAUSES = {
    "none": "",
    "where": "WHERE a > 1 AND b <> 2",
    "in": "WHERE a IN (1, 2)",
    "in subquery": "WHERE a IN (SELECT b FROM t)",
    "exists": "WHERE EXISTS (SELECT 1 FROM t AS z WHERE z.a = b)",
    "group by": "GROUP BY a",
    "group by all": "GROUP BY ALL",
    "having": "GROUP BY a HAVING count(*) > 1",
    "order by": "ORDER BY 1",
    "limit": "ORDER BY 1 LIMIT 3",
    "qualify": "QUALIFY row_number() OVER (ORDER BY b) = 1",
    "union": "UNION SELECT b FROM t",
    "except": "EXCEPT SELECT b FROM t",
    "sample": "USING SAMPLE 10%",
}


def catalog() -> Catalog:
    """Tables t (a, b, l plain; s encrypted) and p (x plain), a view over t."""
    result = Catalog("x")
    for name, columns in {"t": "abls", "p": "x"}.items():
        table = Table("main", name, result.take_table_id())
        for column in columns:
            table.columns.append(Column(column, "INTEGER", result.take_column_id(), column == "s"))
        result.add(table)
    result.objects.append(HomeObject("VIEW", "main", "v", VIEW))
    return result


def main() -> None:
    """Print the share of refused forms, and which parts they have."""
    known, bound, refused = catalog(), 0, Counter[str]()
    for table in known.tables.values():
        for column in table.columns:
            column.ceiling = "size" if column.encrypted else "plaintext"
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (a INTEGER, b INTEGER, l INTEGER[], s VARCHAR)")
    connection.execute(f"CREATE TABLE p (x INTEGER); {VIEW}")
    target, total = known.tables["main", "p"], 0
    for parts in product(LISTS, SOURCES, CLAUSES):
        items, source, clause = LISTS[parts[0]], SOURCES[parts[1]], CLAUSES[parts[2]]
        before = "WITH c AS (SELECT a, b, l FROM t) " if source == "c" else ""
        query = f"{before}SELECT {items} FROM {source} {clause}"
        sql = f"INSERT INTO p {query}"
        try:
            connection.execute(f"EXPLAIN {sql}")
        except duckdb.Error:
            continue
        bound += 1
        reads = Reads(known, trees.parse(sql), lexer.tokens(query), target)
        try:
            permit.Judge(known, target).judge(
                information_flow.of_change(reads, information_flow.Target(target))
            )
        except errors.LeakageRefused:
            total += 1
            refused.update(f"{kind}: {part}" for kind, part in zip("lsc", parts, strict=True))
    print(f"{total} of {bound} harmless forms are refused ({100 * total / bound:.1f} %)")
    for part, count in refused.most_common(8):
        print(f"{count:6}  {part}")


if __name__ == "__main__":
    main()
