"""Statements that make what is declared, composed of PostgreSQL's catalog, which prints no CREATE
TABLE. Every name has its schema, so that they mean the same under any search path.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from louver.names import quoted
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.postgres_types import own_type
from louver.trusted.vault.catalog import HomeObject

_TABLE = """
SELECT n.nspname::text, c.relname::text, c.relpersistence::text, pg_get_partkeydef(c.oid),
    pg_get_expr(c.relpartbound, c.oid),
    (SELECT string_agg(format('%I.%I', pn.nspname, p.relname), ', ' ORDER BY i.inhseqno)
     FROM pg_inherits AS i JOIN pg_class AS p ON p.oid = i.inhparent
     JOIN pg_namespace AS pn ON pn.oid = p.relnamespace WHERE i.inhrelid = c.oid)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = $1
"""
_COLUMNS = """
SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity::text,
    a.attgenerated::text, pg_get_expr(d.adbin, d.adrelid),
    (SELECT format('%I.%I', n.nspname, k.collname) FROM pg_collation AS k
     JOIN pg_namespace AS n ON n.oid = k.collnamespace
     WHERE k.oid = a.attcollation AND a.attcollation <> t.typcollation),
    a.attislocal,
    (SELECT s.seqrelid FROM pg_depend AS e JOIN pg_sequence AS s ON s.seqrelid = e.objid
     WHERE e.refclassid = 'pg_class'::regclass AND e.refobjid = a.attrelid
     AND e.refobjsubid = a.attnum AND e.deptype = 'i')
FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_CONSTRAINTS = """
SELECT conname::text, contype::text, pg_get_constraintdef(oid),
    (SELECT a.attname::text FROM pg_attribute AS a
     WHERE a.attrelid = conrelid AND a.attnum = conkey[1] AND contype = 'n')
FROM pg_constraint WHERE conrelid = $1 AND (conislocal OR $2::integer = 1)
    AND contype IN ('p', 'u', 'c', 'x', 'f', 'n')
ORDER BY position(contype::text IN 'npucxf'), oid
"""
_SEQUENCE = """
SELECT format('%I.%I', n.nspname, c.relname), s.seqincrement, s.seqmin, s.seqmax, s.seqstart,
    s.seqcache, s.seqcycle
FROM pg_sequence AS s JOIN pg_class AS c ON c.oid = s.seqrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE s.seqrelid = $1
"""


#: What texts are printed under.
_PRINTED = {
    "search_path": "", "datestyle": "ISO, MDY", "intervalstyle": "postgres",
    "extra_float_digits": "1",
}  # fmt: skip
_SETTINGS = "SELECT " + ", ".join(f"current_setting('{name}')" for name in _PRINTED)
_SET = "SELECT " + ", ".join(
    f"set_config('{name}', ${ordinal}, true)" for ordinal, name in enumerate(_PRINTED, 1)
)
UNLOGGED = "UNLOGGED "
TEXT = own_type("VARCHAR")
_LITERAL = r"('(?:[^']|'')*')::(\w+(?: \w+)*)"
#: The marks of CYCLE, which PostgreSQL prints in a form that it does not read.
_MARKS = re.compile(rf"(\bSET (?:\w+|\"[^\"]+\")) TO {_LITERAL} DEFAULT {_LITERAL}(?= USING)")
#: How the text of the sequence of an identity column begins, which its table makes.
OF_IDENTITY = "CREATE SEQUENCE IF NOT EXISTS "


@dataclass(frozen=True, slots=True)
class Form:
    """How a table is printed otherwise than it is declared: without these constraints and without
    the defaults (or computations) of these columns, with ``texts`` as plain texts, without
    collations, alone (neither a part nor a child of others, with all columns), and with every
    column ENC.
    """

    constraints: frozenset[str] = frozenset()
    defaults: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    collations: bool = True
    alone: bool = False
    encrypted: bool = False


def fetched(connection: PostgresConnection, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Rows of the catalog, in which every name has its schema, and every constant a form that means
    the same under any setting.
    """
    from louver.trusted.executor.local.postgres.failures import translated

    with translated(sql):
        (_, _, before) = connection.raw.run([(_SETTINGS, [])])[0]
        again = [(_SET, [column[0].as_py() for column in before])]
        given = [None if value is None else str(value) for value in parameters]
        reply = connection.raw.run([(_SET, [*_PRINTED.values()]), (sql, given), *again])[1]
        return connection.python_rows(connection.table(reply))


def table(
    connection: PostgresConnection,
    oid: int,
    *,
    temporary: bool = False,
    references: bool = True,
    form: Form = Form(),
) -> str:
    """CREATE TABLE; on demand as a temporary one, or without foreign keys. What stands in for the
    table without these draws its identities from the table's sequences.
    """
    alone = temporary or form.alone
    row = fetched(connection, _TABLE, oid)[0]
    schema, name, persistence, partitions, bound, parents = row
    is_temporary = temporary or persistence == "t"
    target = f"TEMP TABLE {quoted(name)}" if is_temporary else f"TABLE {path_of(schema, name)}"
    if persistence == "u" and not is_temporary:
        target = f"{UNLOGGED}{target}"
    constraints = fetched(connection, _CONSTRAINTS, oid, 1 if form.alone else 0)
    named = {of: constraint for constraint, kind, _, of in constraints if kind == "n"}
    items = [
        _column(connection, column, named, form, temporary=is_temporary, counts=references)
        for column in fetched(connection, _COLUMNS, oid)
        if column[7] or alone
    ]
    items += [
        f"CONSTRAINT {quoted(constraint)} {text}"
        for constraint, kind, text, _ in constraints
        if kind != "n" and (references or kind != "f") and constraint not in form.constraints
    ]
    if bound and not alone:
        # Its columns are the parent's; what it says of its own stands in brackets.
        body = f" ({', '.join(items)})" if items else ""
        return f"CREATE {target} PARTITION OF {parents}{body} {bound}"
    sql = f"CREATE {target} ({', '.join(items)})"
    if parents and not alone:
        sql += f" INHERITS ({parents})"
    return sql + (f" PARTITION BY {partitions}" if partitions and not alone else "")


def _column(
    connection: PostgresConnection,
    column: tuple[Any, ...],
    named: dict[str, str],
    form: Form,
    *,
    temporary: bool,
    counts: bool,
) -> str:
    name, type_, not_null, identity, generated, expression, collation, _, sequence = column
    text = f"{quoted(name)} {TEXT if name in form.texts else type_}"
    if collation and form.collations:
        text += f" COLLATE {collation}"
    if form.encrypted:
        text += " ENC"
    if name in form.defaults:
        pass
    elif identity:
        kind = "ALWAYS" if identity == "a" else "BY DEFAULT"
        path, *of_sequence = fetched(connection, _SEQUENCE, sequence)[0]
        if not counts:
            # Doubled, its quotes end no constant, whatever the settings are.
            literal = path.replace("'", "''")
            return f"{text} DEFAULT pg_catalog.nextval('{literal}'::pg_catalog.regclass) NOT NULL"
        named_so = "" if temporary else f"SEQUENCE NAME {path} "
        text += f" GENERATED {kind} AS IDENTITY ({named_so}{options(*of_sequence)})"
    elif generated:
        text += f" GENERATED ALWAYS AS ({expression}) {'STORED' if generated == 's' else 'VIRTUAL'}"
    elif expression is not None:
        text += f" DEFAULT {expression}"
    if not_null:
        text += f" CONSTRAINT {quoted(named[name])} NOT NULL" if name in named else " NOT NULL"
    return text


def sequence(row: tuple[Any, ...]) -> str:
    """CREATE SEQUENCE of a row of `catalog_queries.SEQUENCES`, and whose column it goes with. The
    one of an identity column comes with its table, so it is made only where there is none.
    """
    (
        schema,
        name,
        temporary,
        start,
        increment,
        low,
        high,
        cycle,
        type_,
        cache,
        identity,
        owner,
        unlogged,
        _,
    ) = row
    target = f"TEMP SEQUENCE {quoted(name)}" if temporary else f"SEQUENCE {path_of(schema, name)}"
    target = target.replace("SEQUENCE ", "SEQUENCE IF NOT EXISTS ", 1) if identity else target
    # That of an identity column is as its table is.
    target = f"{UNLOGGED}{target}" if unlogged and not identity else target
    listed = options(increment, low, high, start, cache, cycle)
    owned = f"; ALTER SEQUENCE {path_of(schema, name)} OWNED BY {owner}" if owner else ""
    return f"CREATE {target} AS {type_} {listed}" + ("" if identity else owned)


def options(increment: int, low: int, high: int, start: int, cache: int, cycle: bool) -> str:
    """What a sequence is declared by."""
    return (
        f"INCREMENT BY {increment} MINVALUE {low} MAXVALUE {high} START WITH {start}"
        f" CACHE {cache} {'CYCLE' if cycle else 'NO CYCLE'}"
    )


def view(connection: PostgresConnection, oid: int) -> str:
    """CREATE VIEW."""
    row = fetched(
        connection,
        "SELECT CASE WHEN n.oid = pg_my_temp_schema() THEN 'pg_temp' ELSE n.nspname::text END,"
        " c.relname::text, pg_get_viewdef(c.oid),"
        " array_to_string(c.reloptions, ', ') FROM pg_class AS c"
        " JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = $1",
        oid,
    )[0]
    options = f" WITH ({row[3]})" if row[3] else ""
    query = _MARKS.sub(r"\1 TO \3 \2 DEFAULT \5 \4", row[2].rstrip("; "))
    return f"CREATE VIEW {path_of(row[0], row[1])}{options} AS {query}"


def function(connection: PostgresConnection, oid: int) -> str:
    """CREATE FUNCTION or PROCEDURE."""
    return str(fetched(connection, "SELECT pg_get_functiondef($1)", oid)[0][0]).rstrip("\n")


_ENUM = "SELECT quote_literal(enumlabel) FROM pg_enum WHERE enumtypid = $1 ORDER BY enumsortorder"
#: What differs from what PostgreSQL would choose is said, and so is the name of the multirange.
_RANGE = """
SELECT 'SUBTYPE = ' || format_type(r.rngsubtype, NULL),
    (SELECT format('SUBTYPE_OPCLASS = %I.%I', n.nspname, o.opcname) FROM pg_opclass AS o
     JOIN pg_namespace AS n ON n.oid = o.opcnamespace
     WHERE o.oid = r.rngsubopc AND NOT o.opcdefault),
    (SELECT format('COLLATION = %I.%I', n.nspname, k.collname) FROM pg_collation AS k
     JOIN pg_namespace AS n ON n.oid = k.collnamespace
     WHERE k.oid = r.rngcollation AND k.oid <> t.typcollation),
    CASE WHEN r.rngcanonical <> 0 THEN 'CANONICAL = ' || r.rngcanonical::regproc END,
    CASE WHEN r.rngsubdiff <> 0 THEN 'SUBTYPE_DIFF = ' || r.rngsubdiff::regproc END,
    (SELECT format('MULTIRANGE_TYPE_NAME = %I.%I', n.nspname, m.typname) FROM pg_type AS m
     JOIN pg_namespace AS n ON n.oid = m.typnamespace WHERE m.oid = r.rngmultitypid)
FROM pg_range AS r JOIN pg_type AS t ON t.oid = r.rngsubtype WHERE r.rngtypid = $1
"""
_FIELDS = """
SELECT format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)) || coalesce((
    SELECT format(' COLLATE %I.%I', n.nspname, k.collname) FROM pg_collation AS k
    JOIN pg_namespace AS n ON n.oid = k.collnamespace JOIN pg_type AS b ON b.oid = a.atttypid
    WHERE k.oid = a.attcollation AND k.oid <> b.typcollation), '') FROM pg_type AS t
JOIN pg_attribute AS a ON a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
WHERE t.oid = $1 ORDER BY a.attnum
"""
_DOMAIN = """
SELECT format_type(t.typbasetype, t.typtypmod), t.typnotnull, t.typdefault,
    (SELECT string_agg(format('CONSTRAINT %I %s', conname, pg_get_constraintdef(oid)), ' '
     ORDER BY oid) FROM pg_constraint WHERE contypid = t.oid AND contype = 'c'),
    (SELECT format('%I.%I', n.nspname, k.collname) FROM pg_collation AS k
     JOIN pg_namespace AS n ON n.oid = k.collnamespace JOIN pg_type AS b ON b.oid = t.typbasetype
     WHERE k.oid = t.typcollation AND t.typcollation <> b.typcollation)
FROM pg_type AS t WHERE t.oid = $1
"""


def type_(connection: PostgresConnection, oid: int, kind: str, name: str) -> str:
    """CREATE TYPE or DOMAIN, by the kind of the type and its name as SQL."""
    if kind == "e":
        labels = ", ".join(label for (label,) in fetched(connection, _ENUM, oid))
        return f"CREATE TYPE {name} AS ENUM ({labels})"
    if kind == "c":
        fields = ", ".join(text for (text,) in fetched(connection, _FIELDS, oid))
        return f"CREATE TYPE {name} AS ({fields})"
    if kind == "r":
        parts = ", ".join(filter(None, fetched(connection, _RANGE, oid)[0]))
        return f"CREATE TYPE {name} AS RANGE ({parts})"
    base, not_null, default, checks, collation = fetched(connection, _DOMAIN, oid)[0]
    words = [f"CREATE DOMAIN {name} AS {base}"]
    words += [f"COLLATE {collation}"] if collation else []
    words += [f"DEFAULT {default}"] if default is not None else []
    words += ["NOT NULL"] if not_null else []
    return " ".join([*words, *([checks] if checks else [])])


def path_of(schema: str, name: str) -> str:
    """The full name of an object."""
    return f"{quoted(schema)}.{quoted(name)}"


def statements(item: HomeObject) -> list[str]:
    """The statements of a sequence's text: the first makes it, later ones need its table."""
    return [statement.home for statement in lexer.split(item.sql)]
