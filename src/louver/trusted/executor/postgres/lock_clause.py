"""A SELECT with a clause such as FOR UPDATE, cut into its pieces by tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.tokens import Token

from louver.names import fold, keyword
from louver.trusted.executor.change.statement_parts import Words, begins_sources, parameter_of
from louver.trusted.executor.postgres.words import refuse
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.sql.trees import parse

#: How rows are locked, the words of SQL behind FOR.
_STRENGTHS = (("NO", "KEY", "UPDATE"), ("KEY", "SHARE"), ("UPDATE",), ("SHARE",))
_TAIL = ("LIMIT", "OFFSET", "FETCH", "FOR")


Range = tuple[int, int]
"""The places of a query's tokens between brackets: its first, and the bracket that ends it."""


@dataclass(frozen=True, slots=True)
class Clause:
    """What is locked: the names behind OF, the strength, and what happens where a row cannot be
    locked at once: "" for waiting, NOWAIT or SKIP LOCKED.
    """

    strength: str
    names: tuple[str, ...]
    wait: str


@dataclass(frozen=True, slots=True)
class Query:
    """A query without its locks: the text up to them and LIMIT, LIMIT and OFFSET as expressions,
    and where its FROM begins.
    """

    core: Words
    limit: str
    offset: str
    clause: Clause
    from_: int
    without: str

    def readable(self) -> Query:
        """The same rows, of which nothing is read off, where the whole has no tree: that says
        nothing of which rows they are.
        """
        words = self.core
        reads = any(words.keyword(position) == "SELECT" for position in range(1, self.from_))
        if parse(words.plain) is not None or words.find("ORDER") >= 0 or reads:
            return self
        at, end = words.tokens[0].end + 1, words.tokens[self.from_].start
        plain = f"{words.plain[:at]} 1 {words.plain[end:]}"
        core = Words(plain, lexer.tokens(plain), words.parameters)
        return replace(self, core=core, without=f"{plain}{self.without[len(words.plain) :]}")


def locks(tokens: Sequence[Token]) -> bool:
    """Whether the query itself, and not one within it, locks rows."""
    return any(_is_lock(tokens, position) for position in _outside(tokens))


def _outside(tokens: Sequence[Token]) -> list[int]:
    """The places outside of brackets, from FROM on."""
    depth, begun, results = 0, False, list[int]()
    for position, token in enumerate(tokens):
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if depth == 0:
            begun = begun or begins_sources(tokens, position)
            if begun:
                results.append(position)
    return results


def _is_lock(tokens: Sequence[Token], position: int) -> bool:
    words = [keyword(token.text) for token in tokens[position : position + 2]]
    return words in (["FOR", "UPDATE"], ["FOR", "NO"], ["FOR", "SHARE"], ["FOR", "KEY"])


def within(tokens: Sequence[Token]) -> list[Range]:
    """The outermost queries between brackets that lock rows."""
    if not any(keyword(token.text) == "FOR" for token in tokens):
        return []
    opened, results = list[int](), list[Range]()
    for position, token in enumerate(tokens):
        if token.text == "(":
            opened.append(position + 1)
        elif token.text == ")" and opened:
            first = opened.pop()
            begins = keyword(tokens[first].text) == "SELECT"
            if begins and locks(tokens[first:position]):
                results = [other for other in results if other[0] < first]
                results.append((first, position))
    return results


def without(words: Words, queries: Sequence[Range]) -> Words:
    """The statement with the same queries, which lock nothing."""
    pieces, position = list[str](), 0
    for first, end in queries:
        pieces.append(words.plain[position : words.tokens[first].start])
        pieces.append(cut(inner(words, first, end)).without)
        position = words.tokens[end].start
    plain = "".join([*pieces, words.plain[position:]])
    return Words(plain, lexer.tokens(plain), words.parameters)


def inner(words: Words, first: int, end: int) -> Words:
    """A query between brackets."""
    plain = words.plain[words.tokens[first].start : words.tokens[end].start]
    return Words(plain, lexer.tokens(plain), words.parameters)


def cut(words: Words) -> Query:
    """Cut a query that locks rows."""
    places = _outside(words.tokens)
    starts = [p for p in places if words.keyword(p) in _TAIL]
    clauses, limits = list[Clause](), {"LIMIT": "", "OFFSET": ""}
    end = words.tokens[starts[0]].start
    left = [words.plain[:end]]
    for start, stop in zip(starts, [*starts[1:], len(words.tokens)], strict=True):
        word = words.keyword(start)
        if word == "FOR":
            clauses.append(_clause(words, start, stop))
            continue
        if word == "FETCH":
            word, first, stop = "LIMIT", start + 2, stop - 2
            if words.keyword(stop + 1) != "ONLY":
                refuse("SELECT FOR UPDATE with FETCH … WITH TIES")
        else:
            first = start + 1
            stop -= words.keyword(stop - 1) in ("ROW", "ROWS")
        piece = words.plain[words.tokens[first].start : words.tokens[stop - 1].end + 1]
        limits[word] = piece if first < stop else "1"
        left.append(f"{word} {limits[word]}")
    if len(clauses) != 1:
        refuse("A query with several clauses such as FOR UPDATE")
    core = Words(left[0], lexer.tokens(left[0]), words.parameters)
    limit = "" if keyword(limits["LIMIT"]) == "ALL" else limits["LIMIT"]
    from_ = next(p for p in places if begins_sources(words.tokens, p))
    return Query(core, limit, limits["OFFSET"], clauses[0], from_, " ".join(left))


def _clause(words: Words, start: int, stop: int) -> Clause:
    text = [words.keyword(position) for position in range(start + 1, stop)]
    strength = next(s for s in _STRENGTHS if tuple(text[: len(s)]) == s)
    at, wait = start + 1 + len(strength), ""
    if text[-1:] == ["NOWAIT"]:
        wait, stop = "NOWAIT", stop - 1
    elif text[-2:] == ["SKIP", "LOCKED"]:
        wait, stop = "SKIP LOCKED", stop - 2
    names = list[str]()
    if at < stop and words.keyword(at) == "OF":
        names = [_name(words, p) for p in range(at + 1, stop) if words.tokens[p].text != ","]
    elif at < stop:
        refuse("A clause of locks of this form")
    return Clause(" ".join(strength), tuple(names), wait)


def _name(words: Words, position: int) -> str:
    text = words.tokens[position].text
    return fold(text) if words.keyword(position) else text


def sources(query: Query) -> tuple[exp.Select, list[tuple[str, exp.Table]]]:
    """The query's tree, and the tables of its FROM by the names that they have there. Whatever else
    is read there is refused.
    """
    tree = parse(query.core.plain)
    if not isinstance(tree, exp.Select) or tree.find(exp.With) is not None:
        refuse("SELECT FOR UPDATE of this form")
    clause = tree.args.get("from_")
    nodes = [clause.this] if clause is not None else []
    nodes += [join.this for join in tree.args.get("joins") or []]
    if any(not isinstance(n, exp.Table) or n.args.get("joins") for n in nodes):
        refuse("SELECT FOR UPDATE of anything but tables")
    return tree, [(_alias(node), node) for node in nodes]


def _alias(node: exp.Table) -> str:
    given = node.args.get("alias")
    name = given.this if given is not None and given.this is not None else node.this
    if not isinstance(name, exp.Identifier):
        refuse("SELECT FOR UPDATE of anything but tables")
    return name.name if name.args.get("quoted") else fold(name.name)


class Numbered:
    """A statement as PostgreSQL reads it: a placeholder that is said twice stays one, as its type
    may be known from one of them alone. ``keys`` are those of the user's text, by place.
    """

    def __init__(
        self, words: Words, keys: Sequence[int | str], tokens: Sequence[Token] | None = None
    ) -> None:
        """Of a statement, or of some ``tokens`` of it."""
        self._words, self._keys = words, keys
        own = words.tokens if tokens is None else tokens
        ordinals = [n for token in own if (n := parameter_of(token)) is not None]
        first = {keys[ordinal]: ordinal for ordinal in reversed(ordinals)}
        self._numbers = {key: number for number, key in enumerate(first, 1)}
        #: the values of its placeholders
        self.values = [words.parameters[ordinal] for ordinal in first.values()]

    def text(self, first: int = 0, last: int | None = None) -> str:
        """Some of its tokens."""
        tokens = self._words.tokens[first:last]
        pieces, position = list[str](), tokens[0].start
        for token in tokens:
            ordinal = parameter_of(token)
            if ordinal is not None:
                number = self._numbers[self._keys[ordinal]]
                pieces += [self._words.plain[position : token.start], spoken().placeholder(number)]
                position = token.end + 1
        return "".join([*pieces, self._words.plain[position : tokens[-1].end + 1]])
