"""CREATE TEMP TABLE, and changes of temporary tables: all of it on the user's machine.

The rows are in the workspace. A statement that also reads stored tables runs there over all of
their rows. What a temporary table depends on is noted for the flow rule.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword, quoted
from louver.trusted.executor import federation, select, storage, transaction
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import postgres_forms
from louver.trusted.executor.define.temporary_objects import (
    changing,
    have_views,
    over_tables,
    views_of,
)
from louver.trusted.executor.schema import objects
from louver.trusted.planner.planner import home_values
from louver.trusted.planner.sql import declarations as declare
from louver.trusted.planner.sql import lexer, trees
from louver.trusted.planner.write import grammar, relation, sequence_draws
from louver.trusted.planner.write.reads import NOTHING, Held, Reads, names_of, reached, tables_named
from louver.trusted.planner.write.values import unknown_rows
from louver.trusted.vault.catalog import Table

_BEFORE_NAME = frozenset(("INTO", "FROM", "TABLE", "IF", "EXISTS", "OR", "REPLACE", "IGNORE"))
_CHANGES = frozenset(("INSERT", "UPDATE", "DELETE", "MERGE"))
_VERBS = _CHANGES | {"TRUNCATE", "DROP", "ALTER", "COPY"}
_BEFORE_QUERY = ("AS", "MATERIALIZED")
_UNDERSTOOD = {"this", "expression", "kind", "properties", "replace", "exists"}
_DEFINES = frozenset(("CREATE", "DROP", "ALTER"))


def is_target(context: Context, tokens: Sequence[Token]) -> bool:
    """Whether a statement changes a temporary table. Refuses a name that a stored table and a
    temporary table or view have: DuckDB would take the temporary one, and what is read must be
    certain.
    """
    known, views = context.local.temporary, views_of(context)
    if not tokens:
        return False
    said = names_of(tokens)
    named = known.names & said
    taken = {name for _, name in context.catalog.tables} & (named | (views & said))
    if taken and keyword(tokens[0].text) != "DROP":
        raise errors.make("table.temporary", table=min(taken))
    verb, at = keyword(tokens[0].text), 0
    if verb == "DROP" and named and {name for _, name in context.catalog.tables} & said:
        raise errors.make("sql.unsupported", statement="DROP of TEMP tables and others at once")
    if named and verb == "COMMENT":
        raise errors.make("sql.unsupported", statement="COMMENT ON a TEMP table")
    renames = verb == "ALTER" and "RENAME" in (keyword(token.text) for token in tokens)
    if renames and fold(tokens[-1].text) in named | views:
        raise errors.make("table.temporary", table=tokens[-1].text)
    if verb == "WITH":
        verb = select.changes(tokens)
        at = _verb_at(tokens, verb) if verb else 0
        if within := _changes_within(tokens):
            # Rows of stored tables are changed elsewhere.
            every = [*within, at] if verb else within
            return all(_name(tokens, position + 1) in known.names for position in every)
    if verb == "CREATE":
        words = [keyword(token.text) for token in tokens]
        at = words.index("ON") if "INDEX" in words[:3] and "ON" in words else 0
        verb = "ALTER" if at else ""
    kind = keyword(tokens[1].text) if verb in ("DROP", "ALTER") and tokens[1:] else ""
    if kind == "SEQUENCE" and context.local.dialect.prints_objects:
        return _is_sequence(context, tokens)
    if verb == "DROP" and kind == "INDEX":
        return known.has_index(_name(tokens, 2))
    name = _name(tokens, at + 1)
    return verb in _VERBS and (
        name in known.names or (verb in _CHANGES and over_tables(context, name))
    )


def _is_sequence(context: Context, tokens: Sequence[Token]) -> bool:
    """Whether a statement is about temporary sequences, and no others."""
    known = context.local.temporary.names
    if keyword(tokens[0].text) != "DROP":
        is_known = _name(tokens, 2) in known
        if is_known and context.in_transaction:
            # Where it stands would have to go back with the transaction, what is drawn not.
            raise errors.make(
                "sql.unsupported", statement="ALTER of a TEMP sequence in a transaction"
            )
        return is_known
    stored = {fold(o.name) for o in context.catalog.objects if o.kind == "SEQUENCE"}
    said = {fold(token.text) for token in tokens}
    if known & said and stored & said:
        raise errors.make("sql.unsupported", statement="DROP of TEMP sequences and others at once")
    return bool(known & said)


def _verb_at(tokens: Sequence[Token], verb: str) -> int:
    """Where the change behind WITH begins, outside of brackets."""
    depth = 0
    for position, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and keyword(token.text) == verb:
            return position
    return 0


def _changes_within(tokens: Sequence[Token]) -> list[int]:
    """Where the changes of a WITH begin that are queries of it."""
    words = [keyword(token.text) for token in tokens]
    return [
        at
        for at in range(2, len(words))
        if words[at] in _CHANGES and words[at - 1] == "(" and words[at - 2] in _BEFORE_QUERY
    ]


def _name(tokens: Sequence[Token], at: int) -> str:
    """The folded name from a place on; "" where it is of a schema that is not for these."""
    while at < len(tokens) and keyword(tokens[at].text) in _BEFORE_NAME:
        at += 1
    parts: list[str] = []
    while at < len(tokens):
        parts.append(fold(tokens[at].text))
        if at + 1 >= len(tokens) or tokens[at + 1].token_type != TokenType.DOT:
            break
        at += 2
    return parts[-1] if parts and parts[:-1] in ([], ["main"], ["temp"], ["temp", "main"]) else ""


def create(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object], name: str
) -> Answer:
    """Run CREATE [OR REPLACE] TEMP TABLE."""
    if any(fold(table.name) == name for table in context.catalog.tables.values()):
        raise errors.make("table.temporary", table=name)
    if not context.local.dialect.prints_objects and any(
        keyword(t.text) == "GENERATED" for t in tokens
    ):
        raise errors.make("sql.unsupported", statement="A generated column of a TEMP table")
    return change(context, text, tokens, parameters, fresh=name)


def change(
    context: Context,
    text: lexer.Text,
    tokens: Sequence[Token],
    parameters: list[object],
    fresh: str = "",
) -> Answer:
    """Run a statement that makes or changes a temporary table."""
    text, tokens = _without_enc(text, tokens)
    postgres_forms.require_temporary(context, tokens)
    if federation.mentions(context, tokens):
        statement = "A change of a TEMP table that reads attached tables"
        raise errors.make("sql.unsupported", statement=statement)
    if [keyword(token.text) for token in tokens[:2]] == ["DROP", "SEQUENCE"]:
        # What depends on it is PostgreSQL's to say.
        with context.local.rehearsal() as connection:
            connection.execute(text.home)
    if keyword(tokens[0].text) in ("ALTER", "DROP") and have_views(context):
        with changing(context, local=True) as catalog:
            # What becomes of views of the table is read off the binder's.
            change_of_views = objects.run(context, text.home)
            objects.forget(context, catalog, change_of_views.removed)
            objects.refresh(context, catalog, change_of_views.altered)
            return _changed(context, text, tokens, parameters, fresh)
    return _changed(context, text, tokens, parameters, fresh)


def _changed(
    context: Context,
    text: lexer.Text,
    tokens: Sequence[Token],
    parameters: list[object],
    fresh: str,
) -> Answer:
    home, words = context.local, reached(context.catalog, names_of(tokens))[0]
    _require_types(context, text, tokens, parameters)
    reads = Reads(context.catalog, trees.parse(text.plain), tokens, None, context.state.origins)
    definitions = lexer.tokens(" ".join(home.temporary.texts(words)))
    if not (_declares(reads.tree) or _is_empty(tokens)):
        sequence_draws.require(reads, tokens, definitions)
    held, plain = _held(reads)
    answers = {
        (table.schema, table.name): (
            _columns(context, table),
            storage.whole(context.storage, table).drop_columns([storage.ROW_ID]),
        )
        for table in tables_named(context.catalog, words)
    }
    if context.in_transaction:
        home.temporary.keep()
    try:
        rows = home.finish(answers, text.home, home_values(text, parameters), keeps=True)
    except errors.IntegrityError as error:
        if not (context.in_transaction and home.temporary.deferrable()[1]):
            raise
        # Each statement is a transaction of the local engine, at whose end all is checked.
        statement = "Breaking a rule of a TEMP table in a transaction, where some are DEFERRED,"
        raise errors.make("sql.unsupported", statement=statement) from error
    transaction.keep_sequences(context, [*tokens, *definitions])
    before = home.temporary.names
    if keyword(tokens[0].text) in _DEFINES:
        home.temporary.mirror()
        home.forget_types()
    # What a transaction replaced may come back, and IF NOT EXISTS replaces nothing.
    replaced = fresh not in before or keyword(tokens[1].text) == "OR"
    anew = fresh if replaced and not context.in_transaction else ""
    for name in (before | home.temporary.names) & words:
        context.state.origins.keep_table(
            context.catalog, name, held, fresh=name == anew, plain=plain
        )
    context.state.flows.clear()
    returns = any(keyword(token.text) == "RETURNING" for token in tokens)
    if home.dialect.has_own_statements:
        # Of a query whose parts change rows as well.
        returns = bool(home.last_columns)
    if returns:
        return Answer(rows, home.last_columns, rows.num_rows)
    if context.local.dialect.has_own_statements and keyword(tokens[0].text) == "TRUNCATE":
        return Answer()
    counted = rows.num_rows == 1 and rows.column_names == ["Count"]
    return Answer(affected=rows.column(0)[0].as_py() if counted else home.last_affected)


def _columns(context: Context, table: Table) -> list[tuple[str, str]]:
    """Names and types of a stored table's columns, for tables made of them: the catalog has a type
    without its length.
    """
    columns = [(column.name, column.type) for column in table.columns]
    if not context.local.dialect.prints_objects:
        return columns
    path = f"{quoted(table.schema)}.{quoted(table.name)}"
    declared = dict(context.local.describe(f"SELECT * FROM {path}"))
    return [
        # The binder says of a domain the type that it is of.
        (name, declared[name] if type_ == "VARCHAR" else type_)
        for name, type_ in columns
    ]


def _require_types(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> None:
    """Refuse whole rows of views, which are there only while the statement runs."""
    views = views_of(context) if context.local.dialect.prints_objects else ()
    if not views or all(keyword(token.text) != "RETURNING" for token in tokens):
        return
    described = context.local.describe(text.home, home_values(text, parameters))
    types = {type_.rpartition(".")[2].removesuffix("[]").strip('"') for _, type_ in described}
    if not types.isdisjoint(item.name for item in context.catalog.objects if item.kind == "VIEW"):
        raise errors.make("sql.unsupported", statement="RETURNING with whole rows of a view")


def _without_enc(text: lexer.Text, tokens: Sequence[Token]) -> tuple[lexer.Text, Sequence[Token]]:
    """A definition without ENC: its rows never leave the machine. No placeholder precedes a clause,
    so both texts are alike up to there.
    """
    if keyword(tokens[0].text) not in _DEFINES:
        return text, tokens
    said = declare.strip_enc(text.plain, tokens)
    if not said.cuts:
        return text, tokens
    home = declare.strip_enc(text.home, tokens).sql
    return lexer.Text(home, said.sql, text.parameters), lexer.tokens(said.sql)


def _declares(tree: exp.Expr | None) -> bool:
    """Whether a statement makes a table without rows."""
    return isinstance(tree, exp.Create) and tree.args.get("expression") is None


def _is_empty(tokens: Sequence[Token]) -> bool:
    """The same of one that is not parsed: without a query outside of brackets."""
    depth = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.token_type == TokenType.ALIAS:
            return False
    return keyword(tokens[0].text) == "CREATE"


def _held(reads: Reads) -> tuple[Held, bool]:
    """What the values, and the rows, that a statement writes depend on, and whether a server may
    know values of them: constants and ENC columns it does not know.
    """
    tree = reads.tree
    if isinstance(tree, exp.Create | exp.Insert) and not reads.has_macros:
        source = tree.args.get("expression")
        if source is not None and not set(filter(tree.args.get, tree.args)) - _UNDERSTOOD:
            value = relation.query(source, reads, None)
            rows, every = value.rows, value.every
            held = every.secrets, rows.chosen, rows.joined, rows.shown, rows.counted
            return held, bool(every.plains)
        if _declares(tree) and not any(map(grammar.needs_context, tree.walk())):
            return NOTHING, any(isinstance(node, exp.Func | exp.Query) for node in tree.walk())
    rows = unknown_rows(reads.everything, reads.columns)
    return (reads.everything, rows.chosen, rows.joined, rows.shown, rows.counted), True
