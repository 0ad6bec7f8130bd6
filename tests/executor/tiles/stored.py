"""What a server stores in tiles and beside them, and how it may alter that."""

from __future__ import annotations

import pyarrow as pa

from louver.trusted.backends import tile_texts
from louver.wire.messages import Statement
from tests.twin import Twin

TYPES = {
    "BIGINT": "(i * 7919) % 1000003", "INTEGER": "i % 17", "SMALLINT": "i % 300 - 150",
    "HUGEINT": "i * 1180591620717411303424", "UBIGINT": "18446744073709551615 - i",
    "BOOLEAN": "i % 3 = 0", "DOUBLE": "i / 7.0", "FLOAT": "i * 0.5",
    "DECIMAL(15,2)": "i / 100", "DECIMAL(38,10)": "i / 8",
    "DATE": "DATE '1992-01-01' + i::INT % 900",
    "TIMESTAMP": "TIMESTAMP '2000-01-01' + to_seconds(i * 997)",
    "TIME": "TIME '00:00' + to_seconds(i)",
    "TIMESTAMPTZ": "TIMESTAMPTZ '2000-01-01 00:00:00+00' + to_hours(i)",
    "VARCHAR": "repeat('ab', i % 9) || i", "BLOB": "encode('x' || i)",
    "UUID": "md5(i::VARCHAR)::UUID", "INTERVAL": "to_days(i::INT)", "INTEGER[]": "[i, NULL, i + 1]",
    "STRUCT(a INTEGER, b VARCHAR)": "{'a': i, 'b': 'x' || i}", "JSON": "'{\"a\": ' || i || '}'",
    "TINYINT": "i % 100", "UTINYINT": "i % 200",
    "ENUM('a', 'b', 'c')": "(['a', 'b', 'c'])[1 + i % 3]",
    "ENUM('x', 'y')[]": "CASE i % 2 WHEN 0 THEN ['x', 'y'] ELSE [] END",
}  # fmt: skip

ATTACKS = {
    "moved": "UPDATE {tiles} SET {copy} = (SELECT {copy} FROM {tiles} WHERE first_row = {second})"
    " WHERE first_row = {first}",
    "of another column": "UPDATE {tiles} SET {copy} = {other} WHERE first_row = {first}",
    "cut off": "UPDATE {tiles} SET {copy} = {copy}[1:40]::BLOB WHERE first_row = {first}",
    "nothing": "UPDATE {tiles} SET {copy} = ''::BLOB WHERE first_row = {first}",
    "NULL": "UPDATE {tiles} SET {copy} = NULL WHERE first_row = {first}",
    "altered": "UPDATE {tiles} SET {copy} = repeat('\\x02', octet_length({copy})::INT)::BLOB"
    " WHERE first_row = {first}",
    "gone": "DELETE FROM {tiles} WHERE first_row = {first}",
    "all gone": "DELETE FROM {tiles}",
    "renumbered": "UPDATE {tiles} SET first_row = first_row + 1 WHERE first_row = {second}",
    "of another layout": "UPDATE {tiles} SET {layout} = {layout} + 1 WHERE first_row = {first}",
    "of no layout": "UPDATE {tiles} SET {layout} = NULL WHERE first_row = {first}",
    "twice": "INSERT INTO {tiles} SELECT * FROM {tiles} WHERE first_row = {first}",
    "a row without one": "UPDATE t SET {copy} = ''::BLOB WHERE {copy} <> ''::BLOB",
    "a row that was never there": "INSERT INTO t (row_id, {copy}, {other}) SELECT max(row_id) + 1,"
    " ''::BLOB, ''::BLOB FROM t",
}


def tiles(twin: Twin, table: str = "t") -> pa.Table:
    """The server's table of a table's tiles."""
    name = twin.table(table).tile_table
    return twin.tap.query(Statement(f'SELECT * FROM "{name}" ORDER BY first_row'))


def alone(twin: Twin, table: str = "t") -> list[int]:
    """The ids of the rows that are in no tile."""
    sql = tile_texts.alone(twin.session.context.backend, twin.table(table))
    return list(twin.tap.query(Statement(sql)).column(0).to_pylist())
