"""Words of statements: what kind they are of, and what clients learn that they did."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlglot.tokens import Token, TokenType

from louver.names import fold, keyword

#: Statements that the local engine can describe.
DESCRIBED = frozenset((
    "SELECT", "WITH", "VALUES", "TABLE", "(", "INSERT", "UPDATE", "DELETE", "MERGE",
))  # fmt: skip
_KINDS = {
    "BEGIN": "begins", "START": "begins",
    "COMMIT": "controls", "END": "controls", "ROLLBACK": "controls", "ABORT": "controls",
    "SAVEPOINT": "controls", "RELEASE": "controls",
    "COPY": "copies",
    "FETCH": "varies", "EXECUTE": "varies", "EXPLAIN": "varies", "SHOW": "varies",
}  # fmt: skip
_FIXED = {
    "BEGIN": "BEGIN", "START": "START TRANSACTION", "COMMIT": "COMMIT", "END": "COMMIT",
    "ROLLBACK": "ROLLBACK", "ABORT": "ROLLBACK", "SAVEPOINT": "SAVEPOINT", "RELEASE": "RELEASE",
    "SET": "SET", "RESET": "RESET", "SHOW": "SHOW", "EXPLAIN": "EXPLAIN", "PREPARE": "PREPARE",
    "DECLARE": "DECLARE CURSOR", "LISTEN": "LISTEN", "UNLISTEN": "UNLISTEN", "NOTIFY": "NOTIFY",
    "LOCK": "LOCK TABLE", "TRUNCATE": "TRUNCATE TABLE", "VACUUM": "VACUUM", "ANALYZE": "ANALYZE",
    "COMMENT": "COMMENT", "CHECKPOINT": "CHECKPOINT", "REINDEX": "REINDEX",
}  # fmt: skip
_MODIFIERS = frozenset((
    "OR", "REPLACE", "GLOBAL", "LOCAL", "TEMP", "TEMPORARY", "UNLOGGED", "UNIQUE", "RECURSIVE",
    "CONSTRAINT", "TRUSTED", "PROCEDURAL",
))  # fmt: skip
_LONG = {"MATERIALIZED": 2, "FOREIGN": 2, "EVENT": 2, "USER": 2, "ACCESS": 2, "DEFAULT": 2}
_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE")
_MAY_DEFINE = frozenset(("CREATE", "ALTER", "DROP", "DISCARD"))
_MAY_SET = frozenset(("SET", "RESET", "DISCARD"))
_UNDOING = frozenset(("ROLLBACK", "ABORT", "COMMIT", "END", "RELEASE"))
_ENDS = {"COMMIT": "commit", "END": "commit", "ROLLBACK": "rollback", "ABORT": "rollback"}
_FOLLOWING: tuple[list[str], ...] = (["ISOLATION", "LEVEL", "READ", "COMMITTED"], [])


def kind(tokens: Sequence[Token]) -> str:
    """What a statement is to the session that runs it: see `Kind` of the crate louver-proxy."""
    return _KINDS.get(keyword(tokens[0].text), "other") if tokens else "empty"


def may_set(tokens: Sequence[Token]) -> bool:
    """Whether settings may be other ones after a statement."""
    words = keyword(tokens[0].text)
    return words in _MAY_SET or any(fold(token.text) == "set_config" for token in tokens)


def may_undo(tokens: Sequence[Token]) -> bool:
    """Whether a statement may take back what was set or defined in a transaction."""
    return keyword(tokens[0].text) in _UNDOING


def ends(tokens: Sequence[Token]) -> str:
    """Whether a statement is "commit" or "rollback" of a transaction, and nothing more; "" if
    not.
    """
    words = _words(tokens)
    plain = words[1:] in ([], ["WORK"], ["TRANSACTION"])
    return _ENDS.get(words[0], "") if words and plain else ""


def begins_plainly(tokens: Sequence[Token]) -> bool:
    """Whether BEGIN or START TRANSACTION says nothing more than READ COMMITTED."""
    words = _words(tokens)
    rest = words[2:] if words[1:2] in (["WORK"], ["TRANSACTION"]) else words[1:]
    return rest in _FOLLOWING and (words[0] == "BEGIN" or words[:2] == ["START", "TRANSACTION"])


def may_define(tokens: Sequence[Token]) -> bool:
    """Whether names may mean something else after a statement."""
    words = _words(tokens)
    stores = any(b == "INTO" and a not in ("INSERT", "MERGE") for a, b in pairwise(words))
    return words[0] in _MAY_DEFINE or (words[0] in DESCRIBED and stores)


def changes(tokens: Sequence[Token]) -> bool:
    """Whether a statement changes rows."""
    return any(word in _CHANGES for word in _words(tokens))


def modes(sql: str, tokens: Sequence[Token]) -> str:
    """What BEGIN and START TRANSACTION say of the transaction."""
    rest = tokens[1:]
    if rest and keyword(rest[0].text) in ("WORK", "TRANSACTION"):
        rest = rest[1:]
    # Those behind the first are counted from there.
    return sql[tokens[0].end + 1 + rest[0].start :] if rest else ""


def deallocated(tokens: Sequence[Token]) -> str | None:
    """The name that DEALLOCATE gives up, "" of all; None of any other statement."""
    words = _words(tokens)
    if words[:1] == ["DISCARD"] and words[1:2] == ["ALL"]:
        return ""
    if words[:1] != ["DEALLOCATE"]:
        return None
    last = tokens[-1]
    if last.token_type == TokenType.IDENTIFIER:
        return last.text
    return "" if keyword(last.text) == "ALL" else fold(last.text)


def _words(tokens: Sequence[Token]) -> list[str]:
    """Words in upper case; "" for what is quoted."""
    quoted = (TokenType.STRING, TokenType.IDENTIFIER)
    return ["" if t.token_type in quoted else keyword(t.text) for t in tokens]


def tag(tokens: Sequence[Token], affected: int, *, has_rows: bool) -> str:
    """What a statement did. With rows, their number goes behind a tag that ends with a blank."""
    words = _words(tokens)
    word = words[0]
    if word == "SET" and words[1:2] == ["CONSTRAINTS"]:
        return "SET CONSTRAINTS"
    if word == "ROLLBACK" and "TO" in words[1:4]:
        return "ROLLBACK"
    if word in _FIXED:
        return _FIXED[word]
    verb = _verb(tokens) if word in ("WITH", "SELECT", "VALUES", "TABLE", "(") else word
    if verb in _CHANGES:
        head = "INSERT 0" if verb == "INSERT" else verb
        return f"{head} " if has_rows else f"{head} {max(affected, 0)}"
    if has_rows:
        return f"{'FETCH' if word == 'FETCH' else 'SELECT'} "
    if word in ("SELECT", "WITH"):  # SELECT … INTO
        return f"SELECT {max(affected, 0)}"
    if word in ("MOVE", "FETCH"):
        return f"{word} {max(affected, 0)}"
    return _of_definition(words, affected)


def has_query(tokens: Sequence[Token]) -> bool:
    """Whether a statement is a query that gives rows."""
    word = keyword(tokens[0].text) if tokens else ""
    return word in DESCRIBED and _verb(tokens) in ("SELECT", "VALUES", "TABLE")


def _verb(tokens: Sequence[Token]) -> str:
    """The word that a statement with WITH goes on with."""
    depth = 0
    for token, word in zip(tokens, _words(tokens), strict=True):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and word in (*_CHANGES, "SELECT", "VALUES", "TABLE"):
            return word
    return "SELECT"


def _of_definition(words: Sequence[str], affected: int) -> str:
    word = words[0]
    if word in ("DEALLOCATE", "DISCARD", "CLOSE"):
        whole = words[1:2] == ["ALL"] or words[1:3] == ["PREPARE", "ALL"]
        if word == "DISCARD":
            return " ".join(words[:2]).replace("TEMPORARY", "TEMP")
        head = "CLOSE CURSOR" if word == "CLOSE" else word
        return f"{head} ALL" if whole else head
    if word not in ("CREATE", "ALTER", "DROP"):
        return word
    named = [other for other in words[1:] if other not in _MODIFIERS]
    count = _LONG.get(named[0], 1) if named else 1
    if named[:1] == ["TEXT"]:
        count = 3
    if named[:1] == ["OPERATOR"] and named[1:2] in (["CLASS"], ["FAMILY"]):
        count = 2
    if word == "CREATE" and named[:1] == ["TABLE"] and affected >= 0:
        return f"SELECT {affected}"
    if word == "CREATE" and named[:1] == ["TABLE"] and _stores_query(words):
        return "CREATE TABLE AS"
    return " ".join([word, *named[:count]])


def _stores_query(words: Sequence[str]) -> bool:
    """Whether it is CREATE TABLE … AS."""
    depth = 0
    for word, following in pairwise(words):
        depth += (word == "(") - (word == ")")
        if depth == 0 and word == "AS" and following in (*DESCRIBED, "EXECUTE"):
            return True
    return False
