"""The numbers of PostgreSQL's own types by the names that it prints; they never change.

`tests/local_postgres/test_plain_types.py` compares this with a server's catalog.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Of a type and of its arrays, for those that go beside a statement in their binary form.
_NUMBERS = {
    "boolean": (16, 1000), "bytea": (17, 1001), '"char"': (18, 1002), "name": (19, 1003),
    "bigint": (20, 1016), "smallint": (21, 1005), "int2vector": (22, 1006),
    "integer": (23, 1007), "text": (25, 1009), "oid": (26, 1028), "tid": (27, 1010),
    "xid": (28, 1011), "cid": (29, 1012), "oidvector": (30, 1013), "json": (114, 199),
    "xml": (142, 143), "point": (600, 1017), "lseg": (601, 1018), "path": (602, 1019),
    "box": (603, 1020), "polygon": (604, 1027), "line": (628, 629), "cidr": (650, 651),
    "real": (700, 1021), "double precision": (701, 1022), "circle": (718, 719),
    "macaddr8": (774, 775), "money": (790, 791), "macaddr": (829, 1040), "inet": (869, 1041),
    "character": (1042, 1014), "bpchar": (1042, 1014), "character varying": (1043, 1015),
    "date": (1082, 1182), "time without time zone": (1083, 1183),
    "timestamp without time zone": (1114, 1115), "timestamp with time zone": (1184, 1185),
    "interval": (1186, 1187), "time with time zone": (1266, 1270), "bit": (1560, 1561),
    "bit varying": (1562, 1563), "numeric": (1700, 1231), "refcursor": (1790, 2201),
    "uuid": (2950, 2951), "txid_snapshot": (2970, 2949), "pg_lsn": (3220, 3221),
    "tsvector": (3614, 3643), "tsquery": (3615, 3645), "jsonb": (3802, 3807),
    "int4range": (3904, 3905), "numrange": (3906, 3907), "tsrange": (3908, 3909),
    "tstzrange": (3910, 3911), "daterange": (3912, 3913), "int8range": (3926, 3927),
    "jsonpath": (4072, 4073), "int4multirange": (4451, 6150), "nummultirange": (4532, 6151),
    "tsmultirange": (4533, 6152), "tstzmultirange": (4534, 6153), "datemultirange": (4535, 6155),
    "int8multirange": (4536, 6157), "pg_snapshot": (5038, 5039), "xid8": (5069, 271),
}  # fmt: skip
#: A length or a number of digits, and the fields of an interval.
_MODIFIER = re.compile(r"\([\d,-]+\)")
_FIELDS = re.compile(r"(interval) [a-z ]+")


def number_of(name: str) -> int | None:
    """The number of one of PostgreSQL's own types, by a name with or without a modifier; None of
    any other.
    """
    bare = _MODIFIER.sub("", name.removeprefix("pg_catalog."))
    element = bare.removesuffix("[]")
    known = _NUMBERS.get(_FIELDS.sub(r"\1", element))
    return None if known is None else known[element != bare]


def numbers() -> Iterable[tuple[int, int]]:
    """The numbers of each type and of its arrays."""
    return _NUMBERS.values()


def names() -> list[str]:
    """The names of all types that are known, without arrays."""
    return list(_NUMBERS)
