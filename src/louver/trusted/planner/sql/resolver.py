"""Names to tables of the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Protocol

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from louver.names import fold, is_home
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.sql.trees import parse
from louver.trusted.vault.catalog import DATABASE, TEMPORARY, Catalog, Table

_NO_WORDS = (TokenType.IDENTIFIER, TokenType.STRING)
STRINGS = (
    TokenType.STRING,
    TokenType.BYTE_STRING,
    TokenType.HEREDOC_STRING,
    TokenType.RAW_STRING,
    TokenType.UNICODE_STRING,
    TokenType.NATIONAL_STRING,
)


def name_tokens(tokens: Iterable[Token]) -> list[Token]:
    """What may be a name. A string is none where the language has no such names: that it is like a
    name must not change what a server is asked for.
    """
    texts_name = spoken().texts_name
    return [token for token in tokens if texts_name or token.token_type not in STRINGS]


def name_words(tokens: Iterable[Token]) -> set[str]:
    """The same as words, folded."""
    return {fold(token.text) for token in name_tokens(tokens)}


def pivots(tokens: Sequence[Token]) -> bool:
    """Whether a statement has a PIVOT or UNPIVOT. Which columns it gives may depend on the rows."""
    return bool(_pivot_words(tokens))


def _pivot_words(tokens: Sequence[Token]) -> list[Token]:
    words = spoken().pivots
    return [t for t in tokens if fold(t.text) in words and t.token_type not in _NO_WORDS]


def lists_values(sql: str, tokens: Sequence[Token]) -> bool:
    """Whether every PIVOT of a query says which values it takes, so that its columns are known."""
    tree = parse(sql)
    nodes = [] if tree is None else list(tree.find_all(exp.Pivot))
    return len(nodes) == len(_pivot_words(tokens)) and all(
        node.args.get("unpivot") or _lists(node.args.get("fields") or node.expressions)
        for node in nodes
    )


def _lists(fields: Sequence[exp.Expr]) -> bool:
    return bool(fields) and all(
        isinstance(item, exp.In) and item.expressions and not item.args.get("query")
        for item in fields
    )


def schema_of(database: str, schema: str) -> str | None:
    """The schema that the catalog looks in for a name with these before it; None where these are
    not of this database.
    """
    if not database:
        return schema
    if fold(database) == DATABASE:
        return DATABASE if is_home(schema) else schema
    return TEMPORARY if fold(database) == TEMPORARY and is_home(schema) else None


class Names(Protocol):
    """What is asked of the database locally."""

    def tables_of(self, sql: str) -> set[str]:
        """The names of the tables and views that a statement reads."""


class Resolver:
    """Names to tables of the catalog, with views looked through."""

    def __init__(
        self, catalog: Catalog, tree: exp.Expr | None, tokens: Sequence[Token] = ()
    ) -> None:
        self.catalog = catalog
        self.tree = tree
        self.views: list[str] = []
        self.view_tokens: list[Token] = []
        names = [fold(t.name) for t in tree.find_all(exp.Table)] if tree else []
        self._ctes = {fold(c.alias) for c in tree.find_all(exp.CTE)} if tree else set()
        known = {fold(o.name) for o in catalog.objects if o.kind == "VIEW"}
        self.views = [name for name in names if name in known]
        self.hidden = self._hidden(tokens)
        self.views += sorted(self.hidden)

    def _hidden(self, tokens: Sequence[Token]) -> set[str]:
        """Names of tables that the tree does not show as tables: what a macro reads, what is
        named by a string (``FROM 't'``), what ``query`` and ``query_table`` are given.
        """
        macros = {fold(o.name) for o in self.catalog.objects if o.kind == "MACRO"}
        words = [fold(token.text) for token in tokens]
        names = self._by_text(tokens, words) if spoken().texts_name else set[str]()
        #: whether a text within the statement may name a table
        self.by_text = bool(names)
        return names | (macros & name_words(tokens))

    def _by_text(self, tokens: Sequence[Token], words: list[str]) -> set[str]:
        names: set[str] = set()
        by_text = self._takes_names(words)
        tables = {name for _, name in self.catalog.tables}
        if by_text or pivots(tokens):
            # ``histogram(t, c)`` and ``PIVOT t ON c`` name tables where the tree has none.
            views = {fold(o.name) for o in self.catalog.objects if o.kind == "VIEW"}
            names |= (tables | views).intersection(words)
        for position, token in enumerate(tokens):
            if token.token_type not in (TokenType.STRING, TokenType.HEREDOC_STRING):
                continue
            if by_text:
                names |= {fold(inner.text) for inner in lexer.tokens(token.text)} | {
                    words[position]
                }
            elif (
                position
                and words[position - 1] in ("from", "join", ",")
                and words[position] in tables
            ):
                names.add(words[position])
        return names

    def _takes_names(self, words: Sequence[str]) -> bool:
        """Whether a source is a function that takes a table or a query as an argument."""
        takers = spoken().takes_names
        if self.tree is None:
            return any(word in takers and after == "(" for word, after in pairwise(words))
        calls = (node.this for node in self.tree.find_all(exp.Table))
        return any(isinstance(call, exp.Func) and fold(call.name) in takers for call in calls)

    def table(self, node: exp.Table) -> Table | None:
        """The catalog's table of a reference; None for views, CTEs, functions and files."""
        schema = schema_of(node.catalog, node.db)
        if not isinstance(node.this, exp.Identifier) or schema is None:
            return None
        if not schema and fold(node.name) in self._ctes:
            return None
        return self.catalog.named(schema, node.name)

    def reads_generated(self) -> bool:
        """Whether a table that the tree names has generated columns."""
        named = self.tree.find_all(exp.Table) if self.tree is not None else ()
        return any((table := self.table(node)) and table.has_generated for node in named)

    def named_tables(self) -> list[Table]:
        """Every table that the tree may name, where it names all that the statement reads: a name
        that a common table expression has too may still be the table's.
        """
        nodes = self.tree.find_all(exp.Table) if self.tree is not None else ()
        words = {fold(node.name) for node in nodes}
        tables = {t.id: t for (_, name), t in self.catalog.tables.items() if name in words}
        return [tables[key] for key in sorted(tables)]

    def all_tables(self, text: lexer.Text, home: Names) -> list[Table]:
        """Every table that the statement may read, through views too. A name that could be one
        counts as one: reading too much is slow, reading too little is wrong.
        """
        words = set(self.hidden)
        if self.tree is not None:
            words |= {fold(t.name) for t in self.tree.find_all(exp.Table)}
        # DuckDB tells no names of a text with placeholders.
        values = dict.fromkeys((fold(str(key)) for key in text.parameters), "NULL")
        for name in home.tables_of(lexer.filled(text.home, values) if values else text.home):
            words.add(fold(name.split(".")[-1].strip('"')))
        seen: set[str] = set()
        tables: dict[int, Table] = {}
        while words - seen:
            name = (words - seen).pop()
            seen.add(name)
            for (_, table_name), table in self.catalog.tables.items():
                if table_name == name:
                    tables[table.id] = table
            for item in self.catalog.objects:
                if item.kind in ("VIEW", "MACRO") and fold(item.name) == name:
                    self.views.append(name)
                    tokens = lexer.tokens(item.sql)
                    self.view_tokens += tokens
                    words |= name_words(tokens)
        return [tables[key] for key in sorted(tables)]
