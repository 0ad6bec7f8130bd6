"""The control statements in PostgreSQL's words; their tables are in a schema of their own."""

from __future__ import annotations

import re

from louver.wire import control
from louver.wire.messages import Statement

SCHEMA = "louver"
CREATE_SCHEMA = f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"
GATE_NAME = "louver_gate"
CREATE_GATE = f"CREATE TABLE IF NOT EXISTS {SCHEMA}.{GATE_NAME} ()"
HOLD = f"LOCK TABLE {SCHEMA}.{GATE_NAME} IN ACCESS SHARE MODE"
#: Found by number, however many clients write; each change leaves a dead row behind, and a page
#: that counts as full early is tidied before a look-up goes through many of them.
CREATE_WRITERS = (
    f"CREATE TABLE IF NOT EXISTS {SCHEMA}.{control.WRITERS_TABLE} (writer bigint PRIMARY KEY,"
    " version bigint NOT NULL, turn bigint NOT NULL) WITH (fillfactor = 25)"
)
_FIRST_WRITER = (
    f"INSERT INTO {SCHEMA}.{control.WRITERS_TABLE} VALUES (0, 0, 0) ON CONFLICT DO NOTHING"
)
DEFINE = f"LOCK TABLE {SCHEMA}.{GATE_NAME} IN ACCESS EXCLUSIVE MODE"
TABLE_NAMES = Statement(
    "SELECT c.relname::text FROM pg_catalog.pg_class c"
    " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    f" WHERE n.nspname = '{SCHEMA}' AND c.relkind IN ('r', 'p', 'v', 'm', 'f') ORDER BY 1"
)
_NAME = re.compile(r"\blouver_(?:catalog|ledger|epoch|writer)\b")
_TYPES = {"BLOB": "bytea", "VARCHAR": "text"}
_TYPE = re.compile(r"\b(?:BLOB|VARCHAR)\b")


def _translated(sql: str) -> str:
    sql = _NAME.sub(lambda match: f"{SCHEMA}.{match[0]}", sql)
    return _TYPE.sub(lambda match: _TYPES[match[0]], sql)


_TEXTS = {
    text: _translated(text)
    for text in (
        item.sql if isinstance(item, Statement) else item
        for name, item in vars(control).items()
        if name.startswith(("CATALOG_", "LEDGER_", "EPOCH_", "WRITER")) and name.isupper()
    )
    if isinstance(text, str) and " " in text
} | {control.WRITERS_CREATE.sql: _FIRST_WRITER}


def control_text(sql: str) -> str:
    """A control statement as this server takes it; any other text as it is."""
    return _TEXTS.get(sql, sql)


def is_control(sql: str) -> bool:
    """Whether a text is a control statement."""
    return sql in _TEXTS
