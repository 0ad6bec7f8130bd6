"""Names and words as DuckDB compares them: the letters A to Z are folded, and no others.

"ä" and "Ä" are two names, as are "ÖL" and "öl". Python's own lower() would make one of them, and
what is of one column or table would be taken for the other's. Keywords have ASCII letters only, so
the same holds for them: "ı" in capitals is not I. So no other module calls lower(), upper()
or casefold().
"""

from __future__ import annotations

import string

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


#: Of DuckDB's tables that describe the schema: the rows of the database itself, and not of files
#: that are attached. A macro may have the name of any function that stands alone.
HERE = "database_name IN (system.main.current_database(), 'temp')"
#: Of these the rows of one table, by its folded names.
TABLE_IS = f"{HERE} AND {folded_sql('schema_name')} = $1 AND {folded_sql('table_name')} = $2"
