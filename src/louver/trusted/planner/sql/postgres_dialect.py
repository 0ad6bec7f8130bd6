"""PostgreSQL's language.

Tokens are PostgreSQL's: strings with escapes and names by code points are decoded, since what
reads tokens looks for names in them, and numbers are written as decimal ones. Trees are those of
sqlglot of which `postgres_trees.require` is certain.
"""

from __future__ import annotations

import re

from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from louver.names import OwnSchemas, keyword
from louver.trusted.planner.sql import postgres_names, postgres_trees, postgres_types
from louver.trusted.planner.sql.dialect import DUCKDB, Dialect
from louver.trusted.planner.sql.postgres_nesting import PostgresNesting

_START = r"A-Za-z_\u0080-\U0010ffff"
#: What a name may go on with: where it does, no E'' string, dollar quote or placeholder begins.
_ALONE = rf"(?<![{_START}0-9$])"
_ESCAPED = r"'(?:[^'\\]|\\.|'')*'"
#: A string goes on behind a line's end, and its escapes go on with it.
_CONTINUED = rf"(?:(?:[ \t\f\v]|--[^\r\n]*)*[\r\n](?:[ \t\n\r\f\v]|--[^\r\n]*[\r\n])*{_ESCAPED})*"
#: What stands before a string that goes on with another one: blanks, comments and a line's end.
_NEW_LINE = re.compile(r"(?:[ \t\f\v]|--[^\r\n]*)*[\r\n](?:[ \t\n\r\f\v]|--[^\r\n]*[\r\n])*")
#: No group of placeholders that PostgreSQL does not have: `?` is an operator, `:` cuts arrays.
_NEVER = "(?!)"


def _words(text: str, raw: list[Token]) -> list[Token]:
    """Sqlglot's tokens with strings and names decoded."""
    results: list[Token] = []
    position = 0
    while position < len(raw):
        token, size = raw[position], 1
        start = text[token.start]
        if token.token_type == TokenType.BYTE_STRING and start in "eE":
            _require_whole(text, raw, position)
            token = _as(token, TokenType.STRING, _escapes(text[token.start + 2 : token.end]))
        elif start in "uU" and text[token.start + 1 : token.start + 2] == "&":
            token, size = _by_code_points(text, raw, position)
        elif token.token_type == TokenType.STRING and start == "'":
            token, size = _continued(text, raw, position)
        elif token.token_type == TokenType.HEREDOC_STRING:
            token = _as(token, TokenType.STRING, _between_dollars(text, token))
        results.append(token)
        position += size
    return results


def _as(token: Token, kind: TokenType, text: str, end: int | None = None) -> Token:
    last = token.end if end is None else end
    return Token(kind, text, token.line, token.col, token.start, last, token.comments)


def _require_whole(text: str, raw: list[Token], position: int) -> None:
    """Refuse a string with escapes that goes on behind a line's end: sqlglot forgets its kind."""
    if position + 1 < len(raw):
        after = raw[position + 1]
        if text[after.start] == "'" and "\n" in text[raw[position].end : after.start]:
            raise TokenError("a string with escapes that is continued")


def _continued(text: str, raw: list[Token], position: int) -> tuple[Token, int]:
    """A string with those behind it that go on with it, and how many of sqlglot's it is."""
    first = last = raw[position]
    words, size = [first.text], 1
    for token in raw[position + 1 :]:
        gap = text[last.end + 1 : token.start]
        if token.token_type != TokenType.STRING or text[token.start] != "'":
            break
        if _NEW_LINE.fullmatch(gap) is None:
            break
        last, size = token, size + 1
        words.append(token.text)
    return (first if size == 1 else _as(first, first.token_type, "".join(words), last.end)), size


def _between_dollars(text: str, token: Token) -> str:
    """What a dollar-quoted string says: all that stands between its tags, as it stands there."""
    whole = text[token.start : token.end + 1]
    size = whole.index("$", 1) + 1
    return whole[size:-size]


_SHORT = {"b": 8, "f": 12, "n": 10, "r": 13, "t": 9}
_ESCAPE = re.compile(
    r"''|\\(?:(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9A-Fa-f]{1,2})"
    r"|u(?P<four>[0-9A-Fa-f]{4})|U(?P<eight>[0-9A-Fa-f]{8})|(?P<other>.))|(?P<plain>[^'\\]+)",
    re.DOTALL,
)


def _escapes(body: str) -> str:
    """What a string with escapes says, which may be written byte by byte."""
    result = bytearray()
    for match in _ESCAPE.finditer(body):
        if match["octal"]:
            result.append(int(match["octal"], 8) & 0xFF)
        elif match["hex"]:
            result.append(int(match["hex"], 16))
        elif match["four"] or match["eight"]:
            # Both halves of a pair are written one after the other, and joined at the end.
            code = int(match["four"] or match["eight"], 16)
            result += _character(code).encode("utf-16-le", "surrogatepass").decode(
                "utf-16-le", "surrogatepass"
            ).encode("utf-8", "surrogatepass")  # fmt: skip
        elif match["other"] in ("u", "U"):
            raise TokenError("an escape of a character without its number")
        elif match["other"]:
            short = _SHORT.get(match["other"])
            result += bytes((short,)) if short else match["other"].encode()
        else:
            result += (match["plain"] or "'").encode()
    try:
        decoded = result.decode("utf-8", "surrogatepass")
        return decoded.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeError:
        raise TokenError("a string that is not Unicode") from None


def _character(code: int) -> str:
    if code > 0x10FFFF:
        raise TokenError("a character beyond Unicode")
    return chr(code)


def _by_code_points(text: str, raw: list[Token], position: int) -> tuple[Token, int]:
    """The token of U&'…' or U&"…", with UESCAPE behind it, and how many of sqlglot's it is."""
    first, size = raw[position], 1
    kind, last = TokenType.STRING, first
    if first.token_type != TokenType.UNICODE_STRING:
        at = position + 2
        quoted = at < len(raw) and raw[at].start == first.start + 2
        if first.end != first.start or not quoted or text[raw[at].start] not in "'\"":
            return first, 1  # a name, and the operator &
        last, size = raw[at], 3
        kind = TokenType.IDENTIFIER if text[last.start] == '"' else TokenType.STRING
    mark, body = text[first.start + 2], text[first.start + 3 : last.end]
    escape, behind = "\\", raw[position + size : position + size + 2]
    if len(behind) == 2 and keyword(behind[0].text) == "UESCAPE":
        escape, last, size = behind[1].text, behind[1], size + 2
    if len(escape) != 1 or escape in "+'\" \t\n\r\f\v" or escape in "0123456789abcdefABCDEF":
        raise TokenError("UESCAPE of a character that cannot be one")
    return _as(first, kind, _code_points(body.replace(mark * 2, mark), escape), last.end), size


def _code_points(body: str, escape: str) -> str:
    sign = re.escape(escape)
    pattern = rf"{sign}(?:([0-9A-Fa-f]{{4}})|\+([0-9A-Fa-f]{{6}})|({sign})|)"

    def character(match: re.Match[str]) -> str:
        if match[3]:
            return escape
        if not (match[1] or match[2]):
            raise TokenError("an escape of a character without its number")
        return _character(int(match[1] or match[2], 16))

    try:
        pairs = re.sub(pattern, character, body).encode("utf-16-le", "surrogatepass")
        return pairs.decode("utf-16-le")
    except UnicodeError:
        raise TokenError("half of a pair of surrogates") from None


_LISTING = (
    "SELECT n.nspname AS schema, c.relname AS name, CASE c.relkind WHEN 'v' THEN 'view'"
    " WHEN 'S' THEN 'sequence' ELSE 'table' END AS type FROM pg_catalog.pg_class AS c"
    " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE c.relkind IN"
    " ('r', 'v', 'S') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 1, 2"
)


def _description(table: str) -> str:
    """The columns of a table or view, as psql describes them."""
    name = table.replace("'", "''")
    return (
        'SELECT a.attname AS "column", pg_catalog.format_type(a.atttypid, a.atttypmod) AS type,'
        " a.attnotnull AS not_null, pg_catalog.pg_get_expr(d.adbin, d.adrelid) AS default_value"
        " FROM pg_catalog.pg_attribute AS a LEFT JOIN pg_catalog.pg_attrdef AS d"
        " ON d.adrelid = a.attrelid AND d.adnum = a.attnum"
        f" WHERE a.attrelid = '{name}'::regclass AND a.attnum > 0 AND NOT a.attisdropped"
        " ORDER BY a.attnum"
    )


DIALECT = Dialect(
    name="postgres",
    sqlglot=Postgres(),
    lexeme=re.compile(
        rf"""(?P<string>'(?:[^']|'')*')
          | (?P<escape>{_ALONE}[eE]{_ESCAPED}{_CONTINUED})
          | (?P<quoted>"(?:[^"]|"")*")
          | (?P<comment>--[^\r\n]*)
          | (?P<block>/\*)
          | (?P<dollar>{_ALONE}\$(?:[{_START}][{_START}0-9]*)?\$)
          | (?P<numbered>{_ALONE}\$\d+)
          | (?P<named>{_NEVER})
          | (?P<question>{_NEVER})
          | (?P<colon>{_NEVER}(?P<colon_name>{_NEVER}))
          | (?P<semicolon>;)
        """,
        re.VERBOSE | re.DOTALL,
    ),
    nests_comments=True,
    split_number=re.compile(r"\b0[xXoObB]|" + DUCKDB.split_number.pattern),
    number=re.compile(
        r"0[xX](?:_?[0-9A-Fa-f])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|" + DUCKDB.number.pattern
    ),
    early=frozenset(),
    late=frozenset(),
    texts_name=False,
    takes_names=frozenset(),
    pivots=frozenset(),
    placeholder=DUCKDB.placeholder,
    string=DUCKDB.string,
    catalog_type=postgres_types.catalog_type,
    exact_types=frozenset(("numeric",)),
    whole_sums="DECIMAL(38,0)",
    divides_sums=True,
    reads_off=True,
    has_own_statements=True,
    fails_whole=True,
    explains="COSTS OFF, ",
    nesting=PostgresNesting,
    names_objects=frozenset(
        (
            "regclass",
            "regtype",
            "regproc",
            "regprocedure",
            "regoper",
            "regoperator",
            "regnamespace",
            "regrole",
            "regconfig",
            "regdictionary",
            "regcollation",
        )
    ),
    draws=frozenset(("nextval", "setval")),
    prints_objects=True,
    listing=_LISTING,
    description=_description,
    own_type=postgres_types.own_type,
    schemas=OwnSchemas("public", "pg_temp", "pg_temp", database="", path_is_all=True),
    words=_words,
    blanks=" \t\n\r\f\v",
    require=postgres_trees.require,
    require_names=postgres_names.require_distinct,
)
