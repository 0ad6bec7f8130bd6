"""Names and words as DuckDB compares them: the letters A to Z are folded, and no others.

"ä" and "Ä" are two names, as are "ÖL" and "öl". Python's own lower() would make one of them, and
what is of one column or table would be taken for the other's. Keywords have ASCII letters only, so
the same holds for them: "ı" in capitals is not I. So no other module calls lower(), upper()
or casefold().
"""

from __future__ import annotations

import string
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

_SMALL = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_CAPITAL = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)


def fold(name: str) -> str:
    """A name, or a word, in the form in which equal ones are equal."""
    return name.lower() if name.isascii() else name.translate(_SMALL)


def keyword(text: str) -> str:
    """A word in capitals, as keywords are compared."""
    return text.upper() if text.isascii() else text.translate(_CAPITAL)


def quoted(name: str) -> str:
    """A name as a quoted identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def folded_sql(expression: str) -> str:
    """`fold` of an expression, in DuckDB's SQL, whose own lower() folds all letters."""
    return f"translate({expression}, '{string.ascii_uppercase}', '{string.ascii_lowercase}')"


@dataclass(frozen=True, slots=True)
class OwnSchemas:
    """Schemas that the language of a session gives every database (planner/sql/dialect.py)."""

    #: the folded schema in which names without one are created
    home: str = "main"
    #: the folded schema by which temporary objects are called
    temporary: str = "main"
    #: what a temporary table's name stands behind
    stand_in: str = "temp.main"
    #: the folded name by which the database itself stands before a name of two parts
    database: str = "memory"
    #: whether a search path of the user's is all that is searched; the home comes last otherwise
    path_is_all: bool = False


DUCKDB_SCHEMAS = OwnSchemas()
OWN: ContextVar[OwnSchemas] = ContextVar("louver_own_schemas", default=DUCKDB_SCHEMAS)
own_schemas: Callable[[], OwnSchemas] = OWN.get
"""The schemas of the session that runs now."""


def is_home(schema: str) -> bool:
    """Whether a schema is the one of names without a schema."""
    return fold(schema) == own_schemas().home


#: Of DuckDB's tables that describe the schema: the rows of the database itself, and not of files
#: that are attached. A macro may have the name of any function that stands alone.
HERE = "database_name IN (system.main.current_database(), 'temp')"
#: Of these the rows of one table, by its folded names.
TABLE_IS = f"{HERE} AND {folded_sql('schema_name')} = $1 AND {folded_sql('table_name')} = $2"
