"""Layers of codes taken off by a PostgreSQL server: the outer one by its own SHA-256
(spec/onion.md), the one of join groups by AES, where the extension pgcrypto is (spec/eq.md).
"""

from __future__ import annotations

import re

from louver import errors

#: The schemas of pgcrypto, if the role may call what is needed of it there.
PROBE = (
    "SELECT n.nspname::text FROM pg_catalog.pg_extension e"
    " JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace"
    " WHERE e.extname = 'pgcrypto' AND n.nspname ~ '^[a-z_][a-z0-9_]*$'"
    " AND has_schema_privilege(n.oid, 'USAGE')"
    " AND has_function_privilege("
    "to_regprocedure(n.nspname || '.encrypt(bytea, bytea, text)'), 'EXECUTE')"
    " AND has_function_privilege("
    "to_regprocedure(n.nspname || '.decrypt(bytea, bytea, text)'), 'EXECUTE')"
)
REJOIN = '"{schema}".aes(⟦0⟧, ⟦1⟧)'
_SCHEMA = re.compile(r'"(?P<schema>[a-z_][a-z0-9_]*)"\.aes')
_NO_CODE = "'00000000-0000-0000-0000-000000000000'"
_PAD = "encode(substr(sha256({keys} || int8send(row_id)), {first}, 8), 'hex')"
_MODE = "'aes-ecb/pad:none'"
_HALF = 4294967295
_LAST_ROUND = 11


def opened(code: str, keys: str, *, wide: bool) -> str:
    """A code without the pad of its row."""
    if not wide:
        pad = _bits(_PAD.format(keys=keys, first=1))
        return f"nullif({code} # {pad}::bigint, 0)"
    halves = []
    for first in (1, 9):
        half = _bits(f"encode(substr(uuid_send({code}), {first}, 8), 'hex')")
        halves.append(f"int8send(({half} # {_bits(_PAD.format(keys=keys, first=first))})::bigint)")
    return f"nullif(encode({' || '.join(halves)}, 'hex')::uuid, {_NO_CODE})"


def rejoin(schemas: list[str]) -> dict[str, str]:
    """The operation of a server whose pgcrypto is in one of these schemas."""
    named = [schema for schema in schemas if _SCHEMA.match(REJOIN.format(schema=schema))]
    return {"rejoin": REJOIN.format(schema=named[0])} if named else {}


def joined(operation: str, code: str, keys: str, *, wide: bool) -> str:
    """A code under its group's key; ``keys`` is a version byte and a key of AES-128."""
    match = _SCHEMA.match(operation)
    if match is None:
        raise errors.make("internal", detail="no AES on this server")
    key = f"substr({keys}::bytea, 2, 16)"
    if wide:
        block = f'"{match["schema"]}".decrypt(uuid_send({code}), {key}, {_MODE})'
        return f"encode({block}, 'hex')::uuid"
    # A Feistel network backwards. A query in itself, because an expression would double its text
    # with each round.
    block = f"int8send(f.round::bigint) || int8send(f.high), {key}, {_MODE}"
    mask = f"encode(substr(\"{match['schema']}\".encrypt({block}), 1, 4), 'hex')"
    return (
        "(WITH RECURSIVE f(round, high, low) AS ("
        f"SELECT {_LAST_ROUND}, ({code} >> 32) & {_HALF}, {code} & {_HALF}"
        f" UNION ALL SELECT f.round - 1, f.low # ('x' || {mask})::bit(32)::bigint, f.high"
        " FROM f WHERE f.round >= 0)"
        " SELECT f.high << 32 | f.low FROM f WHERE f.round = -1)"
    )


def _bits(hexadecimal: str) -> str:
    return f"('x' || {hexadecimal})::bit(64)"
