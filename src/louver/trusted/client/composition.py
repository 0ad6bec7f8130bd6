"""The text of a composed query: operations on a query give a query, and the planner sees one.

Where SQL allows, an operation extends the block that is there (FROM, WHERE, ORDER BY, LIMIT) and
does not nest it, because a server decides more of one block than of a block around another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.tokens import TokenType

from louver import errors
from louver.names import fold, keyword, quoted
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.trees import parse

#: The name in conditions of a query that was not given one.
UNNAMED = "unnamed_relation"
_JOINS = {
    "inner": "INNER JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "outer": "FULL JOIN",
    "semi": "SEMI JOIN",
    "anti": "ANTI JOIN",
}
#: How a query, or a change that may read one, begins.
_STARTS = frozenset(
    ("SELECT", "FROM", "WITH", "VALUES", "PIVOT", "UNPIVOT", "INSERT", "UPDATE", "DELETE", "MERGE")
)
_STORED = frozenset(("CREATE", "ALTER", "DROP", "COMMENT"))


@dataclass(frozen=True, slots=True)
class Composition:
    """One query in parts.

    ``text`` is the whole query; where it is empty, the query is ``SELECT * FROM source WHERE …``.
    """

    #: what follows FROM: a table, a query in brackets, or joined sources with their names
    source: str
    #: the name of the source in conditions; the sources of a join have their own
    alias: str = UNNAMED
    where: tuple[str, ...] = ()
    text: str = ""
    joined: bool = False
    #: whether LIMIT may be appended to the text
    unlimited: bool = False
    #: values of $1, $2, …
    values: tuple[object, ...] = ()
    #: local data that the text names
    frames: Mapping[str, object] = field(default_factory=dict)

    @property
    def sql(self) -> str:
        """The query, whose placeholders are numbered."""
        return self.text or f"SELECT * {self._block}"

    @property
    def _block(self) -> str:
        """FROM and WHERE, where the query consists of these."""
        conditions = " AND ".join(f"({condition})" for condition in self.where)
        return f"FROM {self._named}" + (f" WHERE {conditions}" if conditions else "")

    @property
    def _named(self) -> str:
        return self.source if self.joined else f"{self.source} AS {quoted(self.alias)}"

    def _open(self) -> Composition:
        """The same rows as a source without anything behind it but conditions."""
        return replace(self, source=f"({self.text})", text="", where=()) if self.text else self

    def _nested(self) -> Composition:
        """The same rows as a source that has one name."""
        if not self.text and not self.where and not self.joined:
            return self
        source = f"({self.sql})"
        return replace(self, source=source, text="", where=(), joined=False, unlimited=False)

    def _closed(self, text: str, *, unlimited: bool = False) -> Composition:
        return replace(
            self, source="", where=(), text=text, joined=False, unlimited=unlimited,
            alias=self.alias or UNNAMED,
        )  # fmt: skip

    def named(self, alias: str) -> Composition:
        """The same query under another name."""
        return replace(self._nested(), alias=alias)

    def filtered(self, condition: str) -> Composition:
        """The rows that meet a condition."""
        opened = self._open()
        return replace(opened, where=(*opened.where, expression(condition)))

    def projected(self, items: str, *, distinct: bool = False) -> Composition:
        """Expressions of each row."""
        word = "DISTINCT " if distinct else ""
        return self._closed(f"SELECT {word}{items} {self._open()._block}")

    def aggregated(self, items: str, groups: str) -> Composition:
        """Expressions of each group; without ``groups``, of what is not aggregated."""
        groups = expression(groups) if groups else _groups(items)
        clause = f" GROUP BY {groups}" if groups else ""
        return self._closed(f"SELECT {items} {self._open()._block}{clause}")

    def ordered(self, items: str) -> Composition:
        """The rows in an order."""
        text = f"SELECT * {self._open()._block} ORDER BY {items}"
        return self._closed(text, unlimited=True)

    def limited(self, count: int, offset: int) -> Composition:
        """The first rows, after ``offset`` others."""
        clause = f"LIMIT {count}" + (f" OFFSET {offset}" if offset else "")
        if self.text and self.unlimited:
            return self._closed(f"{self.text} {clause}")
        return self._closed(f"SELECT * {self._open()._block} {clause}")

    def set_operation(self, word: str, other: Composition) -> Composition:
        """UNION, EXCEPT or INTERSECT ALL of two queries."""
        right, values, frames = self._beside(other)
        whole = self._closed(f"({self.sql}) {word} ALL ({right.sql})")
        return replace(whole, values=values, frames=frames)

    def joined_with(self, other: Composition, condition: str | None, how: str) -> Composition:
        """A join; ``condition`` is an expression or names of columns, None for all pairs."""
        kind = "CROSS JOIN" if condition is None else _JOINS.get(fold(how), "")
        if not kind:
            raise errors.make("relation.join", how=how, known=", ".join(_JOINS))
        right, values, frames = self._beside(other)
        right = right._nested()
        left = self._nested() if self.text or self.where else self
        if not left.joined and fold(left.alias) == fold(right.alias):
            if right.alias != UNNAMED:
                raise errors.make("relation.alias", alias=right.alias)
            right = right.named(f"{UNNAMED}_2")
        on = "" if condition is None else f" {_on(condition)}"
        source = f"{left._named} {kind} {right._named}{on}"
        return Composition(source, "", joined=True, values=values, frames=frames)

    def within(self, name: str, query: Composition) -> Composition:
        """Another query, in whose text this one has a name."""
        shifted, values, frames = self._beside(query)
        text = with_queries(shifted.sql, {name: self.sql})
        return replace(shifted._closed(text), values=values, frames=frames)

    def _beside(
        self, other: Composition
    ) -> tuple[Composition, tuple[object, ...], Mapping[str, object]]:
        """Another query with its placeholders numbered after these, the values and the frames."""
        for name, frame in other.frames.items():
            if self.frames.get(name, frame) is not frame:
                raise errors.make("relation.frame", name=name)
        frames = {**self.frames, **other.frames}
        if not self.values or not other.values:
            return other, self.values or other.values, frames
        after = len(self.values)
        shifted = replace(
            other,
            source=lexer.renumbered(other.source, after),
            text=lexer.renumbered(other.text, after),
            where=tuple(lexer.renumbered(part, after) for part in other.where),
        )
        return shifted, (*self.values, *other.values), frames


def named_table(name: str) -> Composition:
    """A table or view as a query; its name as in SQL, with schema and database perhaps."""
    parts = [token for token in lexer.tokens(name) if token.text != "."]
    if not parts or not all(_is_name(token.token_type) for token in parts) or len(parts) > 3:
        return Composition(quoted(name), name)
    return Composition(".".join(quoted(token.text) for token in parts), parts[-1].text)


def literal(value: object) -> str:
    """A Python value as a constant of SQL, for options of functions and of COPY."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        items = (f"{literal(str(key))}: {literal(part)}" for key, part in value.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(literal, value)) + "]"
    return "'" + str(value).replace("'", "''") + "'"


def statement(
    text: lexer.Text, values: Sequence[object], frames: Mapping[str, object] | None = None
) -> Composition:
    """A query that somebody wrote, with the values of its placeholders in the order of the text."""
    numbers: dict[str, str] = {}
    ordered: list[object] = []
    for key, value in zip(text.parameters, values, strict=False):
        if fold(str(key)) not in numbers:
            ordered.append(value)
            numbers[fold(str(key))] = f"${len(ordered)}"
    sql = lexer.without_comments(text.home).strip()
    sql = lexer.filled(sql, numbers) if numbers else sql
    parts = [] if numbers else lexer.tokens(text.plain)
    words = [keyword(token.text) for token in parts]
    if words[:3] == ["SELECT", "*", "FROM"] and len(words) == 4:
        parts = parts[2:]
    if len(parts) == 2 and words[:1] in (["FROM"], ["SELECT"]) and _is_name(parts[1].token_type):
        return Composition(quoted(parts[1].text), parts[1].text, frames=frames or {})
    return Composition("", text=sql, values=tuple(ordered), frames=frames or {})


def _is_name(type_: TokenType) -> bool:
    return type_ in (TokenType.VAR, TokenType.IDENTIFIER)


def with_queries(sql: str, queries: Mapping[str, str]) -> str:
    """A statement in whose text names stand for queries: WITH is put where its query begins."""
    named = ", ".join(f"{quoted(name)} AS ({query})" for name, query in queries.items())
    sql = lexer.without_comments(sql)
    parts = lexer.tokens(sql)
    words = [keyword(token.text) for token in parts]
    if words[:1] == ["EXPLAIN"] and len(parts) == 2:
        # What stands behind the word of a command is one token.
        position = sql.index(parts[1].text, parts[0].end)
        return sql[:position] + with_queries(sql[position:], queries)
    if words[:1] in (["SUMMARIZE"], ["DESCRIBE"], ["DESC"]) and len(parts) == 2:
        return f"{words[0]} WITH {named} FROM {sql[parts[1].start :]}"
    first = words.index("AS") + 1 if words[:1] == ["CREATE"] and "AS" in words else 0
    start = next((i for i in range(first, len(words)) if words[i] in _STARTS), None)
    if start is None or (words[0] in _STORED and not first):
        raise errors.make("relation.statement")
    position = parts[start].start
    if words[start] != "WITH":
        return f"{sql[:position]}WITH {named} {sql[position:]}"
    recursive = " RECURSIVE" if words[start + 1 : start + 2] == ["RECURSIVE"] else ""
    after = parts[start + bool(recursive)].end + 1
    return f"{sql[:position]}WITH{recursive} {named}, {sql[after:].lstrip()}"


def expression(text: object) -> str:
    """The text of an expression, or of several; raises ``relation.expression`` otherwise."""
    sql = str(text)
    texts = lexer.split(sql)
    detail = ""
    if len(texts) != 1:
        detail = "it is empty" if not texts else "it has more than one statement"
    elif texts[0].parameters:
        detail = "placeholders belong into the text of sql(), which takes their values"
    elif not _balanced(texts[0].plain):
        detail = "its brackets do not match"
    if detail:
        raise errors.make("relation.expression", text=f"{sql:.80}", detail=detail)
    return lexer.without_comments(texts[0].home).strip()


def names(items: Sequence[object]) -> str:
    """Expressions as a list: one text is a list already, of several each text names a column."""
    if len(items) == 1:
        return expression(items[0])
    return columns(items)


def columns(items: Sequence[object]) -> str:
    """Names of columns, or expressions of DuckDB's own class, as a list."""
    return ", ".join(quoted(x) if isinstance(x, str) else expression(x) for x in items)


def items(text: str) -> list[str]:
    """The expressions of a list."""
    sql = expression(text)
    depth, start, parts = 0, 0, list[str]()
    for token in lexer.tokens(sql):
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            continue
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if depth == 0 and token.text == ",":
            parts.append(sql[start : token.start].strip())
            start = token.end + 1
    return [*parts, sql[start:].strip()]


def _groups(items: str) -> str:
    """What rows are grouped by where that is not said: names are written out and nothing where all
    expressions are aggregates, because a server decides more of that than of GROUP BY ALL.
    """
    tree = parse(f"SELECT {items}")
    nodes = [] if tree is None else [node.unalias() for node in tree.expressions]
    columns = [node for node in nodes if isinstance(node, exp.Column)]
    if not nodes or not all(isinstance(node, exp.AggFunc | exp.Column) for node in nodes):
        return "ALL"
    if any(isinstance(node.this, exp.Star) for node in columns):
        return "ALL"
    return ", ".join(".".join(quoted(part.name) for part in node.parts) for node in columns)


def _balanced(plain: str) -> bool:
    open_brackets: list[str] = []
    closing = {")": "(", "]": "[", "}": "{"}
    for token in lexer.tokens(plain):
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            continue
        if token.text in closing.values():
            open_brackets.append(token.text)
        elif token.text in closing and (
            not open_brackets or open_brackets.pop() != closing[token.text]
        ):
            return False
    return not open_brackets


def _on(condition: str) -> str:
    """USING where a condition is a list of names, else ON."""
    sql = expression(condition)
    parts = lexer.tokens(sql)
    listed = all(
        _is_name(token.token_type) if position % 2 == 0 else token.text == ","
        for position, token in enumerate(parts)
    )
    if listed and len(parts) % 2:
        return f"USING ({sql})"
    return f"ON ({sql})"
