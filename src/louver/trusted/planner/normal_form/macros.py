"""Calls of macros as what the macros stand for.

DuckDB puts the arguments in the place of the parameters before it binds a statement; so does this,
for macros of one form without defaults whose text names no other macro.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokens import Token

from louver.names import fold
from louver.trusted.planner.normal_form import references
from louver.trusted.planner.normal_form.sources import Unclear
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.resolver import name_tokens
from louver.trusted.planner.sql.trees import parse
from louver.trusted.vault.catalog import Catalog, HomeObject

# Where a number by itself would be an ordinal, and what may stand between.
_KEYS = (exp.Group, exp.Order, exp.Distinct)
_WHOLE = (exp.Binary, exp.Func, exp.Query)
Macros = dict[str, list[HomeObject]]


def by_name(catalog: Catalog) -> Macros:
    """The catalog's macros, by their folded names."""
    macros: Macros = {}
    for item in catalog.objects:
        if item.kind == "MACRO":
            macros.setdefault(fold(item.name), []).append(item)
    return macros


def named(macros: Macros, tokens: Sequence[Token]) -> list[str]:
    """Each mention of a macro's name in a text."""
    return [word for token in name_tokens(tokens) if (word := fold(token.text)) in macros]


def write_out(tree: exp.Expr, macros: Macros, mentions: int) -> exp.Expr:
    """The tree with the macros written out; raises `Unclear` unless every mention
    of a macro's name is such a call.
    """
    if not mentions:
        return tree
    calls = [c for c in tree.find_all(exp.Anonymous) if fold(c.name) in macros]
    if len(calls) != mentions:
        # A macro may cover a function, or be named like a column.
        raise Unclear
    # Inner calls first: an argument may be a call.
    for call in reversed(calls):
        body = _body(macros, call)
        table = call.parent if isinstance(call.parent, exp.Table) else None
        if isinstance(call.find_ancestor(*_WHOLE, *_KEYS), _KEYS) and references.is_constant(body):
            raise Unclear
        if table is None:
            call.replace(exp.Paren(this=body))
        else:
            table.replace(_source(table, call, body))
    return tree


def _body(macros: Macros, call: exp.Anonymous) -> exp.Expr:
    """A macro's text with the arguments of a call."""
    (item, *others) = macros[fold(call.name)]
    definition = parse(item.sql)
    if others or item.path or item.temporary or not isinstance(definition, exp.Create):
        raise Unclear
    function, body = definition.this, definition.expression
    if not isinstance(function, exp.UserDefinedFunction) or not isinstance(body, exp.Expr):
        raise Unclear
    if len(named(macros, lexer.tokens(item.sql))) != 1:
        raise Unclear
    parameters = function.expressions
    if len(parameters) != len(call.expressions) or not all(
        isinstance(name, exp.Identifier) for name in parameters
    ):
        raise Unclear
    is_table = isinstance(body, exp.Query) and not isinstance(body, exp.Subquery)
    if is_table is not isinstance(call.parent, exp.Table):
        raise Unclear
    values = {
        fold(name.name): value for name, value in zip(parameters, call.expressions, strict=True)
    }
    if body.find(exp.Query) is not None and any(v.find(exp.Column) for v in values.values()):
        # A column of the call could be taken for one of the macro's own tables.
        raise Unclear
    if not all(isinstance(table.this, exp.Identifier) for table in body.find_all(exp.Table)):
        # An argument of a table function may name a table: only the binder reads it.
        raise Unclear
    for node in body.walk():
        node.meta.clear()
    body = exp.Paren(this=body)
    for column in list(body.find_all(exp.Column)):
        if not column.table and fold(column.name) in values:
            column.replace(exp.Paren(this=values[fold(column.name)].copy()))
    inner = body.this
    return inner if isinstance(inner, exp.Expr) else body


def _source(table: exp.Table, call: exp.Anonymous, body: exp.Expr) -> exp.Subquery:
    if set(filter(table.args.get, table.args)) - {"this", "alias"}:
        raise Unclear
    name = exp.to_identifier(call.name, quoted=True)
    return exp.Subquery(this=body, alias=table.args.get("alias") or exp.TableAlias(this=name))
