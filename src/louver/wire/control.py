"""All statements ever sent to the control tables: encrypted catalog, ledger, epochs.

They are listed only here, so that a server can refuse every other statement. A `Batch` is one
transaction: a client that keeps no transaction open between two requests repeats in each request
what the transaction has written so far, with the counts returned for it. See spec/prune.md.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from louver.wire import codec
from louver.wire.binary import Reader, malformed
from louver.wire.messages import Count, Rows, Statement

CATALOG_TABLE = "louver_catalog"
CATALOG_CREATE = Statement(
    "CREATE TABLE louver_catalog"
    " (version BIGINT NOT NULL, database_id VARCHAR NOT NULL, key_id VARCHAR NOT NULL,"
    " body BLOB NOT NULL)",
    kind="ddl",
)
CATALOG_READ = Statement("SELECT version, database_id, key_id, body FROM louver_catalog LIMIT 2")
CATALOG_VERSION = Statement("SELECT version FROM louver_catalog")
CATALOG_INSERT = "INSERT INTO louver_catalog VALUES ($1, $2, $3, $4)"
CATALOG_UPDATE = "UPDATE louver_catalog SET version = $1, body = $2 WHERE version = $3"
CATALOG_REPLACE = (
    "UPDATE louver_catalog SET version = $1, database_id = $2, body = $3 WHERE version = $4"
)

LEDGER_CREATE = Statement(
    "CREATE TABLE IF NOT EXISTS louver_ledger (sequence BIGINT PRIMARY KEY, body BLOB NOT NULL)",
    kind="ddl",
)
LEDGER_TAIL = "SELECT sequence, body FROM louver_ledger WHERE sequence > $1 ORDER BY sequence"
LEDGER_APPEND = "INSERT INTO louver_ledger VALUES ($1, $2)"
LEDGER_REPLACE = "UPDATE louver_ledger SET body = $2 WHERE sequence = $1"

EPOCH_CREATE = Statement(
    "CREATE TABLE IF NOT EXISTS louver_epoch (epoch BIGINT PRIMARY KEY)", kind="ddl"
)
EPOCH_HIGHEST = Statement("SELECT max(epoch) FROM louver_epoch")
EPOCH_CLAIM = "INSERT INTO louver_epoch VALUES ($1)"

#: The tokens of those who write rows (docs/decisions/0020). One of version 0 is void; number 0 is
#: the gate, which changes whenever one is made, and when all of them become void. Each has a second
#: row under the negative number, which a transaction changes that adds references: who removes keys
#: that rows may refer to changes all of these, and the gate.
WRITERS_TABLE = "louver_writer"
WRITERS_CREATE = Statement(
    "CREATE TABLE IF NOT EXISTS louver_writer AS SELECT 0::BIGINT AS writer, 0::BIGINT AS version,"
    " 0::BIGINT AS turn",
    kind="ddl",
)
WRITERS_HIGHEST = Statement("SELECT max(writer) FROM louver_writer")
WRITERS_GATE = Statement("UPDATE louver_writer SET turn = turn + 1 WHERE writer = 0", kind="write")
WRITERS_VOID = Statement(
    "UPDATE louver_writer SET version = 0, turn = turn + 1 WHERE version > 0 OR writer = 0",
    kind="write",
)
WRITERS_TIDY = Statement(
    "DELETE FROM louver_writer WHERE version = 0 AND writer <> 0", kind="write"
)
WRITERS_HOLD = Statement("UPDATE louver_writer SET turn = turn + 1 WHERE writer <= 0", kind="write")
WRITER_ADD = (
    "INSERT INTO louver_writer SELECT sign * $1, version, 0 FROM louver_catalog,"
    " (VALUES (1), (-1)) AS token(sign) WHERE version = $2"
)
WRITER_ENTER = "UPDATE louver_writer SET turn = turn + 1 WHERE writer = $1 AND version = $2"

#: Names of tables, in SQLite's dialect: the query of `table_names` for a control file.
TABLE_NAMES = Statement(
    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
)

#: Every statement that may be sent, and whether it writes.
ALLOWED: dict[str, str] = {
    **{
        statement.sql: statement.kind
        for statement in (
            CATALOG_CREATE, CATALOG_READ, CATALOG_VERSION, LEDGER_CREATE, EPOCH_CREATE,
            EPOCH_HIGHEST, TABLE_NAMES,
        )
    },
    LEDGER_TAIL: "query",
    **dict.fromkeys((CATALOG_INSERT, CATALOG_UPDATE, LEDGER_APPEND, EPOCH_CLAIM), "write"),
}  # fmt: skip

VERSION = 1
MAX_STATEMENTS = 256
MAX_BYTES = 64 << 20
MAX_COUNT = (1 << 64) - 1
_HEAD = struct.Struct(">BBHH")
_LONG = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class Batch:
    """One transaction.

    Attributes:
        statements: executed in this order.
        expected: rows that the first ones must affect; any other number is a lost race.
        keep: whether to commit; otherwise everything is rolled back and only the answers remain.
    """

    statements: tuple[Statement, ...]
    expected: tuple[int, ...] = ()
    keep: bool = False

    def encode(self) -> bytes:
        """The batch as bytes."""
        parts = [_HEAD.pack(VERSION, self.keep, len(self.statements), len(self.expected))]
        parts += [_LONG.pack(count) for count in self.expected]
        parts += [_framed(codec.encode(statement)) for statement in self.statements]
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes) -> Batch:
        """Decode the batch of `encode`; `wire.format` for other bytes and unlisted statements."""
        reader = Reader(data)
        version, keep, count, known = _HEAD.unpack(reader.take(_HEAD.size))
        if version != VERSION or keep > 1 or not 0 < count <= MAX_STATEMENTS or known > count:
            raise malformed("another version, or too many statements")
        expected = tuple(reader.long(MAX_COUNT) for _ in range(known))
        statements = tuple(_allowed(codec.decode(_frame(reader))) for _ in range(count))
        reader.end()
        return cls(statements, expected, bool(keep))


def encode_answers(answers: list[Rows | Count]) -> bytes:
    """Encode what the statements of a batch returned, in order."""
    return b"".join(_framed(codec.encode(answer)) for answer in answers)


def decode_answers(data: bytes, count: int) -> list[Rows | Count]:
    """Decode the answers of `encode_answers`; `wire.format` for any other bytes."""
    reader = Reader(data)
    answers: list[Rows | Count] = []
    for _ in range(count):
        answer = codec.decode(_frame(reader))
        if not isinstance(answer, Rows | Count):
            raise malformed("an answer of another kind")
        answers.append(answer)
    reader.end()
    return answers


def _allowed(message: object) -> Statement:
    if not isinstance(message, Statement) or message.tables:
        raise malformed("not a statement")
    if ALLOWED.get(message.sql) != message.kind:
        raise malformed("a statement that is not for control tables")
    return message


def _framed(data: bytes) -> bytes:
    return _LONG.pack(len(data)) + data


def _frame(reader: Reader) -> bytes:
    return bytes(reader.part(codec.MAX_TABLE_BYTES))
