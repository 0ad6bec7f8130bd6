"""Everything that a statement may depend on, for forms outside of the grammar.

A statement reads only what it names: tables by their names, or through views and macros that name
them; of a table, the columns that it names, or all if columns can be read without being named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from functools import cached_property
from typing import Protocol

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from louver.names import fold, own_schemas
from louver.trusted.planner.sql import lexer, trees
from louver.trusted.planner.sql.resolver import STRINGS, name_words, schema_of
from louver.trusted.planner.write import grammar
from louver.trusted.planner.write.grammar import FILE_FUNCTIONS, TABLE_FUNCTIONS
from louver.trusted.vault.catalog import TEMPORARY, Catalog, HomeObject, Table

Secret = tuple[int, int]
"""The ids of the table and the column of an encrypted column."""
Secrets = frozenset[Secret]
Held = tuple[Secrets, Secrets, Secrets, Secrets, Secrets]
"""What the values of a temporary table depend on, and its rows in the four ways of `Rows`."""
NOTHING: Held = (frozenset(), frozenset(), frozenset(), frozenset(), frozenset())
SCHEMA: Secret = (0, 0)
"""The declared schema: names of encrypted columns, texts of views and checks."""
LOST = -1
"""Instead of a table's id: a value of a dropped column; the level's index follows."""
_BEFORE_TABLES = {"from", "join", "using", "table", "pivot", "unpivot", "pivot_wider"}
_BEFORE_TABLES |= {"pivot_longer", "describe", "desc", "show", "summarize"}
_FILE_MARKS = set("./*")


def secrets_of(table: Table) -> Secrets:
    """All encrypted columns of a table."""
    return frozenset((table.id, column.id) for column in table.columns if column.encrypted)


def names_of(tokens: Sequence[Token]) -> set[str]:
    """Every word of some tokens that could be a name, folded; strings only if a table is named at
    all, since FROM 'zoo' names one.
    """
    bare = {fold(token.text) for token in tokens if token.token_type not in STRINGS}
    return bare | name_words(tokens) if bare & _BEFORE_TABLES else bare


def reached(catalog: Catalog, names: set[str]) -> tuple[set[str], list[HomeObject]]:
    """Some words with all words of the views and macros that they name, and these objects."""
    seen: set[str] = set()
    objects: list[HomeObject] = []
    while fresh := names - seen:
        seen |= fresh
        for item in catalog.objects:
            if item.kind in ("VIEW", "MACRO") and fold(item.name) in fresh:
                objects.append(item)
                names = names | names_of(lexer.tokens(item.sql))
    return seen, objects


def tables_named(catalog: Catalog, names: set[str]) -> list[Table]:
    """Every table that some words may refer to, also through views and macros. A word that could
    be a table's name counts as one: reading too much is slow, reading too little is wrong.
    """
    every = reached(catalog, names)[0]
    tables = {table.id: table for (_, name), table in catalog.tables.items() if name in every}
    return [tables[key] for key in sorted(tables)]


class LocalState(Protocol):
    """A session's local state; ``unset`` is the lineage of unknown variables, ``plain_tables`` are
    temporary tables with values that a server may know, ``files`` the tables of attached files.
    """

    unset: Secrets
    plain_tables: set[str]
    files: dict[str, frozenset[tuple[str, str]]]

    def variables(self, catalog: Catalog) -> dict[str, Secrets]:
        """What each variable depends on, by folded name."""

    def tables(self, catalog: Catalog) -> dict[str, Held]:
        """What each temporary table depends on, by folded name."""


class Reads:
    """What one statement may read."""

    def __init__(
        self,
        catalog: Catalog,
        tree: exp.Expr | None,
        tokens: Sequence[Token],
        target: Table | None,
        local: LocalState,
        on_rows_alone: Callable[[], bool] = lambda: False,
    ) -> None:
        """``target`` is the table whose encrypted columns the statement's text assigns;
        ``on_rows_alone`` says, where the grammar does not know, whether the local engine does:
        that nothing is read but rows (`Statements.depends_on_rows_alone`).
        """
        self.variables = local.variables(catalog)
        self.unset = local.unset
        self.temporary = local.tables(catalog)
        self.plain_tables = local.plain_tables
        self._files = local.files
        self.catalog = catalog
        self.tree = tree
        self._tokens = tokens
        self._target = target
        # One of several functions of a name stands with its arguments.
        names = (o.name.partition("(")[0] for o in catalog.objects if o.kind == "MACRO")
        self.macros = set(map(fold, names))
        self._near = ""
        self._ask = on_rows_alone

    @cached_property
    def has_macros(self) -> bool:
        """Whether some word may be a macro's name; then names and functions may mean anything."""
        return bool(self.macros and self.macros & self._words)

    @cached_property
    def everything(self) -> Secrets:
        """Every encrypted column that is read, and the context if it may be read."""
        return self._all(unnamed=self._unnamed())

    @cached_property
    def every_column(self) -> Secrets:
        """The same for a statement that may read columns which it does not name."""
        return self._all(unnamed=True)

    @cached_property
    def columns(self) -> Secrets:
        """Every encrypted column that is read from a table."""
        return self._columns(unnamed=self._unnamed())

    def _all(self, *, unnamed: bool) -> Secrets:
        _, objects = reached(self.catalog, set(self._words))
        texts = [self.tree, *(trees.parse(item.sql) for item in objects)]
        needed = any(map(self._needs_context, texts)) and not self._on_rows_alone
        return self._columns(unnamed=unnamed) | (self.context if needed else frozenset())

    def _columns(self, *, unnamed: bool) -> Secrets:
        secrets: set[Secret] = set()
        every, objects = reached(self.catalog, set(self._words))
        named = {fold(name) for _, name in self.catalog.tables} & self._words
        for table in tables_named(self.catalog, set(self._words)):
            for column in table.columns:
                known = not unnamed and fold(table.name) in named and not objects
                if column.encrypted and (not known or fold(column.name) in self._words):
                    secrets.add((table.id, column.id))
        for name, held in self.temporary.items():
            if name in every:
                secrets.update(*held)
        return frozenset(secrets)

    @cached_property
    def anything(self) -> Secrets:
        """The same with the context, unless it is known not to be read."""
        return self.everything | (frozenset() if self._on_rows_alone else self.context)

    @cached_property
    def _on_rows_alone(self) -> bool:
        return self._ask()

    @cached_property
    def context(self) -> Secrets:
        """The contents of the statement's own text and of the schema."""
        own = secrets_of(self._target) if self._target is not None else frozenset()
        return own.union(self.schema, self.unset, *self.variables.values())

    @cached_property
    def schema(self) -> Secrets:
        """The schema, if it contains a secret."""
        hidden = any(table.has_encrypted for table in self.catalog.tables.values())
        return frozenset((SCHEMA,)) if hidden else frozenset()

    def table(self, node: exp.Table) -> Table | None:
        """The table that a reference means."""
        schema = schema_of(node.catalog, node.db)
        return None if schema is None else self.catalog.named(schema, node.name, self._near)

    def in_file(self, node: exp.Table) -> bool:
        """Whether a reference means a table of an attached file or a data frame: its values, like
        constants of the statement, are known locally only.
        """
        if not isinstance(node.this, exp.Identifier):
            return False
        if not node.db:
            return (own_schemas().home, fold(node.name)) in self._files.get("", ())
        database, schema = (
            (node.catalog, node.db) if node.catalog else (node.db, own_schemas().home)
        )
        return (fold(schema), fold(node.name)) in self._files.get(fold(database), ())

    def view(self, node: exp.Table) -> HomeObject | None:
        """The view that a reference means."""
        schema = schema_of(node.catalog, node.db)
        item = None if schema is None else self.catalog.find(schema, node.name, self._near)
        return item if isinstance(item, HomeObject) else None

    def within(self, view: HomeObject) -> Reads:
        """The same for names in the text of a view."""
        inner = copy(self)
        inner._near = view.schema
        return inner

    @cached_property
    def _words(self) -> set[str]:
        return names_of(self._tokens)

    def _unnamed(self) -> bool:
        """Whether columns may be read without being named."""
        if self.tree is None or any(t.token_type == TokenType.HASH for t in self._tokens):
            return True
        sources: set[str] = set()
        read: set[str] = set()
        for node in self.tree.walk():
            if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
                return True
            if isinstance(node, exp.Columns | exp.Pivot | exp.Summarize | exp.Command):
                return True
            if isinstance(node, exp.Join) and node.args.get("method"):
                return True
            if isinstance(node, exp.TableAlias) and node.columns:
                return True
            if isinstance(node, exp.Table):
                sources |= {fold(node.name), fold(node.alias_or_name)}
            elif isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
                read.add(fold(node.name))
        return bool(sources & read)

    def _needs_context(self, tree: exp.Expr | None) -> bool:
        """Whether a statement may read anything but tables and files."""
        if tree is None:
            return True
        named = {fold(cte.alias) for cte in tree.find_all(exp.CTE)}
        for node in tree.walk():
            if isinstance(node, exp.Table):
                if not self._is_known(node, named):
                    return True
            elif grammar.needs_context(node) and fold(node.name) not in self.macros:
                return True
        return False

    def _is_known(self, node: exp.Table, ctes: set[str]) -> bool:
        if not isinstance(node.this, exp.Identifier):
            # What its arguments read is examined separately.
            return not grammar.needs_context(node.this) or fold(node.this.name) in self.macros
        schema = schema_of(node.catalog, node.db)
        if schema is None:
            return False
        if self.catalog.find(schema, node.name, self._near):
            return True
        if self.in_file(node) or (is_local(node) and fold(node.name) in self.temporary):
            return True
        known = ctes | self.macros
        return not node.db and (fold(node.name) in {*known, "excluded"} or is_file(node))


def is_local(node: exp.Table) -> bool:
    """Whether a name can mean a temporary object, which then takes precedence."""
    return schema_of(node.catalog, fold(node.db)) in ("", own_schemas().temporary, TEMPORARY)


def is_file(node: exp.Table) -> bool:
    """Whether a name that is not a table's can only be that of a file."""
    bare = not node.db and not node.args.get("catalog")
    return bare and bool(_FILE_MARKS & set(node.name))


def is_generator(node: exp.Expr) -> bool:
    """Whether a source is a table function over constants that reads no table."""
    call = node.this if isinstance(node, exp.Table) else node
    if isinstance(call, exp.Anonymous):
        known = fold(call.name) in TABLE_FUNCTIONS
    else:
        known = isinstance(call, exp.GenerateSeries | exp.ReadCSV | exp.ReadParquet | exp.Unnest)
    return known and not _reads_columns(call.iter_expressions())


def is_reader(node: exp.Table) -> bool:
    """Whether a generator reads the user's files: like constants of the statement, their values
    are known locally only.
    """
    call = node.this
    if isinstance(call, exp.Anonymous):
        return fold(call.name) in FILE_FUNCTIONS
    return isinstance(call, exp.ReadCSV | exp.ReadParquet)


def _reads_columns(parts: Iterable[exp.Expr]) -> bool:
    return any(
        not node.name.startswith(lexer.PARAMETER_PREFIX) if isinstance(node, exp.Column) else True
        for part in parts
        for node in part.find_all(exp.Column, exp.Query, exp.Anonymous)
    )
